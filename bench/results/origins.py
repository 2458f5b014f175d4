"""Which rows are re-creations: system, public source, official code, what is ours (baselines.md 6)."""

from __future__ import annotations

from bench.policies.host import HostArm
from bench.policies.registry import ORDER, make
from bench.results import paper
from bench.results.markdown import table


def origins_table() -> str:
    """One row a policy of Table II that is not ours."""
    rows = []
    for name in ORDER:
        arm = make(name, 0)
        try:
            if isinstance(arm, HostArm):
                origin = arm.policy.origin
                rows.append([paper.label(name), origin.source, origin.official_code, origin.ours])
        finally:
            arm.close()
    return table(["policy", "public source", "official code", "what is ours"], rows)
