"""Lossless packing: an envelope that is decoded and compared when written and verified whenever it is read.

Envelope: version 1 B, codec 1 B (bit 7: short check), [dictionary number varint], plaintext length varint,
check (BLAKE2b-128 of the plaintext, or its first 4 bytes), body.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import IntEnum
from functools import lru_cache
from hashlib import blake2b
from typing import Protocol

import brotli
import zstandard

from shared.errors import Code, IntegrityError
from shared.memory import varint

DIGEST_BYTES = 16
# A layer's plaintext is checked again by its entry's digest after joining; 4 bytes catch damage early.
SHORT_CHECK_BYTES = 4
# The door takes 1 MiB of text; records add markers. Nothing larger is allocated on a header's word.
MAX_PLAINTEXT_BYTES = 64 * 1024 * 1024
VERSION = 1
_SHORT_CHECK = 0x80
_RAW_BELOW_BYTES = 64
_RAW_ABOVE_RATIO = 0.95  # packing that gains under 5 % is not worth a decoder
_MIN_TRAINING_SAMPLES = 100
_MIN_TRAINING_RATIO = 10  # zstd's trainer wants ten times the dictionary in text
_ADOPTION_MARGIN = 1.10


class Codec(IntEnum):
    """How a body is coded. Decoders must stay wider than encoders."""

    RAW = 0
    ZSTD = 1
    BROTLI = 2
    ZSTD_DICTIONARY = 3


def digest(text: bytes) -> bytes:
    """BLAKE2b-128, the identity of a plaintext (never of a frame: re-encoding is not byte-stable)."""
    return blake2b(text, digest_size=DIGEST_BYTES).digest()


@dataclass(frozen=True)
class Dictionary:
    """An immutable dictionary: `number` is the store's index for it, `digest` its name everywhere."""

    number: int
    digest: bytes
    body: bytes

    def __post_init__(self) -> None:
        if digest(self.body) != self.digest:
            raise IntegrityError(
                Code.CORRUPT, "dictionary is damaged", hint="Fetch it again by digest", number=self.number
            )

    @classmethod
    def of(cls, number: int, body: bytes) -> Dictionary:
        """A dictionary of these bytes."""
        return cls(number, digest(body), body)


@dataclass(frozen=True)
class EncodeResult:
    """An envelope, the codec that made it, and how many codecs failed decode-and-compare before it."""

    body: bytes
    codec: Codec
    verify_failures: int


class Coder(Protocol):
    """One codec: bytes to bytes. `decompress` may raise or return anything; it is never believed."""

    def compress(self, data: bytes, level: int, dictionary: Dictionary | None) -> bytes: ...

    def decompress(self, body: bytes, length: int, dictionary: Dictionary | None) -> bytes: ...


class DecodeError(Exception):
    """A coder could not decode; never leaves this module."""


class RawCoder:
    """Bytes as they are."""

    def compress(self, data: bytes, level: int, dictionary: Dictionary | None) -> bytes:
        """Nothing to do."""
        return data

    def decompress(self, body: bytes, length: int, dictionary: Dictionary | None) -> bytes:
        """Nothing to do."""
        return body


class ZstdCoder:
    """zstd frames without content size, checksum or dictionary id: the envelope has all three."""

    def compress(self, data: bytes, level: int, dictionary: Dictionary | None) -> bytes:
        """One frame."""
        return _compressor(level, dictionary).compress(data)

    def decompress(self, body: bytes, length: int, dictionary: Dictionary | None) -> bytes:
        """Output is bounded by `length`, whatever the frame claims."""
        try:
            claimed = zstandard.get_frame_parameters(body).content_size
            if claimed not in (zstandard.CONTENTSIZE_UNKNOWN, length):
                raise DecodeError("frame claims another length")
            return _decompressor(dictionary).decompress(body, max_output_size=length, allow_extra_data=False)
        except zstandard.ZstdError as error:
            raise DecodeError(str(error)) from error


