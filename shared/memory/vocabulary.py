"""English as the gate reads it: verbs, irregular forms, and wordings a writer may choose freely.

Each line of SYNONYMS is one set: any member may stand for another, in any of their regular or listed forms.
A word may be in several sets; sets are not joined. Only words that are interchangeable in nearly every sense:
a paraphrase rejected is cheap, a fact changed is not ("retired" is not "resigned", nor "mailed" "emailed").
"""

from __future__ import annotations

# base past participle; one form where past and participle agree.
_IRREGULAR = """
arise arose arisen|awake awoke awoken|bear bore borne|beat beat beaten|become became become|
begin began begun|bend bent|bet bet|bind bound|bite bit bitten|bleed bled|blow blew blown|
break broke broken|breed bred|bring brought|build built|burn burnt|burst burst|buy bought|cast cast|
catch caught|choose chose chosen|come came come|cost cost|creep crept|cut cut|deal dealt|dig dug|
draw drew drawn|dream dreamt|drink drank drunk|drive drove driven|eat ate eaten|fall fell fallen|
feed fed|feel felt|fight fought|find found|flee fled|fly flew flown|forbid forbade forbidden|
forget forgot forgotten|forgive forgave forgiven|freeze froze frozen|get got gotten|give gave given|
go went gone|grind ground|grow grew grown|hang hung|hear heard|hide hid hidden|hit hit|hold held|
hurt hurt|keep kept|kneel knelt|know knew known|lay laid|lead led|lean leant|learn learnt|leave left|
lend lent|let let|light lit|lose lost|make made|mean meant|meet met|mow mowed mown|pay paid|put put|
quit quit|read read|ride rode ridden|ring rang rung|rise rose risen|run ran run|say said|see saw seen|
seek sought|sell sold|send sent|set set|sew sewed sewn|shake shook shaken|shine shone|shoot shot|
show showed shown|shrink shrank shrunk|shut shut|sing sang sung|sink sank sunk|sit sat|sleep slept|
slide slid|smell smelt|speak spoke spoken|spell spelt|spend spent|spill spilt|spin spun|split split|
spoil spoilt|spread spread|spring sprang sprung|stand stood|steal stole stolen|stick stuck|sting stung|
strike struck|swear swore sworn|sweep swept|swell swelled swollen|swim swam swum|swing swung|
take took taken|teach taught|tear tore torn|tell told|think thought|throw threw thrown|
tread trod trodden|understand understood|undertake undertook undertaken|undo undid undone|upset upset|
wake woke woken|wear wore worn|weave wove woven|weep wept|wet wet|win won|wind wound|
withdraw withdrew withdrawn|withhold withheld|write wrote written|overhear overheard|
oversee oversaw overseen|overtake overtook overtaken|rebuild rebuilt|repay repaid|resell resold|
rewrite rewrote rewritten|foresee foresaw foreseen|mislead misled|misunderstand misunderstood|
outgrow outgrew outgrown
"""
_PLURALS = (
    "men:man women:woman children:child people:person feet:foot teeth:tooth mice:mouse geese:goose "
    "knives:knife wives:wife shelves:shelf loaves:loaf halves:half wolves:wolf thieves:thief scarves:scarf "
    "boxes:box buses:bus data:data series:series oxen:ox potatoes:potato tomatoes:tomato heroes:hero"
)
# Regular verbs; what is also a noun counts as a verb only where a verb can stand.
_VERBS = """
abandon abort absorb accept access accompany achieve acquire act activate adapt add address adjust
admire admit adopt advance advise affect afford agree aim alert align allow alter amend analyse announce
annoy answer apologise appear apply appoint approach approve argue arrange arrest arrive ask assemble
assess assign assist assume attach attack attempt attend attract author avoid award back bake balance
ban bark base bathe behave believe belong benefit blame blink block boil bomb book boot borrow bother
bounce box breathe brush bury calculate calibrate call cancel capture care carry carve cause celebrate
change charge chase chat check cheer claim clean clear click climb close collapse collect combine
comment commit communicate compare compete compile complain complete compute conceal concern confirm
connect consider consist construct consult consume contact contain continue contribute control convert
convince cook cool copy correct cough count cover crack crash crawl create cross cry cure cycle damage
dance date decide declare decline decorate decrease defeat defend deflate delay delete deliver demand
deny depart depend deploy describe deserve design destroy detach detect develop diagnose die differ
disable disagree disappear disconnect discover discuss dislike dismiss display divide divorce dock
double download drag dress drill drip drop dry earn edit educate elect email emit employ empty enable
encourage end enjoy enrol enter erase escape estimate evacuate evaluate examine exceed exchange exclude
execute exhibit exist exit expand expect expire explain explode explore export express extend extinguish
extract face fail fasten fax fear fetch file fill film filter finance finish fire fit fix flash flip
float flood flow focus fold follow force format found free fry fuel function gain gather generate glue
grab grant greet grip guard guess guide halt hand handle happen harvest hate heal heat help hike hire
hop host hover hug hunt hurry identify ignore imagine implement import improve include increase indicate
infect inflate inform inherit inject injure insert inspect inspire install instruct insult insure intend
interview introduce invent invest investigate invite involve iron issue jam join joke judge jump justify
kick kill kiss knit knock label land last laugh launch leak lick lift like limit link list listen live
load locate lock log look love lower maintain manage manufacture mark marry mash master match measure
melt memorise mend mention merge mind miss mix monitor mount mourn move multiply murder name need
negotiate nod note notice notify number obey object observe obtain occupy occur offer oil open operate
order organise overflow owe own pack paint park participate pass paste patch pause perform permit phone
pick pin place plan plant play plug point polish possess post postpone pour practise praise predict
prefer prepare prescribe present preserve press prevent print process produce promise promote propose
protect provide pull pump punish purchase push qualify question queue quote race rain raise rate reach
react realise reboot recall receive recharge recognise recommend reconnect record recover reduce refer
refill refuse regret rehearse reject relate relax release rely remain remember remind remove renew rent
repair repeat replace reply report represent reproduce request require rescue reserve reset resign
resist resolve respond rest restart restore restrict result resume retire retrieve retry return reveal
reverse review reward roast roll rotate round ruin rule rush sail save scan scare schedule scold scoop
score scratch scream screw seal search seat select serve service settle share shave shelter shift ship
shock shop shout sign signal ski skip slip slow smile smoke snow soak sail solve sort sound spare spot
spray squeeze stack staff stage stamp start state stay steer step stir stop store stretch study submit
succeed suffer suggest suit supervise supply support suppose surprise surrender surround suspect suspend
swap switch talk tap taste telephone terminate test text thank tidy tie time tip touch tour tow trace
track trade train transfer translate transmit transport trap travel treat trigger trim trip trust try
tune turn type unload unlock unpack update upgrade upload urge use utilise vacate vaccinate validate
value vanish verify visit vote wait walk wander want warm warn wash waste watch water wave weigh weld
welcome whisper widen wipe wish witness wonder work worry wrap yell zoom commence cease employ examine
ascend descend enquire gauge peruse wed relocate reside rinse slice chop peel pour sprain vomit snore
sneeze allocate archive authenticate benchmark cache commit crawl debug decode decrypt encode encrypt
flush index ingest iterate parse poll provision query render replicate rollback route sample serialise
spawn stream sync throttle timeout truncate
"""
_SYNONYMS = """
begin start commence|finish complete|end finish|end ending|start beginning|buy purchase|choose select|
put place|find discover|inform notify|big large|small little|fast quick rapid swift speedy|
quickly rapidly swiftly fast speedily|happy glad|sad unhappy|afraid scared frightened|ill sick unwell|
strange weird|difficult hard|rich wealthy|older elder|defective faulty|wide broad|dangerous hazardous|
precise exact|exactly precisely|wrong incorrect|whole entire|necessary needed|need require|
mandatory obligatory|enough sufficient|many numerous|usually typically|often frequently|
sometimes occasionally|immediately instantly straightaway|suddenly abruptly|soon shortly|
maybe perhaps possibly|certainly definitely|probably likely|approximately roughly about around circa|
only solely merely|also additionally too|additional extra further|famous renowned well-known|
brave courageous|polite courteous|rude impolite|honest truthful|boring tedious|delicious tasty|damp moist|
expensive costly pricey|cheap inexpensive|former previous|previous prior|following subsequent|child kid|
baby infant|man gentleman|woman lady|father dad daddy papa|mother mom mum mama|grandmother grandma granny|
grandfather grandpa|friend pal buddy|colleague coworker workmate co-worker|employee staff|staff personnel|
doctor physician|lawyer attorney|owner proprietor|tenant renter|resident inhabitant|neighbour neighbor|
author writer|administrator admin|people folks persons|person individual|crowd throng|
car automobile auto|bicycle bike|motorcycle motorbike|truck lorry|plane airplane aeroplane|taxi cab|
subway metro|elevator lift|motorway freeway|pavement sidewalk|petrol gasoline|apartment flat|
building edifice|toilet lavatory|cellar basement|corridor hallway|shop store|company firm|
pharmacy drugstore|forest woods|island isle|couch sofa settee|curtain drape|fridge refrigerator|
tap faucet|rubbish garbage trash|parcel package|email e-mail|phone telephone|mobile cellphone|
television tv telly|photo photograph|film movie|wallet billfold|sweater jumper pullover|
clothes clothing garments|present gift|prize award|toy plaything|lunch luncheon|sweets candy|
biscuit cookie|medicine medication|illness sickness|pain ache|trip journey|autumn fall|peak summit|
amount quantity|permission authorisation authorization|mistake error|defect flaw|problem issue|
answer reply respond response|enquiry inquiry|enquire inquire|help assistance aid|help assist aid|
damage harm|danger hazard|smell odour odor|speed velocity|information info|news tidings|story tale|
rain rainfall|occupation profession|winner victor|deadline due-date|schedule timetable|folder directory|
disk disc|speak talk|shout yell|promise pledge vow|suggest propose|claim assert|show display|
reveal disclose|hide conceal|understand comprehend|think believe|remember recollect|write author|
build construct|fix repair mend|improve enhance|alter modify|swap exchange|rise increase|
decrease reduce|hurt injure|divide split|attach fasten|close shut|delete erase|throw toss|
send dispatch|provide supply|lend loan|save rescue|stop halt cease|block obstruct|postpone defer|
stay remain|live reside|use utilise utilize|climb ascend|sleep slumber|wake awaken awake|mix blend|
gather collect|love adore|hate detest loathe|try attempt|beat defeat|allow permit|
forbid prohibit|force compel|book reserve|own possess|seem appear|happen occur|measure gauge|
calculate compute|assess evaluate|inspect examine|restart reboot|move relocate|marry wed|married wed|
die perish|dead deceased|expire lapse|recover recuperate|vaccinate inoculate|punish penalise|
praise commend|cry weep|annoy irritate|scare frighten|annually yearly|every each|nobody no-one|
somebody someone|everybody everyone|anybody anyone|beside alongside|below beneath underneath under|
toward towards|via through|luggage baggage|slim slender|leave depart|result outcome|copy duplicate|
founded establish|fine okay ok alright|wait await|exam examination|allowed permitted|rest remainder|
located situated|huge enormous gigantic|tiny minuscule|analyse analyze|apologise apologize|
authorise authorize|recognise recognize|realise realize|organise organize|practise practice|colour color|
centre center|metre meter|grey gray|travelled traveled|licence license|tyre tire|programme program|
catalogue catalog|favourite favorite|favour favor|enrol enroll|successfully success|
success successful succeed|unsuccessful fail|failure fail|completion complete|arrival arrive|
departure depart|decision decide|payment pay|sale sell|delivery deliver|birth born
"""
# Several words that stand for one; the rest of the clause keeps its words.
_PHRASES = """
pick up:take|picks up:take|lift up:lift|call off:cancel|give back:return|gives back:return|
hand over:give|hand out:distribute|find out:discover|carry out:perform|carry on:continue|
go on:continue|keep on:continue|put off:postpone|turn down:reject|take off:remove|
throw away:discard|throw out:discard|look for:search|searches for:search|search for:search|
take place:happen|let know:inform|come back:return|go back:return|pay back:repay|fill in:complete|
fill out:complete|use up:consume|take part:participate|get up:rise|go up:rise|go in:enter|
break down:fail|wake up:wake|clean up:clean|tidy up:tidy|finish off:finish|ring up:phone|
phone up:phone|speed up:accelerate|slow down:slow|arrive at:reach|arrive in:reach|sign up:register|
log in:login|put together:assemble|take apart:dismantle|get rid of:remove|make sure:ensure|
look after:mind|take care of:mind|rely on:rely|count on:rely|deal with:handle|
get in touch with:contact|point out:mention|set aside:reserve|put aside:reserve|due to:because|
owing to:because|because of:because|in order to:to|so as to:to|close to:near|
in the vicinity of:near|at the back of:behind|in the back of:behind|on top of:on|inside of:in|
as well as:and|as well:also|along with:with|together with:with|in addition to that:also|
in addition:also|on top of that:also|as well as that:also|besides that:also|what is more:also|
apart from that:also|at the same time:also|a lot of:many|lots of:many|a number of:several|
a dozen:12|half a dozen:6|two times:twice|2 times:twice|three times:thrice|3 times:thrice|
per cent:percent|with no:without|at once:immediately|right away:immediately|
straight away:immediately|at present:now|at the moment:now|provided that:if|on condition that:if|
in the event that:if|except if:unless|only if:only if|has to:must|have to:must|had to:must|
needs to:must|is required to:must|are required to:must|is obliged to:must|is able to:can|
are able to:can|was able to:could|is allowed to:may|are allowed to:may|is permitted to:may|
are permitted to:may|is not allowed to:must not|is going to:will|are going to:will|
not any more:no longer|no more:no longer|no one:nobody|any one:anybody|each other:mutually|
one another:mutually|more than:over|greater than:over|less than:under|fewer than:under|
at least:minimum|at most:maximum|no more than:maximum|no less than:minimum|up to:maximum|
a maximum of:maximum|a minimum of:minimum|time limit:deadline|each and every:every|
from now on:henceforth|by means of:using|with the help of:using|in front of:before-place|
time of day:time
"""


