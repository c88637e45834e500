"""What people say about themselves, found by plain rules in English and Chinese. Pure, and precise rather than greedy.

A rule applies only at the beginning of a sentence (after a greeting or the like), so that what is quoted, asked,
supposed or told of others is none: "she said my name is Ann", "what if I live in Rome?". A sentence that speaks of a
password or the like is never remembered. The first rules know what is said and put it into words of their own, with a
subject by which a newer one replaces it; the others know only that such a sentence is worth keeping, and keep it whole.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Final

from everthread.core.memories import ALWAYS_SHOWN, MemoryKind
from everthread.recall.memory_intents import Ended
from everthread.recall.memory_subjects import order_subject, taken_back

MAX_READ_CHARACTERS: Final = 4_000
"""Who tells more than this at once pastes something."""
_MAX_SENTENCE_CHARACTERS: Final = 300
_MAX_MEMORIES: Final = 10


@dataclass(frozen=True, slots=True, kw_only=True)
class ExtractedMemory:
    """Something worth remembering, in words that can stand alone."""

    text: str
    kind: MemoryKind
    subject: str | None = None
    """Of one subject the newest counts."""
    confidence: float = 0.9
    is_pinned: bool = False
    ends: Sequence[Ended] = ()
    """Older memories that hold no more."""
    is_retraction: bool = False
    """It only takes something back, and is itself nothing to remember."""


def extract_by_rules(text: str) -> list[ExtractedMemory]:
    """The memories that a message holds about who wrote it, and what it takes back of older ones."""
    if not may_hold_memories(text):
        return []
    found = [
        memory
        for sentence in statements(text[:MAX_READ_CHARACTERS])
        if not SECRET.search(sentence) and not _NOT_MEANT.search(sentence)
        for memory in _read_sentence(sentence)
    ]
    distinct = {(memory.subject or memory.text): memory for memory in found}
    return list(distinct.values())[:_MAX_MEMORIES]


# -- sentences -----------------------------------------------------------------------------------------------------

_CUE: Final = re.compile(
    r"\b(?:my|our|me|i|i['’]m|im|ive|we|always|never|ever|from (?:now|here) on|going forward|in (?:the )?future"
    r"|remember|keep in mind|fan of|future"
    r"|bear in mind|don['’]t|please|avoid|answer|reply|respond|use|stop|keep|no more|stick to|when(?:ever)? you"
    r"|forget|again|any ?more)\b"
)
_CUE_IN_CHINESE: Final = re.compile(
    "我|俺|咱|本人|记住|记得|记一下|记着|以后|今后|从现在|从今|不要|别|请|一律|统一|始终|千万|尽量"
    r"|每次|凡是|预算|之前先|在读|坐标|老家|现居|自学|备考|自我介绍|退休前|籍贯|定居|喜欢|看重|截止日期"
    "|对接人|回答|回复|每当|只要|备忘|记下|禁止|可以|不用|不必|忘"
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
    r"|hehe|phew|got it"
    r"|(?:right|cool(?: cool)?|nice(?: one)?|great|perfect|awesome|amazing|brilliant|lovely|excellent"
    r"|sure)(?: ty| thx| thanks)?"
    r"(?=[,.!~])"
    r"|(?:never ?mind|my bad|oops|scratch that|wait)(?=[,.!])"
    r"|makes sense|good to know|good news|bad news|you're right|(?:it )?turns out(?: that)?|these days|nowadays"
    r"|lately|it's true|looks good|lgtm"
    r"|(?:the|my) (?:doctor|allergist|gp|dentist) (?:says?|said|told me|thinks|confirmed)(?: that)?(?= (?:i|my)\b)"
    r"|(?:i|we) (?:should|must|want to|have to) (?:also )?(?:mention|add|say|tell you)(?: that)?"
    r"|你好|您好|嗨|哈喽|大家好|对了|另外|还有|早上好|晚上好|不好意思|哈哈|没事|更正一下|纠正一下"
    r"|补充一下|备注|说明一下(?:情况)?"
    r"|先说明一下(?:情况)?|先说一下(?:情况)?|跟你说一声|跟你说一下|告诉你一声|我改主意了|因为|由于"
    r"|太好了|太棒了|(?:棒|赞|牛|可以了|搞定了?|成功了|懂了|明白了?|收到|行|好|好嘞|感谢|哦|噢|哎|唉|额|呃|结果)(?=[，。！,.!~\s])"
    r"|哇塞?|多谢(?:你|啦|了)?|谢谢(?:你|啦|了)|辛苦了"
    r"|医生(?:说|告诉我)(?=我)|如今"
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
    r"|from here|let me |[^?\n]{3,80}, (?:always|every time)$)"
    r"|[\u4e00-\u9fff]",
    re.IGNORECASE,
)
"""How a sentence begins that any rule could fit: most are told apart at once."""
_NOT_MEANT = re.compile(
    r"\b(?:if|suppose|imagine|pretend|let['’]s say|for example|e\.g|translate|rewrite|proofread"
    r"|(?:the|my|a) (?:story|novel|film|movie|poem|essay|character|protagonist)|just kidding"
    r"|(?:said|says|wrote|writes|claims?) (?:the |an? |he|she|they)\w*)\b"
    r"|如果|假如|假设|假装|要是|比如|例如|翻译|改写|扮演|小说|故事里|电影里|主角|\?|？|吗$|呢$|来着$",
    re.IGNORECASE,
)
SECRET = re.compile(
    r"passw(?:or)?d|passphrase|\bpin\b|api[ -_]?key|access key|secret|token|credential|card number|\bcvv\b|\bssn\b"
    r"|\[redacted|密码|口令|密钥|验证码|银行卡|信用卡|身份证",
    re.IGNORECASE,
)


def statements(text: str) -> Iterator[str]:
    """The sentences of a text that may say something, each without what comes before it and what is asked beside it."""
    own = _QUOTED_LINE.sub("\n", _CODE.sub(" ", text.replace("’", "'")))
    for part in _END.split(own):
        if len(part) > _MAX_SENTENCE_CHARACTERS:
            continue
        for statement in _without_asides(_opened(_in_full(part.strip()))):
            said = _LAST_WORDS.sub("", _in_full(_opened(statement))).rstrip(_STOPS)
            if len(said) >= 3:
                yield said


_STOPS = ".!。！;；~ "


def _opened(part: str) -> str:
    return _OWN_NAMES.sub("我", _OPENINGS.sub("", part.strip(' \t"“”')).strip().rstrip(_STOPS))


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
    r"|let'?s\b|(?:we|i|he|she|they|it)(?:'re|'m|'s| are| am| is) (?:going|having|coming|planning|thinking|meeting)\b"
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
    is_long = len(clause.split()) > 2 or (_CHINESE.search(clause) is not None and len(clause) > 2)
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
    r"|(?<!哈)哈{1,8}$",
    re.IGNORECASE,
)
_SHORT_FORMS: Final = tuple(
    (re.compile(pattern, re.IGNORECASE), words)
    for pattern, words in (
        (r"^im\b", "I'm"),
        (r"^ive\b", "I've"),
        (r"^(?:pls|plz)\b", "please"),
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
    if ends and found:
        found[0] = replace(found[0], ends=(*found[0].ends, *ends))
    elif ends:
        yield _retraction(sentence, ends)
    yield from found


_FORGET = re.compile(
    r"(?:please )?(?:forget|disregard) (?:that |what i said about how )(?=i\b|i'm\b|my\b|we\b|our\b)(?P<en>.{4,200})$"
    r"|(?:请)?(?:忘掉|忘了|忘记|别再?记着?|不用记)(?P<zh>我.{2,40}?)(?:这件事|这回事|这事|这点)?(?:吧|了)?$",
    re.IGNORECASE,
)


def _forgotten(sentence: str) -> Iterator[Ended]:
    """What was said before in these words and shall be forgotten."""
    match = _FORGET.match(sentence)
    for memory in _apply_rules(match["en"] or match["zh"]) if match is not None else ():
        yield Ended(memory.subject, memory.text, naming=memory.text)


def _retraction(sentence: str, ends: Sequence[Ended]) -> ExtractedMemory:
    return ExtractedMemory(
        text=_in_own_words(sentence), kind=MemoryKind.FACT, confidence=0.75, ends=ends, is_retraction=True
    )


def _apply_rules(sentence: str) -> Iterator[ExtractedMemory]:
    """What the sentence says, by the first rule that it fits; then its further clauses."""
    for rule in RULES:
        match = rule.pattern.match(sentence)
        memory = rule.build(match) if match is not None else None
        if match is not None and memory is not None:
            rest = _JOINT.match(sentence[match.end() :])
            clause = sentence[match.end() + (0 if rest is None else rest.end()) :].strip()
            # In Chinese, who goes on to speak about themselves need not say so again.
            goes_on = memory.subject in _ABOUT_THEMSELVES and _GOES_ON.match(clause) is not None
            # After "my son is called Leo", who has no subject is Leo.
            is_others = (memory.subject or "").startswith("name of ") and _OF_ONESELF.match(clause) is None
            more = [] if rest is None or is_others else list(_apply_rules(f"我{clause}" if goes_on else clause))
            if not more and _says_more(memory, clause):
                memory = replace(memory, text=_in_own_words(sentence))
            if memory.kind is MemoryKind.INSTRUCTION and memory.subject is None:
                memory = replace(memory, subject=order_subject(memory.text))
            if memory.subject is None and rest is None:
                more = list(_own_clauses(sentence))
            yield memory
            yield from more
            return
    told = _TOLD_FIRST.match(sentence)
    if told is not None and _ONLY_THOUGHT.search(told[0]) is None:
        yield from _own_clauses(sentence)


_TOLD_FIRST = re.compile(r"(?:we|i|my)(?: [\w']{1,12}){1,5}[,，] |我们?[^，,]{1,8}[，,]", re.IGNORECASE)
"""A few words about oneself that no rule knows, before a clause that one may know."""
_ONLY_THOUGHT = re.compile(
    r"\b(?:say|said|think|thought|dream\w*|wish\w*|hope|wonder\w*|read|wrote|asked|told)\b|说|想|问|梦|觉得"
    r"|希望",
    re.IGNORECASE,
)


def _own_clauses(sentence: str) -> Iterator[ExtractedMemory]:
    """What its further clauses say of where the user lives, works and so on, beside the sentence that is kept whole: by
    that, what was known of it before is replaced."""
    for joint in _JOINT.finditer(sentence):
        clause = _opened(sentence[joint.end() :])
        if _OF_ONESELF.match(clause):
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
    return _SAYS_NO_MORE.match(clause) is None and _MOMENT.search(clause) is None


def _in_own_words(sentence: str) -> str:
    """As a quotation, so that who reads it knows whose words and whose `I` it is."""
    said = _tidy(sentence)
    if _CHINESE.search(said):
        return f"用户说：“{said}。”"
    return 'The user said: "{}."'.format(said.replace('"', "'"))


_CHINESE = re.compile("[\u4e00-\u9fff]")
_OF_ONESELF = re.compile(r"我|(?:i|my|we|our)\b", re.IGNORECASE)
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


# -- rules ---------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Rule:
    """A pattern at the beginning of a sentence, and the memory that a match builds."""

    text: str
    flags: re.RegexFlag
    build: Callable[[re.Match[str]], ExtractedMemory | None]
    sample: str
    """What it is for: extract_by_rules finds it by this rule."""

    @cached_property
    def pattern(self) -> re.Pattern[str]:
        """Compiled when it is first tried: all of them together take 30 ms."""
        return re.compile(self.text, self.flags)


_NAME = r"(?P<x>[^\W\d_][\w'.-]{0,29}(?: (?-i:[A-Z])[\w'.-]{0,29}){0,3})(?=$|[,.!;]|\s+(?:and|but|from|by the way)\b)"
_THING = (
    r"(?P<x>[^,.;!?:]{2,60}?)(?=$|[.;!]|,|\s+(?:and (?:i|my)\b|but\b|because\b|so\b|since\b|when\b"
    r"|as (?:i|a|well)\b|last\b|this\b|next\b|now\b|any ?more\b|at the moment\b|right now\b|ago\b"
    r"|for (?:a|the|\d)|with my\b|after all\b|again\b))"
)
_ADVERB = r"(?:(?:really|also|strongly|generally|usually|always|much|still|just|absolutely|truly|quite|very much|do) )*"
_NO_NAME = frozenset(
    "a an the back when later at if tomorrow tonight today asap crazy old maybe now on in and or for again not just "
    "anytime whenever whatever what it that this is was so here there".split()
)
_NO_THING = re.compile(
    r"(?:it|this|that|these|those|the|your|our|you|how|what|when|where|why|them|him|her|us|me|both|all|any|some"
    r"|option|one"
    r"|everything|nothing|something|anything|another|such|his|its|their|to (?:know|see|ask|hear|think|say|point|thank"
    r"|understand|add|start|begin|have|get|be|do))\b",
    re.IGNORECASE,
)
_WORK = (
    "teacher|nurse|doctor|physician|student|engineer|software engineer|developer|programmer|lawyer|designer|writer"
    "|journalist|accountant|architect|scientist|researcher|professor|chef|driver|pilot|farmer|musician|artist|manager"
    "|product manager|data scientist|analyst|consultant|translator|pharmacist|dentist|veterinarian|electrician|plumber"
    "|carpenter|photographer|librarian|economist|psychologist|therapist|founder|freelancer|retiree"
)
_DIETS = (
    "vegan|vegetarian|pescatarian|veggie|lactose[- ]intolerant|gluten[- ]intolerant|diabetic|celiac|coeliac"
    "|kosher|halal"
)
_NO_PLACE = (
    "(?:python|kubernetes|slack|teams|notion|linear|jira|git|docker|linux|windows|mac|macos|ubuntu|aws|azure|gcp"
    "|postgres|react|vim|neovim|emacs|vs|rust|go|java|typescript|version|option|plan|part|chapter|step)\\b"
)
_KIN = (
    "wife|husband|partner|girlfriend|boyfriend|son|daughter|mother|mom|mum|father|dad|brother|sister|dog|cat|boss"
    "|manager|doctor|company|team|project"
)
_DETAILS = (
    "birthday|email|email address|phone|phone number|job|profession|hometown|native language|mother tongue"
    "|time ?zone|nationality|blood type|shoe size|age|star sign|pronouns"
)
_ORDERS = (
    "answer|reply|respond|use|write|call|speak|talk|explain|give|show|include|add|ask|tell|send|format|keep|put|cite"
    "|translate|mention|suggest|recommend|assume|round|sign|address|start|end|avoid|do not|don't|be|make|summari[sz]e"
)


def _en(pattern: str, build: Callable[[re.Match[str]], ExtractedMemory | None], *, sample: str) -> Rule:
    return Rule(pattern, re.IGNORECASE, build, sample)


def _zh(pattern: str, build: Callable[[re.Match[str]], ExtractedMemory | None], *, sample: str) -> Rule:
    return Rule(pattern, re.NOFLAG, build, sample)


def _profile(words: str, subject: str, confidence: float = 0.9) -> Callable[[re.Match[str]], ExtractedMemory | None]:
    """Who the user is: `words` and `subject` with what was matched put in."""

    def build(match: re.Match[str]) -> ExtractedMemory | None:
        found = {name: _tidy(value) for name, value in match.groupdict().items() if value is not None}
        if not found.get("x") or found["x"].lower() in _NO_NAME:
            return None
        return ExtractedMemory(
            text=words.format(**found),
            kind=MemoryKind.PROFILE,
            subject=subject.format(**{name: value.lower() for name, value in found.items()}),
            confidence=confidence,
            is_pinned=True,
        )

    return build


def _health(words: str, denied: str, subject: str) -> Callable[[re.Match[str]], ExtractedMemory | None]:
    """What a user must not have: always shown, since no question has its words."""

    def build(match: re.Match[str]) -> ExtractedMemory | None:
        thing = _tidy(match["x"])
        if not thing or _NO_THING.match(thing) or _NO_ALLERGEN.search(thing):
            return None
        is_denied = match.groupdict().get("no") is not None
        return ExtractedMemory(
            text=(denied if is_denied else words).format(x=thing),
            kind=MemoryKind.FACT,
            subject=subject.format(x=thing.lower()),
            confidence=0.95,
            is_pinned=not is_denied,
            ends=tuple(Ended(subject.format(x=other)) for other in _other_forms(thing.lower(), is_denied=is_denied)),
        )

    return build


_MEATLESS = frozenset(("vegan", "vegetarian", "pescatarian", "veggie"))


def _other_forms(thing: str, *, is_denied: bool) -> Iterator[str]:
    """What else it was called, where it is denied; or what else was eaten by who now eats so."""
    if is_denied:
        yield thing.removesuffix("s") if thing.endswith("s") else f"{thing}s"
    elif thing in _MEATLESS:
        yield from sorted(_MEATLESS - {thing})


_NO_ALLERGEN = re.compile(
    r"\b(?!herring|pudding|dressing|icing)\w+ing\b|\b(?:mondays?|mornings?|work|exercise|cardio|meetings?|people|bullshit|nonsense"
    r"|small talk|bad code|commitment|responsibilit\w+|early|alarm|adult\w*|drama|fun|stupid\w*|another|bite"
    r"|so much|anymore)\b"
    r"|加班|早起|上班|开会|工作|学习|运动|周一|星期一|作业|考试|废话|人多|社交",
    re.IGNORECASE,
)
"""What people say in jest."""
_ALLERGIC = re.compile(r"i(?:'m| am)[\w ]{0,20} allergic|我[^？?]{1,20}过敏", re.IGNORECASE)


def _taste(words: str) -> Callable[[re.Match[str]], ExtractedMemory | None]:
    """What a user likes or not; of the same thing the newest counts."""

    def build(match: re.Match[str]) -> ExtractedMemory | None:
        thing = _tidy(match["x"])
        if not thing or _NO_THING.match(thing) or _NO_THING_ZH.match(thing) or len(thing.split()) > 10:
            return None
        verb = match["v"].lower()
        return ExtractedMemory(
            text=words.format(v=_OF_THE_USER.get(verb, verb), x=thing),
            kind=MemoryKind.PREFERENCE,
            subject=f"taste: {thing.lower()}",
            confidence=0.8,
            ends=tuple(_preferred_before(thing.lower())) if verb == "prefer" else (),
        )

    return build


_OF_THE_USER: Final = {
    "prefer": "prefers",
    "love": "loves",
    "like": "likes",
    "enjoy": "enjoys",
    "hate": "hates",
    "dislike": "dislikes",
    "don't like": "doesn't like",
    "do not like": "doesn't like",
    "no longer like": "no longer likes",
    "don't enjoy": "doesn't enjoy",
    "don't eat": "doesn't eat",
    "don't drink": "doesn't drink",
}
_OVER = re.compile(r" (?:to|over|rather than|instead of) ")


def _preferred_before(thing: str) -> Iterator[Ended]:
    """Who prefers one thing to another does not prefer the other."""
    better, *others = _OVER.split(thing, maxsplit=1)
    for other in others:
        yield Ended(f"taste: {other}", naming=f"prefers {other}")
        for word in ("to", "over", "rather than", "instead of"):
            yield Ended(f"taste: {other} {word} {better}")


def _favourite(words: str) -> Callable[[re.Match[str]], ExtractedMemory | None]:
    def build(match: re.Match[str]) -> ExtractedMemory | None:
        what, thing = _tidy(match["k"]), _tidy(match["x"])
        if not what or not thing:
            return None
        text = words.format(k=what, x=thing)
        return ExtractedMemory(text=text, kind=MemoryKind.PREFERENCE, subject=f"favourite: {what.lower()}")

    return build


def _instruction(match: re.Match[str]) -> ExtractedMemory | None:
    """How the user wants to be served, in their own words."""
    said = _tidy(match[0])
    if len(said) <= 5:
        return None
    return ExtractedMemory(text=said, kind=MemoryKind.INSTRUCTION, confidence=0.9, is_pinned=True)


def _explicit_request(match: re.Match[str]) -> ExtractedMemory | None:
    """What the user asked to be remembered: told by a finer rule where one fits, else in their own words."""
    said = _tidy(match["x"])
    if len(said) < 3:
        return None
    finer = next(_apply_rules(said), None)
    if finer is not None:
        return replace(finer, confidence=1.0)
    if _OF_THE_TALK.search(said):
        return None
    words = _in_own_words(said) if _OF_ONESELF.match(said) else said
    return ExtractedMemory(text=words, kind=MemoryKind.FACT, confidence=1.0)


_OF_THE_TALK = re.compile(
    r"^(?:i|we|you) (?:never|already|just|didn't|did not|once)? ?(?:said?|say|tell|told|asked?|mentioned|wrote)\b"
    r"|^(?:i|we)(?: never| just)? (?:said|told)\b|\b(?:this|that|it|these|those)$|^我(?:从来|从"
    r"|可)?没(?:有)?(?:说|讲|问|提)过?"
    r"|^(?:这|那)(?:个|句话|件事)?$",
    re.IGNORECASE,
)
"""What points at the talk itself, and says nothing without it."""


def _tidy(text: str) -> str:
    return " ".join(text.split()).strip(" ,.!;:，。！；：、\"“”'")


_NO_THING_ZH = re.compile(r"的|这|那|你|您|它|他|她|上面|前面|后面|第[一二三四五0-9]|什么|怎么|哪|的$|和|跟|听|看看")
_ZH_END = r"(?=\s*(?:$|[，。,!！；;、]|\.(?!\d)))"
_ZH_THING = r"(?P<x>[^，。,.!！；;？?、\s](?:[^，。,.!！；;？?]|\.(?=\d)){0,29}?)[了啦]?" + _ZH_END
_ZH_NAME = (
    r"\s*(?P<x>(?![了他她它你您不过上车外去来回做别怎什起])(?:[\u4e00-\u9fff·A-Za-z]{1,12}?"
    r"|[A-Za-z][A-Za-z.'-]{0,20}(?: [A-Z][A-Za-z.'-]{0,20}){0,2}))"
    r"\s*(?:吧|就行|就好|就可以了?|即可|哦|啦)?" + _ZH_END
)
_ZH_WORK = (
    "老师|教师|医生|护士|程序员|工程师|软件工程师|学生|大学生|研究生|设计师|律师|会计|会计师|作家|司机|厨师|记者"
    "|产品经理|研究员"
    "|教授|公务员|销售|翻译|摄影师|音乐人|画家|农民|退休人员|自由职业者|数据分析师|药剂师|牙医|编辑"
)
_ZH_KIN = "儿子|女儿|妻子|老婆|太太|丈夫|老公|先生|妈妈|爸爸|哥哥|姐姐|弟弟|妹妹|女朋友|男朋友|狗|猫|公司|老板"
_ZH_ORDER_VERBS = "请|都|不要|别|用|使用|回答|回复|叫|称呼|给|写|说|记得|始终|一律|总是|尽量|必须|只|统一|先|务必|把|按"


def _whole(kind: MemoryKind) -> Callable[[re.Match[str]], ExtractedMemory | None]:
    """The sentence as it was said, never cut."""

    def build(match: re.Match[str]) -> ExtractedMemory | None:
        said = _tidy(match.string)
        if match.end() < len(match.string.rstrip(" .!。！;；，,~")) or _MOMENT.search(said):
            return None
        if _NO_ALLERGEN.search(said) and _ALLERGIC.match(said):
            return None
        pinned = kind in ALWAYS_SHOWN or _MUST_NOT_HAVE.search(said) is not None
        text = said if kind is MemoryKind.INSTRUCTION else _in_own_words(said)
        return ExtractedMemory(text=text, kind=kind, confidence=0.75, is_pinned=pinned)

    return build


_NO_FOOD = (
    "(?:and|another|like|much|more|enough|too|at|in|out|alone|before|after|until|or|here|there|now|that|this|so"
    "|breakfast|lunch|dinner|supper|food|both|fun|kids|children|pets|an?|the|my|your|with|if|when|because)"
)
_MUST_NOT_HAVE = re.compile(
    r"\b(?:can't|cannot|can not|mustn't|must not|not allowed to) (?:eat|drink|have|tolerate|digest)"
    rf" (?!{_NO_FOOD}\b)\w"
    r"|\bpregnant\b|\ballerg"
    r"|\bintoleran|\bcoeliac|\bceliac|\bdiabet|\bepilep|\banaphyla|\bblood thinner"
    r"|(?:不能|不可以|不敢)(?:吃|喝|碰)(?!$|了|太|多|，|,)|怀孕|过敏|不耐受|糖尿病|癫痫|哮喘",
    re.IGNORECASE,
)
"""What may do harm when it is not known: always shown, since no question has its words."""
_MOMENT = re.compile(
    r"\b(?:right now|today|tonight|this (?:morning|evening|afternoon|time|error|one)|at the moment|again|tomorrow"
    r"|yesterday|just (?!over|under|outside)|in line \d|errors?|exception|timeout|fails?|failing|bug"
    r"|your (?:example|code"
    r"|answer|version|suggestion)|the (?:first|second|third|last|other) (?:one|version|option))\b"
    r"|今天|今晚|刚才?|马上|等下|一会|明天|昨天|这次|这个|那个|第\s?\d+\s?行|报错|出错|超时|失败|你的|你这",
    re.IGNORECASE,
)
"""What holds only for now, or is about the talk itself."""
_REST = r"[^?？]{2,200}$"
_LANGUAGES = (
    "english|german|french|spanish|italian|portuguese|dutch|polish|russian|ukrainian|turkish|arabic|hindi|chinese"
    "|mandarin|cantonese|japanese|korean|swedish|norwegian|danish|finnish|greek|hebrew|czech|hungarian|romanian"
)
_EN_KIN = (
    f"{_KIN}|wife's|husband's|parents|kids|children|twins|baby|fianc[eé]e?|grandmother|grandma|grandfather|grandpa"
    "|aunt|uncle|cousin|niece|nephew|roommate|flatmate|neighbou?r|colleague|landlord|therapist|coach|teacher|pet"
)
_POSSESSIONS = (
    "editor|ide|laptop|computer|machine|phone|tablet|car|bike|keyboard|camera|printer|router|os|operating system|shell"
    "|terminal|browser|budget|deadline|goal|dream|plan|home ?town|website|blog|handle|username|user name|address"
    "|work|major|field|degree|religion|height|weight|hobby|hobbies|school|university|office|house|flat|apartment|garden"
    "|anniversary|first language|second language|mother tongue|salary|income|rent|thesis|pronouns|surname|last name"
    "|middle name|nickname|instrument|stack|setup|eyesight|blood pressure|working hours|schedule|time ?zone|size"
)
_LASTING_NOUNS = (
    "kids?|child(?:ren)?|sons?|daughters?|brothers?|sisters?|siblings?|twins|dogs?|cats?|parrots?|rabbits?|horses?"
    "|pets?"
    "|grandchild(?:ren)?|allerg(?:y|ies)|diabetes|asthma|adhd|autism|migraines?|epilepsy|depression|anxiety|arthritis"
    "|dyslexia|insomnia|eczema|phd|degree|master's|bachelor's|diploma|cars?|motorcycle|motorbike|bike|boat|house|flat"
    "|apartment|garden|driving licen[cs]e|licen[cs]e|iphone(?: \\w+)?|android|macbook|mac|ipad|thinkpad|tattoos?"
    "|pacemaker"
    "|hearing aid|condition|disease|disorder|intolerance|subscription|company|business|shop|startup|farm"
)
_STATES = (
    "learning|studying|training for|saving (?:up )?for|planning to|expecting|getting married|getting divorced|moving to"
    "|living (?:in|with|on)|based in|working (?:at|for|as|in|part|full|from)|married|divorced|single|widowed|pregnant"
    "|retired|engaged|vegan|vegetarian|left[- ]handed|right[- ]handed|colou?r[- ]?blind|blind|deaf|dyslexic|diabetic"
    "|catholic|muslim|jewish|hindu|buddhist|christian|protestant|atheist|religious|on (?:windows|macos|linux|ubuntu"
    "|debian"
    "|fedora|arch|android|ios)|[\\d.,]+ ?(?:m|cm|feet|ft|kg|pounds)\\b|in my (?:\\w+ies)|afraid of|scared of|into"
    "|fluent in"
    "|bilingual|responsible for|in charge of|lactose|gluten|sensitive to|unable to (?:eat|drink|drive)|self-employed"
    "|unemployed|originally|half |new to|the (?:ceo|cto|founder|owner|head|manager|lead|mother|father)"
)
_HABIT_VERBS = (
    "drive|play|support|wear|cycle|own|teach|study|coach|collect|sing|paint|volunteer|commute|suffer from|grew up"
    "|was born|was raised|was diagnosed|got diagnosed|come from|graduated|studied|quit|gave up|stopped"
    "|run an? (?!test|script"
    "|query|command|job|check)|take (?:\\d|a pill|medication|insulin|pills)|get up at|wake up|go to (?:bed at"
    "|the gym|church"
    "|school|university|yoga|therapy)|sleep|work (?:from|nights|part|full|in|on weekends|remotely)|bake|knit|garden"
    "|swim|run every"
    "|read (?:a lot|mostly|only)|listen to|watch (?:a lot|only)|meditate|fast|pray|smoke|vote|weigh|earn|rent|share"
    "|manage|lead|maintain|mostly|mainly|believe in|donate|ride|fish|hunt|sail|climb|ski|dance|write (?:for|novels"
    "|poems)"
)

_EN_WHOLE: Final[tuple[Rule, ...]] = (
    _en(rf"(?:{_LANGUAGES}) is (?:not )?my (?:first|native|second|third|mother) (?:language|tongue)$",
        _whole(MemoryKind.PROFILE),
        sample="Danish is my first language"),
    _en(rf"my (?:{_EN_KIN})(?:'s)?(?: [\w'-]+)? (?:is|are|has|have|lives?|works?|was|can't|cannot|doesn't|don't|likes?"
        rf"|loves?|hates?|studies|goes|turns|suffers?|plays?|needs?|speaks?|drives?|uses?) "
        rf"(?!here|coming|calling|asking|waiting|late|sleeping|at the|on the phone|back|out|right|wrong|ok"
        rf"|annoy|an idiot|driving me|killing me|a (?:nightmare|pain|joke|genius|saint|legend)"
        rf"|fine){_REST}",
        _whole(MemoryKind.FACT),
        sample="My uncle has gout"),
    _en(rf"my (?:new |main |current |own |work |home |monthly |weekly |daily |total |github |twitter |usual |old "
        rf"|first )*"
        rf"(?:{_POSSESSIONS})(?: handle| name| is| for| at| on| number)?[^.]{{0,60}}?(?:is|are|runs|has|have|:) "
        rf"(?!broken|slow|down|crash|not working|wrong|gone|dead|stuck|delayed){_REST}", _whole(MemoryKind.FACT),
        sample="My monthly budget is 900 euros"),
    _en(rf"(?:i(?:'ve| have)? got|i have|i own|i keep|i've|we have|we've got|we own)(?! to\b| a (?:question|problem"
        rf"|feeling"
        rf"|look|meeting|call|doubt)| no (?:idea|clue|time"
        rf"|problem)) (?:[\w.,'-]+ ){{0,5}}?(?:{_LASTING_NOUNS})\b[^?]{{0,120}}$",
        _whole(MemoryKind.FACT),
        sample="I have three cats"),
    _en(rf"i (?:{_HABIT_VERBS}) ?[^?]{{0,150}}$", _whole(MemoryKind.FACT),
        sample="I play the oboe"),
    _en(rf"i (?:only|mostly|mainly|exclusively) (?:drink|eat|wear|listen to|watch|read|buy|speak|fly with|cook|shop)"
        rf" (?!the\b|this|that|it\b|them|half|part|one\b|a\b|an\b|your){_REST}", _whole(MemoryKind.PREFERENCE),
        sample="I only drink decaf"),
    _en(rf"i (?:live|work)(?: in| at| for| with| near) (?!fear|hope|denial|it\b|this\b|that\b|you\b|me\b|moments)"
        rf"{_REST}",
        _whole(MemoryKind.FACT),
        sample="I live near the harbour"),
    _en(rf"(?:i|we) (?:currently |mostly |mainly |usually |only |still )*use (?!this|that|it\b|your|the (?:same"
        rf"|following|command"
        rf"|code|function|example|above)|an? (?:for|while|loop|regex|if)|them){_REST}", _whole(MemoryKind.FACT),
        sample="I use a trackball"),
    _en(rf"i (?:always|never|usually|normally|typically|generally|often|rarely|hardly ever) (?!said|say that"
        rf"|get (?:this|the|an?)"
        rf"|heard|seen|saw|tried|thought|knew|had|understood|asked|wanted|meant|forget|wonder){_REST}",
        _whole(MemoryKind.FACT),
        sample="I usually get up at five"),
    _en(rf"i(?:'m| am)(?: not| also| currently| actually"
        rf"| really)? (?:{_STATES})\b[^?]{{0,150}}$", _whole(MemoryKind.FACT),
        sample="I'm left-handed"),
    _en(r"i(?:'m| am) (?:a|an) (?!bit|little|lot|few|idiot|moment|second|hour)(?:[\w'-]+ ){0,4}[\w'-]+(?: (?:of|at"
        r"|in|by|from"
        r"|for|who|and|with)\b[^?]{0,80})?$", _whole(MemoryKind.FACT),
        sample="I'm a retired postman"),
    _en(r"i (?:can't|cannot|can not|don't|do not|mustn't|must not|may not|am not allowed to)"
        r" (?!\w+ (?:and|another|like|this|that|much|enough|too)\b)(?:eat|drink"
        r"|have (?:a car|kids|pets"
        r"|children)|tolerate|drive|swim|stand|like|smoke|own|hear well|see well|fly|celebrate)\b[^?]{0,120}$",
        _whole(MemoryKind.FACT),
        sample="I can't drive"),
    _en(rf"i(?:'d| would) (?:rather|prefer) (?!not (?:do|say)|that|to (?:do|go|see)|if|it|the (?:first|second)){_REST}",
        _whole(MemoryKind.PREFERENCE),
        sample="I'd rather take the stairs"),
    _en(rf"we (?:are |eat )?(?:{_DIETS})\b[^?]{{0,60}}$", _whole(MemoryKind.FACT),
        sample="We're vegan at home"),
    _en(rf"(?:we|our family) (?:live|moved|have moved|are expecting|are getting|'re expecting|have lived"
        rf"|are moving) {_REST}"
        rf"|we're (?:expecting|getting married|moving to|based in|a family|a team|a company) ?{_REST}",
        _whole(MemoryKind.FACT),
        sample="We're expecting twins"),
    _en(rf"our (?:team|company|cat|dog|son|daughter|house|office|stack|product|shop|policy|startup|school|servers?"
        rf"|database"
        rf"|production|baby|kids|children|app|website|budget|standup)(?:'s)?(?: [\w'-]+)? (?:is|are|uses?|runs?"
        rf"|lives?|has|have"
        rf"|was|meets?|starts?) (?!down|broken|slow|late){_REST}", _whole(MemoryKind.FACT),
        sample="Our team uses Mercurial"),
    _en(rf"you can (?:reach|find|email|contact|text) me (?:at|on|under|via) {_REST}", _whole(MemoryKind.FACT),
        sample="You can reach me at 555-0199"),
    _en(rf"as an? [\w -]{{3,30}},? i {_REST}", _whole(MemoryKind.FACT),
        sample="As a glazier I get up early"),
    _en(rf"for all (?:my|our|of my|of our) {_REST}", _whole(MemoryKind.INSTRUCTION),
        sample="For all my recipes, give weights in grams"),
    _en(rf"(?:please )?(?:answer|reply|respond|speak|talk)(?: to me)?(?: only| always)? in (?:{_LANGUAGES}|one|two"
        rf"|full|short|plain"
        rf"|simple|bullet)\b[^?]{{0,80}}$", _whole(MemoryKind.INSTRUCTION),
        sample="Talk to me in German"),
    _en(r"(?:please )?(?:use|keep|avoid|only use|stick to|stop (?:using|adding|writing|saying|apologi[sz]ing)|don't"
        r"|do not|never"
        r"|no more)\b(?! (?:worry|forget|hesitate|mind|know|think|understand|bother))[^?]{0,100}\b(?:emojis?"
        r"|emoticons?|tables?"
        r"|bullet points?|headings|markdown|spelling|metric|imperial|units|tabs|jargon|apologi[sz]e|apologi[sz]ing"
        r"|small talk"
        r"|exclamation marks?|footnotes?|(?:your|all|my|any|code) (?:answers?|replies|responses|code|emails?"
        r"|messages?|examples?)"
        r"|replies|answers|responses|type hints|docstrings|semicolons|comments|logs?|abbreviations|passive voice"
        r"|slang|ever)\b"
        r"[^?]{0,100}$", _whole(MemoryKind.INSTRUCTION),
        sample="No more emojis in replies"),
    _en(rf"(?:don't|do not|please don't|please do not|never) (?:suggest|recommend|schedule|plan|book|offer|propose"
        rf"|call me|mention"
        rf"|put|share|store|log|send)\b{_REST}", _whole(MemoryKind.INSTRUCTION),
        sample="Don't recommend podcasts"),
    _en(rf"(?:please )?(?:always |never )?(?:ask|tell|warn|check with) me (?:before|first|whenever|if you (?:want"
        rf"|need) to){_REST}",
        _whole(MemoryKind.INSTRUCTION),
        sample="Check with me before you push"),
    _en(r"[a-z][^?]{3,120} (?:from now on|going forward|in (?:the )?future|every time|henceforth)$",
        _whole(MemoryKind.INSTRUCTION),
        sample="Put the total first from now on"),
)  # fmt: skip

_ZH_ALL_KIN = (
    f"{_ZH_KIN}|闺女|娃|媳妇|老妈|老爸|妈|爸|弟|哥|姐|妹|奶奶|爷爷|外婆|外公|孩子|宝宝|室友|同事|邻居|领导|经理|导师|老师|医生"
    "|对象|未婚妻|未婚夫|岳父|岳母"
)
_ZH_LASTING = (
    "孩子|女儿|儿子|哥哥|姐姐|弟弟|妹妹|狗|猫|鹦鹉|兔子|宠物|车|房|驾照|糖尿病|高血压|哮喘|色盲|色弱|抑郁|焦虑症"
    "|癫痫|关节炎|近视|过敏"
    "|学位|博士|硕士|公司|店|农场|院子|花园|纹身|偏头痛|iPhone|iPad|Mac|自行车|摩托车|耐受"
)
_ZH_DETAIL = (
    "目标|梦想|预算|截止日期|时区|编辑器|电脑|手机|笔记本|车|网站|博客|微信号?|邮箱|地址|新地址|住址|工作|专业|爱好"
    "|兴趣|学校|单位|公司"
    "|身高|体重|血型|星座|鞋码|生日|年龄|母语|第一语言|姓名|名字|昵称|宗教|民族|籍贯|老家|作息|口味|座右铭|工号"
    "|学号|车牌|手机号|电话"
)


def _zh_whole(pattern: str, kind: MemoryKind = MemoryKind.FACT, *, sample: str) -> Rule:
    return Rule(pattern, re.NOFLAG, _whole(kind), sample)


_ZH_WHOLE: Final[tuple[Rule, ...]] = (
    _zh_whole(rf"我们?(?:的|家的?)?(?:{_ZH_ALL_KIN})(?!说|觉得|问|让|叫我|刚|来了|给我)(?:今年|现在|在|住|有|是|叫"
              rf"|姓|对|不|患|得了|属|喜欢"
              rf"|爱|要|会|也|每|身体|腿|[\d一二三四五六七八九十]){_REST}",
        sample="我爸有糖尿病"),
    _zh_whole(rf"我们?家?(?:有|养了?|没有|得了|患有?|拥有)(?!个?问题|点|人|没|时间|空|事|办法|疑问"
              rf"|个?想法)[^？?]{{0,20}}?(?:{_ZH_LASTING})[^？?]{{0,60}}$",
        sample="我有三个孩子"),
    _zh_whole(r"我(?:也|其实)?是(?!说|想|不|在|觉得|来|问|指|这|那|第|要|用|按|认真|故意|开玩笑|从|因为|否|谁|什么"
              r"|看|怕|你|他|她|真)[^？?]{2,60}$",
        sample="我是左撇子"),
    _zh_whole(r"我(?:正|正在|现在|目前|一直)?(?:在|就读于|毕业于|供职于)(?!公交|地铁|车上|路上|开会|吃|等|忙|想|看"
              r"|家|外面|这|那|线|问|写|改|用|做[这那]|调|跑)"
              r"[^？?]{0,40}(?:读书|上学|上班|工作|长大|读研|读博|实习|学\w{0,6}|备考|备战[^？?]+|做[^？?]{1,12}"
              r"|教[^？?]{1,8}|拉[^？?]{1,8}|弹[^？?]{1,8}|当[^？?]{1,10})$",
        sample="我在学日语"),
    _zh_whole(r"我(?:正在|在|最近在|准备)?(?:学|备战|备考|攻读|研究)(?!会了|到了|完|了吗)[^？?]{1,40}$",
        sample="我在备考雅思，目标七分"),
    _zh_whole(rf"我(?:从小|小时候|自幼|出生|生于|毕业|以前是|曾经是|原来是|老家|退休|离婚|已婚|未婚|单身){_REST}"
              rf"|我(?:退休|离婚|结婚|怀孕)了?$",
        sample="我从小在重庆长大"),
    _zh_whole(rf"我(?:身高|体重|血型|鞋码|近视|视力|年薪|月薪|属|信(?!号|不|你|了)|星座"
              rf"|民族){_REST[:-1].replace('{2,200}', '{1,60}')}$",
        sample="我信佛"),
    _zh_whole(r"我(?:不能|不可以|不会|不敢|从不|从来不|不|很少|几乎不)(?:吃|喝|碰|开车|抽烟|喝酒|游泳|坐飞机|熬夜"
              r"|用)[^？?]{0,40}$",
        sample="我不会开车"),
    _zh_whole(r"我(?:从来|从|一向|向来)(?:不|都)(?!是这|会)[^？?]{2,40}$",
        sample="我从来不在下午喝咖啡"),
    _zh_whole(r"我(?:只|一直|平时|现在)?吃(?:素|斋|清真|全素)[^？?]{0,40}$|我[^？?，。]{0,8}不耐受[^？?]{0,40}$",
        sample="我吃素很多年"),
    _zh_whole(r"我[^？?，。]{0,10}(?:戒烟|戒酒|戒糖|搬家|跳槽|辞职|退休|离婚|结婚|毕业|怀孕|确诊|诊断)[^？?]{0,60}$",
        sample="我戒酒了"),
    _zh_whole(rf"我(?:经常|常常|总是|每天|每周|每年|每个?月|平时|通常|一般|习惯|周末都?|早上都?|晚上都?|向来"
              rf"|容易){_REST}",
        sample="我经常偏头痛"),
    _zh_whole(rf"我(?:平时|一般|现在|主要|都|一直|家里|也)?(?:用的?是?|使用的?是?|开的(?:车)?是|骑的是|穿的?是?|戴"
              rf"|玩|弹|拉|打(?:篮球|羽毛球|网球|乒乓|鼓)|踢足球|支持|收集|读的是|学的是|修的是|教)"
              rf"(?!了|你|这|那|它|上面|下面|户|过|完|起来|不了|持续)\s?{_REST[:-1].replace('{2,200}', '{2,80}')}$",
        sample="我读的是法律"),
    _zh_whole(rf"我们?(?:公司|团队|组|部门|生产环境|项目|办公室|学校|店|厂|单位|医院|实验室|数据库|服务器"
              rf"|这边)(?:里|的|都|一般|现在|目前)?(?:\w{{0,8}})?"
              rf"(?:用|是|叫|在|有|使用|不|周|每|规定|要求)(?!完|了吗){_REST}",
        sample="我们团队用 Jira 管理任务"),
    _zh_whole(rf"我们?(?:打算|计划|准备|要|想)?(?:明年|今年|下个?月|年底|下半年|后年"
              rf"|[\d一二三四五六七八九十]{{1,3}}月)[^？?]{{0,6}}(?:要|去|结婚|生|毕业|搬|考|退休|买|移民|跑"
              rf"|开){_REST[:-1].replace('{2,200}', '{0,60}')}$",
        sample="我们明年三月要去留学"),
    _zh_whole(rf"我(?:打算|计划)(?!看|问|先|试){_REST}",
        sample="我打算三年内攒够首付"),
    _zh_whole(rf"我们?(?:的|每个?月的|每天的|今年的|现在的)?[^？?，。的]{{0,6}}(?:{_ZH_DETAIL})(?:是|为|用的是|：|:"
              rf"|在)\s?(?!什么|太|说|问)[^？?]{{1,80}}$",
        sample="我生日是11月9号"),
    _zh_whole(r"[\u4e00-\u9fff]{0,6}(?:预算|截止日期|地址|目标)(?:是|为|：|定在|大概|大约)\s?[^？?]{1,60}$",
        sample="装修预算是 14 万"),
    _zh_whole(r"我(?:会说|会讲|能说|懂|会)(?:一点|一些|流利的?)?[^？?]{1,12}(?:语|文|话)[^？?]{0,20}$",
        sample="我会说一点荷兰语"),
    _zh_whole(r"我睡得(?:晚|早|浅|少)[^？?]{0,60}$",
        sample="我睡得晚"),
    _zh_whole(r"我自己?开了?一?(?:家|间|个)[^？?]{2,40}$|我是?做[^？?]{1,16}(?:的|生意|行业)$",
        sample="我自己开了一家面包店"),
    _zh_whole(r"我(?:现在)?(?:不在|离开了?)[^？?]{2,40}(?:到了?|去了?|加入了?|入职了?)[^？?]{1,30}$",
        sample="我现在不在华为了，去了小米"),
    # how to be served
    _zh_whole(r"(?:请|麻烦|以后|今后|都|一律|全部|尽量|始终|只){0,3}用\s?[^？?，。]{1,14}\s?(?:回答|回复|交流|对话"
              r"|写注释|说话)[^？?]{0,30}$",
              MemoryKind.INSTRUCTION,
        sample="请用中文回答"),
    _zh_whole(r"(?:请)?(?:代码|回答|回复|注释|示例|日期|文档|邮件|变量名?|金额|时间)[^？?，。]{0,10}(?:请|一律|都"
              r"|统一|尽量|必须|要|用|写成|不要|别|简短|简洁)[^？?]{1,60}$",
              MemoryKind.INSTRUCTION,
        sample="回答要简短"),
    _zh_whole(r"(?:请|千万|一定|务必|以后|今后|绝对|永远)*(?:不要|别|不准|不许|禁止)(?:再)?(?:用|加|写|放|出现|把"
              r"|在[^？?，。]{1,8}(?:里|中|用|加|写)|称呼|叫我|安排|推荐|给我推荐|提|使用|道歉|解释|翻译)[^？?]{1,60}$",
              MemoryKind.INSTRUCTION,
        sample="禁止使用表情符号"),
    _zh_whole(r"[^？?，。]{2,24}(?:之前|以前|前)[，,]?(?:请|要|都要|必须|一定要|务必)?(?:先)?(?:问|告诉|通知|征求"
              r"|跟我确认|提醒)[^？?]{0,12}我?[^？?]{0,20}$",
              MemoryKind.INSTRUCTION,
        sample="删除任何东西之前先问我"),
    _zh_whole(r"(?:别|不要)忘了?\s?(?:我|我们)[^？?]{3,60}$",
        sample="别忘了我下周二要去体检"),
)  # fmt: skip

_NO_STATEMENT = (
    "think|thought|guess|suppose|wonder|wondered|hope|believe|feel|felt|mean|meant|agree|see|saw|know|knew|understand|understood"
    "|need|needed|want|wanted|would|could|should|might|may|will|can|did|was|were|had|got|get|tried|try|trying|looking|reading"
    "|running|getting|seeing|thinking|wondering|going|gonna|about|just|not|sure|sorry|glad|happy|sad|tired|hungry|back|here"
    "|at|on|in|found|heard|noticed|asked|said|told|read|finished|started|wrote|made|did|ran|went|came|saw|met|bought|attached"
    "|attaching|sent|sending|working|testing|using|building|writing|doing|stuck|worried|curious|excited|interested|guess"
    "|question|message|code|function|error|guess|bad|train|flight|favorite|last|next|first|previous|plan|idea|approach|solution|result|answer"
)
_ABOUT_TALK = (
    "you|your|this|that|it|code|function|class|method|file|files|test|tests|error|errors|question|answer|example|examples"
    "|paragraph|sentence|essay|version|translate|explain|tomorrow|today|tonight|yesterday|now|soon|later|minutes?|hours?|ago"
    "|however|let|here's|below|above|following|chapter|figure|section|api|variable|argument|loop|bug|stack trace|log"
)
_EN_MORE: Final[tuple[Rule, ...]] = (
    _en(r"(?:i should|let me|allow me to) introduce myself[:,. ]{1,3}(?!\?)[^?]{4,200}$", _whole(MemoryKind.PROFILE),
        sample="Allow me to introduce myself: Ann Lee, plumber from Leeds"),
    _en(r"i go by (?-i:[A-Z])[^?]{1,80}$", _whole(MemoryKind.PROFILE),
        sample="I go by Kit at work, Katherine on paper"),
    _en(r"(?:(?:pls|plz|please|just) )+call me (?!back|later|when|if|at|tomorrow|tonight|a\b|an\b|the\b|maybe"
        r"|asap|on\b|in\b|now)"
        r"[^?]{2,50}$", _whole(MemoryKind.INSTRUCTION),
        sample="Please call me dr lin not mr"),
    _en(r"(?:my friends|everyone|everybody|people)(?: all)? calls? me (?!a\b|an\b|the\b|back|later|names"
        r"|when|at)[^?]{2,60}$",
        _whole(MemoryKind.PROFILE),
        sample="My friends all call me Bo or Bobby"),
    _en(r"i(?:'m| am) \d{1,2}(?=$|,| (?:btw|by the way|so|and|now|already|years)\b)"
        r"[^?]{0,60}$", _whole(MemoryKind.PROFILE),
        sample="I'm 67 and retired"),
    _en(r"i(?:'ve| have) been (?:an? |the )?(?!trying|looking|getting|having|wondering|thinking|told|asked"
        r"|working on|using this"
        r"|waiting|stuck|here|there|seeing|able|busy|sick)[\w' -]{3,50} (?:for|since) (?!an? (?:minute|hour"
        r"|while)|hours|minutes|ages)"
        r"[^?]{2,60}$", _whole(MemoryKind.FACT),
        sample="I've been a beekeeper for nine years"),
    _en(r"i(?:'m| am) (?:now )?at an? (?!loss|point|bit|crossroads)[\w' -]{3,40}(?: now)?\b"
        r"[^?]{0,60}$", _whole(MemoryKind.FACT),
        sample="I am at a bakery now in Ghent"),
    _en(r"i turn \w+(?:[- ]\w+)? (?:in|on|this|next) [^?]{3,30}$", _whole(MemoryKind.PROFILE),
        sample="I turn forty in August"),
    _en(r"(?:i|we) (?:do (?:freelance|volunteer|contract|part-time|night)|carry an? |carry my |bank with "
        r"|keep (?:kosher|halal|bees"
        r"|chickens|a diary)|rely on (?:my |a |an )?(?:hearing|captions|transcripts|subtitles|screen reader"
        r"|cane|wheelchair)|manage an? "
        r"|run an? (?!test|script|query|command|job|check)|practi[sc]e (?!this|that|the)|follow a )"
        r"[^?]{1,120}$", _whole(MemoryKind.FACT),
        sample="I carry an EpiPen"),
    _en(r"(?:i|we)(?:'m| am|'re| are) (?:a bit |slightly |partially )?(?:hard of hearing|short[- ]sighted"
        r"|visually impaired|on (?:insulin"
        r"|dialysis|benefits|parental leave|maternity leave)|allerg\w+|early risers?|night owls?)\b"
        r"[^?]{0,120}$", _whole(MemoryKind.FACT),
        sample="I'm hard of hearing"),
    _en(r"we (?:always|never|usually|normally|only|rarely) (?!said|say|get|got|see|saw|had|did|talked|discussed"
        r"|finished)[^?]{3,100}$",
        _whole(MemoryKind.FACT),
        sample="We never fly"),
    _en(r"my (?:phone|laptop|computer|car|bike|tablet|camera|os|editor|stack|dog|cat|instrument|size|blood type"
        r"|sign)'s (?:an? |now )?"
        r"(?!broken|slow|down|dead|stuck|gone|not|frozen|acting|being|making)[^?]{2,80}$", _whole(MemoryKind.FACT),
        sample="My instrument's the oboe"),
    _en(r"(?:our|my) (?:new |home |postal |billing )?(?:address|phone number|number|email|surname|main branch"
        r"|fiscal year|staging server"
        r"|landlord|timezone|time zone) (?:is|starts|ends|has)[^?]{2,100}$", _whole(MemoryKind.FACT),
        sample="My email ends in example.com"),
    _en(r"(?:we've|we have|i've|i have) moved[:,;] [^?]{4,120}$", _whole(MemoryKind.FACT),
        sample="We've moved: the new place is 12 Elm Row"),
    _en(r"(?:i'm a |i am a )?(?:big|huge|massive|lifelong) fan of (?!this|that|your|the (?:first|second"
        r"|last))[^?]{2,60}$",
        _whole(MemoryKind.PREFERENCE),
        sample="Massive fan of jazz"),
    _en(r"(?:speaking as an? [\w' -]{3,40}|being an? [\w' -]{3,30}, (?:i|my|we)\b)"
        r"[^?]{0,120}$", _whole(MemoryKind.FACT),
        sample="Being a coeliac, I bring my own bread"),
    # how to be served
    _en(r"stop (?!the\b|it\b|this\b|that\b|running|trying|generating|working|here|there)\w+ing\b [^?]{3,80}$",
        _whole(MemoryKind.INSTRUCTION),
        sample="Stop apologising in every answer"),
    _en(r"from here on(?: out)?,? [^?]{4,120}$", _whole(MemoryKind.INSTRUCTION),
        sample="From here on, answer in Dutch"),
    _en(r"when(?:ever)? (?:you (?:write|answer|reply|draft|explain|give|send|suggest|format|translate|quote"
        r"|list|show)|i (?:paste|send"
        r"|share|post|upload|give you|ask (?:you )?for|mention))\b[^?,]{1,80}, (?!i\b|it\b|the\b|what|why"
        r"|how)[^?]{4,120}$",
        _whole(MemoryKind.INSTRUCTION),
        sample="When you write code, add type hints"),
    _en(r"(?:you can |you may |please |just )*skip the [\w -]{3,40} (?:with|for) me\b"
        r"[^?]{0,60}$", _whole(MemoryKind.INSTRUCTION),
        sample="You can skip the disclaimers with me"),
    _en(r"for (?:all|any|every|each) (?:of )?(?:my |our )?(?:future |new )?(?:emails?|letters?|messages?"
        r"|answers?|replies|code|reports?"
        r"|documents?|meetings?|tickets?|invoices?),? [^?]{4,120}$", _whole(MemoryKind.INSTRUCTION),
        sample="For all future emails sign off with Warmly"),
    _en(r"[^?]{3,80}, (?:always|every time)$", _whole(MemoryKind.INSTRUCTION),
        sample="Dates as YYYY-MM-DD, always"),
    _en(rf"(?:i|we|my|our)(?:'m|'re| am| are)? (?!(?:{_NO_STATEMENT}|\w+ing|\w+ed|have|also|still|currently"
        rf"|definitely|really|always|a bit)\b)(?!.*\b(?:{_ABOUT_TALK})\b)"
        r"(?=.{6,90}$)(?=.* (?-i:[A-Z][a-z]+|[A-Z]{2,6}\b|\d))[^?]+$", _whole(MemoryKind.FACT),
        sample="I no longer follow Ajax"),
)  # fmt: skip

_ZH_HEALTH = (
    "轮椅|左撇子|色弱|色盲|助听器|耳背|晕车|晕船|晕机|恐高|怕高|失眠|零基础|新手|小白|ADHD|多动症"
    r"|自闭|听障|视障|盲人|聋"
    "|哮喘|痛风|胃病|甲亢|甲减|高血压|糖尿病|乳糖|麸质|素食"
)
_ZH_MORE: Final[tuple[Rule, ...]] = (
    _zh_whole(r"自我介绍一下[：:,， ]?[^？?]{3,80}$", MemoryKind.PROFILE,
        sample="自我介绍一下：陈立，做外贸"),
    _zh_whole(r"我姓[\u4e00-\u9fff]{1,2}(?=$|[,，])[^？?]{0,30}$", MemoryKind.PROFILE,
        sample="我姓欧"),
    _zh_whole(r"(?:大家|同事|朋友|家里人|他们)(?:们)?(?:都|一般|平时)?(?:叫|喊|称呼)我[^？?，,]{1,12}$",
              MemoryKind.PROFILE,
        sample="家里人平时喊我豆豆"),
    _zh_whole(r"(?:在读|坐标|老家(?:是|在)?|籍贯|现居|定居)[^？?]{2,60}$",
        sample="籍贯山东济南"),
    _zh_whole(r"(?:我)?(?:正在|最近在|一直在)(?:自学|备考|准备[^？?，,]{1,8}考)[^？?]{1,60}$",
        sample="正在自学吉他"),
    _zh_whole(r"我(?:正|在)?(?:自学|备考|准备(?:\w{1,4}的)?\w{0,4}考)[^？?]{1,60}$",
        sample="我自学吉他"),
    _zh_whole(r"(?:退休前|以前|之前|从前|原来|年轻时)我?(?:是|在|做|当)(?!说|想|问)[^？?]{2,60}$",
        sample="退休前我是邮递员"),
    _zh_whole(r"我(?:今年)?(?:才|快|都|已经|刚满|刚)?(?:\d{1,2}|[一二三四五六七八九十]{1,3})(?:岁)?了?(?=$"
              r"|[,，])(?<=[岁了一二三四五六七八九十\d])[^？?]{0,40}$",
        sample="我六十七了"),
    _zh_whole(r"我人?在[\u4e00-\u9fffA-Za-z ]{2,12}[,，](?:所以)?[^？?]{0,6}(?:时间|时区|时差)[^？?]{1,40}$",
        sample="我在温哥华，所以时间都按太平洋时间说"),
    _zh_whole(rf"我[^？?，,。]{{0,6}}(?:{_ZH_HEALTH})[^？?]{{0,60}}$",
        sample="我晕船"),
    _zh_whole(r"我(?:的)?(?:听力|视力|记性|身体|英语|日语|数学|普通话|方向感|皮肤|肠胃"
              r"|膝盖|腰|睡眠|[\u4e00-\u9fff]语)(?:不好|不太好|不行|一般|很差|较弱|比较差)"
              r"[^？?]{0,60}$",
        sample="我英语不好"),
    _zh_whole(r"(?:相比|比起)[^？?，,]{1,12}[,，]?我?(?:还是)?更?(?:喜欢|爱|偏爱|偏好|习惯)[^？?]{1,40}$",
              MemoryKind.PREFERENCE,
        sample="比起咖啡更喜欢茶"),
    _zh_whole(r"我(?:更|最|比较|还是|一般|向来)?(?:习惯|喜欢坐|爱坐|喜欢用|怕|讨厌"
              r"|受不了)(?!了?你|这|那|它|的话|是)[^？?]{2,40}$",
              MemoryKind.PREFERENCE,
        sample="我怕坐飞机"),
    _zh_whole(r"(?:现在|如今)(?:改)?(?:喜欢|爱|习惯)(?!你|这|那|它)(?![^？?]*的人)[^？?]{2,40}$", MemoryKind.PREFERENCE,
        sample="现在喜欢喝茶"),
    _zh_whole(r"[\u4e00-\u9fff]{1,6}我一般(?!会问|就问)[^？?]{2,30}$", MemoryKind.PREFERENCE,
        sample="坐飞机我一般选靠窗"),
    _zh_whole(r"我会(?:拉|弹|吹|骑|滑|跳|画|游|打(?!电话|断|扰|开|算|包|车))[^？?的]{1,20}$",
        sample="我会拉二胡"),
    _zh_whole(r"我(?:现在)?(?:已经)?(?:不在|离开了?)[^？?]{2,40}(?:在|到了?|去了?|加入了?|入职了?)[^？?]{1,30}$",
        sample="我已经不在华为，在小米"),
    _zh_whole(r"(?:身为|作为)(?:一[个名位])?[^？?，,]{1,10}(?:师|员|生|人"
              r"|妈妈|爸爸|家|党|友|迷|者|主|户|粉丝|工)[,，]?\s?我?[^？?]{2,60}$",
        sample="作为老师，更看重耐心"),
    _zh_whole(r"我家(?:住|有|养|没有?|离)[^？?]{2,40}$",
        sample="我家离公司很远"),
    _zh_whole(r"我家?(?:有)?(?:俩|仨|[一两二三四]个)(?:娃|孩子|儿子|女儿|闺女)[^？?]{0,40}$",
        sample="我家俩娃"),
    _zh_whole(r"我的?(?:邮箱|微信|手机|电话)\s?(?:是|号)?[：:]?\s?[\w.+@-]{5,60}$", MemoryKind.PROFILE,
        sample="我邮箱 lin@example.com"),
    _zh_whole(r"[\u4e00-\u9fff]{1,8}(?:里|中|上)(?:面)?(?:千万|一定|绝对)?(?:不要|别|不能|不准|禁止)(?:再)?"
              r"(?:写|放|出现|记|用|加|留)[^？?]{1,40}$", MemoryKind.INSTRUCTION,
        sample="日志里千万不要写客户姓名"),
    _zh_whole(r"我(?:工作日|周[一二三四五六日天末]|平时|每天|晚上|白天|早上|上午"
              r"|下午)[^？?]{2,40}(?:有空|没空|在线|上班|休息|上课)[^？?]{0,10}$",
        sample="我工作日晚上九点以后有空"),
    _zh_whole(r"我(?:结婚了?|离婚了?|单身|已婚|未婚|有对象了?)(?=$|[,，])[^？?]{0,40}$",
        sample="我单身"),
    _zh_whole(r"我们?(?:平时|线上|后端|前端|主分支|测试环境|仓库|项目"
              r"|公司)[^？?]{0,12}(?:写|用的?是?|是|叫|部署在|一共)\s?(?!什么|哪)[^？?]{1,60}$",
        sample="我们后端用 Go"),
    _zh_whole(r"我(?:平时|一般)?只(?:喝|吃|穿|听|看|买)(?!了|完|过|到|这|那|一|半)[^？?]{1,30}$",
              MemoryKind.PREFERENCE,
        sample="我只喝绿茶"),
    _zh_whole(r"我(?:平时|主要|一般|只)(?:写|用|做)\s?(?!什么|完|了|的)[^？?]{2,40}$",
        sample="我主要写 Rust"),
    _zh_whole(r"我(?:们)?(?:今年|明年|三年内"
              r"|[一二三四五六七八九十\d]{1,3}年内)?的?(?:打算|目标|计划|准备)(?!看|问|先|试|是什么)[^？?]{3,60}$",
        sample="我三年内打算在昆明买房"),
    # how to be served
    _zh_whole(r"(?:以后|今后|往后|接下来|从现在(?:起"
              r"|开始))[,，]?\s?[^？?]{1,40}(?:都|要|请|写|不要|别|控制在|统一|一律)[^？?]{1,40}$",
              MemoryKind.INSTRUCTION,
        sample="以后日期都写成 2024-05-03"),
    _zh_whole(r"(?:每次|凡是|每当|只要)(?![^？?]*[他她它])[^？?]{2,40}(?:先|都|就|要|请|不要|别|换算|统一)[^？?]{1,60}$",
              MemoryKind.INSTRUCTION,
        sample="每当发邮件都抄送李雷"),
    _zh_whole(r"(?:请)?(?:一直|始终|统一|一律|全部)(?:都)?(?:用|写|按)[^？?]{1,40}$", MemoryKind.INSTRUCTION,
        sample="请一直用摄氏度"),
    _zh_whole(r"(?:写|回答|回复|给我)[^？?，,]{1,12}(?:时候?|落款|的时候)?(?:统一|一律|都|不用|不要|别|务必|先)(?!了|说"
              r"|急)[^？?]{2,60}$", MemoryKind.INSTRUCTION,
        sample="写邮件统一用敬语"),
    _zh_whole(r"(?:日期|时间|金额|单位|代码|注释|变量|标题|表格)[^？?]{0,6}(?:请|统一|一律|都)[^？?]{2,60}$",
              MemoryKind.INSTRUCTION,
        sample="表格里的金额请用欧元"),
    _zh_whole(r"不要(?:每次|总是|老是|动不动)[^？?]{2,40}$", MemoryKind.INSTRUCTION,
        sample="不要每次都道歉"),
    _zh(r"(?:帮我)?(?:记着|记下|备忘)[：:,， ]?(?!了吗)(?P<x>[^？?]{3,80})$", _explicit_request,
        sample="备忘：护照2027年到期"),
    _zh_whole(r"(?:我们)?(?:预算|对接人|主分支|交付日期|截止日期)[^？?，,]{0,6}(?:是|叫|为|在)[^？?]{1,60}$",
        sample="对接人是王芳"),
)  # fmt: skip

RULES: Final[tuple[Rule, ...]] = (
    _en(
        r"(?:please )?(?:remember|keep in mind|bear in mind|don't forget|do not forget)(?: that\b|:"
        r"|,? (?=my\b|i\b|i'm\b|i've\b|we\b|our\b))[: ]*(?P<x>.{3,250}?)$",
        _explicit_request,
        sample="Remember: the spare key is under the pot"),
    _en(rf"my (?:full |first |real )?name(?:'s| is) {_NAME}", _profile("The user's name is {x}.", "name", 0.95),
        sample="My name is Tilda"),
    _en(r"i(?:'m| am) (?P<x>(?-i:[A-Z][a-z]{1,20}(?: [A-Z][a-z]{1,20})?))(?=,? (?:and i|nice to meet|pleased to)\b)",
        _profile("The user's name is {x}.", "name"),
        sample="I'm Jonas, nice to meet you"),
    _en(rf"(?:my friends|everyone|everybody|people)(?: all)? (?:calls?|just calls?) me {_NAME}",
        _profile("The user wants to be called {x}.", "form of address"),
        sample="Everybody calls me Bo"),
    _en(rf"(?:you can |you may |please |just |everyone can )*(?:call me|i go by) (?:dr\.? |mr\.? |ms\.? "
        rf"|mrs\.? )?{_NAME}",
        _profile("The user wants to be called {x}.", "form of address", 0.95),
        sample="Call me Ishmael"),
    _en(rf"i(?:'m| am) (?P<no>not )?(?:(?:severely|highly|very|also|deathly|mildly) )*allergic to {_THING}",
        _health("The user is allergic to {x}.", "The user is not allergic to {x}.", "allergy: {x}"),
        sample="I'm allergic to shrimp"),
    _en(rf"i(?: really)? (?:can't|cannot|can not|mustn't|must not|am not allowed to|'m not allowed to)"
        rf" (?:eat|drink|tolerate|have(?! (?:a|an|kids|children|pets|both|fun)\b)) (?!{_NO_FOOD}\b){_THING}",
        _health("The user can't have {x}.", "", "cannot have: {x}"),
        sample="I can't eat gluten"),
    _en(rf"i(?:'m| am) (?P<no>not )?(?:a |an )?(?P<x>{_DIETS})\b",
        _health("The user is {x}.", "The user is not {x}.", "diet: {x}"),
        sample="I'm vegan"),
    _en(rf"my favou?rite (?P<k>[\w' -]{{2,40}}?) (?:is|are) {_THING}", _favourite("The user's favourite {k} is {x}."),
        sample="My favourite season is autumn"),
    _en(rf"i (?:{_ADVERB})(?P<v>prefer|love|like|enjoy|hate|dislike) {_THING}", _taste("The user {v} {x}."),
        sample="I prefer trains to planes"),
    _en(rf"i (?P<v>don't like|do not like|no longer like|don't enjoy|can't stand|cannot stand|don't eat|don't drink) "
        rf"{_THING}", _taste("The user {v} {x}."),
        sample="I don't eat pork"),
    _en(rf"(?:i|we) (?:now |currently |still |both |all )?live in (?!fear|hope|denial|interesting|uncertain"
        rf"|strange|dark|hard|a\b|an\b|the (?:past"
        rf"|moment)){_THING}",
        _profile("The user lives in {x}.", "home"),
        sample="We live in Ghent"),
    _en(rf"i(?:'ve| have)?(?: just| recently)? moved to (?!a\b|an\b|the (?:next|new|other)|{_NO_PLACE}"
        rf"|using\b){_THING}", _profile("The user lives in {x}.", "home", 0.8),
        sample="I moved to Turin"),
    _en(rf"i(?:'m| am) (?:originally )?from (?!the (?:future|past)|here){_THING}",
        _profile("The user is from {x}.", "origin"),
        sample="I'm from Chile"),
    _en(rf"i (?:now |currently )?work (?:at|for) (?!it|you|this|that|a\b|an\b|my\b|me\b){_THING}",
        _profile("The user works at {x}.", "employer"),
        sample="I work at Miele"),
    _en(rf"i (?:now |currently )?work as (?:a |an |the )?{_THING}", _profile("The user works as: {x}.", "profession"),
        sample="I work as a tailor"),
    _en(rf"i(?:'m| am) (?:a|an) (?P<x>(?:[\w-]+ )?(?:{_WORK}))\b", _profile("The user is a {x}.", "profession"),
        sample="I'm a civil engineer"),
    _en(r"i(?:'m| am) (?P<x>\d{1,3}) years old\b", _profile("The user is {x} years old.", "age"),
        sample="I'm 41 years old"),
    _en(rf"i speak (?!to\b|with\b|for\b|of\b|about\b){_THING}", _profile("The user speaks {x}.", "languages", 0.85),
        sample="I speak Dutch"),
    _en(rf"my (?P<k>{_KIN})(?:'s name is| is (?:called|named)) {_NAME}",
        _profile("The user's {k} is called {x}.", "name of {k}"),
        sample="My dog's name is Rex"),
    _en(rf"my (?P<k>{_DETAILS})(?: is| are|'s) (?P<x>[^,;!?]{{1,60}}?)(?=$|[,;!]|\.(?:\s|$)| and\b| but\b)",
        _profile("The user's {k}: {x}.", "{k}"),
        sample="My shoe size is 44"),
    _en(rf"(?:from now on|going forward|in (?:the )?future|henceforth),? (?:please |you (?:should|must) "
        rf"|i want you to )?(?:always |never |only )?(?:{_ORDERS})\b.{{2,200}}$", _instruction,
        sample="From now on, answer in Dutch"),
    _en(rf"(?:please )?(?:always|never) (?:{_ORDERS})\b.{{2,200}}$", _instruction,
        sample="Never mention prices"),
    _en(r"(?:please )?never (?!mind\b|again\b|seen|heard|been|thought|had|knew|saw|tried|used|ever|once"
        r"|\w+ed\b)\w+ [^?]{2,100}"
        r" (?:without|unless|before|until) [^?]{3,80}$", _whole(MemoryKind.INSTRUCTION),
        sample="Never push to main without asking me"),
    *_EN_WHOLE,
    *_EN_MORE,
    # -- Chinese
    _zh(r"(?:请你?|帮我|你要|要|一定要)?(?:记住|记一下|记得(?=我))(?!了?吗|没)(?:了)?[：:，, ]?"
        r"(?P<x>[^？?]{2,120}?)[。！!]?$", _explicit_request,
        sample="记住我们周五不发版"),
    _zh(rf"(?:我叫|我的名字(?:是|叫)|我名叫|本人叫){_ZH_NAME}", _profile("用户的名字是{x}。", "name", 0.95),
        sample="我叫林晓"),
    _zh(rf"(?:请|你|您|可以|以后|今后|就|都|大家|朋友们?|同事们?|别人)*(?:叫我|称呼我为?|喊我){_ZH_NAME}",
        _profile("用户希望被称为{x}。", "form of address", 0.95),
        sample="叫我老王就行"),
    _zh(r"我(?:其实|原来|并|现在|好像)?(?:对|一?吃)?\s?(?P<x>(?!容易|也|有点|不|很|会"
        r"|皮肤)[^，。,.!！；;？?\s](?:[^，。,.!！；;？?]){0,24}?)\s?(?P<no>不)?(?:就|会|严重|有点|轻微)?过敏",
        _health("用户对{x}过敏。", "用户对{x}不过敏。", "allergy: {x}"),
        sample="我对花生过敏"),
    _zh(rf"我(?:现在|一点都?|完全)?(?:不能|不可以)(?:再)?(?:吃|喝|碰)\s?(?!太|多|了){_ZH_THING}",
        _health("用户不能吃或喝{x}。", "", "cannot have: {x}"),
        sample="我不能吃海鲜"),
    _zh(r"我(?P<no>不)?是(?:个|一个)?(?P<x>素食者|素食主义者|纯素食者|糖尿病人|糖尿病患者|穆斯林)",
        _health("用户是{x}。", "用户不是{x}。", "diet: {x}"),
        sample="我是素食者"),
    _zh(rf"我最(?:喜欢|爱)的(?P<k>[^，。,.!！；;？?是\s]{{1,12}})是{_ZH_THING}", _favourite("用户最喜欢的{k}是{x}。"),
        sample="我最喜欢的颜色是青色"),
    _zh(rf"我(?:很|最|比较|特别|非常|还是|更|真的|一直|平时|也|都)*(?P<v>不喜欢|不爱|讨厌|不吃|不喝|喜欢|偏爱|偏好"
        rf"|爱吃|爱喝|爱看|爱听)\s?{_ZH_THING}",
        _taste("用户{v}{x}。"),
        sample="我喜欢喝茶"),
    _zh(rf"(?:我们?(?:现在|目前|一直|都)?|现在|目前|如今)(?:住在|家在|家住在?"
        rf"|定居在?)\s?{_ZH_THING}", _profile("用户住在{x}。", "home"),
        sample="我住在大连"),
    _zh(rf"我们?(?:刚|最近|已经|现在)?(?:搬到|搬去|搬家到)了?{_ZH_THING}", _profile("用户住在{x}。", "home", 0.8),
        sample="我搬到了杭州"),
    _zh(rf"我(?:来自|老家在|老家是)\s?{_ZH_THING}", _profile("用户来自{x}。", "origin"),
        sample="我老家在山西"),
    _zh(r"我是(?P<x>(?!一|个|什|好|坏|男|女|老|年|主|本|个|中间|负责|联系|当事)[\u4e00-\u9fff]{2,6})人" + _ZH_END,
        _profile("用户是{x}人。", "origin"),
        sample="我是上海人"),
    _zh(r"(?:我|现在|目前|我现在|我目前)在(?P<x>[^，。,.!！；;？?\s]{2,20}?)(?:工作|上班|任职|就职)" + _ZH_END,
        _profile("用户在{x}工作。", "employer"),
        sample="我在小米上班"),
    _zh(rf"我(?:是|当)(?:一名|一个|一位|个|名)?(?P<x>[\u4e00-\u9fff]{{0,6}}(?:{_ZH_WORK}))" + _ZH_END,
        _profile("用户是{x}。", "profession"),
        sample="我是一名护士"),
    _zh(r"我(?:今年|现在)?(?P<x>\d{1,3}|[一二三四五六七八九十]{1,4})岁", _profile("用户{x}岁。", "age"),
        sample="我今年三十岁"),
    _zh(rf"我(?:的|家)?(?P<k>{_ZH_KIN})(?:的名字)?叫{_ZH_NAME}", _profile("用户的{k}叫{x}。", "name of {k}"),
        sample="我儿子叫小宝"),
    _zh(r"我的(?P<k>生日|电话|电话号码|手机号|邮箱|微信|职业|专业|母语|时区|血型|国籍|年龄)(?:是|："
        r"|:)\s?(?P<x>[^，。！；？]{1,40}?)\s?(?=$|[，。！；])",
        _profile("用户的{k}是{x}。", "{k}"),
        sample="我的母语是粤语"),
    _zh(rf"(?:请)?(?:以后|今后|从现在起|从今以后|从现在开始)[，,]?(?:请|你|您)?(?:{_ZH_ORDER_VERBS})"
        r"[^？?]{2,80}$", _instruction,
        sample="以后请用中文回答"),
    _zh(r"(?:请)?(?:你|您)?(?:不要再|别再)(?:用|使用|加|写|叫我|称呼我|给我|回复|回答|输出|推荐)[^？?]{1,80}$",
        _instruction,
        sample="别再加表情了"),
    *_ZH_WHOLE,
    *_ZH_MORE,
)  # fmt: skip
