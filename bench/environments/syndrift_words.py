"""The vocabulary of SynDrift: slots, their sentences, questions and values. Ours (CC0).

No value stands in another slot's list, in a sentence or in an aside, so a value found in a statement is told
by it.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Slot:
    """One thing that is known of a workshop. {g}: its name, {p}: a person, {v}: the value.

    cue: the word by which a statement is known to be about the slot. asked: wordings of its question; the
    first measures, the others are traffic.
    """

    name: str
    cue: str
    said: str
    asked: tuple[str, str, str]
    values: tuple[str, ...]


_PEOPLE_TOLD = (
    "Adela Bastian Corin Delphine Edda Fabian Greta Henrik Ilse Jonas Katja Leopold Mirjam Niklas Odile "
    "Pascal Quirin Rosalie Silvan Tabea Ulrich Valerie Wendel Xenia Yorick Zelda"
)
PEOPLE = tuple(_PEOPLE_TOLD.split())
_COLOURS_TOLD = (
    "amber beige black bronze coral cream crimson cyan emerald gold green grey indigo ivory lilac "
    "magenta maroon mauve navy ochre olive orange pink purple ruby scarlet silver teal turquoise violet "
    "white yellow"
)
_COLOURS = tuple(_COLOURS_TOLD.split())
_TOWNS_TOLD = (
    "Albrook Benfleet Carnforth Dunmore Eastwell Farnley Garstang Holmfirth Ironbridge Keswick Lydford "
    "Malton Norwell Oakham Penrith Redruth Selkirk Tavistock Upwell Wexcombe Yarmley"
)
_TOWNS = tuple(_TOWNS_TOLD.split())
_PASSWORDS_TOLD = (
    "acorn barley bellows candle cobweb copper dragonfly ember feather gravel harvest jigsaw kettle "
    "lantern marble nutmeg paprika quiver rainbow saddle thistle umbrella velvet walnut yonder"
)
_PASSWORDS = tuple(_PASSWORDS_TOLD.split())
_BADGES_TOLD = (
    "badger beaver curlew dolphin falcon gannet heron ibex jackal lapwing marten newt osprey otter "
    "plover raven sparrow stoat tern vole weasel wren"
)
_BADGES = tuple(_BADGES_TOLD.split())
_LOCKERS = tuple(str(number) for number in range(204, 1000, 13))

DOOR = Slot(
    "door",
    "door",
    "the door of {g} is painted {v}",
    (
        "What colour is the door of {g} painted?",
        "Which colour does the door at {g} have now?",
        "Tell me how the {g} door is painted today.",
    ),
    _COLOURS,
)
SUPPLIER = Slot(
    "supplier",
    "supplier",
    "the supplier of {g} sits in {v}",
    (
        "In which town does the supplier of {g} sit?",
        "Where is the {g} supplier now?",
        "What town must I write to for the supplier of {g}?",
    ),
    _TOWNS,
)
PASSWORD = Slot(
    "password",
    "password",
    "the password at {g} is {v}",
    (
        "What is the password at {g}?",
        "Which password opens {g} now?",
        "Give me the present password of {g}.",
    ),
    _PASSWORDS,
)
LOCKER = Slot(
    "locker",
    "locker",
    "the locker of {g} has number {v}",
    (
        "Which number has the locker of {g}?",
        "What locker number does {g} use now?",
        "Tell me the number of the {g} locker.",
    ),
    _LOCKERS,
)
COURIER = Slot(
    "courier",
    "courier",
    "the courier of {g} is {v}",
    (
        "Who is the courier of {g}?",
        "Which courier works for {g} now?",
        "Name the present courier of {g}.",
    ),
    PEOPLE,
)
KEEPER = Slot(
    "keeper",
    "keeper",
    "the keeper of {g} is {v}",
    (
        "Who is the keeper of {g}?",
        "Which keeper looks after {g} now?",
        "Name the present keeper of {g}.",
    ),
    PEOPLE,
)
BADGE = Slot(
    "badge",
    "badge",
    "at {g} the badge of {p} shows a {v}",
    (
        "What does the badge of {p} at {g} show?",
        "Which badge does {p} of {g} have now?",
        "Tell me the animal on the {g} badge of {p}.",
    ),
    _BADGES,
)
PLAIN = (DOOR, SUPPLIER, PASSWORD, LOCKER)
ROLES = (COURIER, KEEPER)
SLOTS = {slot.name: slot for slot in (*PLAIN, *ROLES, BADGE)}
CHAIN = (
    "What does the badge of the {r} of {g} show?",
    "Which badge does the {r} at {g} have now?",
    "Tell me the animal on the badge that the {g} {r} has.",
)
"""Two facts: who has the role, and that person's badge."""

ASIDES = (
    "as the notice by the stairs said",
    "which nobody had expected before lunch",
    "or so the morning round was told",
    "and the ledger was signed the same evening",
    "though it rained hard on the way there",
    "after a long talk over two pots of tea",
    "and the bill for it was paid at once",
    "which the cook heard first and passed on",
    "while the second lorry was still being unloaded",
    "and everyone went home early for once",
    "as agreed at the meeting in the hall",
    "which took three letters and some patience",
)
_ONSETS_TOLD = "B Br C D Dr F G Gl H J K L M N P R S St T Tr V W Z"
_MIDDLES_TOLD = (
    "ab ad ag al am an ar as av eb ed el em en er ev ib id il im in ir is ob od ol om on or ov ub ul un"
)
_ENDS_TOLD = "ack and ard eck ell end ick ill ond orn ost uck und urn ux"
_ONSETS, _MIDDLES, _ENDS = _ONSETS_TOLD.split(), _MIDDLES_TOLD.split(), _ENDS_TOLD.split()
WORKSHOPS = len(_ONSETS) * len(_MIDDLES) * len(_ENDS)


def workshop(number: int) -> str:
    """The name of a workshop, 0 <= number < WORKSHOPS; no two are alike."""
    rest, end = divmod(number, len(_ENDS))
    onset, middle = divmod(rest, len(_MIDDLES))
    return f"{_ONSETS[onset]}{_MIDDLES[middle]}{_ENDS[end]}"
