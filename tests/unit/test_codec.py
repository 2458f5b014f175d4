"""shared.memory.codec: nothing but the verified plaintext ever comes out."""

from __future__ import annotations

import json
from contextlib import suppress
from pathlib import Path

import brotli
import pytest
import zstandard
from hypothesis import given, settings
from hypothesis import strategies as st

from shared.errors import Code, IntegrityError, PermanentError
from shared.memory import codec, varint
from shared.memory.codec import Codec, Coder, Dictionary, EncodeResult
from shared.memory.coders import CODERS, DecodeError
from tests.texts import DIALOGUE, TRANSCRIPT

TEXT = TRANSCRIPT.encode()
DICTIONARY = Dictionary.of(3, TRANSCRIPT[:1500].encode())
HELD = {3: DICTIONARY}
FRAMES = Path(__file__).parent.parent / "fixtures" / "frames.json"


def envelopes() -> dict[str, bytes]:
    """One of every kind."""
    return {
        "raw": codec.encode(b"short").body,
        "uncoded": codec.encode(TEXT, coded=False).body,
        "zstd": codec.encode(TEXT).body,
        "dictionary": codec.encode(TEXT, dictionary=DICTIONARY).body,
        "self_contained": codec.encode_self_contained(TEXT).body,
        "short_self_contained": codec.encode_self_contained(b"short").body,
    }


@pytest.mark.parametrize(
    "plaintext",
    [
        b"",
        b"a",
        b"\xff\xfe not UTF-8 \x00" * 5,
        b"a" * 63,
        b"a" * 64,
        b"ab" * 500_000,
        TEXT,
        DIALOGUE.encode(),
        bytes(range(256)) * 8,
    ],
)
@pytest.mark.parametrize("dictionary", [None, DICTIONARY])
@pytest.mark.parametrize("coded", [True, False])
def test_round_trips(plaintext: bytes, dictionary: Dictionary | None, coded: bool) -> None:
    for level in (1, 3, 19):
        made = codec.encode(plaintext, level=level, dictionary=dictionary, coded=coded)
        assert codec.decode(made.body, HELD) == plaintext
        assert made.verify_failures == 0
        assert len(made.body) <= len(plaintext) + 25
    assert codec.decode(codec.encode_self_contained(plaintext).body) == plaintext


@given(st.binary(max_size=4000))
@settings(max_examples=60)
def test_any_bytes_round_trip(plaintext: bytes) -> None:
    for made in (codec.encode(plaintext, dictionary=DICTIONARY), codec.encode_self_contained(plaintext)):
        assert codec.decode(made.body, HELD) == plaintext


def test_the_codec_is_the_cheapest_that_pays() -> None:
    assert codec.encode(b"a" * 63).codec is Codec.RAW
    assert codec.encode(b"a" * 64).codec is Codec.ZSTD
    assert codec.encode(TEXT, coded=False).codec is Codec.RAW
    assert codec.encode(TEXT, dictionary=DICTIONARY).codec is Codec.ZSTD_DICTIONARY
    assert codec.encode_self_contained(TEXT).codec is Codec.BROTLI
    noise = b"".join(codec.digest(bytes([number])) for number in range(64))
    assert codec.encode(noise).codec is Codec.RAW
    assert codec.encode_self_contained(noise).codec is Codec.RAW


def test_envelopes_have_these_bytes() -> None:
    assert codec.digest(b"abc").hex() == "cf4ab791c62b8d2b2109c90275287816"
    assert codec.encode(b"abc").body.hex() == "010003" + codec.digest(b"abc").hex() + "616263"
    assert codec.encode_self_contained(b"abc").body.hex() == "018003cf4ab791616263"
    head = codec.digest(TEXT)
    assert codec.encode(TEXT).body.startswith(bytes.fromhex("0101f608") + head + zstandard.FRAME_HEADER)
    assert codec.encode(TEXT, dictionary=DICTIONARY).body.startswith(bytes.fromhex("010303f608") + head)
    assert codec.encode_self_contained(TEXT).body.startswith(bytes.fromhex("0182f608") + head[:4])


