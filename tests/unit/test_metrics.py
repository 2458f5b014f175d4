"""shared.metrics: names, labels and what a scrape sees."""

from __future__ import annotations

import re

from prometheus_client import Counter, Gauge, Histogram
from prometheus_client.parser import text_string_to_metric_families

from shared import metrics
from shared.memory.model import Rung

DECLARED = [item for item in vars(metrics).values() if isinstance(item, (Counter, Gauge, Histogram))]
# Closed sets only: an entry, a tenant or a peer as a label value would grow without bound.
ALLOWED_LABELS = {
    "verb",
    "code",
    "rung",
    "origin",
    "to",
    "reason",
    "source",
    "direction",
    "result",
    "state",
    "by",
    "end",
    "how",
}


def families() -> dict[str, dict[tuple[str, ...], float]]:
    text = metrics.exposition().decode()
    return {
        family.name: {tuple(sample.labels.values()): sample.value for sample in family.samples}
        for family in text_string_to_metric_families(text)
    }


def test_every_declared_metric_is_on_our_registry_under_a_house_name() -> None:
    scraped = families()
    assert len(DECLARED) >= 29  # a new one is declared in shared.metrics and nowhere else
    for metric in DECLARED:
        [family] = metric.describe()
        assert family.name in scraped
        assert re.fullmatch(r"crystal_[a-z]+(_[a-z]+)*", family.name)
        assert set(metric._labelnames) <= ALLOWED_LABELS


def test_counters_end_in_total_and_nothing_else_does() -> None:
    for line in metrics.exposition().decode().splitlines():
        if line.startswith("# TYPE") and not line.split()[2].endswith("_created"):
            _, _, name, kind = line.split()
            assert name.endswith("_total") == (kind == "counter"), name


def test_series_of_closed_enums_are_there_before_their_first_event() -> None:
    scraped = families()
    assert set(scraped["crystal_memory_entries"]) == {(metrics.rung_label(rung),) for rung in Rung}
    assert {("archive",), ("model",), ("unpack",)} <= set(scraped["crystal_promotions"])
    assert {("up",), ("down",)} <= set(scraped["crystal_link_bytes"])
    assert {("applied",), ("replayed",), ("refused",)} <= set(scraped["crystal_link_batches"])
