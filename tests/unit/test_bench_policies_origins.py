"""Which rows are re-creations, and of what: the document says what the code says."""

from __future__ import annotations

from pathlib import Path

from bench.policies.origins import table, told

_DOCUMENT = Path(__file__).parents[2] / "docs" / "bench-policies.md"


def test_the_documents_table_is_the_codes() -> None:
    text = _DOCUMENT.read_text()
    held = text.split("<!-- table -->\n")[1].split("\n<!-- end of table -->")[0]
    assert held == table(), "write what `python -m bench.policies.origins` prints between the marks"


def test_every_row_says_where_it_is_from_and_what_is_ours() -> None:
    for name, origin, _ in told():
        assert all((origin.system, origin.source, origin.official_code, origin.ours)), name
        found = origin.official_code
        assert ("github.com" in origin.source) == (found == "yes"), name
        assert found in {"yes", "not found", "not needed"}, name
