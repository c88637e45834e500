"""The name that a sentence opens with. A capital tells nothing there, so a name is known by what follows: something
that only people do, or what somebody is ("Marcel, the plumber,"); and it is no common word by its form.

Used by the check of a model's summary; whether anyone said the name is asked there.
"""

from __future__ import annotations

import re

from everthread.text.fact_rules_names import NOT_NAMES, ORDINARY_WORDS, SURNAMES

_PEOPLE_DO = (
    r"paid|pays|said|says|told|tells|asked|asks|wants|wanted|thinks|thought|believes|fixed|repaired|booked|books"
    r"|called|calls|reported|reports|suggested|suggests|ordered|orders|confirmed|decided|decides|added|moved"
    r"|raised|chose|chooses|prefers|preferred|likes|liked|loves|hates|hated|finds|found|bought|buys|sold|sent"
    r"|sends|wrote|writes|cancelled|canceled|agreed|refused|offered|promised|recommended|renamed|changed|switched"
    r"|turned|stays|stayed|lives|works|eats|drinks|drives|flies|plays|takes|took|brings|brought|gave|gives|knows"
    r"|hopes|plans|planned|visited|visits|arrived|left|signed|approved|rejected|lost|won|made|helped|married"
    r"|invited|mentioned|explained|warned|complained|insisted|had|is (?:afraid|allergic|ill|sick|away|vegetarian"
    r"|vegan|married|pregnant|on holiday|a|an|the user['’]s)|has (?:a|an|two|three)"
)
_OPENS = re.compile(
    rf"^([A-Z][a-zà-ÿ'’]{{1,20}})(?:(?: [A-Z][a-zà-ÿ'’-]{{1,20}})?(?: also| never| always)? (?:{_PEOPLE_DO})\b"
    r"|, (?:(?:the|a|an|his|her|their|our) (?!user|assistant)|who ))"
)
_COMMON_FORM = re.compile(
    r"(?:ings?|tions?|sion|ment|ments|ness|ity|ance|ence|ship|ism|ists?|ers|ors|ees|ies|ants|ents|ly|ed|age|ure|ward|wise"
    r"|body|one|thing|where|ever|self|fast|sis|ics|less|ful|ous|ive|able|ible)$"
)
_COMMON = frozenset(
    """
    management customer customers client clients guest guests parent parents team staff group boss mother father mum
    mom dad brother sister wife husband son daughter child children kid kids friend friends neighbour neighbours
    neighbor neighbors doctor doctors nurse teacher landlord tenant owner seller buyer agent chef coach driver
    support legal finance sales marketing police bank court school company vendor supplier user users assistant
    assistants people person men women man woman boy girl boys girls aunt uncle grandma grandpa cousin nephew niece
    partner couple colleague colleagues coworker plumber painter painters electrician builder builders contractor
    mechanic dentist lawyer work works later meanwhile afterwards instead however originally half part nobody
    somebody anybody none others another two three four five six seven eight nine ten several many few most rent
    money budget price cost costs invoice deposit order orders hotel flight train trip dinner lunch breakfast party
    house flat car cat dog goal plan decision version service server code test tests build data file files table
    tables logs email emails mail letter call nothing everything anything time date place food weather yesterday
    morning evening afternoon night week month year
    """.split()
)
_HAN_OPENS = re.compile(
    rf"^([{SURNAMES}][\u4e00-\u9fff]{{1,2}}?)(?:仍然|也|已经|已)?"
    r"(?=把|要求|说|想要|希望|选了|选择|决定|取消|换了|换成|不需要|需要|觉得|认为|怕|害怕|加了|定了|又|留在|坐\d|下令|建议|付了|支付|预订|订了"
    r"|买了|修好|确认|提出|喜欢|讨厌|住在|负责|改|对[\u4e00-\u9fff]{1,4}过敏)"
)
_NOT_GIVEN = frozenset(
    "的了在去到从是和与跟给把被让叫就也还我你他她它们这那有没不说要想会能很吧呢吗啊来回往于对为以及或个一二三四五六七八九十"
    "天月日周年期上下前后里外方案程序本身面管员户务金额费价款线路票铁速总经理事部门司店家人色种些只件台张"
)


def opening_name(sentence: str) -> str | None:
    """The name of a person that a sentence opens with, if it does."""
    if found := _OPENS.match(sentence):
        word = re.sub(r"['’]s$", "", found[1])
        return None if _is_common(word.lower()) else word
    if found := _HAN_OPENS.match(sentence):
        name = found[1]
        return None if set(name[1:]) & _NOT_GIVEN or name[:2] in ORDINARY_WORDS else name
    return None


def _is_common(word: str) -> bool:
    return len(word) < 3 or word in NOT_NAMES or word in _COMMON or bool(_COMMON_FORM.search(word))
