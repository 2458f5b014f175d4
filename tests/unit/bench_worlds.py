"""A made-up environment and policies for tests of the bench's runner and results."""

from __future__ import annotations

from collections.abc import Sequence

from bench.environments.contract import STAGES, Item, Model, Question, Size, World, cut
from bench.policies.contract import Origin, Report, Traits
from bench.policies.host import Host, HostArm, evict_in_order
from shared.memory.model import Kind


class Drawers:
    """Drawer N holds thing N: a question is answered by the one text that names both."""

    name = "drawers"
    hits = 3
    hit_bytes = 1000
    provenance = "made up for tests"

    def size(self, preset: str) -> Size:
        return Size(1, 40 if preset == "quick" else 80, 10, 4)

    def worlds(self, seed: int, size: Size) -> tuple[World, ...]:
        return tuple(_world(f"w{seed}.{number}", size) for number in range(size.worlds))

    def g(self, question: Question, texts: Sequence[str], model: Model | None) -> float:
        return float(any(f"thing{question.category}x" in text for text in texts))


def _world(name: str, size: Size) -> World:
    items = [
        Item(f"{name}-{n}", f"drawer{n}x holds thing{n}x and a long story about it.", Kind.MEMORY, float(n))
        for n in range(size.items)
    ]
    stages = cut(items)
    known = len(stages[0])
    asked = [Question(f"q{n}", f"what does drawer{n}x hold?", str(n)) for n in range(known)]
    measuring = tuple(asked[:: max(1, known // size.measuring)][: size.measuring])
    rest = [question for question in asked if question not in measuring]
    serving = tuple(
        tuple(rest[(stage + n) % len(rest)] for n in range(size.serving)) for stage in range(STAGES)
    )
    return World(name, stages, measuring, serving)


class Oldest:
    """Oldest first; binary."""

    name = "oldest"
    budget_exempt = False
    traits = Traits(binary=True)
    origin = Origin("test", "none", "none", "all of it")

    def on_write(self, host: Host, item: Item, now: int) -> Report:
        host.add(item, now)
        return Report()

    def on_read(self, host: Host, query: str, hits: Sequence[int], now: int) -> Report:
        return Report()

    def on_outcome(self, host: Host, hits: Sequence[int], g: float, now: int) -> None:
        """Learns nothing."""

    def enforce(self, host: Host, budget_bytes: float, now: int) -> Report:
        return evict_in_order(host, [row.number for row in host.by_age()], budget_bytes)


class Greedy(Oldest):
    """Breaks its budget."""

    name = "greedy"

    def enforce(self, host: Host, budget_bytes: float, now: int) -> Report:
        return Report()


class Everything(Greedy):
    """Says that no budget binds it."""

    name = "keep_all"
    budget_exempt = True


def make(name: str, seed: int) -> HostArm:
    """bench.policies.registry.make for these."""
    return HostArm({"oldest": Oldest, "greedy": Greedy, "keep_all": Everything}[name](), seed)
