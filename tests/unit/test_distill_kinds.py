"""edge_agent.distill on the kinds of text that agents keep: what each rung holds, and what is claimed."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from edge_agent.distill import PlainDistiller
from shared.memory import gate, spans
from shared.memory.evidence import Evidence
from shared.memory.invariants import InvariantType
from shared.memory.model import LADDERS, Ladder, Rung, RungSpec
from shared.memory.spans import Base
from shared.memory.tokens import clauses
from tests.texts import any_text

PRODUCT = LADDERS["product"]
DISTILLER = PlainDistiller()

SESSION = """[3:15 pm on 9 June, 2026] Ines: Hey Tomas, great to see you! How was the weekend?
Tomas: Hi Ines! We drove to Porto on Saturday and my sister showed us the tile museum.
Ines: Wow, that sounds amazing! Did your son like it?
Tomas: He loved the blue dragon tile. He is not allowed near the river, though, since he fell in last year.
Ines: Oh no! Poor Rui. By the way, I finally booked the pottery course, it starts on 4 July and costs $85.
"""
AGENT = """Task: find the cheapest flight from Oslo to Rome on 12 May and book it.
Thought: I should search the flights first.
Action: search_flights(from="OSL", to="FCO", date="2026-05-12")
Observation: 3 flights found. SK4711 08:10 129.00 EUR, DY1872 13:45 94.50 EUR, AZ0233 19:20 141.00 EUR.
Thought: DY1872 is the cheapest.
Action: book(flight="DY1872", passenger="M. Berg")
Observation: Error: card declined.
Action: book(flight="DY1872", passenger="M. Berg", card="backup")
Observation: Booking confirmed, reference QX7-88421.
Result: success, booked DY1872 for 94.50 EUR, reference QX7-88421
"""
LOG = """2026-11-30T08:14:02Z INFO  worker-3 opened /srv/data/batch_00412.parquet
2026-11-30T08:14:05Z INFO  worker-3 read 18250 rows in 2900 ms
2026-11-30T08:14:09Z ERROR worker-3 write to s3://cold/batch_00412 failed: 507 Insufficient Storage
2026-11-30T08:14:10Z INFO  worker-3 retry 1 of 3
2026-11-30T08:14:44Z INFO  worker-3 closed /srv/data/batch_00412.parquet
exit code: 75
"""
JSON = (
    '{"id": "order-00917", "status": "cancelled", "customer": {"name": "Yara Haddad", "city": "Beirut"}, '
    '"lines": [{"sku": "AB-2210", "count": 3, "price": 12.75}, {"sku": "KX-0071", "count": 1, "price": 80.0}]'
    ', "total": 118.25, "refunded": false, "note": "customer never received the parcel"}'
)
CODE = '''def settle_invoice(invoice_id: str, amount_eur: Decimal) -> bool:
    """Book a payment; False where the invoice is unknown or already settled."""
    invoice = ledger.find(invoice_id)
    if invoice is None or invoice.settled:
        return False
    ledger.append(Payment(invoice_id, amount_eur, rate=VAT_RATE_2026))
    return True
'''
TABLE = """| station | river | gauge cm | trend |
|---|---|---|---|
| Aschach | Danube | 412 | rising |
| Krems | Danube | 388 | falling |
| Mureck | Mur | 97 | steady |
"""
CHINESE = "昨天下午三点，李明在上海的医院看了牙医。医生说他的左边有两颗蛀牙，下周五要再去一次。他不喜欢打针。"
JAPANESE = "田中さんは先週の金曜日に京都へ行きました。清水寺の近くのカフェで抹茶アイスを二つ食べました。"
ARABIC = "سافرت ليلى إلى القاهرة يوم ٣ مايو ٢٠٢٦ ولم تزر المتحف. حجزت غرفة رقم 214 في فندق النيل."
HEBREW = "דנה קנתה 12 ספרים בחנות של אבי ברחוב הרצל 7, אבל היא לא שילמה עדיין."
EMOJI = "🎉 Party moved to Friday 🗓️ 19:30 at Nadia's roof terrace! 🚫 no fireworks 🧨, bring 2 🍉"
KINDS = {
    "session": SESSION,
    "agent": AGENT,
    "log": LOG,
    "json": JSON,
    "code": CODE,
    "table": TABLE,
    "chinese": CHINESE,
    "japanese": JAPANESE,
    "arabic": ARABIC,
    "hebrew": HEBREW,
    "emoji": EMOJI,
    "mixed line ends": SESSION.replace("\n", "\r\n", 2).replace("\n", "\r", 1),
}


def base(text: str, rung: Rung) -> Base:
    return spans.lower(spans.whole(DISTILLER.distil(text, PRODUCT), DISTILLER.version), rung)


def read(text: str, rung: Rung) -> str:
    return spans.render(base(text, rung))


@pytest.mark.parametrize("name", list(KINDS))
def test_what_is_read_stays_within_the_aims(name: str) -> None:
    text = KINDS[name]
    size = len(text.encode())
    above = text
    for spec in PRODUCT.lossy:
        kept = read(text, spec.rung)
        assert 0 < len(kept.encode()) <= max(size * spec.text_fraction, 12)
        assert len(kept.encode()) > size * spec.text_fraction * 0.5  # and an aim is used
        rest = iter(above)
        assert all(letter in rest for letter in kept.replace("\n", "").replace(" ", ""))
        above = kept


@pytest.mark.parametrize("name", list(KINDS))
def test_every_claim_is_entailed_by_the_original(name: str) -> None:
    levelled = DISTILLER.distil(KINDS[name], PRODUCT)
    assert levelled.invariants
    trace = spans.whole(levelled, 1).trace
    assert not list(gate.failures(trace, levelled.invariants, Evidence(clauses(KINDS[name]))))


@given(any_text, st.sampled_from(list(KINDS.values())), st.integers(0, 200))
@settings(max_examples=120, deadline=None)
def test_every_claim_of_any_text_is_entailed_by_it(noise: str, text: str, at: int) -> None:
    mixed = text[:at] + noise + text[at:]
    levelled = DISTILLER.distil(mixed, LADDERS["k3"])
    trace = spans.whole(levelled, 1).trace
    assert not list(gate.failures(trace, levelled.invariants, Evidence(clauses(mixed))))


_SAID = st.tuples(
    st.sampled_from(["Ana", "Bo", "The crew"]),
    st.sampled_from(["moved", "never moved", "did not refuse and not move", "sold"]),
    st.sampled_from(["mug 3", "lamp 3", "seven lamps", "mug 12"]),
    st.sampled_from(["to shelf 1.", "on 8 May 2023!", "on 2023-05-08;", "to lamp 3, not to shelf 1."]),
)


@given(st.lists(_SAID, min_size=1, max_size=6), st.sampled_from([0.08, 0.3, 1.0]))
@settings(max_examples=150, deadline=None)
def test_nothing_is_claimed_that_the_text_takes_back(said: list[tuple[str, ...]], share: float) -> None:
    """The same few things over and over, now one way and now the other: relations contradict each other."""
    text = " ".join(" ".join(parts) for parts in said)
    ladder = Ladder("one", 99, (RungSpec(Rung.TRACE, share, 0.4, 320.0, True),), 0.0)
    levelled = DISTILLER.distil(text, ladder)
    trace = spans.whole(levelled, 1).trace
    assert not list(gate.failures(trace, levelled.invariants, Evidence(clauses(text))))


@pytest.mark.parametrize(
    ("text", "rung", "words"),
    [
        (SESSION, Rung.COMPRESSED, "Porto Saturday tile museum blue dragon not river Rui pottery 4 July $85"),
        (SESSION, Rung.SKELETAL, "Porto Saturday museum dragon tile pottery 4 July $85"),
        (AGENT, Rung.COMPRESSED, "Oslo Rome 12 May SK4711 DY1872 94.50 EUR declined confirmed QX7-88421"),
        (AGENT, Rung.SKELETAL, "DY1872 94.50 EUR success QX7-88421"),
        (AGENT, Rung.TRACE, "success DY1872"),
        (LOG, Rung.COMPRESSED, "srv/data/batch_00412 18250 failed 507 Insufficient Storage 75"),
        (LOG, Rung.TRACE, "ERROR 507 75"),
        (JSON, Rung.COMPRESSED, "order-00917 cancelled Yara Haddad AB-2210 118.25 never"),
        (JSON, Rung.SKELETAL, "order-00917 cancelled Haddad 118.25"),
        (CODE, Rung.COMPRESSED, "settle_invoice invoice_id VAT_RATE_2026 unknown settled"),
        (TABLE, Rung.COMPRESSED, "Aschach 412 388 falling Mureck 97"),
        (CHINESE, Rung.COMPRESSED, "医院 蛀牙 不喜欢"),
        (JAPANESE, Rung.COMPRESSED, "金曜日 京都 抹茶アイス"),
        (ARABIC, Rung.COMPRESSED, "القاهرة مايو ٢٠٢٦ 214"),
        (HEBREW, Rung.COMPRESSED, "12 ספרים הרצל"),
        (EMOJI, Rung.COMPRESSED, "Friday Nadia's no fireworks 2"),
    ],
)
def test_what_answers_questions_outlives_what_does_not(text: str, rung: Rung, words: str) -> None:
    kept = read(text, rung)
    missing = [word for word in words.split() if word not in kept]
    assert not missing, kept


def test_courtesy_fillers_and_who_is_addressed_go_first() -> None:
    kept = read(SESSION, Rung.SKELETAL).casefold()
    for word in ("hey", "wow", "great", "amazing", "oh no", "by the way", "how was"):
        assert word not in kept


def test_an_entrys_own_date_outlives_the_first_cut() -> None:
    """What "last year" means needs it; its own time is in the store as well, so no more than that."""
    assert "9 June, 2026" in read(SESSION, Rung.COMPRESSED).replace("June 2026", "June, 2026")


EVERYTHING = Ladder("everything", 99, (RungSpec(Rung.TRACE, 1.0, 0.4, 320.0, True),), 0.0)


def claimed(text: str) -> set[tuple[InvariantType, str, bool]]:
    levelled = DISTILLER.distil(text, EVERYTHING)
    trace = spans.whole(levelled, 1).trace
    return {
        (claim.type, " ".join(trace[at] for at in claim.spans), claim.positive)
        for claim in levelled.invariants
    }


@pytest.mark.parametrize(
    ("text", "claim"),
    [
        ("Rui weighs 32 kg.", (InvariantType.NUMBER, "32 kg", True)),
        ("The course costs $85.", (InvariantType.NUMBER, "$85", True)),
        ("We meet on 4 July 2026.", (InvariantType.DATE, "4 July 2026", True)),
        ("The train leaves at 14:30.", (InvariantType.DATE, "14:30", True)),
        ("Order QX7-88421 shipped.", (InvariantType.ID, "QX7-88421", True)),
        ("See https://a.example/x?y=1 now", (InvariantType.ID, "https://a.example/x?y=1", True)),
        ("It was Ines Matos.", (InvariantType.SPAN, "Ines Matos", True)),
        ("He never visited Porto.", (InvariantType.SPAN, "Porto", False)),
        ("status: failed", (InvariantType.OUTCOME, "status failed", False)),
        ("> move mug 3 to shelf 1", (InvariantType.TUPLE, "move mug 3 shelf 1", True)),
        ("opened /srv/data/batch_00412", (InvariantType.ID, "srv/data/batch_00412", True)),
        ("return value: 17 rows", (InvariantType.NUMBER, "17", True)),
    ],
)
def test_what_is_claimed(text: str, claim: tuple[InvariantType, str, bool]) -> None:
    assert claim in claimed(text), claimed(text)


def test_a_negation_outlives_what_it_does_not_turn_round() -> None:
    text = "Ana likes figs and Bo never eats walnuts because of the rash he had when he was a small child."
    kept = read(text, Rung.COMPRESSED)
    assert ("walnuts" in kept) <= ("never" in kept)
    assert "walnuts" in kept
