"""How many bytes all content takes when losslessly packed: the figure beside each stage's budget."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from crystalmem.demo.episodes import Episode
from crystalmem.demo.stream import Stream
from shared.memory.blocks import MAX_MEMBERS, MAX_TEXT_BYTES, BlockMember, pack_block


def packed_sizes(stream: Stream) -> tuple[int, ...]:
    """For each stage, the packed bytes of the content that is there when it is measured.

    Blocks as the store makes them, without a trained dictionary: an upper bound of what the store needs.
    """
    sizes, written = [], list(stream.before)
    for stage in stream.stages:
        sizes.append(packed_size(written))
        written += stage.writes
    return tuple(sizes)


def packed_size(episodes: Sequence[Episode]) -> int:
    """Bytes of the blocks that hold these texts in order."""
    return sum(len(pack_block(run).body) for run in _runs(episodes))


def _runs(episodes: Sequence[Episode]) -> Iterable[list[BlockMember]]:
    run: list[BlockMember] = []
    size = 0
    for number, episode in enumerate(episodes, start=1):
        record = episode.text.encode("utf-8")
        if run and (len(run) == MAX_MEMBERS or size + len(record) > MAX_TEXT_BYTES):
            yield run
            run, size = [], 0
        run.append(BlockMember(number, record))
        size += len(record)
    if run:
        yield run
