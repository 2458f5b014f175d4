"""Lossless packing: an envelope that is decoded and compared when written and verified whenever it is read.

Envelope: version 1 B, codec 1 B (bit 7: short check), [dictionary number varint], plaintext length varint,
check (BLAKE2b-128 of the plaintext, or its first 4 bytes), body.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import zstandard

from shared.errors import Code, IntegrityError, PermanentError
from shared.memory import varint
from shared.memory.coders import (
    CODERS,
    DIGEST_BYTES,
    Codec,
    Coder,
    DecodeError,
    Dictionary,
    digest,
)

__all__ = [
    "DEFAULT_LEVEL",
    "DIGEST_BYTES",
    "MAX_PLAINTEXT_BYTES",
    "Adoption",
    "Codec",
    "Coder",
    "Dictionary",
    "EncodeResult",
    "decode",
    "dictionary_number",
    "digest",
    "encode",
    "encode_self_contained",
    "train_dictionary",
    "worth_adopting",
]

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
# Blocks of agent transcripts: .091 of the text at 24 us a KB; level 3: .147 at 9 us, level 19: .085 at 1,400.
DEFAULT_LEVEL = 12


@dataclass(frozen=True)
class EncodeResult:
    """An envelope, the codec that made it, and how many codecs failed decode-and-compare before it."""

    body: bytes
    codec: Codec
    verify_failures: int


def encode(
    plaintext: bytes,
    *,
    level: int = DEFAULT_LEVEL,
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
    level: int = DEFAULT_LEVEL,
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
    if len(plaintext) > MAX_PLAINTEXT_BYTES:
        raise PermanentError(Code.TOO_LARGE, "too much text for one envelope", length=len(plaintext))
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
