"""Unsigned and zigzag varints (LEB128), bounded and canonical."""

from __future__ import annotations

from shared.errors import Code, IntegrityError

_MAX_BYTES = 9  # 63 bits: nothing stored here is larger


def put(out: bytearray, value: int) -> None:
    """Append an unsigned varint."""
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)


def put_signed(out: bytearray, value: int) -> None:
    """Append a zigzag varint."""
    put(out, value << 1 if value >= 0 else (-value << 1) - 1)


class Reader:
    """Reads varints and bytes off a buffer; whatever does not fit is IntegrityError(CORRUPT)."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._at = 0

    def byte(self) -> int:
        """The next byte."""
        return self.take(1)[0]

    def unsigned(self) -> int:
        """The next unsigned varint, in its shortest form."""
        value = 0
        for position in range(_MAX_BYTES):
            byte = self.byte()
            value |= (byte & 0x7F) << 7 * position
            if byte < 0x80:
                if byte == 0 and position:
                    break
                return value
        raise corrupt("varint is too long")

    def signed(self) -> int:
        """The next zigzag varint."""
        value = self.unsigned()
        return -(value + 1 >> 1) if value & 1 else value >> 1

    def take(self, count: int) -> bytes:
        """The next `count` bytes."""
        end = self._at + count
        if end > len(self._data):
            raise corrupt("ends early")
        chunk = self._data[self._at : end]
        self._at = end
        return chunk

    def rest(self) -> bytes:
        """Everything that is left."""
        return self.take(len(self._data) - self._at)

    @property
    def left(self) -> int:
        """Bytes not read yet."""
        return len(self._data) - self._at


def corrupt(what: str, **facts: int | str) -> IntegrityError:
    """The error every decoder of stored bytes raises."""
    error = IntegrityError(Code.CORRUPT, f"stored bytes are damaged: {what}")
    error.facts.update(facts)
    return error