def _stem_regular(word: str) -> str:
    """Without a regular ending, a silent e or a doubled consonant: equal for all regular forms of a word."""
    whole = word
    if word.endswith("ings"):
        word = word[:-1]
    size = len(word)
    if word.endswith("s") and size > 3:
        if word.endswith(("ies",)) and size > 4:
            word = word[:-3] + "y"
        elif word.endswith(("sses", "shes", "ches", "xes", "zes", "oes")):
            word = word[:-2]
        elif not word.endswith(("ss", "us", "is")):
            word = word[:-1]
    elif word.endswith(("reed", "teed")):
        word = word[:-1]
    elif word.endswith("ied") and size > 4:
        word = word[:-3] + "y"
    elif word.endswith("ed") and size > 4 and not word.endswith("eed") and _has_vowel(word[:-2]):
        word = word[:-2]
    elif word.endswith("ing") and size > 5 and _has_vowel(word[:-3]):
        word = word[:-3]
    if len(word) > 3 and word.endswith("e") and word not in _KEEPS_E:
        word = word[:-1]
    # Only where an ending is gone ("planned"), or where verbs end so ("call", "pass", "add").
    doubled = len(word) > 3 and word[-1] == word[-2] and word[-1] not in "aeiou"
    ended = not whole.startswith(word) or whole[len(word) :] not in ("", "s", "e")
    if doubled and (ended or word[-1] in "lsfzd"):
        word = word[:-1]
    return word


