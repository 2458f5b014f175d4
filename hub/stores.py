"""The tenants' files, opened when first needed, behind one thread."""

from __future__ import annotations

from pathlib import Path

from hub.drafts import KeptDraft
from hub.store import Applied, Standing, TenantStore
from shared.errors import Code, SecurityError
from shared.scope import TenantName
from shared.wire import Archived, BatchMessage, DraftAsk, Fetch, Hello, body_digest


class Stores:
    """What the router asks of them. Run on the hub's store thread."""

    def __init__(self, directory: Path, quota_bytes: int) -> None:
        self._directory = directory
        self._quota_bytes = quota_bytes
        self._open: dict[str, TenantStore] = {}

    def hello(self, edge: str, hello: Hello) -> Standing:
        """TenantStore.hello of the message's tenant."""
        return self._of(hello.tenant).hello(edge, hello)

    def apply(self, edge: str, message: BatchMessage) -> Applied:
        """TenantStore.apply of the message's tenant, once the digest is right."""
        if body_digest(message.body) != message.sha256:
            raise SecurityError(Code.BAD_DIGEST, "the batch is not what its digest says", edge=edge)
        return self._of(message.tenant).apply(edge, message.body)

    def fetch(self, edge: str, ask: Fetch) -> Archived:
        """TenantStore.fetch of the message's tenant."""
        return self._of(ask.tenant).fetch(edge, ask)

    def kept_draft(self, edge: str, ask: DraftAsk) -> KeptDraft | None:
        """TenantStore.kept_draft of the message's tenant."""
        return self._of(ask.tenant).kept_draft(edge, ask)

    def keep_draft(self, edge: str, ask: DraftAsk, draft: KeptDraft) -> bool:
        """TenantStore.keep_draft of the message's tenant."""
        return self._of(ask.tenant).keep_draft(edge, ask, draft)

    def close(self) -> None:
        """Close every file."""
        for store in self._open.values():
            store.close()
        self._open.clear()

    def _of(self, tenant: str) -> TenantStore:
        store = self._open.get(tenant)
        if store is None:
            store = self._open[tenant] = TenantStore(self._directory, TenantName(tenant), self._quota_bytes)
        return store
