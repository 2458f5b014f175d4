"""The verification operator V: a draft against an entry's invariants, admitted or rejected with a reason.

`paper`: every key span, tuple and outcome fact is entailed, and no tuple contradicted. `strict`: also no
unsupported content.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from shared.memory import contradiction, entailment, support, surface, wording
from shared.memory.direction import read
from shared.memory.entailment import Claim, Failure, Reason
from shared.memory.evidence import Evidence, Marks, Phrase
from shared.memory.invariants import Invariant
from shared.memory.spans import Base, render
from shared.memory.tokens import Clause, canonical, clauses, clauses_by_line
from shared.memory.vocabulary import SYNONYMS
from shared.ports import Verdict

__all__ = ["Failure", "Reason", "describe", "failures", "judge"]

REMEMBERED = (read,)
"""What may be cached of a text: a benchmark that starts cold empties it."""
_ADMITTED = Verdict(admitted=True)
_SENTENCE_ENDS = frozenset(".!?。\"')]")


def judge(base: Base, draft: str, neighbours: Sequence[str] = (), *, strict: bool = True) -> Verdict:
    """Judge a draft of an entry whose exact base this is."""
    if len(draft) > surface.MOST_CHARACTERS:
        return _rejected(Reason.TOO_LONG, offending=f"{len(draft)} characters")
    lines: dict[str, list[Clause]] = {}
    spoken = clauses_by_line(draft, lines)
    rendered = render(base)
    if not spoken or surface.nothing(draft, rendered):
        return _rejected(Reason.EMPTY)
    looks = _looks(base, draft, rendered, strict=strict)
    if looks is not None:
        return looks
    shown = clauses_by_line(rendered, lines)
    return _read(base, draft, shown, spoken, neighbours, strict=strict)


def _read(
    base: Base,
    draft: str,
    shown: Sequence[Clause],
    spoken: Sequence[Clause],
    neighbours: Sequence[str],
    *,
    strict: bool,
) -> Verdict:
    """Every invariant entailed; strict: every statement of the draft one of the residue's."""
    evidence = Evidence(_translated(spoken, shown))
    trace = base.trace
    made = entailment.claims(trace, base.invariants)
    marked = entailment.marks(made, evidence)
    missing = list(entailment.failures(made, evidence, marked, Evidence(shown), loose=_lossy(base)))
    if missing and _stops_early(missing, base.invariants, draft):
        return _rejected(Reason.TRUNCATED, _in_words(missing[0].invariant, trace))
    failed = missing or list(contradiction.contradictions(made, evidence, marked))
    if failed:
        return _rejected(
            failed[0].reason, _in_words(failed[0].invariant, trace), _nearest(failed[0], trace, evidence)
        )
    if not strict:
        return _ADMITTED
    dressed = wording.styled(draft, render(base))
    if dressed:
        return _rejected(Reason.DISGUISED, offending=dressed)
    sign = wording.signs(draft, render(base))
    if sign:
        return _rejected(Reason.UNSUPPORTED_CLAUSE, offending=sign)
    return _supported(base, shown, evidence, made, marked, neighbours)


def _supported(
    base: Base,
    shown: Sequence[Clause],
    evidence: Evidence,
    made: Sequence[Claim],
    marked: Marks,
    neighbours: Sequence[str],
) -> Verdict:
    trace = base.trace
    residue = support.Residue(shown, loose=_lossy(base))
    claimed = entailment.claimed_denials(made, evidence) if _lossy(base) else frozenset()
    lack = support.first_lack(evidence.clauses, residue, neighbours, claimed)
    if lack is not None and not lack.open:
        return _rejected(lack.reason, _covering(made, lack.offending, evidence, trace), lack.offending)
    if _lossy(base):
        # In a residue many facts may stand in one clause: their relations alone tell them apart.
        alike = support.verbatim(evidence.clauses, shown)
        loose = next(contradiction.loose_pairs(made, evidence, alike), None)
        if loose is not None:
            return _rejected(
                loose.reason, _in_words(loose.invariant, trace), _nearest(loose, trace, evidence)
            )
        mixed = contradiction.recombined(made, evidence, marked, alike)
        if mixed is not None:
            return _rejected(Reason.TUPLE_SWAPPED, offending=_surface(evidence.clauses[mixed]))
    if lack is not None:
        return replace(_rejected(lack.reason, offending=lack.offending), open=True)
    return _ADMITTED


def _nearest(failure: Failure, trace: Sequence[str], evidence: Evidence) -> str:
    """The draft's clause that says most of what the invariant asks for, if any of it."""
    asked = {word for index in failure.invariant.spans for word in Phrase.of(trace[index]).words}
    best, most = "", 0
    for clause in evidence.clauses:
        shared = len(asked & {form for token in clause.tokens for form in (token.form, token.norm)})
        if shared > most:
            best, most = _surface(clause), shared
    return best