class BrotliCoder:
    """brotli: smaller than zstd on single short texts, because it ships a dictionary of its own."""

    def compress(self, data: bytes, level: int, dictionary: Dictionary | None) -> bytes:
        """One stream; `level` is brotli's quality 0..11."""
        packed: bytes = brotli.compress(data, quality=min(level, 11))
        return packed

    def decompress(self, body: bytes, length: int, dictionary: Dictionary | None) -> bytes:
        """Output stops at `length` + 1 bytes."""
        decoder = brotli.Decompressor()
        try:
            data: bytes = decoder.process(body, output_buffer_limit=length + 1)
            if len(data) <= length and not decoder.is_finished() and decoder.can_accept_more_data():
                raise DecodeError("stream ends early")
        except brotli.error as error:
            raise DecodeError(str(error)) from error
        return data


CODERS: Mapping[Codec, Coder] = {
    Codec.RAW: RawCoder(),
    Codec.ZSTD: ZstdCoder(),
    Codec.BROTLI: BrotliCoder(),
    Codec.ZSTD_DICTIONARY: ZstdCoder(),
}


def encode(
    plaintext: bytes,
    *,
    level: int = 3,
    dictionary: Dictionary | None = None,
    coded: bool = True,
    coders: Mapping[Codec, Coder] = CODERS,
) -> EncodeResult:
    """Pack with zstd, decode again, compare; fall to the next lower codec on any doubt."""
    wanted: list[Codec] = []
    if coded and len(plaintext) >= _RAW_BELOW_BYTES:
        wanted = [Codec.ZSTD] if dictionary is None else [Codec.ZSTD_DICTIONARY, Codec.ZSTD]
    return _encode(plaintext, wanted, level, dictionary, coders, DIGEST_BYTES)


def encode_self_contained(
    plaintext: bytes, *, quality: int = 5, coders: Mapping[Codec, Coder] = CODERS
) -> EncodeResult:
    """Pack without a dictionary, for the link and the archive; the entry's digest is the full check."""
    wanted = [Codec.BROTLI, Codec.ZSTD] if len(plaintext) >= _RAW_BELOW_BYTES else []
    return _encode(plaintext, wanted, quality, None, coders, SHORT_CHECK_BYTES)


def decode(
    body: bytes,
    dictionaries: Mapping[int, Dictionary] | None = None,
    *,
    coders: Mapping[Codec, Coder] = CODERS,
) -> bytes:
    """The verified plaintext, or IntegrityError (CORRUPT, MISSING_DICTIONARY); never unverified bytes."""
    reader = varint.Reader(body)
    version, flags = reader.byte(), reader.byte()
    if version != VERSION or flags & ~_SHORT_CHECK not in Codec._value2member_map_:
        raise varint.corrupt("unknown envelope", version=version, codec=flags)
    codec = Codec(flags & ~_SHORT_CHECK)
    dictionary = _resolve(reader.unsigned(), dictionaries or {}) if codec is Codec.ZSTD_DICTIONARY else None
    length = reader.unsigned()
    if length > MAX_PLAINTEXT_BYTES:
        raise varint.corrupt("envelope claims too much text", length=length)
    check = reader.take(SHORT_CHECK_BYTES if flags & _SHORT_CHECK else DIGEST_BYTES)
    try:
        plaintext = coders[codec].decompress(reader.rest(), length, dictionary)
    except DecodeError as error:
        raise varint.corrupt("body does not decode", codec=codec.name) from error
    if len(plaintext) != length or digest(plaintext)[: len(check)] != check:
        raise varint.corrupt("digest does not match", codec=codec.name, length=length)
    return plaintext


def dictionary_number(head: bytes) -> int:
    """The dictionary an envelope needs, from its first 16 bytes; 0 = none. For accounts, not for decoding."""
    reader = varint.Reader(head)
    reader.byte()
    return reader.unsigned() if reader.byte() & ~_SHORT_CHECK == Codec.ZSTD_DICTIONARY else 0


def train_dictionary(samples: Sequence[bytes], size: int) -> bytes:
    """At most `size` bytes: trained where there is enough text, else the most recent text."""
    enough = len(samples) >= _MIN_TRAINING_SAMPLES and sum(map(len, samples)) >= _MIN_TRAINING_RATIO * size
    if enough:
        try:
            return zstandard.train_dictionary(size, list(samples)).as_bytes()
        except zstandard.ZstdError:
            pass  # the trainer refuses uniform samples; recent text serves as well there
    recent = b"".join(samples)
    return recent[max(0, len(recent) - size) :]


