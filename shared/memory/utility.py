"""r of Eq. 6: what share of its utility an entry of a kind keeps at a rung."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from shared.memory.calibrated import UTILITY
from shared.memory.model import Kind, Ladder

Float32s = NDArray[np.float32]


def utilities(ladder: Ladder) -> Float32s:
    """r by (kind, rung of the ladder): as measured for a calibrated ladder, else its own for every kind.

    Never rises down the ladder: Eq. 6's energy must not fall where fidelity does.
    """
    table = np.tile(np.array([spec.utility for spec in ladder.rungs], np.float32), (len(Kind), 1))
    if ladder.calibrated:
        for kind, measured in UTILITY.items():
            for position, spec in enumerate(ladder.rungs):
                table[kind, position] = measured.get(spec.rung, table[kind, position])
    return np.minimum.accumulate(table, axis=1)
