"""Closed word lists of the gate and the distiller. Changing one changes verdicts and levels."""

from __future__ import annotations

# Function words carry no fact of their own; negations do, and the polarity check has them.
_STOP_WORDS = (
    "a an the this that these those there here and or if so then than as of to in on at for with by "
    "from into onto up down out over under about after before while when where which who whom whose "
    "what why how is are was were be been being am do does did doing done have has had having will "
    "would can could should shall may might must i me my mine we us our ours you your yours he him his "
    "she her hers it its they them their theirs not no nor just also too very really some any all both "
    "each more most other such only own same again once now but however i'm it's that's you're i've "
    "we've they're he's she's let's don't doesn't didn't isn't aren't wasn't weren't can't won't oh hey "
    "hi wow yeah"
)
_NEGATIONS = "no not never none nothing nobody nowhere neither nor without cannot can't won't unable"
# What else turns a claim round. The gate compares these; they are ordinary words to the distiller.
_DENYING_VERBS = (
    "fail refuse deny decline stop cease quit avoid neglect omit skip miss lack reject cancel prevent "
    "abandon abort abstain refrain withhold doubt dispute disprove refute retract revoke undo pretend "
    "forbid forget"
)
_DENYING_WORDS = (
    "failure refusal denial forgot forgotten undid undone forbade forbidden withheld hardly barely scarcely "
    "rarely seldom almost nearly false falsely untrue untruth lie lies lied incorrect incorrectly wrong "
    "wrongly impossible unlikely unsuccessful unsuccessfully unwilling allegedly supposedly purportedly "
    "instead except non ain't aint cant couldnt didnt doesnt dont hadnt hasnt havent isnt mustnt shouldnt "
    "wasnt werent wont wouldnt nope nay"
)
# Function words that change a claim all the same: how sure, how many, which way, when.
_QUALIFIERS = (
    "will would can could should shall may might must if or by before after while when than any some all "
    "both each more most other only same again once"
)
# In front of a number they change it.
_ROUNDERS = "about over under above below around between up down"
_UNIT_SIGNS = "% ‰ ° € $ £ ¥"
_UNITS = (
    "% ‰ ° € $ £ ¥ percent hundred hundreds thousand thousands million millions billion billions trillion "
    "dozen dozens half halves k m bn mm cm km mile miles meter meters metre metres kilometer kilometers "
    "kilometre kilometres inch inches ft foot feet yard yards mg g kg gram grams kilo kilos kilogram "
    "kilograms ton tons tonne tonnes lb lbs pound pounds oz ounce ounces ml cl l liter liters litre litres "
    "gallon gallons ms s sec secs second seconds min mins minute minutes h hr hrs hour hours day days week "
    "weeks month months year years decade decades am pm euro euros dollar dollars cent cents yen rupee "
    "rupees franc francs usd eur gbp chf w watt watts kw kwh v volt volts amp amps j joule joules hz khz "
    "mhz ghz kb mb gb tb byte bytes bit bits degree degrees newton newtons decibel decibels db hectare "
    "hectares milligram milligrams centimeter "
    "centimeters centimetre centimetres millimeter millimeters millimetre millimetres milliliter "
    "milliliters hp celsius fahrenheit times fold "
)
# A contrast starts a claim of its own: "apples but not pears" negates pears only.
_CONTRASTS = "but however although though whereas while yet"
_NUMBERS = (
    "two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen "
    "seventeen eighteen nineteen twenty"
)
_CALENDAR = (
    "january february march april may june july august september october november december jan feb mar "
    "apr jun jul aug sep sept oct nov dec monday tuesday wednesday thursday friday saturday sunday "
    "yesterday today tomorrow"
)
# Wording a writer may choose freely. Never antonyms, never a change of who or how many.
_SYNONYMS = (
    "take pick grab get fetch",
    "put place set",
    "go move walk head travel",
    "see notice spot find",
    "say tell mention",
    "begin start",
    "end finish complete",
    "task goal job",
    "big large",
    "buy purchase",
    "contain hold include",
)
_IRREGULAR = (
    "took:take taken:take got:get went:go gone:go saw:see seen:see found:find said:say told:tell "
    "began:begin bought:buy held:hold lent:lend sent:send paid:pay gave:give given:give left:leave "
    "met:meet made:make sold:sell kept:keep lost:lose won:win brought:bring came:come ran:run wrote:write "
    "written:write"
)


def _forms(verb: str) -> set[str]:
    """A verb and every ending a regular one could have; a form that does not exist does no harm."""
    stems = {verb, verb + verb[-1], verb.removesuffix("e")}
    forms = {stem + ending for stem in stems for ending in ("ed", "ing", "er")} | {
        verb,
        verb + "s",
        verb + "es",
    }
    return forms | ({verb[:-1] + "ies", verb[:-1] + "ied"} if verb.endswith("y") else set())


STOP_WORDS = frozenset(_STOP_WORDS.split())
NEGATIONS = frozenset(_NEGATIONS.split())
DENIALS = frozenset(form for verb in _DENYING_VERBS.split() for form in _forms(verb)) | frozenset(
    _DENYING_WORDS.split()
)
FUNCTION_WORDS = STOP_WORDS - frozenset(_QUALIFIERS.split())
ROUNDERS = frozenset(_ROUNDERS.split())
UNIT_SIGNS = frozenset(_UNIT_SIGNS.split())
UNITS = frozenset(_UNITS.split())
CONTRASTS = frozenset(_CONTRASTS.split())
NUMBERS = {word: str(value) for value, word in enumerate(_NUMBERS.split(), start=2)}
CALENDAR = frozenset(_CALENDAR.split())
SYNONYMS = {word: group.split()[0] for group in _SYNONYMS for word in group.split()}
IRREGULAR = dict(pair.split(":") for pair in _IRREGULAR.split())