def _covering(made: Sequence[Claim], offending: str, evidence: Evidence, trace: Sequence[str]) -> str:
    """The invariant that shares most words with the draft's clause that the offending text stands in."""
    around = [clause for clause in evidence.clauses if offending in _surface(clause)][:1]
    said = {token.form for clause in around or clauses(offending) for token in clause.tokens}
    best, most = "", 0
    for claim in made:
        shared = len(said & {word for phrase in claim.members for word in phrase.words})
        if shared > most:
            best, most = _in_words(claim.invariants[0], trace), shared
    return best


def _lossy(base: Base) -> bool:
    """True where words were dropped between what is left."""
    return base.rung.lossy


def _looks(base: Base, draft: str, rendered: str, *, strict: bool) -> Verdict | None:
    """What needs no reading: hidden characters, look-alike letters, an echo; strict: markup and questions."""
    unseen = surface.hidden(draft, rendered)
    if unseen:
        return _rejected(Reason.DISGUISED, offending=unseen)
    word = surface.disguised(draft, rendered)
    if word:
        return _rejected(Reason.DISGUISED, offending=word)
    if _echoes(draft, base, rendered):
        return _rejected(Reason.ECHO)
    if not strict:
        return None
    cut = surface.cut_off(draft, rendered)
    if cut:
        return _rejected(Reason.TRUNCATED, offending=cut)
    mark = surface.wrapped(draft, rendered, lossy=_lossy(base))
    if mark:
        return _rejected(Reason.MARKUP, offending=mark)
    if _asks(draft) and not _asks(rendered):
        return _rejected(Reason.UNSUPPORTED_CLAUSE, offending="?")
    return None


def _translated(draft: Sequence[Clause], shown: Sequence[Clause]) -> list[Clause]:
    """The draft with the residue's words in the place of their synonyms."""
    known = {token.form: token.denies for clause in shown for token in clause.tokens}
    found = []
    for clause in draft:
        tokens = clause.tokens
        for at, token in enumerate(tokens):
            if token.form not in known and token.form in SYNONYMS:
                other = next((form for form in SYNONYMS[token.form] if form in known), None)
                if other is not None:
                    made = token._replace(form=other, denies=known[other])
                    tokens = (*tokens[:at], made, *tokens[at + 1 :])
        if tokens is not clause.tokens:
            clause = clause._replace(tokens=tokens, denials=sum(token.denies for token in tokens))  # noqa: PLW2901
        found.append(clause)
    return found


def failures(trace: Sequence[str], invariants: Sequence[Invariant], evidence: Evidence) -> Iterator[Failure]:
    """Every invariant that the text behind `evidence` does not entail, or contradicts."""
    made = entailment.claims(trace, invariants)
    marked = entailment.marks(made, evidence)
    yield from entailment.failures(made, evidence, marked)
    yield from contradiction.contradictions(made, evidence, marked)


def describe(base: Base) -> tuple[str, ...]:
    """Invariants in words, for a prompt."""
    trace = base.trace
    return tuple(dict.fromkeys(_in_words(invariant, trace) for invariant in base.invariants))


def _echoes(draft: str, base: Base, rendered: str) -> bool:
    """True for the residue itself, and for the prompt's list of facts."""
    if _lossy(base) and canonical(draft).casefold().split() == canonical(rendered).casefold().split():
        return True
    facts = describe(base)
    return bool(facts) and all(fact in draft for fact in facts)


def _asks(text: str) -> bool:
    """True where a word ends in a question mark: what is asked is not said."""
    return "?" in canonical(text) and any(
        word.rstrip("\"')]*!").endswith("?") for word in canonical(text).split()
    )


def _surface(clause: Clause) -> str:
    return " ".join(token.surface for token in clause.tokens)


def _unfinished(draft: str) -> bool:
    return canonical(draft).rstrip()[-1:] not in _SENTENCE_ENDS


def _stops_early(missing: Sequence[Failure], invariants: Sequence[Invariant], draft: str) -> bool:
    """True where the last key spans are missing, more than one, and the draft's last sentence has no end."""
    lost = {claim.spans[0] for failure in missing for claim in failure.invariants if len(claim.spans) == 1}
    last = max((index for invariant in invariants for index in invariant.spans), default=-1)
    return _unfinished(draft) and len(lost) > 1 and lost == set(range(min(lost), last + 1))


def _in_words(invariant: Invariant, trace: Sequence[str]) -> str:
    claim = " / ".join(" ".join(trace[index].split()) for index in invariant.spans)
    return f"{'' if invariant.positive else 'not '}{invariant.type.name.lower()}: {claim}"


def _rejected(reason: Reason, invariant: str = "", offending: str = "") -> Verdict:
    return Verdict(admitted=False, reason=reason.value, invariant=invariant, offending=offending)