def _has_vowel(stem: str) -> bool:
    return any(letter in "aeiouy" for letter in stem)


# Without its e each of these would be another word.
_E_WORDS = (
    "plane care hope stare bare pine cube cute bite hate rate fate wine tape tube cape cane mane "
    "robe code mode quite site ride slope paste scare note breathe clothe bathe here use one fine "
    "fire more store wore bore pane tone shore core pure cure wage stage rage"
)
_KEEPS_E = frozenset(_E_WORDS.split())
# Not a verb's or plural's ending.
_WHOLE_WORDS = (
    "bed red shed bring thing string king ring spring evening morning during nothing something "
    "anything everything ceiling hundred need seed feed speed indeed breed sing wing swing sting "
    "always perhaps news this is was has his its yes us bus gas lens series species means thus plus "
    "focus status virus bonus campus census analysis basis crisis address access process success "
    "business illness less glass class pass miss boss loss cross press dress guess ss kiss mess "
    "bless chess across princess james paris texas ines jonas lukas lucas thomas charles"
)
_WHOLE = frozenset(_WHOLE_WORDS.split())
IRREGULAR: dict[str, str] = {}
PARTICIPLES: set[str] = set()
"""Irregular participles: what can stand behind a form of be."""
for _row in _IRREGULAR.replace("\n", " ").split("|"):
    _base, *_forms = _row.split()
    for _form in _forms:
        IRREGULAR.setdefault(_form, _base)
    PARTICIPLES.add(_forms[-1])
