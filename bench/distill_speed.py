"""CPU time of the distiller: per kind of text, mixed, and twice the text for odd ones (is it linear?).

Thread time, the best of some rounds, of the distiller alone: the codec's memory of recent originals is not
in it, and of a text nothing is remembered but how its words look.
"""

from __future__ import annotations

import base64
import json
import time
from collections.abc import Callable, Sequence

from edge_agent.distill import PlainDistiller
from shared.memory.model import LADDERS

ROUNDS = 5
_ODD_BYTES = 60_000
_LONG_BYTES = 5_000_000
_LADDER = LADDERS["product"]

LOGS = [
    "\n".join(
        f"2026-11-{day:02d}T08:{minute:02d}:07.{day * 37 % 1000:03d}Z {level} worker-{day % 7} "
        f"fetched /srv/data/batch_{minute * 31 + day:05d}.parquet "
        f"rows={day * minute * 97} in {minute * 13 % 900} ms"
        for minute, level in zip(range(10, 50, 3), ("INFO", "WARN", "INFO", "ERROR") * 4, strict=False)
    )
    + f"\nresult: failed, exit code {day % 3}, 2 of 14 batches skipped"
    for day in range(1, 29)
]
JSONS = [
    json.dumps(
        {
            "id": f"order-{number:05d}",
            "status": "shipped" if number % 3 else "cancelled",
            "customer": {
                "name": f"Customer {number * 7 % 113}",
                "city": ("Lisbon", "Osaka", "Lagos")[number % 3],
            },
            "lines": [
                {"sku": f"AB-{number + line:04d}", "count": line, "price": line * 1.75} for line in range(9)
            ],
            "total": number * 13.5,
            "paid_at": f"2026-0{number % 9 + 1}-1{number % 9}T10:00:00Z",
        },
        indent=number % 2 * 2 or None,
    )
    for number in range(40)
]
ODD: dict[str, Callable[[int], str]] = {
    "one letter": lambda size: "a" * size,
    "stop words": lambda size: "and so it is that we are of the " * (size // 32),
    "numbers": lambda size: " ".join(str(number * 7919 % 5_003) for number in range(size // 5)),
    "base64": lambda size: base64.b64encode(bytes(at * 31 % 251 for at in range(size * 3 // 4))).decode(),
    "line ends": lambda size: "one 1\r\ntwo 2\rthree 3\n\n" * (size // 24),
    "names": lambda size: "Ana met Bob and Eve " * (size // 20),
    "not": lambda size: "not " * (size // 4),
    "Chinese": lambda size: "我们昨天在北京买了三个苹果。" * (size // 42),
    "one Chinese sentence": lambda size: "我把钥匙放在抽屉里。" * (size // 30),
    "one relation": lambda size: "fridge 1 apple 1 " * (size // 17),
    "outcomes": lambda size: "status: failed 3 of 5\n" * (size // 22),
}


def ms_per_kb(texts: Sequence[str]) -> float:
    """Levels and invariants of every text, milliseconds of one core a thousand bytes."""
    distiller = PlainDistiller()
    size = sum(len(text.encode()) for text in texts)
    best = min(_seconds(distiller, texts) for _ in range(ROUNDS))
    return best * 1e6 / size


def twice(make: Callable[[int], str], size: int = _ODD_BYTES) -> float:
    """Time for 2n bytes of a text over the time for n: 2 is linear, 4 is not."""
    distiller = PlainDistiller()
    small, large = make(size), make(2 * size)
    return min(_seconds(distiller, [large]) for _ in range(3)) / min(
        _seconds(distiller, [small]) for _ in range(3)
    )


def one_long_line() -> float:
    """Seconds for one line of 5 MB."""
    words = "Ana keeps 12 jars of fig jam in the cellar on Mill Street, "
    return _seconds(PlainDistiller(), [words * (_LONG_BYTES // len(words))])


def _seconds(distiller: PlainDistiller, texts: Sequence[str]) -> float:
    begin = time.thread_time()
    for text in texts:
        distiller.distil(text, _LADDER)
    return time.thread_time() - begin