@pytest.mark.parametrize("kind", list(envelopes()))
def test_no_flipped_byte_ever_gives_other_bytes(kind: str) -> None:
    body = envelopes()[kind]
    plaintext = codec.decode(body, HELD)
    for position in range(len(body)):
        for mask in (0x01, 0x80, 0xFF):
            damaged = bytearray(body)
            damaged[position] ^= mask
            with suppress(IntegrityError):
                assert codec.decode(bytes(damaged), HELD) == plaintext


@pytest.mark.parametrize("kind", list(envelopes()))
def test_cut_and_lengthened_envelopes_are_refused(kind: str) -> None:
    body = envelopes()[kind]
    for length in range(len(body)):
        with pytest.raises(IntegrityError):
            codec.decode(body[:length], HELD)
    with pytest.raises(IntegrityError):
        codec.decode(body + b"\x00", HELD)


def test_no_flipped_dictionary_byte_ever_gives_other_bytes() -> None:
    for position in range(len(DICTIONARY.body)):
        damaged = bytearray(DICTIONARY.body)
        damaged[position] ^= 0x20
        with pytest.raises(IntegrityError) as refused:
            Dictionary(3, DICTIONARY.digest, bytes(damaged))
        assert refused.value.code is Code.CORRUPT


def test_another_dictionary_under_the_number_is_no_way_to_wrong_bytes() -> None:
    body = codec.encode(TEXT, dictionary=DICTIONARY).body
    other = Dictionary.of(3, DIALOGUE.encode() * 4)
    with pytest.raises(IntegrityError) as refused:
        codec.decode(body, {3: other})
    assert refused.value.code is Code.CORRUPT


def test_a_missing_dictionary_is_named() -> None:
    body = codec.encode(TEXT, dictionary=DICTIONARY).body
    with pytest.raises(IntegrityError) as refused:
        codec.decode(body, {4: DICTIONARY})
    assert refused.value.code is Code.MISSING_DICTIONARY
    assert refused.value.facts["number"] == 3
    assert codec.dictionary_number(body[:16]) == 3
    assert codec.dictionary_number(codec.encode(TEXT).body[:16]) == 0


def _claiming(codec_number: int, length: int, packed: bytes) -> bytes:
    out = bytearray((1, codec_number))
    varint.put(out, length)
    return bytes(out) + codec.digest(b"x" * length) + packed


@pytest.mark.parametrize("length", [10, 10_000])
def test_a_frame_that_swells_past_its_length_is_refused(length: int) -> None:
    bomb = b"x" * 5_000_000
    frames = [
        (1, zstandard.ZstdCompressor().compress(bomb)),
        (1, zstandard.ZstdCompressor(write_content_size=False).compress(bomb)),
        (2, brotli.compress(bomb)),
    ]
    for number, packed in frames:
        with pytest.raises(IntegrityError):
            codec.decode(_claiming(number, length, packed))


def test_what_no_decoder_would_take_is_not_encoded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(codec, "MAX_PLAINTEXT_BYTES", 100)
    assert codec.decode(codec.encode(b"a" * 100).body) == b"a" * 100
    with pytest.raises(PermanentError):
        codec.encode(b"a" * 101)


@pytest.mark.parametrize("body", [b"", b"a", b"short text", bytes(range(256))])
def test_any_bytes_are_a_dictionary(body: bytes) -> None:
    odd = Dictionary.of(1, body)
    assert codec.decode(codec.encode(TEXT, dictionary=odd).body, {1: odd}) == TEXT


def test_coders_stop_near_the_length_they_are_given() -> None:
    bomb = b"x" * 5_000_000
    with pytest.raises(DecodeError, match="claims"):
        CODERS[Codec.ZSTD].decompress(zstandard.ZstdCompressor().compress(bomb), 10, None)
    assert len(CODERS[Codec.BROTLI].decompress(brotli.compress(bomb), 10, None)) < 100_000


def test_a_header_that_claims_too_much_allocates_nothing() -> None:
    out = bytearray((1, 1))
    varint.put(out, codec.MAX_PLAINTEXT_BYTES + 1)
    with pytest.raises(IntegrityError, match="too much"):
        codec.decode(bytes(out) + bytes(16))