@dataclass(frozen=True)
class Adoption:
    """Whether a dictionary pays for itself over the whole store, in bytes."""

    adopt: bool
    saving_bytes: float
    cost_bytes: float


def worth_adopting(
    held_out: Sequence[bytes],
    total_bytes: int,
    candidate: Dictionary,
    *,
    level: int = 3,
    present: Dictionary | None = None,
) -> Adoption:
    """Measure on `held_out` plaintexts (blocks, as they would be packed), scale to `total_bytes` of text.

    Adopt only when the saving beats the dictionary's bytes by 10 %; a replaced dictionary's come back.
    """
    seen = sum(map(len, held_out))
    before = sum(len(encode(text, level=level, dictionary=present).body) for text in held_out)
    after = sum(len(encode(text, level=level, dictionary=candidate).body) for text in held_out)
    saving = (before - after) * total_bytes / seen if seen else 0.0
    cost = float(len(candidate.body) - (len(present.body) if present else 0))
    return Adoption(saving > max(0.0, cost) * _ADOPTION_MARGIN, saving, cost)


def _encode(
    plaintext: bytes,
    wanted: Sequence[Codec],
    level: int,
    dictionary: Dictionary | None,
    coders: Mapping[Codec, Coder],
    check_bytes: int,
) -> EncodeResult:
    failures = 0
    check = digest(plaintext)[:check_bytes]
    dictionaries = {} if dictionary is None else {dictionary.number: dictionary}
    for codec in wanted:
        packed = coders[codec].compress(
            plaintext, level, dictionary if codec is Codec.ZSTD_DICTIONARY else None
        )
        if len(packed) > _RAW_ABOVE_RATIO * len(plaintext):
            break
        body = _envelope(codec, dictionary, len(plaintext), check, packed)
        if _decodes_to(body, plaintext, dictionaries, coders):
            return EncodeResult(body, codec, failures)
        failures += 1
    return EncodeResult(_envelope(Codec.RAW, None, len(plaintext), check, plaintext), Codec.RAW, failures)


def _decodes_to(
    body: bytes, plaintext: bytes, dictionaries: Mapping[int, Dictionary], coders: Mapping[Codec, Coder]
) -> bool:
    try:
        return decode(body, dictionaries, coders=coders) == plaintext
    except IntegrityError:
        return False


def _envelope(codec: Codec, dictionary: Dictionary | None, length: int, check: bytes, packed: bytes) -> bytes:
    out = bytearray((VERSION, codec | (_SHORT_CHECK if len(check) == SHORT_CHECK_BYTES else 0)))
    if codec is Codec.ZSTD_DICTIONARY and dictionary is not None:
        varint.put(out, dictionary.number)
    varint.put(out, length)
    return bytes(out) + check + packed


def _resolve(number: int, dictionaries: Mapping[int, Dictionary]) -> Dictionary:
    dictionary = dictionaries.get(number)
    if dictionary is None:
        raise IntegrityError(
            Code.MISSING_DICTIONARY, "the dictionary is not here", hint="Fetch it from the hub", number=number
        )
    return dictionary


class _Contexts(threading.local):
    """zstd contexts cost more than a small frame, and are not safe to share between threads."""

    def __init__(self) -> None:
        self.compressor = lru_cache(maxsize=8)(_new_compressor)
        self.decompressor = lru_cache(maxsize=8)(_new_decompressor)


def _new_compressor(level: int, dictionary: Dictionary | None) -> zstandard.ZstdCompressor:
    options = zstandard.ZstdCompressionParameters.from_level(
        level, write_content_size=0, write_checksum=0, write_dict_id=0
    )
    content = None if dictionary is None else zstandard.ZstdCompressionDict(dictionary.body)
    return zstandard.ZstdCompressor(compression_params=options, dict_data=content)


def _new_decompressor(dictionary: Dictionary | None) -> zstandard.ZstdDecompressor:
    content = None if dictionary is None else zstandard.ZstdCompressionDict(dictionary.body)
    return zstandard.ZstdDecompressor(dict_data=content)


_contexts = _Contexts()


def _compressor(level: int, dictionary: Dictionary | None) -> zstandard.ZstdCompressor:
    return _contexts.compressor(level, dictionary)


def _decompressor(dictionary: Dictionary | None) -> zstandard.ZstdDecompressor:
    return _contexts.decompressor(dictionary)
