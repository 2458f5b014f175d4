"""Every policy by name, in the order of the tables. What a name needs is imported when it is made."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import TYPE_CHECKING, Any

from bench.policies.contract import Arm, HostPolicy
from bench.policies.llm import Llm
from bench.policies.openai_llm import from_environment
from shared.errors import Code, InputError

if TYPE_CHECKING:
    from bench.policies.host import HostArm

TABLE_II = (
    "keep_all",
    "lru",
    "expiry",
    "random",
    "mem0",
    "memgpt",
    "mars",
    "amem",
    "memoryos",
    "human_inspired",
    "r3mem",
    "curator",
    "amac",
    "recmem",
    "agemem",
    "crystalmem_lite",
    "crystalmem",
)
"""The paper's seventeen rows, in its order."""
ORDER = (
    *TABLE_II,
    "lru_packed",
    "curator_packed",
    "mem0_v3",
    "paper",
    "product",
    "paper_archive",
    "product_archive",
)
"""Table II and the rows that honesty asks for."""
PAPER_ABLATIONS = (
    "ablate:size_greedy",
    "ablate:random_schedule",
    "ablate:recency_influence",
    "ablate:random_influence",
    "ablate:no_coupling",
    "ablate:hallucinating",
    "ablate:no_gate",
    "ablate:rho_0",
    "ablate:rho_5",
    "ablate:rho_20",
    "ablate:k2",
    "ablate:k3",
    "ablate:k6",
    "ablate:exact",
)
"""Table IV's, around `crystalmem`; one model that invents things (for the gate), one exact (for Prop. 6)."""
OUR_ABLATIONS = (
    "ablate:no_packed",
    "ablate:last_resort",
    "ablate:paper_values",
    "ablate:paper_utilities",
    "ablate:rung_by_rung",
    "ablate:extractive",
)
"""Around `product`."""
ABLATIONS = (*PAPER_ABLATIONS, *OUR_ABLATIONS)
NAMES = (*ORDER, *ABLATIONS)
BINARY_SEVEN = ("lru", "expiry", "random", "curator", "amac", "recmem", "agemem")
"""The paper's Fig. 6(d) counts seven binary policies without naming them: the only split of Table II that
gives seven is the bounded references and the governance family (baselines.md 0)."""

_RETENTION = {
    "keep_all": ("keep_all", "KeepAll"),
    "lru": ("lru", "Lru"),
    "expiry": ("expiry", "Expiry"),
    "random": ("random_drop", "RandomDrop"),
    "curator": ("curator", "Curator"),
}
_SYSTEMS = {
    "mem0": ("mem0", "Mem0"),
    "mem0_v3": ("mem0_v3", "Mem0V3"),
    "memgpt": ("memgpt", "MemGpt"),
    "mars": ("mars", "Mars"),
    "amem": ("amem", "AMem"),
    "memoryos": ("memoryos", "MemoryOs"),
    "human_inspired": ("human_inspired", "HumanInspired"),
    "r3mem": ("r3mem", "R3Mem"),
    "amac": ("amac", "AMac"),
    "recmem": ("recmem", "RecMem"),
    "agemem": ("agemem", "AgeMem"),
}
_PACKED = {"lru_packed": "lru", "curator_packed": "curator"}


def make(name: str, seed: int) -> Arm:
    """A new arm over an empty store; InputError for a name that is none of ours.

    Systems that use a language model get the one that the environment names (bench.policies.openai_llm),
    or else their deterministic stand-ins, and say which (`stand_in`).
    """
    if on_host(name):
        return host_arm(name, seed)
    if name in NAMES:
        from bench.policies.edge import edge_arm

        return edge_arm(name, seed)
    raise InputError(Code.BAD_REQUEST, "no such policy", name=name, hint=f"One of: {', '.join(NAMES)}")


def on_host(name: str) -> bool:
    """Whether a row is a baseline on the bench's host; the others are the edge agent itself."""
    return name in _RETENTION or name in _SYSTEMS or name in _PACKED


def host_arm(name: str, seed: int) -> HostArm:
    """A new arm of a row that is `on_host`."""
    if name in _PACKED:
        from bench.policies.packed import packed_arm

        return packed_arm(name, _retention(_PACKED[name], seed), seed)
    from bench.policies.host import HostArm

    return HostArm(host_policy(name, seed, from_environment()), seed)


def host_policy(name: str, seed: int, llm: Llm | None) -> HostPolicy:
    """A baseline without its host. llm None = the policy's own stand-in."""
    if name in _RETENTION:
        from bench.policies.retention import RetentionPolicy

        return RetentionPolicy(_retention(name, seed))
    if name not in _SYSTEMS:
        raise InputError(
            Code.BAD_REQUEST,
            "no such policy lives on the host",
            name=name,
            hint=f"One of: {', '.join((*_RETENTION, *_SYSTEMS))}",
        )
    policy: HostPolicy = _made(_SYSTEMS[name])(seed, llm)
    return policy


def _retention(name: str, seed: int) -> Any:
    made = _made(_RETENTION[name])
    return made(seed) if name == "random" else made()


def _made(place: tuple[str, str]) -> Callable[..., Any]:
    module, name = place
    made: Callable[..., Any] = getattr(import_module(f"bench.policies.{module}"), name)
    return made
