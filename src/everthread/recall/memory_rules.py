"""What people say about themselves, found by plain rules in English and Chinese. Pure, and precise rather than greedy.

A rule applies only at the beginning of a sentence (after a greeting or the like), so that what is quoted, asked,
supposed or told of others is none: "she said my name is Ann", "what if I live in Rome?". What a message says passes
these gates, the cheap ones first:

1. `may_hold_memories`: some cue is in it; most messages have none, and are read no further.
2. `statements`: code, quotations and tables are left out, the rest is cut into sentences, each without the greeting
   before it, and without the plan or the request beside it.
3. `SECRET` and `_NOT_MEANT`: a sentence that speaks of a password, or asks, supposes or quotes, is never remembered.
4. What the sentence takes back (`memory_subjects`) is found whatever else it says.
5. `_BEGINS`: it begins as some rule could; most others are told apart here without trying 150 patterns.
6. `RULES`: the first that fits makes the memory (`memory_wording`), then its further clauses are read. Some know what
   is said and put it into words of their own, with a subject by which a newer one replaces it; the others know only
   that such a sentence is worth keeping, and quote it.

A new rule that nothing gets through to is found by its `sample`, which must pass all of them.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Final

from everthread.core.memories import MemoryKind
from everthread.core.text_memo import TextMemo
from everthread.recall.memory_intents import Ended
from everthread.recall.memory_rules_chinese import CHINESE
from everthread.recall.memory_rules_english import ENGLISH
from everthread.recall.memory_subjects import once_subject, order_subject, taken_back, was_so
from everthread.recall.memory_wording import (
    HAS_CHINESE,
    MOMENT,
    OF_ONESELF,
    ExtractedMemory,
    Rule,
    explicit_request,
    in_own_words,
    tidy,
)
from everthread.text.fillers import without_fillers

MAX_READ_CHARACTERS: Final = 4_000
"""Who tells more than this at once pastes something."""
_MAX_SENTENCE_CHARACTERS: Final = 300
_MAX_MEMORIES: Final = 10


def extract_by_rules(text: str) -> list[ExtractedMemory]:
    """The memories that a message holds about who wrote it, and what it takes back of older ones."""
    said = text[:MAX_READ_CHARACTERS]
    return _read(said) if _holds_some(said) else []


def holds_memories(text: str) -> bool:
    """Whether there are any: asked of each message of a window that was not read yet, at every turn."""
    return _holds_some(text[:MAX_READ_CHARACTERS])


def _read(text: str) -> list[ExtractedMemory]:
    if not may_hold_memories(text):
        return []
    found = [
        memory
        for sentence in statements(text)
        if not SECRET.search(sentence) and not _NOT_MEANT.search(sentence) and not _POINTS_BACK.fullmatch(sentence)
        for memory in _read_sentence(sentence)
    ]
    if _JESTED.match(text) is not None:
        found = [_instead_of_any_name(memory) for memory in found]
    distinct = {(memory.subject or memory.text): memory for memory in found}
    return list(distinct.values())[:_MAX_MEMORIES]


_JESTED = re.compile(
    r"\W{0,4}(?:(?:haha|lol|ok|okay|sorry|no|nah|wait|oh)\W{1,3}){0,3}(?:jks?|j/k|(?:just |only )?(?:kidding|joking))\b"
    r"|\W{0,4}(?:哈{1,8}\W{0,3})?(?:开玩笑的?|开个玩笑|逗你(?:玩)?的?|骗你的?|瞎说的|闹着玩的?)",
    re.IGNORECASE,
)
_NAMES: Final = ("name", "form of address")


def _instead_of_any_name(memory: ExtractedMemory) -> ExtractedMemory:
    """Who said their name in jest wants to be called by no name they gave before."""
    if memory.subject not in _NAMES:
        return memory
    return replace(memory, ends=(*memory.ends, *(Ended(name) for name in _NAMES if name != memory.subject)))


_holds_some = TextMemo(lambda text: bool(_read(text)), min_chars=1, max_chars=MAX_READ_CHARACTERS, capacity=2_048)
"""Each message is asked about as it is appended, whenever a context is made before it was read, and when it is read. Of
what it says nothing is kept here."""


_CUE: Final = re.compile(
    r"\b(?:jk|back to|switch|wieder|moved|no longer|not|my|our|me|us|i|i['’]m|im|ive|we|always|never|ever"
    r"|from (?:now|here) on|going forward|in (?:the )?future"
    r"|remember|keep in mind|fan of|future"
    r"|bear in mind|don['’]t|please|avoid|answer|reply|respond|use|stop|keep|no more|stick to|when(?:ever)? you"
    r"|forget|again|any ?more)\b"
)
_CUE_IN_CHINESE: Final = re.compile(
    "我|俺|咱|本人|记住|记得|记一下|记着|以后|今后|从现在|从今|不要|别|请|一律|统一|始终|千万|尽量"
    r"|每次|凡是|预算|之前先|在读|坐标|老家|现居|自学|备考|自我介绍|退休前|籍贯|定居|喜欢|看重|截止日期"
    "|对接人|回答|回复|[改换切转说]回|还是|恢复|搬|每当|只要|备忘|记下|禁止|可以|不用|不必|忘"
)
"""Apart, because each of these would be tried at every letter of an English text."""


def may_hold_memories(text: str) -> bool:
    """Whether a message is worth reading on: most say nothing of the kind."""
    said = text[:MAX_READ_CHARACTERS].lower()
    return _CUE.search(said) is not None or (not said.isascii() and _CUE_IN_CHINESE.search(said) is not None)


_CODE = re.compile(r"```.*?(?:```|\Z)|`[^`\n]*`", re.DOTALL)
_QUOTED_LINE = re.compile(
    r"^[^\S\n]*+(?:>|\||#|[-*+] |\d+[.)] |(?!remember\b)[A-Za-z]\w*:\s).*$", re.MULTILINE | re.IGNORECASE
)
"""Quotations, tables, lists and transcripts are somebody's text, not the speaker's own word."""
_END = re.compile(
    r"(?<=[!?。！？；;\n])\s*|(?<=\.)(?<!\bDr\.)(?<!\bMr\.)(?<!\bMrs\.)(?<!\bMs\.)(?<!\bProf\.)\s+(?=[^\W\d_a-z]"
    r"|i\b|$)|\n+|(?<=\.)(?<!e\.g\.)(?<!i\.e\.)(?<!etc\.)(?<!vs\.)\s+(?=(?:im|ive|my|we|our|never|always|please|pls|plz|don't|btw"
    r"|from now|call me|remember|keep|use|stop|answer|reply|and|but|so|also)\b)"
)
_OPENINGS = re.compile(
    r"^(?:(?:hi|hello|hey|hi there|hey there|well|so|oh|ok|okay|yes|yeah|no(?! more\b)|also|and|but|btw|by the way|fyi"
    r"|for the record|just so you know|just to let you know|for your information|actually|please note that|note that"
    r"|as i said|thanks|thank you|good (?:morning|afternoon|evening)|haha|honestly|anyway|first of all|sorry|correction"
    r"|in case (?:it|that) (?:matters|helps)|quick context|for context|some background|one more thing|before we begin"
    r"|that worked|no worries|since|because|(?:it )?works(?: (?:now|for me|great|fine|perfectly))?|(?:yay )?it worked"
    r"|thx(?: (?:a lot|so much))?|ty|tysm|cheers|(?:many|thousand) thanks|(?:thanks|thank you)(?: (?:a lot"
    r"|so much|very much))"
    r"|thanks again|much appreciated|hiya|heya|yo|alright|all right|wow|yay|ugh|hmm+|ah+|oh no|omg|lol|lmao"
    r"|hehe|phew|got it|nvm|jks?|j/k|(?:just |only )?(?:kidding|joking)|nah|nope|err+|uh+"
    r"|(?:right|cool(?: cool)?|nice(?: one)?|great|perfect|awesome|amazing|brilliant|lovely|excellent"
    r"|sure)(?: ty| thx| thanks)?"
    r"(?=[,.!~])"
    r"|(?:never ?mind|my bad|oops|scratch that|wait)(?=[,.!])"
    r"|(?:forget|scrap|ignore) (?:about )?(?:that|it|(?:the|my) [\w' -]{2,40})"
    r"(?=, (?:[^,.!?\n]{1,40} )?(?:i'm|i am|im) (?:not|no longer) allergic\b)"
    r"|change of plans?(?=[,.:!])|not [\w' -]{2,40} any ?more(?=, (?:we|i|my|our)\b)"
    r"|makes sense|good to know|good news|bad news|you're right|(?:it )?turns out(?: that)?|these days|nowadays"
    r"|lately|it's true|looks good|lgtm"
    r"|(?:the|my) (?:doctor|allergist|gp|dentist) (?:says?|said|told me|thinks|confirmed)(?: that)?(?= (?:i|my)\b)"
    r"|(?:i|we) (?:should|must|want to|have to) (?:also )?(?:mention|add|say|tell you)(?: that)?"
    r"|你好|您好|嗨|哈喽|大家好|对了|另外|还有|早上好|晚上好|不好意思|哈哈|没事|更正一下|纠正一下"
    r"|补充一下|备注|说明一下(?:情况)?"
    r"|先说明一下(?:情况)?|先说一下(?:情况)?|跟你说一声|跟你说一下|告诉你一声|我改主意了|因为|由于"
    r"|太好了|太棒了|(?:棒|赞|牛|可以了|搞定了?|成功了|懂了|明白了?|收到|行|好|好嘞|感谢|哦|噢|哎|唉|额|呃|结果)(?=[，。！,.!~\s])"
    r"|哇塞?|多谢(?:你|啦|了)?|谢谢(?:你|啦|了)|辛苦了"
    r"|医生(?:说|告诉我)(?=我)|如今|(?:我)?开(?:个)?玩笑的?(?:啦|了)?|逗你(?:玩)?的?(?:啦|了)?|骗你的|瞎说的|闹着玩的?|算了"
    r"|顺便说一下|顺便说一句|顺便提一下|顺便|其实|嗯|好的|谢谢)"
    r"(?:[,.!:，。！：、~\s—–-]+|(?<=[\u4e00-\u9fff])|(?=[\u4e00-\u9fff])))+",
    re.IGNORECASE,
)
_OWN_NAMES = re.compile("^(?:俺们?|咱们?|本人)(?=[\u4e00-\u9fff])")
"""Other words for \u6211."""
_BEGINS = re.compile(
    r"(?:(?:please|you can|you may|just|everyone can) )*(?:my|call me|i['’ ]|always|never|from now|going forward"
    r"|in (?:the )?future|henceforth|remember|keep in mind|bear in mind|don['’]t|do not|we\b|our\b|every(?:one|body)\b"
    r"|people\b|my friends|allow me to|(?:ask|warn|tell|check with) me\b|(?:speak|talk)(?: to me)?\b|massive |lifelong "
    r"|no more\b|stick to\b|stop\b|use\b|keep\b|avoid\b|answer\b|reply\b|respond\b|only\b|for all\b|as an? "
    r"|\w+ is (?:not )?my |pls |plz |when(?:ever)? |speaking as |being an? |big |huge |skip |you can "
    r"|(?:put|give|show|write|start|end|send|add|include|format|sign|round|cite|list|explain|translate|call)\b"
    r"(?=[^?\n]{3,120} (?:from now on|going forward|henceforth|every time)$)"
    r"|from here|let me |write\b|(?:[\w'-]+ ){1,5}(?:makes?|gives?) me "
    r"|[^?\n]{3,80}, (?:always|every time)$)"
    r"|[\u4e00-\u9fff]",
    re.IGNORECASE,
)
"""How a sentence begins that any rule could fit: most are told apart at once."""
_NOT_MEANT = re.compile(
    r"\b(?:if|suppose|imagine|pretend|let['’]s say|for example|e\.g|translate|rewrite|proofread"
    r"|(?:the|my|a) (?:story|novel|film|movie|poem|essay|character|protagonist)|(?:just|only) (?:kidding|joking)|jk"
    r"|(?:said|says|wrote|writes|claims?) (?:the |an? |he|she|they)\w*)\b"
    r"|^(?:my|our|the|an?) [\w' ]{2,30}: ?[\"'“]?(?:call|please|always|never|answer|reply|respond|from now|use|don't)\b"
    r"|如果|假如|假设|假装|要是|比如|例如|翻译|改写|扮演|小说|故事里|电影里|主角|\?|？|吗$|呢$|来着$",
    re.IGNORECASE,
)
_POINTS_BACK = re.compile(
    r"(?:(?:so|and|now|then|please|pls|just|always|from now on|you can),? ){0,3}"
    r"(?:use|keep|call|do|write|say|remember|spell|stick to|stick with|go with|apply|follow)"
    r" (?:it|that|this|them|these|those)"
    r"(?: (?:(?:like )?(?:that|this)(?: way)?|so|from now on|from here on|always|everywhere|in (?:the )?future|instead"
    r"|going forward|please|pls|too|then)){0,3}[.! ]*"
    "|(?:请|那|就)?以后(?:都|就|请|一律){0,2}(?:用|按|叫|写|照)?(?:它|这个|那个|这样|那样)(?:来|写|叫|做)?"
    "(?:吧|就行|就好)?[。！ ]*",
    re.IGNORECASE,
)
"""What it is about was said before it: alone it tells nobody anything."""
SECRET = re.compile(
    r"passw(?:or)?d|passphrase|\bpin\b|api[ -_]?key|access key|secret|token|credential|card number|\bcvv\b|\bssn\b"
    r"|\[redacted|密码|口令|密钥|验证码|银行卡|信用卡|身份证",
    re.IGNORECASE,
)


def statements(text: str) -> Iterator[str]:
    """The sentences of a text that may say something, each without what comes before it and what is asked beside it."""
    own = _QUOTED_LINE.sub("\n", _CODE.sub(" ", text.replace("’", "'")))
    is_doubted = _DOUBTED.search(own) is not None
    for part in _END.split(own):
        if len(part) > _MAX_SENTENCE_CHARACTERS or (is_doubted and _BY_DOCTOR.search(part)):
            continue
        for statement in _without_asides(_opened(_in_full(part.strip()))):
            said = _LAST_WORDS.sub("", _in_full(_opened(statement))).rstrip(_STOPS)
            if len(said) >= 3:
                yield said


_BY_DOCTOR = re.compile(
    r"\b(?:doctor|allergist|gp|dentist) (?:says?|said|told me|thinks|confirmed)\b"
    r"(?!.{0,80}\b(?:not|no longer) allergic\b)"
    r"|医生(?:说|告诉我)(?!.{0,40}[不没]过敏)",
    re.IGNORECASE,
)
_DOUBTED = re.compile(
    r"\b(?:wrong|mistaken|misdiagnos\w+|nonsense|disagree|doubt\w*|second opinion|not (?:true|(?:so )?sure|right)"
    r"|(?:don't|do not|didn't|can't) (?:really )?(?:believe|buy|trust|agree|think)|overreact\w*|exaggerat\w*)\b"
    r"|错|不信|不相信|误诊|不对(?!称)|怀疑|不准|瞎说|乱说|胡说|不认同|不同意|夸大|不至于|不觉得",
    re.IGNORECASE,
)
"""What a doctor said, and the user does not believe, is not known of the user; who denies something only ends it."""
_STOPS = ".!。！;；~ "


def _opened(part: str) -> str:
    said = without_fillers(part.strip(' \t"“”'))
    return _OWN_NAMES.sub("我", _OPENINGS.sub("", said).strip().rstrip(_STOPS))


_CLAUSE = re.compile(r"(?<!\s)(?:\s*+[,，、]\s*+|\s++(?:(?:and|but|so)|[-–—]++)\s++)", re.IGNORECASE)
_ONE_ORDER = re.compile(
    r"when|whenever|for (?:all|any|every|each)\b|every|each|if\b|as an?\b|remember|keep in mind|bear in mind|before"
    r"|being|speaking as"
    r"|每次|凡是|每当|只要|如果|作为|身为|比起|相比|记|写|[^，,]{0,24}[之以]?前[，,]",
    re.IGNORECASE,
)
"""How a sentence begins whose clauses belong together, though one may look like a request or a plan."""
_REQUEST = re.compile(
    r"(?:(?:and|but|so|anyway|also|then|now|please|pls|plz) ){0,3}(?:(?:can|could|would|will) (?:you|u|we)\b"
    r"|(?:rewrite|fix|draft|translate|book|find|make me|send|write me|help|check|show me|tell me|suggest|recommend"
    r"|give me an?|order|remind)\b|(?:what|whats|which|how|where|who|yours|is there|are there|any ideas?)\b|need an?\b"
    r"|(?:is|are|was|were|does|did|has|do|isn't|aren't|doesn't) (?:it|there|that|this|he|she|they|the|we|you|i"
    r"|[\w.-]+ (?:[\w.-]+ ){0,2}?(?:still|yet|any|really|supported|possible|available|ok|okay|needed|required"
    r"|deprecated|better|worth"
    r"|any good|enough|a thing|work|support|exist|make sense))\b"
    r"|let'?s\b|any(?:thing|one|where)? (?:similar|like|else|ideas?|tips|recommendations?)\b"
    r"|it (?:makes|keeps|has started|won't|doesn't|does|shows)\b"
    r"|(?:we|i|he|she|they|it)(?:'re|'m|'s| are| am| is) (?:going|having|coming|planning|thinking|meeting)\b"
    r"|(?:we |i )?(?:had|ate)\b|i (?:was thinking|need|want|have to|must)\b|so no\b)"
    r"|(?:顺便|然后|所以|那|先|再|就|快){0,3}(?:帮我|帮忙|给我(?:订|写|找|做|查|发|推)|查|订|发那|推荐|怎么|为什么|哪"
    r"|几点|编译|构建|报错|先?把|写[个份]|换[个家]|今[天晚早]|昨天|明[天早晚]|后天|刚才|晚饭|中午|晚上[^，]{0,4}了"
    r"|周[一二三四五六日末天](?!都|一般|有空|没空|上班|休息|到)|这个|那个|它)",
    re.IGNORECASE,
)
_ONLY_NOW = re.compile(
    r"\b(?:tonight|2nite|tomorrow|tmrw|today|yesterday|this (?:morning|evening|afternoon)|by noon|\d ?(?:am|pm)|at \d"
    r"|(?:mon|tues|wednes|thurs|fri|satur|sun)day|for (?:lunch|dinner|breakfast))\b",
    re.IGNORECASE,
)
_ALWAYS = re.compile(r"\b(?:usually|always|every|most|never)\b", re.IGNORECASE)


def _is_aside(clause: str) -> bool:
    """Whether a clause asks for something, or tells of a plan or of what holds only now."""
    if _REQUEST.match(clause) or (_ONLY_NOW.search(clause) and not _ALWAYS.search(clause)):
        return True
    is_long = len(clause.split()) > 2 or (HAS_CHINESE.search(clause) is not None and len(clause) > 2)
    return is_long and clause.endswith(("?", "？", "吧", "吗", "呢"))


def _without_asides(sentence: str) -> Iterator[str]:
    """The sentence without its clauses that ask for something or tell of a plan: what stands before and after them. A
    sentence that is nothing else stays whole, for the rules to refuse."""
    if _ONE_ORDER.match(sentence):
        yield sentence
        return
    start = end = 0
    joints = [*_CLAUSE.finditer(sentence)]
    for clause_start, clause_end in zip(
        [0, *(joint.end() for joint in joints)], [*(joint.start() for joint in joints), len(sentence)], strict=True
    ):
        if clause_start and _is_aside(sentence[clause_start:clause_end]):
            if end > start:
                yield sentence[start:end]
            start = end = clause_end
        elif start == end and start:
            start, end = clause_start, clause_end
        else:
            end = clause_end
    if end > start:
        yield sentence[start:end]


_LAST_WORDS = re.compile(
    r"(?<! )(?:,? (?:btw|fyi|lol|haha|tho|though|thx|thanks|sadly|please|pls|ok|okay)\b){1,4}[!?. ]{0,8}$"
    r"|(?<!哈)哈$",
    re.IGNORECASE,
)
_SHORT_FORMS: Final = tuple(
    (re.compile(pattern, re.IGNORECASE), words)
    for pattern, words in (
        (r"^im\b", "I'm"),
        (r"^ive\b", "I've"),
        (r"^(?:pls|plz)\b", "please"),
        (r"^(?=(?:not|no longer) (?:an? )?(?:vegan|vegetarian|veggie|pescatarian|lactose|gluten|diabetic|pregnant"
         r"|allergic)\b)", "I'm "),
        (r"^(?:u|you) (?=can stop|can use|may)", "you "),
        (r"^i cant\b", "I can't"),
        (r"^i dont\b", "I don't"),
        (r"^(?:just |recently )?moved to (?=(?-i:[A-Z]))", "I moved to "),
        (r"^(?:the )?name(?:'s| is)(?= (?-i:[A-Z]))", "my name is"),
        (r"^(?:live|living) in\b", "I live in"),
        (r"^allergic (?:2|to)\b", "I'm allergic to"),
        (r"^(I'm allergic) 2\b", r"\1 to"),
        (r"^we're (?=vegan|vegetarian)", "we are "),
        (r"^(my \w+(?: (?-i:[A-Z])\w+)?)'s (?=(?:an?|allergic|vegan|vegetarian|lactose|diabetic|pregnant|called"
         r"|named)\b|\d)", r"\1 is "),
        (r"^no (gluten|lactose|nuts|meat|dairy|pork|alcohol) for me\b", r"I don't eat \1"),
        (r"^no (gluten|lactose|nuts|meat|dairy|pork|alcohol|fish|sugar) for us\b", r"we never eat \1"),
    )
)  # fmt: skip
"""How people write in a hurry, and what the rules know it by."""


def _in_full(said: str) -> str:
    for pattern, words in _SHORT_FORMS:
        said = pattern.sub(words, said)
    return said


def _read_sentence(sentence: str) -> Iterator[ExtractedMemory]:
    """What the sentence says and takes back."""
    found = list(_apply_rules(sentence)) if _BEGINS.match(sentence) else []
    ends = (*taken_back(sentence), *_forgotten(sentence))
    found = found or list(_where_now(sentence, ends))
    if ends and found:
        found[0] = replace(found[0], ends=(*found[0].ends, *ends))
    elif ends:
        yield _retraction(sentence, ends)
    yield from found


_NOW_AT = re.compile(r", (?:and )?(?:now )?(?:i'm|i am|we're|we are) (?:now )?(?=(?:in|at) )", re.IGNORECASE)


def _where_now(sentence: str, ends: Sequence[Ended]) -> Iterator[ExtractedMemory]:
    """Where who says that they left a home or a job is now: "I no longer live in Lyon, I'm in Nantes now"."""
    left = next((ended.subject for ended in ends if ended.subject in _LIVES), None)
    now = _NOW_AT.search(sentence)
    if left is not None and now is not None:
        yield from (one for one in _apply_rules(_LIVES[left] + sentence[now.end() :]) if one.subject == left)


_LIVES: Final = {"home": "I live ", "employer": "I work "}
_FORGET = re.compile(
    r"(?:please )?(?:forget|disregard) (?:that |what i said about how )(?=i\b|i'm\b|my\b|we\b|our\b)(?P<en>.{4,200})$"
    r"|(?:请)?(?:忘掉|忘了|忘记|别再?记着?|不用记)(?P<zh>我.{2,40}?)(?:这件事|这回事|这事|这点)?(?:吧|了)?$",
    re.IGNORECASE,
)


def _forgotten(sentence: str) -> Iterator[Ended]:
    """What was said before in these words and shall be forgotten."""
    match = _FORGET.match(sentence)
    for said in (*was_so(sentence), *(() if match is None else (match["en"] or match["zh"],))):
        for memory in _apply_rules(said):
            yield Ended(memory.subject, memory.text, naming=memory.text)


def _retraction(sentence: str, ends: Sequence[Ended]) -> ExtractedMemory:
    return ExtractedMemory(
        text=in_own_words(sentence), kind=MemoryKind.FACT, confidence=0.75, ends=ends, is_retraction=True
    )


def _apply_rules(sentence: str) -> Iterator[ExtractedMemory]:
    """What the sentence says, by the first rule that it fits; then its further clauses."""
    for rule in RULES:
        match = rule.pattern.match(sentence)
        memory = rule.build(match) if match is not None else None
        if match is not None and memory is not None and rule.build is explicit_request:
            memory = _in_finer_words(tidy(match["x"]), memory)
        if match is not None and memory is not None:
            rest = _JOINT.match(sentence[match.end() :])
            clause = sentence[match.end() + (0 if rest is None else rest.end()) :].strip()
            # In Chinese, who goes on to speak about themselves need not say so again.
            goes_on = memory.subject in _ABOUT_THEMSELVES and _GOES_ON.match(clause) is not None
            # After "my son is called Leo", who has no subject is Leo.
            is_others = (memory.subject or "").startswith("name of ") and OF_ONESELF.match(clause) is None
            more = [] if rest is None or is_others else list(_apply_rules(f"我{clause}" if goes_on else clause))
            if not more and _says_more(memory, clause):
                memory = replace(memory, text=in_own_words(sentence))
            if memory.kind is MemoryKind.INSTRUCTION and memory.subject is None:
                memory = replace(memory, subject=order_subject(memory.text))
            if memory.subject is None and rest is None:
                more = list(_own_clauses(sentence))
            if memory.kind is MemoryKind.FACT and memory.subject is None:
                memory = replace(memory, subject=once_subject(sentence))
            yield memory
            yield from more
            return
    told = _TOLD_FIRST.match(sentence)
    if told is not None and _ONLY_THOUGHT.search(told[0]) is None:
        yield from _own_clauses(sentence)


def _in_finer_words(said: str, memory: ExtractedMemory) -> ExtractedMemory | None:
    """What the user asked to be remembered, by a finer rule where one fits; what points at the talk is none."""
    finer = next(_apply_rules(said), None)
    if finer is not None:
        return replace(finer, confidence=1.0)
    return None if _OF_THE_TALK.search(said) else memory


_OF_THE_TALK = re.compile(
    r"^(?:i|we|you) (?:never|already|just|didn't|did not|once)? ?(?:said?|say|tell|told|asked?|mentioned|wrote)\b"
    r"|^(?:i|we)(?: never| just)? (?:said|told)\b|\b(?:this|that|it|these|those)$|^我(?:从来|从"
    r"|可)?没(?:有)?(?:说|讲|问|提)过?"
    r"|^(?:这|那)(?:个|句话|件事)?$",
    re.IGNORECASE,
)
"""What points at the talk itself, and says nothing without it."""
_TOLD_FIRST = re.compile(r"(?:we|i|my)(?: [\w']{1,12}){1,5}[,，] |我们?[^，,]{1,8}[，,]", re.IGNORECASE)
"""A few words about oneself that no rule knows, before a clause that one may know."""
_ONLY_THOUGHT = re.compile(
    r"\b(?:say|said|think|thought|dream\w*|wish\w*|hope|wonder\w*|read|wrote|asked|told)\b|说|想|问|梦|觉得"
    r"|希望",
    re.IGNORECASE,
)


_LONGEST_REST = 2_000
"""Characters from a further clause to the end of its sentence: each clause is read to there, and so a sentence of a
megabyte would take minutes."""


def _own_clauses(sentence: str) -> Iterator[ExtractedMemory]:
    """What its further clauses say of where the user lives, works and so on, beside the sentence that is kept whole: by
    that, what was known of it before is replaced."""
    for joint in _JOINT.finditer(sentence, max(0, len(sentence) - _LONGEST_REST)):
        clause = _opened(sentence[joint.end() :])
        if OF_ONESELF.match(clause):
            for rule in RULES:
                match = rule.pattern.match(clause)
                memory = rule.build(match) if match is not None else None
                if memory is not None and memory.subject in _ABOUT_THEMSELVES:
                    yield memory
                    break


def _says_more(memory: ExtractedMemory, clause: str) -> bool:
    """Whether what follows belongs to it, such as the rest of a list: then the sentence is kept whole, since a half may
    mislead."""
    is_short = len(clause.split()) < 2 and len(clause) < 4
    if is_short or memory.subject in ("name", "form of address") or memory.kind is MemoryKind.INSTRUCTION:
        return False
    return _SAYS_NO_MORE.match(clause) is None and MOMENT.search(clause) is None


_SAYS_NO_MORE = re.compile(
    r"(?:(?:and|but|or) )?(?:please|so|because|since|when|as|can|could|would|will|what|how|why|who|is|are|nice"
    r"|pleased|thanks|thank"
    r"|keep|bear|by the way|btw|i (?:need|want|would|was|think|hope|know)|i'd|help|let|if|you|that's|this|these"
    r"|last|next|now|right"
    r"|lol|haha|after all|again|which|though|too|as well|ok|okay|any ?more|at|ago|for|any|give|tell|show"
    r"|suggest|find|make|write)\b"
    r"|请|帮|想|能|要不|麻烦|怎么|谢|你|求|开药|注意|之前|以前|搞错|弄错|误诊|所以|可以|有没有|给我|推荐|什么|为什么|如何|吗",
    re.IGNORECASE,
)
"""How a further clause begins that asks for something, or gives a reason: what was said before stands without it."""
_ABOUT_THEMSELVES = frozenset({"name", "age", "home", "origin", "employer", "profession"})
_GOES_ON = re.compile(
    "(?:现在|目前|一直|今年|老|很|也|都|最|不)?(?:住在|家在|定居|来自|喜欢|爱|讨厌|吃|喝|对|在|是)|(?:今年)?\\d+岁"
)
_JOINT = re.compile(r"(?<!\s)(?:\s*+[,，、;；]\s*+(?:and|but|而且|并且|也|还)?|\s++(?:and|but)\s)\s*+", re.IGNORECASE)


RULES: Final[tuple[Rule, ...]] = (*ENGLISH, *CHINESE)
