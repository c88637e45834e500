"""Names, in English and in Chinese text.

English: capitalised words that the place in the sentence does not explain. A word at the start of a sentence, in a
heading or in a line set in title case says nothing by its capital, so it counts only as part of a longer name.

Chinese has neither capitals nor spaces, so each rule asks for two signs at least, because every surname is also the
beginning of ordinary words (高兴, 马上, 周末): a surname and a word that only people have beside them, or a suffix of
places and a word of being or going before it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from everthread.text.fact_rule import FactRule, Match, fact_rule

# At most eight parts: each one behind an `&` may begin a name, and would be read to the end of the text.
_WORD = r"[A-Z][A-Za-zÀ-ÿ0-9]*(?:['’&-][A-Za-zÀ-ÿ0-9]+){0,8}"
_RUN = re.compile(rf"(?<![\w@#/.'’-]){_WORD}(?: (?:of the|of|de|van|von|&|la|del) {_WORD}| {_WORD}){{0,5}}(?![\w@/])")
_HEADING = re.compile(r"^\s*#{1,6}\s")
_LABEL = re.compile(
    r"^\s*+(?:(?:[-*+•]|\d{1,3}[.)])\s*+)?(?:\*\*|__)[^*_\n]{1,80}(?:\*\*|__)\s*:?"
    r"|^\s*+(?:[-*+•]|\d{1,3}[.)])\s*[^:\n]{1,50}:"
)
_ANY_WORD = re.compile(r"[A-Za-z][A-Za-z'’-]*")
_BEFORE_START = re.compile(r"(?:^|[.!?:。！？：…\n•*_>#\"“”‘(\[|])[\s*_\"“‘(\[]*$|(?:^|\n)\s*(?:[-+]|\d{1,3}[.)])\s+$")
_LOOK_BACK_CHARS = 12

# Words whose capital is grammar or custom, not a name. Days and months alone date nothing.
NOT_NAMES = frozenset(
    """
    a about after again ah all also alright although am an and another any anyway apart are as at awesome based
    because before being besides best both btw but by bye can certainly check click congrats congratulations
    consider could cool create day dear definitely did do does done each either else ensure especially even
    every everyone exactly example feel few finally first follow for from further furthermore get give go good
    got great had happy has have having he hello help her here hey hi his how however i if implement import in
    include including indeed instead is it its just keep last let lets like look lot love make many may maybe me
    more most moreover my never next nice no none nope not note now of off oh ok okay on once one only open or
    other our out over overall perfect perhaps please put really regarding remember right run same second see
    set shall she should similarly since so some something sometimes soon sorry sounds step still sure take test
    than thank thanks that the their them then there therefore these they third this those though thus to today
    together tomorrow tonight too try two update use using very was way we well were what whatever when where
    whether which while who why will with without would wow yeah yep yes yesterday yet you your monday tuesday
    wednesday thursday friday saturday sunday january february march april june july august september october
    november december jan feb mar apr jun jul aug sep sept oct nov dec mon tue wed thu fri sat sun i'm i'd i'll
    i've it's that's there's here's let's what's who's how's he's she's we're we've we'll you're you've you'll
    they're don't doesn't didn't isn't can't won't mr mrs ms dr am pm true false null id ids aww yay yo whoa
    woah woohoo haha omg lol ooh gosh hmm dude bro
    """.split()
)


def find_names(line: str) -> Iterator[tuple[int, int]]:
    """Where names stand in a line, in its order, as (start, end)."""
    names_from = _after_label(line)
    for run in _RUN.finditer(line, names_from):
        start, end = _without_ordinary_words(line, run.start(), run.end())
        if start >= end:
            continue
        if start != run.start() or " " in line[start:end] or not _opens_a_sentence(line, start):
            yield start, end


def _after_label(line: str) -> int:
    """Where in a line names begin to mean something: behind its label, at its end if it is a title."""
    label = _LABEL.match(line)
    start = label.end() if label else 0
    return len(line) if _is_titled(line[start:]) else start


def _without_ordinary_words(line: str, start: int, end: int) -> tuple[int, int]:
    """The run without words at its edges that are no names: "Thanks Mel" is "Mel"."""
    if line[start:end].endswith(("'s", "’s")):
        end -= 2
    words = line[start:end].split(" ")
    while words and words[0].lower().replace("’", "'") in NOT_NAMES:
        start += len(words.pop(0)) + 1
    while words and words[-1].lower().replace("’", "'") in NOT_NAMES:
        end -= len(words.pop()) + 1
    return (start, min(end, len(line))) if words and len(" ".join(words)) > 1 else (end, end)


def _opens_a_sentence(line: str, start: int) -> bool:
    return bool(_BEFORE_START.search(line[max(0, start - _LOOK_BACK_CHARS) : start]))


def _is_titled(line: str) -> bool:
    if _HEADING.match(line):
        return True
    words = [word for word in _ANY_WORD.findall(line[:200]) if len(word) > 3]
    return len(words) > 4 and sum(word[0].isupper() for word in words) > 0.8 * len(words)


_HAN = r"[\u4e00-\u9fff]"
SURNAMES = (
    "王李张刘陈杨黄赵周吴徐孙马朱胡郭何高林罗郑梁谢宋唐许韩冯邓曹彭曾肖田董袁潘于蒋蔡余杜叶程苏魏吕丁任沈姚卢姜崔"
    "钟谭陆汪范金石廖贾夏韦付方白邹孟熊秦邱江尹薛闫段雷侯龙史陶黎贺顾毛郝龚邵万钱严覃武戴莫孔向汤"
)
_LONG_SURNAMES = "欧阳|司马|上官|诸葛|皇甫|尉迟|慕容|令狐|司徒|夏侯"
_TITLES = "总|工|老师|医生|大夫|经理|主任|教授|律师|师傅|先生|女士|阿姨|叔叔|姐|哥|导|院长|校长|同学|护士|教练"
_INTRODUCED_BY = (
    "叫|我是|姓名[:：]?|联系人[:：]?|同事|朋友|室友|老婆|老公|儿子|女儿|闺蜜|导师|客户|设计师|工长|房东|邻居"
)
_PLACES = (
    "(?<![城超夜])市|(?<!地)区|县|街道|大街|大道|机场|大学|学院|中学|小学|医院|银行|公司|酒店|宾馆|小区|花园|公园"
    "|博物馆|图书馆|地铁站|火车站|高铁站"
)
# Characters that end a Chinese name on its left: verbs of going and being, particles, pronouns.
_NOT_IN_NAME = "的了在去到从住是和与跟给把被让叫就也还我你他她它们这那有没不说要想会能很吧呢吗啊来回往于对为以及或个一"
_NOT_IN_GIVEN = f"{_NOT_IN_NAME}又已再先都只刚才总常老大家先生女士姐哥工都并却将请问讲答谈"
_GIVEN = rf"(?:(?![{_NOT_IN_GIVEN}]){_HAN}){{1,2}}"
_NAME_ENDS = r"(?=[，。、,；;：:\s（(!！?？]|$|说|是|的|在|来|去|和|跟|也|给|负责)"
_SAYING = (
    "说|表示|认为|觉得|提到|提醒|告诉|建议|推荐|回复|回答|答应|同意|反对|负责|通知|强调|解释|抱怨|承诺|发来|打电话|打来"
)
_BEFORE_NAME = (
    rf"(?:(?<!{_HAN})|(?<=[听据跟和与问让给找但而请])|(?<=因为)|(?<=刚才)|(?<=今天)|(?<=昨天)|(?<=后来)|(?<=不过))"
)
ORDINARY_WORDS = frozenset(
    """
    高兴 高手 高度 高中 高层 高考 马上 马路 方便 方法 方案 方面 方向 周末 周一 周二 周三 周四 周五 周六 周日
    周围 周期 任何 任务 任意 何必 何况 何时 白天 万一 黄金 金额 金融 石头 石油 江湖 江西 江苏 严重 严格 程序
    程度 余下 余额 段落 雷达 龙头 史上 向来 于是 许多 许久 钱包 毛病 莫非 莫名 武汉 武术 顾客 顾问 陶瓷 夏天
    夏季 范围 陆续 陆地 叶子 苏州 杜绝 董事 田地 曾经 谢谢 罗列 罗马 胡乱 胡说 孙子 陈述 陈列 张开 张口 李子
    王者 王国 钟头 沈阳 付款 付费 付出 熊猫 黎明 戴上 肖像 温度 成功
    """.split()
)
_CITIES = (
    "北京|上海|天津|重庆|广州|深圳|杭州|南京|苏州|成都|武汉|西安|郑州|长沙|青岛|济南|宁波|无锡|厦门|福州|合肥|昆明|大连|沈阳"
    "|哈尔滨|长春|石家庄|太原|南昌|南宁|贵阳|海口|三亚|兰州|西宁|银川|乌鲁木齐|拉萨|呼和浩特|珠海|东莞|佛山|温州|绍兴|嘉兴"
    "|常州|南通|扬州|徐州|烟台|洛阳|桂林|丽江|香港|澳门|台北|东京|大阪|京都|首尔|新加坡|曼谷|巴黎|伦敦|纽约|柏林"
)
_NO_PLACE = "[哪几多某每各先看怎]|附近|上家|上次|家航空"
_AT = "在|去|到|住|从|来自|位于|前往|途经|飞|回"


def _is_no_word(match: Match) -> bool:
    """The first two characters are no ordinary word, so the surname is one."""
    return match["fact"][:2] not in ORDINARY_WORDS


def _is_no_common_place(match: Match) -> bool:
    return not re.search(r"(?:网站|马路|公路|铁路|半路|一路|路口|后山|本省|全省|全州)$", match["fact"])


PLACES: tuple[FactRule, ...] = (
    fact_rule("name", "chinese", rf"(?!{_NO_PLACE})(?:(?![{_NOT_IN_NAME}]){_HAN}){{2,6}}(?:{_PLACES})"),
    fact_rule(
        "name",
        "chinese",
        rf"(?:{_AT})(?P<fact>(?:(?![{_NOT_IN_NAME}]){_HAN}){{2,4}}(?:省|州|镇|村|路|街|巷|岛|山|湖|港|湾|寺|桥|站|广场|大厦))"
        r"(?![上下中里边口长])",
        guard=_is_no_common_place,
    ),
)

PEOPLE: tuple[FactRule, ...] = (
    fact_rule(
        "name",
        "chinese",
        rf"(?:老[{SURNAMES}]|小(?!程序|于|龙虾|白菜|方桌|马路|高层|石子|金额)[{SURNAMES}]"
        rf"|阿(?!姨|里|富汗|根廷|拉|尔){_HAN})(?!{_HAN}?[师板家乡])",
    ),
    fact_rule("name", "chinese", rf"[{SURNAMES}](?:{_TITLES})(?![程作具人业资])"),
    fact_rule("name", "chinese", rf"(?:{_INTRODUCED_BY})(?P<fact>[{SURNAMES}]{_HAN}{{1,2}}?){_NAME_ENDS}"),
    fact_rule(
        "name",
        "chinese",
        rf"(?:名叫|名字叫|名字是|起名叫|小名叫?|昵称叫?)(?P<fact>(?:(?![{_NOT_IN_NAME}]){_HAN}){{2,3}}){_NAME_ENDS}",
    ),
    fact_rule(
        "name", "chinese", rf"(?<![百老同贵随复改])姓(?:[{SURNAMES}]|{_LONG_SURNAMES})(?=[，。、的,；;\s!！?？是]|$)"
    ),
    fact_rule(
        "name", "chinese", rf"(?:(?<!{_HAN})|(?<=[叫是听跟和]))(?P<fact>(?:{_LONG_SURNAMES}){_GIVEN}){_NAME_ENDS}"
    ),
    fact_rule(
        "name",
        "chinese",
        rf"{_BEFORE_NAME}(?P<fact>[{SURNAMES}]{_GIVEN})(?=(?:也|又|还|都|刚|刚才|今天|昨天|已经|那边)?(?:{_SAYING}))",
        guard=_is_no_word,
    ),
    fact_rule("name", "list comma", rf"(?<=、)(?:(?![{_NOT_IN_NAME}又已再先]){_HAN}){{2,3}}(?=[、，。；！？\s]|$)"),
    fact_rule("name", "chinese", rf"(?:{_CITIES})(?!路|菜|话|人|烤鸭)"),
)
