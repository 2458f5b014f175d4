"""English as the gate reads it: verbs, irregular forms, and wordings a writer may choose freely.

Each line of SYNONYMS is one set: any member may stand for another, in any of their regular or listed forms.
A word may be in several sets; sets are not joined. Never antonyms, never a change of who, how many or when.
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
take grab fetch collect pick|pick choose select opt|get obtain receive acquire|buy purchase acquire|
put place set lay position|go move walk head travel|see notice spot find observe|
spot detect find discover locate|say state mention remark|tell inform notify|begin start commence|
start launch initiate|end finish conclude|finish complete|task goal job assignment|big large|
contain hold include comprise|hold keep retain|keep store|store save stash|keep preserve maintain|
small little|fast quick rapid swift|quickly rapidly swiftly fast speedily|slow sluggish|
slowly gradually|dumb stupid foolish|happy glad cheerful pleased delighted joyful|sad unhappy sorrowful|
angry mad furious annoyed irate|afraid scared frightened fearful terrified|
tired exhausted weary fatigued|ill sick unwell|healthy well fit|strange odd weird unusual peculiar|
difficult hard tough challenging|easy simple effortless straightforward|
important significant crucial essential vital key|beautiful pretty lovely gorgeous attractive|
ugly unattractive|rich wealthy affluent|poor impoverished|old aged|older elder|new recent fresh|
new brand-new|broken damaged defective faulty|broken smashed|wide broad|tall high|near close nearby|
far distant remote|quiet silent calm peaceful|loud noisy|dangerous hazardous risky unsafe|safe secure|
correct right accurate|accurate precise exact|exactly precisely|wrong incorrect mistaken|
whole entire complete full|empty vacant|full packed|main primary principal chief|
necessary required needed essential mandatory|optional voluntary|enough sufficient adequate|
many numerous|several multiple|usual normal typical regular ordinary|
usually normally typically generally|often frequently regularly|sometimes occasionally|
immediately instantly promptly straightaway|suddenly abruptly unexpectedly|soon shortly|
maybe perhaps possibly|certain sure|certainly definitely surely|probably likely presumably|
approximately roughly about around circa|only just solely merely|also additionally too|
another additional extra further|famous renowned well-known celebrated|brave courageous|
polite courteous|rude impolite|honest truthful|lazy idle|angry cross|funny amusing humorous|
boring dull tedious|interesting fascinating|delicious tasty|dirty filthy|clean spotless|wet damp moist|
dry arid|cold chilly|hot scorching|dark dim|expensive costly pricey|cheap inexpensive affordable|
free complimentary gratis|present current|former previous earlier|previous prior|last final|
next following subsequent|modern contemporary|child kid youngster|baby infant|man gentleman|woman lady|
father dad daddy papa|grandmother grandma granny|grandfather grandpa|friend pal buddy mate|
colleague coworker workmate co-worker|boss manager supervisor|leader head chief|worker employee|
employee staff|staff personnel|employ hire recruit|doctor physician|teacher instructor|student pupil|
lawyer attorney solicitor|police cop|policeman cop officer|customer client|visitor guest|guest attendee|
owner proprietor|tenant renter|citizen resident|resident inhabitant|neighbour neighbor|author writer|
expert specialist|assistant aide helper|administrator admin|people folks persons|team crew|crowd throng|
car automobile auto|bicycle bike cycle|motorcycle motorbike|truck lorry|
plane airplane aircraft aeroplane|taxi cab|subway metro underground|elevator lift|road street|
highway motorway freeway|path trail track|pavement sidewalk|petrol gasoline gas|house home residence|
apartment flat|building edifice|room chamber|bathroom washroom restroom|toilet lavatory restroom|
cellar basement|corridor hallway|shop store|supermarket grocery|
company firm business corporation enterprise|factory plant works|office workplace|
pharmacy chemist drugstore|church chapel|village hamlet|country nation|border frontier|
forest woods wood|sea ocean|hill mound|stone rock|coast shore|island isle|couch sofa settee|rug carpet|
curtain drape|lamp light|fridge refrigerator|freezer icebox|tap faucet|rubbish garbage trash waste|
bin trashcan wastebasket|bag sack|parcel package packet|mail post|email e-mail mail|phone telephone|
mobile cellphone smartphone cell|call phone telephone ring|television tv telly|computer pc|
screen display monitor|picture image photo|photo photograph snapshot|film movie|song track|book volume|
magazine journal|newspaper paper|pen ballpoint|purse handbag|wallet billfold|coat jacket|
sweater jumper pullover|trousers pants slacks|clothes clothing garments apparel|glasses spectacles|
present gift|prize award|toy plaything|food meal|dinner supper|lunch luncheon|soup broth|sweets candy|
biscuit cookie|crisps chips|medicine medication drug|pill tablet|injury wound|illness disease sickness|
pain ache|holiday vacation|trip journey voyage|journey travel|party celebration|funeral burial|
autumn fall|start beginning|end finish ending conclusion|middle centre center|top peak summit|
bottom base|part portion section piece|piece bit|amount quantity|price cost|cost price charge|
fee charge|salary wage pay|money cash funds|debt liability|profit gain earnings|loss deficit|tax levy|
bill invoice|receipt proof|contract agreement|deal agreement|rule regulation|law statute|
permission consent authorisation|mistake error|fault defect flaw|bug defect|
problem issue trouble difficulty|question query enquiry inquiry|answer reply response|
idea thought notion|method approach technique way|reason cause|aim goal purpose objective target|
choice option selection|advice guidance|help assistance aid support|damage harm|danger risk hazard|
accident crash collision|fire blaze|noise sound|smell odor odour scent|speed velocity|size dimension|
shape form|colour color hue|weight mass|length duration|report account|note memo|page sheet|word term|
name title|information info details|news tidings|story tale|rain rainfall|storm tempest|wind breeze|
job work occupation profession|game match|winner victor champion|deadline due-date|schedule timetable|
confidence certainty|warning alert alarm|check inspection|inspection examination|software program|
program application app|folder directory|disk disc|password passcode|connection link|network net|
machine device apparatus|tool instrument implement|engine motor|arm manipulator|battery accumulator|
ask request inquire enquire|ask question|answer reply respond|speak talk converse|shout yell scream|
whisper murmur|explain clarify|describe depict|discuss debate|argue quarrel|agree consent|
promise pledge vow|suggest propose recommend|advise counsel recommend|warn caution alert|
complain grumble moan|thank appreciate|apologise apologize|invite ask|greet welcome|introduce present|
announce declare proclaim|claim assert|admit confess acknowledge|accept approve|
approve authorise authorize endorse|confirm verify validate|check verify inspect examine|
inspect examine check|test examine try|examine study inspect|investigate examine probe|look watch|
watch observe view monitor|show display exhibit present|reveal disclose expose|hide conceal|
search seek hunt|find discover locate|recognise recognize|understand comprehend grasp|think believe|
believe trust|think consider|remember recall recollect|learn discover|learn study|
teach instruct educate|train coach|practise practice rehearse|read peruse|write author compose pen|
draw sketch|paint colour color|make create produce|make build construct|build construct erect|
make manufacture produce|design create plan|create generate|invent devise|develop create|
fix repair mend|repair restore|improve enhance better|change alter modify|change switch|
replace substitute|swap exchange|adjust calibrate tune|increase raise boost|raise lift|
rise climb increase|grow increase expand|decrease reduce lower|reduce cut lessen|shrink contract|
fall drop|drop decrease|break smash shatter|break damage|damage harm impair|destroy demolish wreck ruin|
hurt injure harm wound|burn scorch|cut slice chop|divide split|join connect attach link|
attach fasten fix|connect link|separate detach split|open unlock|open unseal|close shut|
empty clear drain|remove delete erase|remove withdraw extract|delete erase|throw toss hurl|
throw discard|release free liberate|catch capture seize|hold grip grasp|bring deliver|deliver transport|
deliver supply|send dispatch forward ship|send mail post|send transmit|give hand pass|give donate|
give provide supply|give grant|lend loan|return give-back|return come-back|repay refund|pay settle|
sell vend|save rescue|save keep|protect guard defend|help assist aid support|support back|
stop halt cease|stop discontinue quit|prevent stop avert|block obstruct jam|cancel abort call-off|
abort terminate cancel|postpone delay defer|delay hold-up|late delayed overdue belated|stay remain|
remain continue|live reside dwell|visit see|enter access|escape flee|run operate|run manage direct|
manage lead direct supervise oversee|lead head direct|control operate|operate run work|operate function|
work function|use utilise utilize employ apply|utilise utilize|wear sport|drive steer|ride travel|
climb ascend scale|descend dismount|fall tumble|sleep slumber doze|wake awaken|eat consume devour|
drink sip consume|cook prepare|bake cook|heat warm|cool chill|clean wash|clean cleanse|
wash rinse launder|tidy clean|pour tip|mix blend stir combine|combine merge unite|
gather collect assemble|collect gather|gather meet|choose pick select|prefer favour favor|like enjoy|
love adore|hate detest loathe despise|want wish desire|need require|require demand|hope wish|
try attempt endeavour|succeed pass|succeed win|win triumph|beat defeat|lose misplace|fail flunk|
allow permit let enable|permit authorise|forbid prohibit ban|force compel|order command|order request|
book reserve|reserve set-aside|rent lease hire|own possess have|have possess own|belong pertain|
become turn|seem appear|appear emerge|happen occur|occur take-place|cause produce|include contain|
measure gauge|count tally|weigh measure|calculate compute|estimate assess evaluate|compare contrast|
record log register|record note|register enrol enroll|print publish|deploy release|install set-up|
update upgrade|restart reboot|start boot|launch start|move shift|move relocate transfer|shift move|
push press|press click|pull drag|turn rotate|rotate spin turn|lift raise hoist|lower reduce|
follow trail pursue|chase pursue|accompany escort|marry wed|married wed|die perish|dead deceased|
kill slay|plant sow|hire engage|dismiss fire sack|retire resign|resign quit|appoint name|elect choose|
vote ballot|attend visit|join enter|organise organize arrange|arrange plan schedule|schedule plan|
prepare ready|celebrate mark|finish end|complete end|last continue|expire lapse|renew extend prolong|
extend lengthen|shorten abbreviate|contact reach|heal recover|recover recuperate|suffer endure|
prescribe order|vaccinate inoculate immunise|diagnose identify|translate interpret|steal rob|
arrest detain|accuse blame|blame fault|punish penalise|forgive pardon|trust rely|respect admire|
admire respect|praise compliment commend|laugh giggle chuckle|smile grin|cry weep sob|worry fret|
surprise astonish amaze|annoy irritate|scare frighten|bother disturb|interrupt disturb|inherit receive|
collect accumulate|possess hold|employ use|daily everyday|weekly every-week|annually yearly|every each|
all every|entire all|nobody no-one|somebody someone|everybody everyone|anybody anyone|beside alongside|
below beneath underneath|above over|toward towards|within inside|via through|organise organize|
analyse analyze|colour color|centre center|metre meter|grey gray|travelled traveled|licence license|
tyre tire|programme program|cheque check|catalogue catalog|realise realize|favourite favorite preferred|
successfully success|completion complete|arrival arrive|departure depart|decision decide|payment pay|
purchase buy|sale sell|delivery deliver|repair fix|dog hound|cow cattle|hen chicken|
certificate credential|ticket pass|luggage baggage|suitcase case|map chart|temporary interim|
permanent lasting|initial first|final last|ready prepared|available free|able capable|unable incapable|
alone solo|together jointly|valid legitimate|invalid void|active live|inactive dormant|online connected|
offline disconnected|identical same|similar alike|equal same|opposite contrary|rough coarse|smooth even|
sharp keen|heavy weighty|thin slim slender|blind sightless|deaf unhearing|bald hairless|
mother mom mum mama|arrive come|leave depart|depart go|reach arrive|result outcome|
success successful succeed|unsuccessful fail|failure fail|copy duplicate replicate|
founded establish create|fine okay ok alright|wait await|warm warm-up|identify recognise recognize|
test exam examination|allowed permitted|allow permit let|plan scheme|person individual|rest remainder|
hall hallway|meeting conference|mean signify|birth born|pupil student|handle manage|choose decide-on|
sick ill|often regularly|garbage trash rubbish|gas petrol gasoline|cookie biscuit|trip excursion|
receive obtain|bag handbag purse|big sizable|talk chat speak|error mistake fault|quick speedy|
end terminate|begin commence start|sofa couch|pledge promise|free vacant|lift elevator|tablet pill|
freed release|warning alert|deny refuse|refuse reject decline|decline reject|ship send|keep retain|
location place|locate situate|occur happen|error bug|huge enormous gigantic|tiny minuscule|
large sizeable|whole total|silent quiet|rich wealthy|angry mad|begin originate|attempt try|
physician doctor|answer reply|gather collect|odd strange|below under underneath beneath|over above|
inside within|large big
"""
# Several words that stand for one; the rest of the clause keeps its words.
_PHRASES = """
pick up:take|picks up:take|lift up:lift|call off:cancel|set up:install|give back:return|
gives back:return|give away:donate|hand over:give|hand out:distribute|find out:discover|
carry out:perform|carry on:continue|go on:continue|keep on:continue|put off:postpone|turn down:reject|
take off:remove|throw away:discard|throw out:discard|look for:search|searches for:search|
search for:search|take place:happen|let know:inform|come back:return|go back:return|get back:return|
send back:return|bring back:return|pay back:repay|fill in:complete|fill out:complete|run out:expire|
use up:consume|take part:participate|get up:rise|stand up:rise|go up:rise|go in:enter|come down:fall|
go down:fall|grow up:mature|shut down:stop|close down:close|shut off:stop|break down:fail|wake up:wake|
clean up:clean|tidy up:tidy|end up:end|finish off:finish|ring up:phone|phone up:phone|call up:phone|
write down:record|note down:record|hold up:delay|cut down:reduce|speed up:accelerate|slow down:slow|
arrive at:reach|arrive in:reach|get to:reach|set off:leave|set out:leave|check in:register|
sign up:register|log in:login|put together:assemble|take apart:dismantle|get rid of:remove|
make sure:ensure|look after:mind|take care of:mind|look at:watch|depend on:rely|rely on:rely|
count on:rely|deal with:handle|get in touch with:contact|point out:mention|bring up:mention|
set aside:reserve|put aside:reserve|put down:place|put back:return|come across:find|due to:because|
owing to:because|because of:because|in order to:to|so as to:to|close to:near|next to:near|
in the vicinity of:near|at the back of:behind|in the back of:behind|on top of:on|inside of:in|
as well as:and|as well:also|along with:with|together with:with|in addition to that:also|
in addition:also|on top of that:also|as well as that:also|besides that:also|what is more:also|
apart from that:also|at the same time:also|a lot of:many|lots of:many|a number of:several|a couple of:2|
a pair of:2|a dozen:12|half a dozen:6|two times:twice|2 times:twice|three times:thrice|3 times:thrice|
per cent:percent|
with no:without|at once:immediately|right away:immediately|straight away:immediately|at present:now|
at the moment:now|as long as:if|provided that:if|on condition that:if|in case:if|in the event that:if|
except if:unless|only if:only if|has to:must|have to:must|had to:must|needs to:must|is required to:must|
are required to:must|is obliged to:must|is able to:can|are able to:can|was able to:could|
is allowed to:may|are allowed to:may|is permitted to:may|are permitted to:may|
is not allowed to:must not|is going to:will|are going to:will|not any more:no longer|no more:no longer|
no one:nobody|any one:anybody|each other:mutually|one another:mutually|more than:over|greater than:over|
less than:under|fewer than:under|at least:minimum|at most:maximum|no more than:maximum|
no less than:minimum|up to:maximum|a maximum of:maximum|a minimum of:minimum|power drill:drill|
time limit:deadline|each and every:every|from now on:henceforth|by means of:using|
with the help of:using|in front of:before-place|time of day:time
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