class WrongOnce:
    """A coder that decodes wrongly the first time, and only then."""

    def __init__(self, inner: Coder, wrong: bytes | None) -> None:
        self._inner = inner
        self._wrong = wrong
        self.calls = 0

    def compress(self, data: bytes, level: int, dictionary: Dictionary | None) -> bytes:
        return self._inner.compress(data, level, dictionary)

    def decompress(self, body: bytes, length: int, dictionary: Dictionary | None) -> bytes:
        self.calls += 1
        right = self._inner.decompress(body, length, dictionary)
        if self.calls > 1:
            return right
        return right[:-1] + b"?" if self._wrong is None else self._wrong


@pytest.mark.parametrize("wrong", [None, b"", TEXT + b"more"])
def test_a_coder_that_decodes_wrongly_once_loses_nothing(wrong: bytes | None) -> None:
    def check(made: EncodeResult, fallback: Codec) -> None:
        assert (made.codec, made.verify_failures) == (fallback, 1)
        assert codec.decode(made.body, HELD) == TEXT

    coder = WrongOnce(CODERS[Codec.ZSTD_DICTIONARY], wrong)
    coders = {**CODERS, Codec.ZSTD_DICTIONARY: coder}
    check(codec.encode(TEXT, dictionary=DICTIONARY, coders=coders), Codec.ZSTD)
    coders = {**CODERS, Codec.ZSTD: WrongOnce(CODERS[Codec.ZSTD], wrong)}
    check(codec.encode(TEXT, coders=coders), Codec.RAW)
    coders = {**CODERS, Codec.BROTLI: WrongOnce(CODERS[Codec.BROTLI], wrong)}
    check(codec.encode_self_contained(TEXT, coders=coders), Codec.ZSTD)


def test_every_codec_failing_leaves_the_text_raw() -> None:
    coders = {
        **CODERS,
        Codec.ZSTD: WrongOnce(CODERS[Codec.ZSTD], b""),
        Codec.ZSTD_DICTIONARY: WrongOnce(CODERS[Codec.ZSTD_DICTIONARY], b""),
    }
    made = codec.encode(TEXT, dictionary=DICTIONARY, coders=coders)
    assert (made.codec, made.verify_failures) == (Codec.RAW, 2)
    assert codec.decode(made.body) == TEXT


def _samples(count: int) -> list[bytes]:
    return [
        TRANSCRIPT.replace("17", str(number)).replace("home-07", f"home-{number % 9}").encode()[number % 40 :]
        for number in range(count)
    ]


def test_a_dictionary_is_trained_where_there_is_enough_text() -> None:
    trained = codec.train_dictionary(_samples(120), 4096)
    assert len(trained) <= 4096
    assert trained[:4] == b"\x37\xa4\x30\xec"  # zstd's own dictionary format
    recent = codec.train_dictionary(_samples(20), 4096)
    assert recent == b"".join(_samples(20))[-4096:]
    assert codec.train_dictionary([b"a"] * 20, 4096) == b"a" * 20
    assert codec.train_dictionary([], 4096) == b""
    assert (
        codec.train_dictionary(_samples(120), 100) == b"".join(_samples(120))[-100:]
    )  # zstd's own least is 256
    assert trained == codec.train_dictionary(_samples(120), 4096)


def test_a_dictionary_is_adopted_only_where_it_pays_for_itself() -> None:
    samples = _samples(150)
    candidate = Dictionary.of(1, codec.train_dictionary(samples[:120], 4096))
    few = codec.worth_adopting(samples[120:], sum(map(len, samples[:5])), candidate)
    many = codec.worth_adopting(samples[120:], 1000 * sum(map(len, samples)), candidate)
    assert not few.adopt
    assert many.adopt
    assert many.cost_bytes == len(candidate.body)
    assert many.saving_bytes > 1.1 * many.cost_bytes > few.saving_bytes
    same = codec.worth_adopting(samples[120:], 10**9, Dictionary.of(2, candidate.body), present=candidate)
    assert not same.adopt
    assert not codec.worth_adopting([], 10**9, candidate).adopt


def test_frames_of_other_zstd_versions_decode() -> None:
    frames = json.loads(FRAMES.read_text(encoding="utf-8"))
    assert {frame["zstd"] for frame in frames} >= {"1.5.2", "1.5.5", "1.5.7"}
    for frame in frames:
        assert codec.decode(bytes.fromhex(frame["body"]), HELD) == TEXT
