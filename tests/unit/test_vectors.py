"""Rotated binary codes: the same everywhere, near the cosine, and cheap."""

from __future__ import annotations

import hashlib

import numpy as np
import pytest

from shared.memory import vectors
from shared.memory.vectors import Rotation, bits, centred, encode, scores, top

WIDTHS = (8, 104, 384, 1024)
GOLDEN_384 = "b1e8c33094eff4a7dd144acb3cc9f8e9f7123152d69f24466c166c46b9be82a3"
GOLDEN_1024 = "b4af9183c8fb13fb84d33fc0bef1deff9ef6db5002bacd123750ca3fdd838c2d"


def unit(rows: int, width: int, seed: int = 1) -> vectors.Floats:
    made = np.random.default_rng(seed).standard_normal((rows, width)).astype(np.float32)
    return np.asarray(made / np.linalg.norm(made, axis=1, keepdims=True), np.float32)


@pytest.mark.parametrize("width", WIDTHS)
def test_the_rotation_is_orthogonal(width: int) -> None:
    matrix = Rotation(width).apply(np.eye(width, dtype=np.float32))
    assert np.abs(matrix @ matrix.T - np.eye(width)).max() < 1e-6


@pytest.mark.parametrize("width", [384, 1024])
def test_the_rotation_spreads_every_value_over_all_others(width: int) -> None:
    matrix = np.abs(Rotation(width).apply(np.eye(width, dtype=np.float32)))
    assert matrix.max() < 0.3
    assert np.count_nonzero(matrix < 1e-7) < 0.01 * width * width


def test_the_codes_on_disk_mean_the_same_for_ever() -> None:
    """Integers in, fixed bytes out: a change here makes every stored code worthless."""
    counted = ((np.arange(6 * 384, dtype=np.int64) * 7919) % 1009 - 504).astype(np.float32).reshape(6, 384)
    code = encode(Rotation(384), counted)
    assert code.shape == (6, 48)
    assert hashlib.sha256(code.tobytes()).hexdigest() == GOLDEN_384
    wide = ((np.arange(2 * 1024, dtype=np.int64) * 7919) % 1009 - 504).astype(np.float32).reshape(2, 1024)
    assert hashlib.sha256(encode(Rotation(1024), wide).tobytes()).hexdigest() == GOLDEN_1024


def test_scores_are_the_query_against_signs() -> None:
    rotation, stored, asked = Rotation(384), unit(300, 384), unit(1, 384, 2)[0]
    code = encode(rotation, stored)
    signs = np.where(rotation.apply(stored) > 0, 1.0, -1.0)
    expected = signs @ rotation.apply(asked.reshape(1, -1))[0]
    found = scores(rotation.apply(asked.reshape(1, -1))[0], np.ascontiguousarray(code.T))
    assert np.abs(found - expected).max() < 1e-4


def test_scores_in_chunks_are_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    rotation, asked = Rotation(64), unit(1, 64, 2)[0]
    code = np.ascontiguousarray(encode(rotation, unit(1000, 64)).T)
    whole = scores(asked, code)
    monkeypatch.setattr(vectors, "_CHUNK", 33)
    assert np.array_equal(scores(asked, code), whole)
    assert scores(asked, code[:, :0]).shape == (0,)


def test_the_nearest_is_found_by_its_bits() -> None:
    rotation, stored = Rotation(384), unit(2000, 384)
    code = np.ascontiguousarray(encode(rotation, stored).T)
    noise = unit(50, 384, 3) * 0.9
    asked = stored[:50] + noise
    numbers = np.arange(2000)
    found = [int(top(scores(query, code), numbers, 1)[0]) for query in rotation.apply(asked)]
    assert found == list(range(50))


def test_a_query_is_centred_by_the_bits_alone() -> None:
    """Vectors around a shared mean: what the bits tell of it is close to it."""
    rotation = Rotation(384)
    shared = unit(1, 384, 7)[0] * 0.5
    stored = shared + unit(4000, 384, 8) * np.sqrt(1 - 0.25)
    stored = (stored / np.linalg.norm(stored, axis=1, keepdims=True)).astype(np.float32)
    code = encode(rotation, stored)
    zero = np.zeros(384, np.float32)
    told = -centred(zero, bits(code), len(code))
    true = rotation.apply(stored).mean(0)
    assert np.linalg.norm(told - true) < 0.2 * np.linalg.norm(true)


def test_few_vectors_or_unrelated_ones_move_no_query() -> None:
    """What four random vectors share is chance, and their mean is near each of them."""
    rotation, zero = Rotation(384), np.zeros(384, np.float32)
    for count in (0, 1):
        assert np.array_equal(centred(zero, np.full(384, count), count), zero)
    for count in (2, 4, 400):
        code = encode(rotation, unit(count, 384, count))
        assert np.linalg.norm(centred(zero, bits(code), count)) < 0.15
    assert np.array_equal(centred(zero, np.full(384, 5), 10), zero)


def test_top_is_ordered_and_ties_go_by_number() -> None:
    found = np.array([1, 3, 3, 0, 3, 2], np.float32)
    numbers = np.array([9, 8, 2, 6, 5, 4])
    assert top(found, numbers, 2).tolist() == [2, 4]
    assert top(found, numbers, 4).tolist() == [2, 4, 1, 5]
    assert top(found, numbers, 99).tolist() == [2, 4, 1, 5, 0, 3]
    assert top(found[:0], numbers[:0], 3).tolist() == []


@pytest.mark.parametrize("width", [0, 4, 12, -8])
def test_a_width_that_is_no_multiple_of_eight_is_refused(width: int) -> None:
    with pytest.raises(ValueError, match="multiple of 8"):
        Rotation(width)