IRREGULAR.update(pair.split(":") for pair in _PLURALS.split())  # type: ignore[misc]
_MORE = (
    "fell:fall saw:see used:use using:use died:die tied:tie dying:die owed:owe aged:old "
    "agreed:agree freed:free lying:lie"
)
IRREGULAR.update(pair.split(":") for pair in _MORE.split())  # type: ignore[misc]


def stem(word: str) -> str:
    """One form for every ending of a word: `took` and `taking` give `tak`, `knives` gives `knif`."""
    base = IRREGULAR.get(word, word)
    return base if base in _WHOLE else _stem_regular(base)


VERBS = frozenset(stem(word) for word in _VERBS.split()) | frozenset(
    stem(row.split()[0]) for row in _IRREGULAR.replace("\n", " ").split("|")
)
_SETS = [
    tuple(dict.fromkeys(stem(word) for word in row.split())) for row in _SYNONYMS.replace("\n", "").split("|")
]
KNOWN_WORDS = frozenset(_SYNONYMS.replace("\n", "").replace("|", " ").split())
SYNONYMS: dict[str, tuple[str, ...]] = {}
"""Stem to the stems that may stand for it."""
for _set in _SETS:
    for _word in _set:
        _others = (*SYNONYMS.get(_word, ()), *(other for other in _set if other != _word))
        SYNONYMS[_word] = tuple(dict.fromkeys(_others))
PHRASE_ROWS = tuple(tuple(row.split(":")) for row in _PHRASES.replace("\n", "").split("|"))
"""What is said, and the words it stands for."""
