"""Names of tenants and edges: legal as they stand, or refused."""

from __future__ import annotations

import pytest

from shared.errors import Code, InputError
from shared.scope import edge_name, tenant_name, tombstone_hash


@pytest.mark.parametrize("name", ["a", "0", "edge-1", "a.b_c-d", "a" * 64])
def test_a_legal_name_is_itself(name: str) -> None:
    assert tenant_name(name) == name
    assert edge_name(name) == name


@pytest.mark.parametrize(
    "name", ["", "A", ".a", "-a", "..", "a/b", "a b", "a\n", "a\0", "é", "ａ", "a" * 65, " a"]
)
def test_anything_else_is_refused_and_nothing_is_repaired(name: str) -> None:
    for check in (tenant_name, edge_name):
        with pytest.raises(InputError) as caught:
            check(name)
        assert caught.value.code is Code.BAD_REQUEST


def test_a_tombstone_knows_its_tenant() -> None:
    assert tombstone_hash("a", b"i" * 16) == tombstone_hash("a", b"i" * 16)
    assert tombstone_hash("a", b"i" * 16) != tombstone_hash("b", b"i" * 16)
    assert tombstone_hash("a", b"i" * 16) != tombstone_hash("a", b"j" * 16)
