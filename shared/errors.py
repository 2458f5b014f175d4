"""The error tree and the closed set of codes used at the door, on the wire and as metric labels."""

from __future__ import annotations

from enum import Enum


class Code(str, Enum):
    """Closed: a new code is added here or nowhere."""

    # bad input at the door
    EMPTY_TEXT = "empty_text"
    TEXT_TOO_LARGE = "text_too_large"
    NOT_UTF8 = "not_utf8"
    LONE_SURROGATE = "lone_surrogate"
    NUL_IN_TEXT = "nul_in_text"
    BAD_REQUEST = "bad_request"
    BAD_OUTCOME = "bad_outcome"
    BAD_BUDGET = "bad_budget"
    BAD_ID = "bad_id"
    DUPLICATE_ID = "duplicate_id"
    UNKNOWN_ID = "unknown_id"
    UNKNOWN_TENANT = "unknown_tenant"
    UNKNOWN_RECALL = "unknown_recall"
    ALREADY_GRADED = "already_graded"
    ENTRY_OVER_BUDGET = "entry_over_budget"
    BUDGET_BELOW_FLOOR = "budget_below_floor"
    NOT_RESTORABLE = "not_restorable"
    UNAUTHORIZED = "unauthorized"
    NOT_FOUND = "not_found"
    # configuration and start-up
    BAD_CONFIG = "bad_config"
    BAD_KEY_FILE = "bad_key_file"
    WRONG_TENANT_STORE = "wrong_tenant_store"
    WRONG_LADDER = "wrong_ladder"
    SCHEMA_TOO_NEW = "schema_too_new"
    STORE_LOCKED = "store_locked"
    BAD_INPUT_FILE = "bad_input_file"
    MODEL_ABSENT = "model_absent"
    MODEL_BROKEN = "model_broken"
    WRONG_PROVIDER = "wrong_provider"
    WRONG_EMBEDDER = "wrong_embedder"
    NOT_ENOUGH_MEMORY = "not_enough_memory"
    # stored bytes
    CORRUPT = "corrupt"
    MISSING_DICTIONARY = "missing_dictionary"
    LEVELS_FROZEN = "levels_frozen"
    DIGEST_MISMATCH = "digest_mismatch"
    # the machine
    DISK_FULL = "disk_full"
    DISK_ERROR = "disk_error"
    # link
    UNKNOWN_KEY = "unknown_key"
    REVOKED_KEY = "revoked_key"
    NOT_ENCRYPTED = "not_encrypted"
    FOREIGN_TENANT = "foreign_tenant"
    MALFORMED = "malformed"
    TOO_LARGE = "too_large"
    UNSUPPORTED_VERSION = "unsupported_version"
    BAD_DIGEST = "bad_digest"
    CHAIN_MISMATCH = "chain_mismatch"
    GAP = "gap"
    STALE_EPOCH = "stale_epoch"
    FENCED = "fenced"
    NO_SESSION = "no_session"
    HUB_UNAVAILABLE = "hub_unavailable"
    SOURCE_ABSENT = "source_absent"
    TIMED_OUT = "timed_out"
    INTERNAL = "internal"


class CrystalError(Exception):
    """Base of all our errors: a code, the facts, and the next thing to do."""

    def __init__(self, code: Code, message: str, *, hint: str = "", **facts: object) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.hint = hint
        self.facts = facts

    def __str__(self) -> str:
        facts = ", ".join(f"{name}={value!r}" for name, value in self.facts.items())
        return f"{self.message}{f' ({facts})' if facts else ''}{f'. {self.hint}' if self.hint else ''}"


class TransientError(CrystalError):
    """Trying again may help."""


class PermanentError(CrystalError):
    """Trying again cannot help."""


class InputError(PermanentError):
    """What the caller gave is wrong; nothing was changed."""


class IntegrityError(CrystalError):
    """Stored bytes are not what they should be: stop writing, keep the evidence."""


class SecurityError(CrystalError):
    """Drop the peer and count it."""


class SafetyTrip(CrystalError):  # noqa: N818 - the name is the house's term for an arm stop
    """Arm to its safe state; a person must clear it."""
