"""What `crystalmem bench calibrate` measured on training streams; written by it, not by hand."""

from __future__ import annotations

from collections.abc import Mapping

from shared.memory.model import Kind, Rung

UTILITY: Mapping[Kind, Mapping[Rung, float]] = {
    Kind.MESSAGE: {Rung.COMPRESSED: 0.94, Rung.SKELETAL: 0.68, Rung.TRACE: 0.25},
    Kind.MEMORY: {Rung.COMPRESSED: 0.35, Rung.SKELETAL: 0.13, Rung.TRACE: 0.01},
    Kind.EPISODE: {Rung.COMPRESSED: 0.53, Rung.SKELETAL: 0.27, Rung.TRACE: 0.02},
    Kind.SKILL: {Rung.COMPRESSED: 0.53, Rung.SKELETAL: 0.27, Rung.TRACE: 0.02},
    Kind.WORKFLOW: {Rung.COMPRESSED: 0.06, Rung.SKELETAL: 0.06, Rung.TRACE: 0.0},
}
"""r of Eq. 6 by kind, where it was measured: capability with every entry of the kind at that rung."""
