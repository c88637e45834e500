"""The turns of phrase by which a sentence shows what it does: decide, ask, promise, or only be polite.

Plain patterns in English and Chinese, one alternative a line. A sentence that shows none of them is
neither better nor worse for it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from functools import cache

Cue = Callable[[str], bool]
"""Whether a sentence shows it."""


def _cue(english: str, chinese: str, *, at_start: bool = False) -> Cue:
    """English whole words in any case, or the Chinese; each line of either is an alternative."""
    anchor = "^" if at_start else ""

    @cache
    def pattern(*, with_chinese: bool) -> re.Pattern[str]:
        """Made when it is first looked for: most programs that import this compact nothing."""
        words, characters = ("|".join(filter(None, map(str.strip, text.split("\n")))) for text in (english, chinese))
        english_only = rf"{anchor}\b(?i:{words})\b"
        return re.compile(rf"{english_only}|{anchor}(?:{characters})" if with_chinese else english_only)

    def shows(sentence: str) -> bool:
        """The Chinese of an English sentence would be looked for at each of its letters."""
        return pattern(with_chinese=not sentence.isascii()).search(sentence) is not None

    return shows


_BREATH = re.compile(
    r"^(?:\s*\b(?i:ok(?:ay)?|so|hm+|um+|well|oh|ah|right|wait|yeah|yep|hey+|hi|hello|heyy+|anyway|and|btw|alright|good|fine|cool)\b"
    r"[\s,.!…:]*|(?:嗯|哦|那个|那么|好的?|对了|另外|还有)[，,。！!\s]+)+"
)
_CLOSING = r"\s*[\"”」』)）]?\s*$"
_QUESTION_MARK = re.compile(rf"[?？]{_CLOSING}")

_DECISION = _cue(
    """
    let'?s (?:go with|use|do|make|take|stick|start|try|book|call it|say|meet)
    we(?:'ll| will| should)(?: just)? (?:use|go|do|keep|take|stick|call|need)
    i(?:'ll| will) (?:go with|use|take|choose|keep|stick|do)
    (?:i|we)(?:'ve)? (?:chose|picked|switched|moved|changed|booked|signed|bought|ordered|hired|cancell?ed)
    decided|decision is|agreed|go(?:ing)? with|went with|settled? on|switch(?:ed|ing)? to
    instead of|rather than|from now on|please use|must (?:use|not|(?:have|be)(?! been))|no longer
    confirmed|approved|deal$|booked it|we don't need|i prefer|i'd prefer|when(?:ever)? i ask
    (?:always|never) (?:use|format|include|give|write|answer|reply|show|provide|keep|mention|add|ask|call|tell|send|do)
    """,
    """
    决定|就用|定了|敲定|定下|定在|定为|确定(?:用|是|了)|那就|就这么|就按|采用|统一用|以后都|还是用|一律|每次都
    改成|改用|改到|换成|换了|选了|选定|就选|不要用|别用|必须
    签了|订了|下单|买了|交了|约了|约在|同意|批准|取消|推迟|提前到
    """,
)
_REVISION = _cue(
    """
    instead|rather|chang(?:e|ed|ing) (?:my|our) mind|no longer|no more|any ?more|cancel\\w*|scrap|call(?:ed)? off
    (?:switch|mov|chang|push|postpon|shift|delay)(?:e|ed|es|ing)?(?: [\\w'-]+){0,5}? (?:to|until|by)
    (?:put|placed|gave) (?:us|me|it|them|him|her) (?:on|at|in|for) (?:the )?(?:\\d|mon|tue|wed|thu|fri|sat|sun)\\w*
    can only (?:do|make|come|deliver)|can'?t (?:do |make |on )?the \\d\\w*
    (?:mon|tues|wednes|thurs|fri|satur|sun)day,? (?:and )?not (?:on )?(?:mon|tues|wednes|thurs|fri|satur|sun)day
    (?:rais|lower|increas|reduc|extend|bump|renam)(?:e|ed|es|ing|s)?(?: [\\w'-]+){0,5}? (?:to|until|by)
    (?:mov|chang|push|postpon|shift|rais|lower|extend)(?:e|ed|es|ing)?\\b[^.;!?]{1,60}? from [^.;!?]{1,40}? to
    let'?s not|not .{1,30} after all|(?:doesn'?t|won'?t) work|moved (?:to|from)|is (?:now|off)|booked already
    after all|on second thought
    make (?:it|that) (?:\\d|mon|tue|wed|thu|fri|sat|sun|at |a |the )[\\w']*
    not (?:on )?.{1,40}, (?:it'?s|but|they|it will)
    (?:doesn'?t|didn'?t|won'?t) work(?: out)?\\W+(?:it'?s|its|we|so|then)
    now (?:on |at |in |it'?s |the ){0,2}(?:\\d[\\w']*|(?:mon|tues|wednes|thurs|fri|satur|sun)day)
    is [\\d.,:]+(?: \\w+)? now
    (?:is|are) (?:fine|ok|okay|allowed|welcome|cool) (?:again|now)|turns out(?: that)? (?:it|he|she|they|the|this|that)
    (?:it|he|she|that|this|they)(?:'?s| was| is| were)(?: [\\w'-]+){1,4}, not [a-z]
    (?:you|u) (?:can|may) (?:use|write|add|send|include|mention|have)(?: [\\w'-]+){1,5} again
    no,? sorry|sorry,? no|typo|mistyped|misspel(?:t|led)|mis(?:read|heard)
    wrong (?:number|date|day|time|name|address|amount)
    got (?:that|it|the \\w+) wrong|(?<=\\d )sorry|slip(?:s|ped)? to|my mistake
    wrong [a-z]+,? it'?s|corrected:?|moved (?:us|me|it|them)
    wait,? no|no,? wait|scratch that|correction|i meant|sorry,? (?:it'?s|make it|has to be|i meant|\\d|one|two|three)
    (?:\\d+|one|two|three|four|five|six|seven|eight)(?: \\w+){0,2},? not (?:\\d+|one|two|three|four|five|six|seven)
    (?:go|come|switch)(?:ing)? back to|(?<![\\w-])\\d{1,2}(?: [a-z]+)? again|turn(?:ed)? (?:it |[\\w-]+ )?(?:off|on)
    (?:answer|write|reply|talk|speak)(?: [\\w']+){0,4}? again
    i(?:'m|'ll)? (?:[\\w']+ ){1,3}?again|(?<!don't )freeze
    stop (?:using|writing|answering|replying|sending|reminding|calling|adding)|is gone|(?:fell|falls) through
    (?<!don't )(?<!dont )(?<!not )forget (?:about )?(?:the|that|my|those|\\w+ \\d+)|never mind the|drop the
    """,
    """
    (?:打|写|输|说|记|搞|看|弄|听)错|口误|笔误|应该是|更正|可以(?:再|重新)?用.{0,8}了|.{1,8}(?:又)?可以(?:再)?用了
    改成|改为|变成|改到|改用|改在|改回|改名|换成|换到|换回|取消|不要了|算了|不用.{0,12}了|不去.{0,6}了|推迟|延期|延后|提前到|作废|收回|换人
    (?:改|挪|移|换)(?:到|成|为|了|\\d)|没空|不行|还是(?:用|去|坐|选|要|叫|吃|订|走|住|买|按)|而不是|不是.{1,12}[，,]|不再|改主意|恢复|冻结
    (?:delay|move|postpone|reschedule|shift|push)d? ?[到了]|更新[:：]
    (?:提高|降低?|调高?|加|减少?|涨|增加|缩短?|延长|升)到|又(?:能|可以|要|想|会|开始|改|换|回到|[吃喝用]).{0,6}了|(?:不用|不必|别)再|(?:换|改)(?!衣|车|天|乘)[\u4e00-\u9fff]{2}
    """,
)
_TAKEN_BACK = re.compile(
    r"(?i:\b(?:(?<!don't )(?<!dont )(?<!not )forget(?: about)?|scrap|drop|cancel(?:l?ed|ling)?|called? off|instead of"
    r"|rather than|changed my mind about|no longer(?: wants?| needs?)?|no more|never mind"
    r"|stop (?:using|writing|answering in|replying in|sending)|turn(?:ed)? off"
    r"|(?:don'?t|do not|needn'?t)(?: (?:need|have))? (?:to )?(?=(?:[^\s,.;!?]{1,30} ){1,8}any ?more)"
    r"|not(?= (?:[^\s,.;!?]{1,30} ){1,4}any ?more))"
    r"\s*(?<=\s)(?:(?:the|that|this|those|these|my|our|your) )?)"
    r"(?P<en>[^,.;!?，。；！？]{2,40}?)(?=[,.;!?，。；！？]|\s(?:but|and|we|so|it|again|any ?more|please|pls|then)\b|$)"
    r"|(?i:\bturn(?:ed)? (?P<off>[\w-]{2,40}) off\b)"
    r"|(?P<zh>[^，。；！？,.;!?\s]{1,12}?)\s?(?:那个|那天|的|也)?(?:作废|取消了?|不要了|不去了|算了|不行了?|(?:不用|不必|别)再)"
    r"|(?:不用|取消|而不是|不去|放弃|不再|停止|关掉|关闭)(?P<zh_after>[^，。；！？,.;!?\s]{1,12})"
    r"|(?i:\b(?P<failed>\w{2,20}) (?:doesn'?t work|does not work|is off|(?:is|was|are|were) (?:cancel\w+|called off)"
    r"|falls through|won'?t work|cancell?ed(?=\s*(?:[.,;!?]|on (?:us|me)\b|$))))"
)
_DENIED = re.compile(
    r"(?i:\bnot\s+(?:the\s+)?)(?P<en>[^,.;!?，。；！？]{2,40}?)(?=[,.;!?，。；！？]|\s(?:but|and|we|so|it)\b|$)"
    r"|不是(?P<zh>[^，。；！？,.;!?\s]{1,12})"
)
_REVERTS = _cue(
    """
    again|back to|no longer|any ?more|no more|instead|rather|stop|from now on
    """,
    """
    改回|恢复|还是用|换成|改成|改用|不再|不用|换回|以后
    """,
)
_REVOKES = _cue(
    """
    (?:write|answer|reply|respond|talk|speak)(?: [\\w']+){0,5} (?:again|normally)|you (?:can|may)(?: [\\w']+){1,6} again
    (?:don'?t|do not|no) (?:need|have) (?:you )?to(?: [\\w']+){1,8} any ?more
    stop (?:using|writing|answering|replying|reminding|calling|adding|sending)|(?:i'm|i am|im) no longer
    i (?:now )?(?:eat|drink|smoke|drive|use|take)(?: [\\w']+){1,3} again|go(?:ing)? back to
    forget (?:about )?(?:the|that|my|those|what i said about)(?: [\\w-]+){1,4}, (?:write|answer|reply|just|use|do)
    """,
    """
    我.{0,4}又.{1,4}了|不再(?:吃|喝|用|要)|(?:不用|不必|别)再.{1,8}我|(?:改回|换回|恢复).{1,10}|不用.{1,6}回答
    """,
)
_PARTICLES = "吧了呢啊呀的"
_LASTING = _cue(
    """
    my (?:name|wife|husband|partner|son|daughter|mom|mother|dad|father|brother|sister|dog|cat)
    my (?:email|phone|address|budget|goal|job|boss|team)
    i(?:'m| am) (?:a|an|from|allergic|working|living|based|planning|building|trying)
    i (?:live|work|like|love|hate|prefer|never|always|don't (?:like|eat|want)|can't (?:eat|stand))
    allergic|remember that|keep in mind|actually|i meant|correction|deadline|due
    """,
    """
    我(?:叫|是|在|家|妈|爸|老婆|老公|儿子|女儿|们组)|过敏|喜欢|讨厌|不吃|不能吃|习惯|偏好|记住|记得|千万
    其实|更正|不对|说错|记错|截止|预算
    """,
)
_PAST = (
    r"again|heard|seen|thought|knew|said|met|felt|ate|told|tried|been|had|was|were|is|are|has|did|does|got|came|went|saw"
    r"|made|wanted|\w{2,}[^eb\s]ed\b"
)
_BEFORE_ORDER = "and but so or then also ok hey btw just please pls plz kindly to should must shall may can".split()
_OPENS_CLAUSE = "|".join((r"(?<![A-Za-z'’)] )", *(rf"(?<=\b{word} )" for word in _BEFORE_ORDER)))
_ALWAYS_OR_NEVER = rf"""
    (?:{_OPENS_CLAUSE})(?:always (?!{_PAST}|the\b)|never (?!{_PAST}|mind\b))[\"“']?[a-z]+
"""
"""An order opens its clause and stands in no past: what something always does, was or never did, is told."""
_RULE = _cue(
    _ALWAYS_OR_NEVER
    + r"""
    (?:you|we|they|it|must|should|shall|may|can) (?:should |must |may |can )(?:always|never) [a-z]+
    from now on|going forward|at all times|under no circumstances|(?:must|may|shall) not|mustn't|by default
    (?:keep|bear) (?:(?:that|this|it) )?in mind|(?<!i )remember (?:that|this|i|my|we)
    (?:every|each) time (?:i|you|we)|stop (?:giving|showing|telling|asking|sending|calling) me
    (?<!you )(?<!we )(?<!i )must (?:start|begin|end|contain|include|carry|mention)
    (?<!you )(?<!we )(?<!i )must be (?:signed|approved|reviewed|written)
    (?:titles?|messages?|names?|invoices?|subjects?|tickets?) (?:need|must have) (?:the|a) (?:prefix|suffix|number)
    write (?:the |all |any |my |our )?[a-z]+s(?: to .{1,20})? in (?:english|german|french|spanish|italian|chinese)
    (?:do not|don'?t|dont) (?:ever|tell|show|use|put|post|mention|share|send|call|touch|write|include)
    (?:do not|don'?t|dont) (?!(?:\w+ ){1,4}yet)(?:log|contact|deploy|push|commit|merge|delete|offer|suggest|book|sign)
    (?:do not|don'?t|dont) (?!(?:\w+ ){1,4}yet)(?:store|print|publish|ring|phone|text|e?mail|wake|interrupt)
    (?:do not|don'?t|dont) leave (?:me )?(?:any |a )?(?:voice ?mails?|voice messages?|messages?)
    (?:we|i) (?:only |all )?use [a-z][\w.+#-]+,? (?:and )?not [a-z][\w.+#-]+
    (?:explain|show|give)(?: [\w']+){1,6} first
    (?:do not|don'?t|dont) (?:quote|bring|start|end)
    only (?:ever )?(?:answer|reply|use|write|contact|call|speak|suggest|book|send|inside|within|after|before)
    (?:^|(?<=[,.;:!] )|(?<=please ))only (?:order|buy|take|choose|recommend|show)
    (?<=, )(?:always|ever|every time|each time)(?=[.!]*$)
    (?:please |pls )?(?:answer|reply|respond|write|speak)(?: to)?(?: me)?(?: only)? in [a-z]+
    make sure (?:you|that you|to) (?:always|never)|for (?:all|every|any) (?:future|further|answers?|repl(?:y|ies))
    no [a-z ]{2,20} (?:pls|please|ever)|in (?:all|every) (?:answers?|repl(?:y|ies)|messages?|emails?|letters?)|call me
    keep (?:your |the |all )?(?:answers?|repl(?:y|ies)|responses?|explanations?|summar(?:y|ies)|emails?) [a-z0-9]+
    (?:shorter|briefer|longer|simpler|more (?:concise|detailed|formal)) (?:answers?|repl(?:y|ies)|responses?)
    (?:use|write|format|name|sign|start|end|keep|put|give|add) [^.?!]{1,60} (?:in|for|on|to|with) (?:every|each) [a-z]+
    (?:ask|tell|warn|check with) (?:(?:me|us) )?(?:first )?before (?:you )?[a-z]+
    from here on|without exception|no exceptions
    (?:every|each) [a-z]+(?: [a-z]+)? (?:gets?|needs?|must|has to|should|starts?|ends?)
    [a-z]+s always (?:with|in|as|without)
    write (?:the |all |any |my |our )?(?:[a-z]+ ){0,2}[a-z]+s in (?:english|german|french|spanish|italian|chinese|dutch)
    """,
    """
    以后.{0,14}(?:都|别|不要|请|一律|要|先|只|不|提前)|从(?:现在|今天|今)(?:起|开始)|今后|一律|永远|始终
    (?:^|(?<=[，。；：,;]))(?:请|以后)?每次.{0,10}(?:都|请|用|先|要)|(?:^|(?<=[，。；：,;\\s请]))一直(?:用|要|以|按|给|保持|称|叫|都)|请(?:一直|始终|总是|务必|勿|不要|别|只|叫)|切勿|务必|千万|绝对?(?:不|别)
    任何时候|(?:无论|不管|不论).{1,14}都|凡是|记住|牢记|(?:不要|别|(?<!能)不能|不得|不准|禁止|不可|不许|勿)(?:在|把|给|用|提|问)
    (?:不要|别|(?<!能)不能|不得|不准|禁止|不可|不许|勿)(?:叫|说|出现|打印|泄露|透露|发|写|自动|直接|擅自|动|碰|联系|打电话|加)
    (?<![我他她它们])只(?:用|能用|许|在|(?:订|买|坐)(?![了过一二两三四五\\d]))|(?<!已经)统一(?:用|使用|写成|按)|(?:用|以)(?:中文|英文|英语|日语|德语|法语|繁体)|叫我|称呼我
    (?:回答|回复|答复|说话|解释).{0,6}(?:[短长]|简[短洁单明]|精简|详细|正式|口语化?|通俗)一?[点些]|(?:回答|回复|答复)[^，。]{0,8}(?:别|不要|请|先)|别.{0,2}啰嗦
    """,
)
_PERSONAL = _cue(
    """
    (?<!not )(?<!n't )(?<!no )(?<!without )allerg\\w+|intoleran\\w+|gluten[- ]free|lactose|pacemaker
    vegetarians?|vegans?|veggie|c(?:o)?eliac|diabet\\w+|pregnant|halal|kosher|asthma\\w*|epilep\\w+
    (?:can'?t|cannot|mustn'?t|may not|doesn'?t|don'?t|must not) (?:eat|drink|stand|hear|walk|drive|climb|swim)
    (?:can'?t|cannot) do (?:stairs|heights|dairy|gluten|lifts|crowds)|i go by [A-Z][a-z]+
    no (?:red )?(?:meat|pork|beef|dairy|nuts|fish|alcohol|sugar) for (?:me|us|him|her|them)
    wheelchair|(?:bad|weak|sore) (?:knees?|hips?|hearts?)|slipped dis[ck]
    (?:blind|deaf|left-handed|colou?r-?blind)|my name(?:'s| is)|i'm called|my pronouns
    i(?:'m| am) (?:a|an) (?!bit|little|fan|idiot|lot)[a-z]+|i(?:'m| am) (?:from|based)
    i (?:live|work) (?:in|at|as|for|from)
    i (?:strongly |much )?prefer|i hate|i can'?t stand
    my (?:birthday|wife|husband|partner|son|daughter|kids?|email|phone|address|time ?zone)(?:'s| is| are)
    my (?:mother|father|doctor|boss)(?:'s| is| are)
    """,
    """
    (?<![不没])(?<!没有)过敏|不耐受?|忌口|不吃|不能吃|不喝|不能喝|素食|吃素|清真|糖尿病|怀孕|孕妇|高血压|血[压糖](?:有点|很|偏|太)?高|心脏病|支架|痛风|晕[车船机]|哮喘|色盲|左撇子|轮椅
    (?:膝盖|腰|腿脚?|心脏|眼睛|耳朵)(?:都|也|一直|有点)?不(?:好|行|便|方便)|不能(?:爬山|爬楼|久站|久坐|走远)
    我(?:叫|姓)[^你他她了]|我是(?:一|个|名|做|搞|学|程序|医|老师|产品|设计|左)|我住|我家在|我在.{1,10}(?:工作|上班|上学|读)
    我的?(?:生日|邮箱|电话|手机号?|地址)|我更?(?:喜欢|偏好|习惯)(?!了)|我(?:不喜欢|讨厌|害怕|怕)
    我的?(?:老婆|老公|妻子|丈夫|儿子|女儿|妈妈?|爸爸?)(?:叫|是|对|有)
    """,
)
_ASKED_OF_PERSON = _cue(
    """
    allerg\\w+|intoleran\\w+|diet(?:ary)?|vegetarian|vegan|pregnant|medical conditions?
    (?:can'?t|cannot|don'?t|do not|not) (?:eat|drink|have)|(?:should|shall|may|can|do) (?:i|we) (?:call|address) you
    your (?:first |last |full )?name
    """,
    """
    过敏|忌口|不能吃|不吃|吃素|怀孕|慢性病|怎么称呼|如何称呼|贵姓|您的?姓名|请问姓名
    """,
)
_DENIAL = _cue(
    """
    no(?:t|ne|pe|thing|body)?|never|i don'?t|don'?t think
    """,
    """
    没有?|不|无
    """,
    at_start=True,
)
_EXCEPT = _cue("only|just|but|except|apart from", "只|但|除了")
_DONE = _cue(
    """
    booked|moved|changed|noted|saved|activated|created|sent|shipped|closed|opened|refunded|confirmed|deployed|pushed
    done|merged|fixed|updated|cancell?ed|scheduled|ordered|reserved|added|removed|installed|registered|issued|extended
    """,
    """
    已(?:经)?(?!经?到|读|收).|记下|完成
    """,
)
# Most sentences hold none of these, which is asked much faster than what the patterns ask.
_RULE_SIGNS = tuple(
    "always|never|stop |must |prefix|suffix|number|from now|going forward"
    "|at all times|no circumstances|must not|may not|shall not|mustn|default|in mind"
    "|remember|every time|each time|do not|don't|dont|only |answer|reply|respond|write|speak|make sure|for all"
    "|for every|for any|please| pls| ever| not | first|in all |in every|call me|keep |shorter|briefer|longer|simpler"
    "|more |every |each |before|exception|from here".split("|")
)
_PERSONAL_SIGNS = tuple(
    "allerg|intoleran|vegetarian|vegan|veggie|eliac|diabet|pregnan|halal|kosher|asthma|epilep|n't |nt |cannot| not "
    "|wheelc|blind|deaf|handed|my |bad |weak |sore |slipped |i'm |i am |i live|i work|prefer|i hate|stand|i go by"
    "|gluten|lactose|pacemaker|no meat|no red|no pork|no beef|no dairy|no nuts|no fish|no alcohol|no sugar".split("|")
)
_REVISION_SIGNS = tuple(
    "instead|rather|chang|longer|any more|anymore|no more|cancel|scrap|call|switch|mov|push|postpon|shift|delay|not "
    "|put|placed|gave|can only|slip|can't|cant "
    "|after all|thought|forget|mind|drop|work|now|off|booked|rais|lower|increas|reduc|extend|bump|renam|make |back to"
    "|turn|again|gone|through|freeze|stop |wait|scratch|correction|meant|sorry|typo|wrong|mist|miss|mish|misr".split(
        "|"
    )
)
_REVOCATION_SIGNS = ("again", "normally", "anymore", "any more", "stop ", "longer", "back to", "forget ")


def _may_hold(sentence: str, signs: Sequence[str]) -> bool:
    if not sentence.isascii():
        return True
    lower = sentence.lower()
    return any(sign in lower for sign in signs)


_OTHERS_EN = (
    r"(?:(?:my|our|his|her|their|the(?! user\b)|an?|some|one of (?:my|our|the)) (?:[\w'-]{1,20} ){1,3}?"
    r"|(?:he|she|they|someone|somebody|people|mum|mom|dad|gran|grandpa|grandma)[ '])"
)
_OTHERS_ZH = (
    "(?:我们?(?:的|家的?)?|他们?的?|她们?的?|有个?|那个|一个|隔壁的?)?(?:他们?|她们?|人家|别人|有人|网友|对方"
    "|(?:(?![我你您以今每给和跟别不请把对叫让帮用])[\u4e00-\u9fff]){0,3}(?:朋友|男友|女友|老婆|老公|妻子|丈夫|妈妈?|爸爸?|哥哥?|姐姐?|弟弟?|妹妹?|爷爷|奶奶|外婆|外公|姥姥|姥爷|儿子|女儿"
    "|孩子|同事|同学|室友|邻居|老板|领导|经理|主管|客户|老师|导师|医生|律师|师傅|闺蜜|对象|房东|阿姨|叔叔|舅舅|姑姑|总))"
)
_REPORTS = re.compile(
    r"^\[?\d{1,2}:\d\d(?::\d\d)?\]? (?!(?i:me|i|user)\b)[^:\n]{1,30}: "
    rf"|(?:^|[,.;!?，。；！？“\"]\s?|\b(?i:and|but|so|because|as|well|btw)\s)(?i:{_OTHERS_EN})"
    r"(?i:(?:'s |has |had |have |just |also |once |always |often |usually |keeps? ){0,3}"
    r"(?:sa(?:id|ys?|ying)|told|tells?|wrote|writes?|thinks?|thought|claims?|insist\w*|suggest\w*|recommend\w*|ask(?:s|ed)"
    r"|wants?|wanted|likes?|prefers?|answer\w*|repl(?:y|ies|ied)|texted|speaks?|talks?|responds?|calls? me|: ?))"
    r"|^(?i:my|our) [\w' ]{2,25}: ?[\"“]|\b(?i:according to)\b"
    rf"|(?:^|[，。；！？,.;!?：:“\s]|但是?|可是?|因为|听)(?:{_OTHERS_ZH})"
    "(?:刚才?|昨天|今天|总|老|也|都|一直|常常?|经常|平时|就|还|跟我|对我|和我){0,3}"
    "(?:说|讲|告诉|认为|觉得|要求|建议|希望|写道|表示|叫我|喊我|称呼?我|让我|[用吃爱喜]|：|:)"
)
_ADVICE = re.compile(
    rf"(?:\b(?i:{_OTHERS_EN})|(?<![\w'])[A-Z][a-z]+(?:'s [a-z]+)? )(?:(?:also|once|always|would|just) ){{0,2}}"
    r"(?:(?:suggest|recommend|advis|propos|think|thought|believ|prefer|argu)\w*|sa(?:ys?|id) (?:we|i) should)[^,;.!?]*"
    rf"|{_OTHERS_ZH}(?:也|还|都|一直|总是?){{0,2}}(?:建议|推荐|认为|觉得|劝我?|主张)[^，。；！？]*"
)
_MOVED_FROM = re.compile(
    r"(?i:\bfrom) (?P<en>[^,.;!?]{1,40}?) (?i:to|until)\b"
    r"|(?:从|由)(?P<zh>[^，。；！？]{1,16}?)(?:改|换|挪|移|推|提|调|延|降|涨|加|减|升)"
)
_RESUMES = re.compile(
    r"[,.;!?] ?(?i:(?:so|therefore|please|but|that's why|hence)\b)|[\s，。；！,.;]?(?:所以|因此|请|但是?|不过)"
)
_LONGEST_ORDER = 400


def without_others_words(sentence: str) -> str:
    """The sentence without what it tells of what somebody else says, wants or does, which orders nothing and ends
    nothing: to its end, or to where the speaker draws a conclusion. A longer text is given back as it is."""
    if len(sentence) > _LONGEST_ORDER:
        return sentence
    own, at = "", 0
    while report := _REPORTS.search(sentence, at):
        own += sentence[at : report.start()]
        resumed = _RESUMES.search(sentence, report.end())
        if resumed is None:
            return own
        at = resumed.start()
    return own + sentence[at:]


def without_advice(sentence: str) -> str:
    """The sentence without what somebody else would do in the user's place, which changes nothing."""
    return sentence if len(sentence) > _LONGEST_ORDER else _ADVICE.sub(" ", sentence)


_PENDING = _cue(
    """
    to-?do|still (?:need|have|has|waiting|open)|not (?:yet|decided)|follow up
    remind me(?! (?:what|who|how|which|why|where|when|again)\\b)|next steps?
    pending|waiting (?:for|on)|get back to|haven't (?:yet|decided|heard|got|received|had)
    i(?:'ll| will) (?:send|check|get back|let you know|look|ask|confirm|try)
    need to (?:check|ask|confirm|decide|fix|find)
    """,
    """
    还没|待办|待会|回头|稍后|晚点|提醒我|还要|还得|暂时没|没想好|再说|再定|再看|下次
    等.{1,12}(?:回复|确认|通知|消息|结果)|没(?:定|确认|解决|搞定|回)
    """,
)
_AIM = _cue(
    """
    i(?:'d like| would like| want| need| wanna| hope| plan)|help me|my goal|we need|we want
    i(?:'m| am) (?:trying|working on|planning|building|looking|going to|thinking)
    (?:can|could|would) you|please
    """,
    """
    帮我|帮忙|请(?!假|客|吃)|(?<![她他它谁])想(?!起|到|法|象)|打算|计划|准备|需要|希望|目标|开张|要做
    """,
)
_ASKING = re.compile(
    rf"[?？]{_CLOSING}|[吗呢么不]$|没有$"
    r"|^(?i:(?:how|what|where|who)s?|why|when|which)\b"
    r"|^(?i:(?:remind|tell) me (?:again )?(?:how|what|where|who|why|when|which)\b)"
    r"|^(?i:can|could|would|should|is|are|do|does|did) (?!(?i:be|been|do|not|fine|ok|good|to)\b)"
    r"|^(?i:will|has|have|was|were|shall|may) (?i:i|we|you|he|she|it|they|there|the|this|that|my|your|our|any\w+)\b"
    r"|怎么|什么|多少|哪[个里些家种]|为啥|咋|是否|能不能|要不要|行不行|好不好|有没有|几[个天点号]"
)
_ASKS_BACK = re.compile(
    r"^(?i:(?:and|but|so|ok(?:ay)?|also|btw)[ ,]+)?"
    r"(?i:(?:how|what|where|who)s?|why|which|can|could|would|do (?:i|we|you|they)|remind me|tell me)\b"
    r"|怎么|为什么|为啥|如何|什么时候|多少钱|.{3}[吗呢]$"
)
"""Questions by their words: a question mark may only show that who answers is not sure."""
_STALLING = re.compile(
    r"(?i:(?:(?:ok(?:ay)?|oh|ah|well|so|and|just|one|a|two)[\s,.!…]+)*"
    r"(?:um+|uh+|hm+|er+|hang on|hold on|wait|sec(?:ond)?s?|min(?:ute)?s?|moment|brb|checking|thinking"
    r"|let me (?:see|think|check|look))(?:[\s,.!…]+|$))+"
    r"|(?:(?:嗯+|呃|额|等等|等一?下|稍等|等会儿?|马上|(?:我|让我)?(?:看看|想想|查查|找找|[看想查找]一下))[\s，。！,.!…哈啊哦]*)+"
)
_PROPOSAL = re.compile(
    rf"[?？]{_CLOSING}"
    r"|\b(?i:please (?:confirm|let me know)|let me know (?:if|whether|which)|would you like|shall i|do you want)\b"
    r"|请确认|要不要|可以吗|好吗|行吗|需要我"
)
_AFFIRMING = _cue(
    """
    yes|yeah|yep|yup|sure|ok(?:ay)?|please do|go ahead|sounds good|that works|correct|confirmed?|i agree|do it
    perfect|right|exactly|absolutely|that's (?:fine|right|correct)
    """,
    """
    (?:好的?|行|可以|对|是的?|没错|同意|就这样|就这么|确认|嗯|成|没问题|要)(?:[，。！、,.!\\s啊呀吧的]|$)
    """,
    at_start=True,
)
_LEAVE = _cue(
    """
    (?:(?:yes|ok(?:ay)?|yep|sure|fine|right|great|good)[ ,.!]*)?(?:do (?:it|that|so)|please do|ship it|take it)
    (?:(?:yes|ok(?:ay)?|yep|sure|fine|right|great|good)[ ,.!]*)?go(?: ahead| for it)?
    """,
    """
    (?:好的?|行|可以|嗯)?[，,。!！]?(?:同意|批准|去办吧?|办吧|弄吧|就这么办|就这样|就按这个|按这个(?:来|办))
    """,
    at_start=True,
)
_CHOICE = re.compile(
    r"(?i:\b(?:then|please|pls)[.!]*$|\b(?:confirm|book|take|order|do|get) (?:it|that|this|them|the)\b|\bit is[.!]*$"
    r"|\b(?:i|we)(?:'ll)? (?:take|accept|choose|pick|stay with|keep)\b)"
    r"|吧[。！!]?$"
)
_CHOICE_CHARS = 80
_POLITE = _cue(
    """
    hi|hello|hey|thanks?(?: you| so| a lot)?|thx|wow|awesome|cool|nice|great|amazing|congrat\\w*|haha\\w*|lol|bye
    good (?:morning|night|luck|to)|you're welcome|no (?:problem|worries)|take care|glad|aww|yay|you too
    sounds (?:good|great|fun|amazing|like)|that's (?:great|awesome|amazing|so|really|wonderful|cool|nice)
    so (?:glad|happy|proud)|i'm (?:glad|so glad|happy|so happy|sorry)|what a|keep (?:it )?up|can't wait
    talk to you|stay safe|see you|i see|understood|makes sense|absolutely|totally|definitely|of course
    """,
    """
    (?:你好|您好|谢谢|多谢|感谢|好的?|嗯+|哈+|行|收到|辛苦|不客气|没问题|恭喜)(?:[！!，。,~～啊呀吧了很\\s]|$)
    (?:加油|太好了|不错|厉害|再见|晚安|早上?好|听起来|期待)(?:[！!，。,~～啊呀吧了很\\s]|$)
    """,
    at_start=True,
)
_PRAISE = _cue(
    """
    proud of|sounds (?:great|good|fun|amazing|awesome|like)|means (?:a lot|so much)|good luck|totally agree
    so (?:glad|happy|lovely|sweet|inspiring|cool|awesome|proud)|you(?:'ll| will) (?:be|do)
    you'?(?:re| are) (?:amazing|awesome|doing|so|such|an?)|thank(?:s| you)|keep (?:on|up|it)|appreciate
    unfortunate|amazing|awesome|incredible|inspiring|wonderful|impressive|can't wait
    """,
    """
    太棒|真棒|厉害|辛苦|加油|恭喜|谢谢
    """,
)
_BOILERPLATE = _cue(
    """
    certainly|great (?:question|choice|idea)|here(?:'s| is| are) (?:a|an|the|some|how|your|what)
    hope this helps|feel free|let me know|if you have any|would you like|happy to help|glad to help|as an ai
    by following|in summary|in conclusion|to (?:achieve|do) this|follow these steps|consider the following
    don't hesitate|is there anything else|anything else i can|please provide|could you please
    i can (?:help|assist)|i understand
    (?:i'll|i will|let me|i'm going to) (?:now |first |just |also )?(?:look|check|start|see|read|open|search|try)
    """,
    """
    (?:我来|让我|我先)(?:看|查|检查|找|试|读)
    希望.{0,10}(?:帮助|有用)|如果.{0,16}(?:告诉我|随时|再问)|当然可以|以下是|下面是
    还有什么(?:需要|可以)|需要我.{0,20}吗|要不要我
    """,
)
_TELLING = _cue(
    r"""
    (?:i|we)(?:'ve| have|'m| am|'re| are)? (?:just |also |even |finally |recently )?\w+ed
    (?:i|we)(?:'ve| have)? (?:just |also |even |finally |recently )?(?:went|got|made|had|ran|met|took|saw|bought|found)
    (?:i|we)(?:'ve| have)? (?:just |also )?(?:won|lost|gave|wrote|read|built|left|began|felt|kept|heard|told|spent)
    (?:i'm|i am|we're|we are) (?:just |also |even )?(?:planning|going|starting|working|moving|thinking|looking|doing)
    (?:my|our) \w+ (?:is|are|was|were|has|have|got)
    """,
    """
    我.{0,8}[了过]|跑了|做了|去了
    """,
)
_RELATIVE_TIME = _cue(
    """
    yesterday|today|tonight|tomorrow|ago|recently|just (?:got|had|started|finished)|the other day
    (?:last|next|this|past|coming) (?:night|week|weekend|month|year|summer|winter|spring|fall|few|couple)
    monday|tuesday|wednesday|thursday|friday|saturday|sunday
    """,
    """
    [昨今明后前]天|[昨今明]晚|[上下这本]个?(?:周|星期|月|礼拜)|周[一二三四五六日末天]|星期[一二三四五六日天]
    [去今明前后]年|刚才|刚刚|最近|[一二两三四五六七八九十\\d]{1,4}(?:天|周|个月|年)(?:前|后|以后)
    """,
)


def decides(sentence: str) -> bool:
    """It settles something, or says what has been settled."""
    return _DECISION(sentence)


def is_lasting(sentence: str) -> bool:
    """It says something of the speaker that will still hold: who they are, what they want, what was wrong."""
    return _LASTING(sentence)


def is_standing(sentence: str) -> bool:
    """It orders something for all times, or tells of a person what others have to heed: an allergy, a name, a taste."""
    tells = _may_hold(sentence, _PERSONAL_SIGNS) and _PERSONAL(without_advice(sentence))
    return tells or orders_for_good(sentence)


def orders_for_good(sentence: str) -> bool:
    """It says how something is always, or never, to be done."""
    if not _may_hold(sentence, _RULE_SIGNS) or not _RULE(sentence):
        return False
    return _RULE(_QUOTED_SPEECH.sub(" ", without_others_words(sentence)))


_QUOTED_SPEECH = re.compile(
    r"(?:(?i:quote|wrote|writes|says?|said|reads)|写着|写道|说|印着)[:：,，]? ?[“\"「『][^”\"」』\n]{2,}[”\"」』]"
)


def answers_of_person(question: str, answer: str) -> bool:
    """It answers what others have to heed of a person, or how to call them, and is no plain no."""
    if not _ASKED_OF_PERSON(question) or not asks(question) or asks(answer):
        return False
    return not _DENIAL(answer) or _EXCEPT(answer)


def reports_done(sentence: str) -> bool:
    """It says that something has been done: what an assistant tells after doing it."""
    return _DONE(sentence)


def without_opening(sentence: str) -> str:
    """The sentence without the words by which people take a breath: ok so, hmm, well, 那个."""
    return _BREATH.sub("", sentence) or sentence


def is_pending(sentence: str) -> bool:
    """It leaves something to be done."""
    return _PENDING(sentence)


def revises(sentence: str) -> bool:
    """It takes something back or puts something else in its place."""
    return _may_hold(sentence, _REVISION_SIGNS) and not _SUPPOSES.match(sentence) and _REVISION(sentence)


_SUPPOSES = re.compile(r"(?i:(?:and |but |so )?(?:if|unless|wenn|falls)\b)|(?:要是|如果|万一|假如)")
"""What would be, if: it changes nothing yet."""


def taken_back(sentence: str) -> list[str]:
    """What of a sentence it says no longer holds, each thing: the seafood place of `forget the seafood place`."""
    return _groups(_TAKEN_BACK, sentence)


def moved_from(sentence: str) -> list[str]:
    """What it says was before: 30 November of `moved from 30 November to the 15th`."""
    return _groups(_MOVED_FROM, sentence)


def reverts(sentence: str) -> bool:
    """It goes back to how something was done before, or to another way of doing it."""
    return _REVERTS(sentence)


def revokes(sentence: str) -> bool:
    """It ends what was to hold for good: an order to whoever answers, or what others had to heed of the speaker."""
    return _may_hold(sentence, _REVOCATION_SIGNS) and _REVOKES(sentence)


def denied(sentence: str) -> list[str]:
    """What it says is not so: peanuts of `not peanuts, it's cashews`. It may or may not have been said before."""
    return _groups(_DENIED, sentence)


_ALLOWED = re.compile(
    r"(?i:(?:^|[,.;!?] )(?:(?:ok|okay|well|actually|so|now|and|the|your) ){0,3}(?P<en>[\w' -]{2,40}?)"
    r" (?:is|are) (?:fine|ok|okay|allowed|welcome|cool) (?:again|now)\b)"
    r"|(?i:\b(?:you|u) (?:can|may) (?:use|write|add|send|include|mention|have) (?P<can>[\w' -]{2,40}?) again\b)"
    r"|(?:又|重新|现在|以后)?可以(?:再|重新)?用(?P<zh>[^，。；！？,.;!?\s]{1,8}?)了"
    r"|(?P<before>[^，。；！？,.;!?\s可]{1,8}?)(?:又|现在|以后)?可以(?:再)?用了"
)


def allowed(sentence: str) -> list[str]:
    """What it allows again: emojis of `emojis are fine again`."""
    return _groups(_ALLOWED, sentence)


_CORRECTS = _cue(
    """
    turns out|it was|actually|correct(?:ion|ed)|i meant|sorry|typo|mistake|wrong|mis(?:typed|read|heard)
    """,
    """
    其实|原来|更正|更新[:：]|应该是|结果是|[打写输说记搞看弄听]错|口误|笔误|不对
    """,
)


def corrects(sentence: str) -> bool:
    """It puts right what was told wrong."""
    return _CORRECTS(sentence)


_ONCE = _cue(
    """
    (?:only|just) (?:for )?(?:this|next|that) (?:week|month|time|once|one|day|year|lesson|class|session|meeting)
    (?:this|next) (?:week|month|time|once) only|(?:just|only) (?:for )?(?:once|now|today)|for once|one[- ]?off|this once
    as an exception|exceptionally|just the once|an exception
    """,
    """
    (?:就|只|仅|光)(?:限|是|有)?(?:这|本|今|下)(?:一?[次回]|个?周|个?星期|个?月|天|节)|例外|临时(?:改|换|调)|仅此一次|下不为例
    """,
)
_NEAR = _cue(
    """
    (?:this|next|coming|that) (?:week|time|month|lesson|class|session|one)
    (?:this|next|coming|that) (?:mon\\w*|tue\\w*|wed\\w*|thu\\w*|fri\\w*|sat\\w*|sun\\w*)
    (?:this|next) [\\w-]+ (?:is|on|it'?s)|tomorrow|today|tonight|sick|ill
    """,
    """
    (?:这|本|下)(?:一?[次回节]|个?周|个?星期)|[今明]天|今晚|生病|请假|有事
    """,
)
_RECURS = _cue(
    """
    (?:mon|tues|wednes|thurs|fri|satur|sun)days|every|each|weekly|monthly|daily|always|usually
    """,
    """
    每[周天月个次年]|平时|一般|通常|逢
    """,
)


def is_for_once(sentence: str) -> bool:
    """What it changes is changed for once, as it says."""
    return _ONCE(sentence)


def is_of_one_time(sentence: str) -> bool:
    """It is about one time soon, and about nothing that recurs."""
    return _NEAR(sentence) and not _RECURS(sentence)


def recurs(sentence: str) -> bool:
    """It is about what happens again and again."""
    return _RECURS(sentence)


_DOUBTS = re.compile(
    rf"[?？]{_CLOSING}|\b(?i:not sure|i think|maybe|forgot|can't remember|or so|probably|roughly|iirc|idk|don't know"
    r"|something like)\b|忘了|记不清|不确定|好像|大概|可能|也许|应该是吧"
)
_SETTLES = re.compile(
    r"(?i:(?:(?:ok|oh|ah|so|found it|checked|just checked|wait|well)[,:.!]? ){0,2}(?:it'?s|it is|that's)\b)"
    r"|(?:查到了?|看了|查了)?[，,]?是"
)


def doubts(sentence: str) -> bool:
    """Who says it is not sure of it."""
    return _DOUBTS.search(sentence) is not None


def settles(sentence: str) -> bool:
    """It tells what was asked or not known before, without naming it: `it's`, 是."""
    return _SETTLES.match(sentence) is not None


_UNCHANGED = re.compile(
    r"[,;，；] ?(?:(?:and|but) )?[^,;.!?，；。！？]{1,24}?"
    r" ?(?:\b(?i:stays?(?: the same| as it is)?|remains?(?: the same)?|unchanged)|不变|照旧|还是\d[^,;，；。！？]{0,6})"
    r"(?=[,;.!，；。！]|$)"
)


def without_unchanged(sentence: str) -> str:
    """The sentence without what it says is to stay as it was: cut travel, marketing stays."""
    return _UNCHANGED.sub("", sentence)


def _groups(pattern: re.Pattern[str], sentence: str) -> list[str]:
    return [part.rstrip(_PARTICLES) for match in pattern.finditer(sentence) for part in match.groups() if part]


def aims(sentence: str) -> bool:
    """It says what is wanted."""
    return _AIM(sentence)


def asks(sentence: str) -> bool:
    """It is a question, with or without its mark: in chat, and in Chinese, the mark is often left out."""
    return bool(_ASKING.search(sentence))


def asks_back(sentence: str) -> bool:
    """It asks by its words, so it answers nothing."""
    return bool(_ASKS_BACK.search(sentence.rstrip("?？ ")))


def stalls(sentence: str) -> bool:
    """It only says that an answer will follow: ok wait, one sec, 我看看."""
    return bool(_STALLING.fullmatch(sentence.strip()))


def ends_in_question(sentence: str) -> bool:
    """It carries a question mark: the test for who writes with care."""
    return bool(_QUESTION_MARK.search(sentence))


def proposes(sentence: str) -> bool:
    """It waits for a yes, with a question mark or without."""
    return bool(_PROPOSAL.search(sentence))


def affirms(sentence: str) -> bool:
    """It opens with a yes."""
    return _AFFIRMING(sentence)


def chooses(message: str, *, is_offered: bool) -> bool:
    """A message that settles something in so few words that who answers has to say what; a yes does where something
    was offered."""
    text = message.strip()
    if len(text) > _CHOICE_CHARS or asks(text):
        return False
    if affirms(text) or gives_leave(text):
        return is_offered
    return bool(_CHOICE.search(text)) or decides(text) or revises(text)


_ACKNOWLEDGES = re.compile(
    r"(?:(?i:ok(?:ay)?|noted|sure(?: thing)?|(?:i )?will do|understood|got it|of course|certainly|good to know"
    r"|thanks?(?: you)?|great|good|fine|perfect|all ?right|no problem|i(?:'ll| will) remember(?: that)?)[\s,.!]*"
    r"|(?:好的?|已?(?:记录|记下|记住|收到)了?|记好了?|明白了?|嗯+|行|没问题|知道了|了解了?|不客气)[\s，。！,.!]*)+"
)


def acknowledges(message: str) -> bool:
    """It only says that something was heard: noted, 已记录."""
    return _ACKNOWLEDGES.fullmatch(message.strip()) is not None


def gives_leave(sentence: str) -> bool:
    """It approves what was said just before, as a question or not."""
    return _LEAVE(sentence)


def is_polite(sentence: str) -> bool:
    """It greets, thanks or cheers."""
    return _POLITE(sentence)


def praises(sentence: str) -> bool:
    """It answers somebody's news with warmth, which tells nothing new."""
    return _PRAISE(sentence)


def is_boilerplate(sentence: str) -> bool:
    """It is what an answer says around its content."""
    return _BOILERPLATE(sentence)


def reports_event(sentence: str) -> bool:
    """The speaker reports what they did or are about to do."""
    return _TELLING(sentence)


def is_relative_in_time(sentence: str) -> bool:
    """It can be dated only from the day it was said."""
    return _RELATIVE_TIME(sentence)
