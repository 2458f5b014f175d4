"""The arms: what runs side by side on the same stream, and what each of them is."""

from __future__ import annotations

from dataclasses import dataclass

REFERENCE = "keep_all"


@dataclass(frozen=True)
class Arm:
    """One configuration of the real edge daemon. `archive` and `model` need a hub."""

    name: str
    title: str
    policy: str
    ladder: str
    hub: bool = False
    archive: str = "never"
    eviction: str = "last_resort"
    model: bool = False


ARMS: dict[str, Arm] = {
    arm.name: arm
    for arm in (
        Arm(REFERENCE, "keep-all (reference)", "keep_all", "verbatim"),
        Arm("lru", "LRU, plain text", "lru", "verbatim"),
        Arm("lru_packed", "LRU, packed entries", "lru", "packed"),
        Arm("paper", "CrystalMem, paper ladder, no hub", "crystalmem", "paper"),
        Arm("product", "CrystalMem, product ladder, no hub", "crystalmem", "product"),
        Arm(
            "product_archive",
            "CrystalMem, product ladder, hub archive",
            "crystalmem",
            "product",
            hub=True,
            archive="demoted",
        ),
        Arm(
            "paper_llm", "CrystalMem, paper ladder, hub's model", "crystalmem", "paper", hub=True, model=True
        ),
    )
}


def selected(with_model: bool) -> tuple[Arm, ...]:
    """Every arm that can run; those with a model only where there is an endpoint."""
    return tuple(arm for arm in ARMS.values() if with_model or not arm.model)
