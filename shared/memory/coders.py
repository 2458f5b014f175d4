"""The codecs behind the envelope: bytes to bytes, bounded, never believed without a digest."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from dataclasses import dataclass
from enum import IntEnum
from functools import lru_cache
from hashlib import blake2b
from typing import Protocol

import brotli
import zstandard

from shared.errors import Code, IntegrityError

DIGEST_BYTES = 16


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
