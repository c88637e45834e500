"""What people tell of themselves: found where it is told, and nowhere else."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from everthread.recall.memory_rules import RULES, extract_by_rules, statements
from everthread.recall.memory_wording import Rule

TOLD = {
    "My name is Max.": "The user's name is Max.",
    "Hi! my name is max": "The user's name is max.",
    "Call me Ishmael.": "The user wants to be called Ishmael.",
    "please just call me Bob, thanks": "The user wants to be called Bob.",
    "I'm severely allergic to shellfish": "The user is allergic to shellfish.",
    "I’m not allergic to nuts anymore": "The user is not allergic to nuts.",
    "I am vegan": "The user is vegan.",
    "I prefer tea over coffee": "The user prefers tea over coffee.",
    "I don't eat pork": "The user doesn't eat pork.",
    "My favourite color is green": "The user's favourite color is green.",
    "By the way, I'm from Chile.": "The user is from Chile.",
    "I moved to Tokyo last year": "The user lives in Tokyo.",
    "I work at Siemens": "The user works at Siemens.",
    "I'm a software engineer at a bank": "The user is a software engineer.",
    "I am 34 years old": "The user is 34 years old.",
    "My dog's name is Rex": "The user's dog is called Rex.",
    "my email is max@example.com": "The user's email: max@example.com.",
    "From now on, answer in French.": "From now on, answer in French",
    "never use emojis in your answers": "never use emojis in your answers",
    "Remember that the plan is due on Friday": "the plan is due on Friday",
    "remember: I take my coffee black": 'The user said: "I take my coffee black".',
    "I can't eat gluten": "The user can't have gluten.",
    "i only drink decaf": 'The user said: "i only drink decaf".',
    "my passport expires 2025-12-03.": 'The user said: "my passport expires 2025-12-03".',
    "Please remember that I live in Berlin": "The user lives in Berlin.",
    "我叫小明": "用户的名字是小明。",
    "叫我老王就行": "用户希望被称为老王。",
    "以后叫我阿强吧": "用户希望被称为阿强。",
    "我对花生过敏": "用户对花生过敏。",
    "我从小对花生和虾都严重过敏": "用户对花生和虾过敏。",
    "我青霉素过敏": "用户对青霉素过敏。",
    "我奶奶对花生过敏。": "用户说：“我奶奶对花生过敏”。",
    "我爸爸海鲜过敏": "用户说：“我爸爸海鲜过敏”。",
    "我对象对花生过敏": "用户说：“我对象对花生过敏”。",
    "I'm allergic to my cat": 'The user said: "I\'m allergic to my cat".',
    "My doctor said I'm allergic to dust": "The user is allergic to dust.",
    "医生说我对尘螨过敏": "用户对尘螨过敏。",
    "医生说我对尘螨不过敏，以前误诊了": "用户对尘螨不过敏。",
    "我喜欢喝茶": "用户喜欢喝茶。",
    "我不吃香菜": "用户不吃香菜。",
    "我最喜欢的颜色是蓝色": "用户最喜欢的颜色是蓝色。",
    "我搬到了杭州": "用户住在杭州。",
    "我是一名程序员": "用户是程序员。",
    "我在腾讯工作": "用户在腾讯工作。",
    "我是上海人": "用户是上海人。",
    "我儿子叫小宝": "用户的儿子叫小宝。",
    "记住，我的生日是5月3日": "用户的生日是5月3日。",
    "请记住我下周要去北京出差": "用户说：“我下周要去北京出差”。",
    "我对虾过敏, 而且 Paul is vegetarian。": "用户说：“我对虾过敏, 而且 Paul is vegetarian”。",
    "以后请用中文回答": "以后请用中文回答",
    "我搬到上海了": "用户住在上海。",
    "不要再用表情符号了": "不要再用表情符号了",
    "请别再给我推荐海鲜": "请别再给我推荐海鲜",
}

NOT_TOLD = """
What is my name?
Call me back later
call me when you are done
I like it
I like the second option.
I like how you write
She said my name is Ann
If my name is Max, what then?
Translate: my name is Max
user: my name is Max
> I like tea
`my name is Max`
my name is on the list
my name is not important
Do you remember that film?
remember to call mom
Never mind.
Always happy to help
I'm a bit confused
I'd like a table for two
I love you
I work for you
I live in fear of bugs
Imagine I live in Rome
我叫了外卖
我叫他过来
我叫车去机场
以后再说
以后我会告诉你
我喜欢这个
我喜欢的人不喜欢我
你记住了吗？
我记得那部电影
如果我叫小明呢
别再说了
不要再这样了
我住得很远
i'm allergic to doing dishes lol
I'm allergic to small talk
我对加班过敏
Remember that I never said this
记住我没说过这话
I can't eat another bite
只要提到钱他就生气
My colleague said: always answer in French.
My friend: call me Bob
My doctor said I'm allergic to dust, but I think he's wrong
The doctor says I'm allergic to dust. I don't believe him.
医生说我对尘螨过敏，但我觉得他错了
医生说我对尘螨过敏，但我不信
I'm allergic to my boss.
I'm allergic to his jokes
I'm allergic to lawyers
我对老板过敏
我男朋友叫我小猪
我妈妈叫弟弟吃饭
我叫苦连天
我叫醒了孩子
我爸爸说海鲜过敏
我大姨对芒果过敏
我发小花粉过敏
我妈说我对花生过敏
我可能对花生过敏
我和我弟都对花生过敏
我鼻子过敏
""".strip().splitlines()


@pytest.mark.parametrize(("said", "remembered"), TOLD.items())
def test_what_is_told_is_remembered_in_words_that_stand_alone(said: str, remembered: str) -> None:
    assert [remark.text for remark in extract_by_rules(said)] == [remembered]


@pytest.mark.parametrize("said", NOT_TOLD)
def test_what_is_asked_quoted_supposed_or_of_the_moment_is_not(said: str) -> None:
    assert extract_by_rules(said) == []


@pytest.mark.parametrize(
    "said", ["My password is hunter2", "Remember that my api key is sk-123", "我的密码是123456", "记住：银行卡号6222"]
)
def test_a_secret_is_never_remembered(said: str) -> None:
    assert extract_by_rules(said) == []


def test_several_things_are_told_in_one_breath() -> None:
    told = extract_by_rules("Hi! My name is Anna Karenina and I live in Moscow. I love opera, but I hate trains.")
    assert [remark.text for remark in told] == [
        "The user's name is Anna Karenina.",
        "The user lives in Moscow.",
        "The user loves opera.",
        "The user hates trains.",
    ]
    assert [remark.subject for remark in told] == ["name", "home", "taste: opera", "taste: trains"]
    assert [remark.text for remark in extract_by_rules("你好，我叫李雷，我住在上海。")] == [
        "用户的名字是李雷。",
        "用户住在上海。",
    ]
    assert [remark.text for remark in extract_by_rules("我叫李雷，住在杭州，喜欢爬山。")] == [
        "用户的名字是李雷。",
        "用户住在杭州。",
        "用户喜欢爬山。",
    ]
    assert [remark.text for remark in extract_by_rules("我儿子叫小宝，住在杭州。")] == [
        "用户说：“我儿子叫小宝，住在杭州”。"
    ]


def test_what_was_denied_or_changed_is_about_the_same_subject() -> None:
    for one, other in (
        ("I live in Paris", "I moved to Berlin"),
        ("I love tea", "I hate tea"),
        ("I'm allergic to nuts", "I'm not allergic to nuts"),
        ("我叫小明", "我的名字是小红"),
        ("我喜欢香菜", "我不喜欢香菜"),
    ):
        assert extract_by_rules(one)[0].subject == extract_by_rules(other)[0].subject


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.sample)
def test_every_rule_finds_its_sample_through_all_gates(rule: Rule) -> None:
    (statement,) = statements(rule.sample)
    fitting = (one for one in RULES if (match := one.pattern.match(statement)) and one.build(match) is not None)
    assert next(fitting) is rule, "an earlier rule takes what this one is for"
    assert extract_by_rules(rule.sample), "a gate stops what this rule is for"


@pytest.mark.parametrize(
    ("said", "remembered"),
    [
        ("works!! thx. never push to main without asking me", ["never push to main without asking me"]),
        ("lol nice. im allergic to kiwis btw", ["The user is allergic to kiwis."]),
        ("太好了！我住在厦门", ["用户住在厦门。"]),
        ("btw我住在上海, I work as a nurse at 华山医院", ["用户住在上海。", "The user works as: nurse at 华山医院."]),
        ("turns out I'm not allergic to nuts", ["The user is not allergic to nuts."]),
        ("forget the nut thing, the doctor says I'm not allergic to nuts", ["The user is not allergic to nuts."]),
        ("we moved, I live in Berlin now", ["The user lives in Berlin."]),
        ("great danes, I love", []),
        ("牛肉我不吃", []),
    ],
)
def test_what_is_said_before_it_does_not_decide_what_is_remembered(said: str, remembered: list[str]) -> None:
    assert [memory.text for memory in extract_by_rules(said)] == remembered


@pytest.mark.parametrize(
    "said", ["i can't eat gluten", "我今年怀孕了, 不能吃生鱼", "我不能吃海鲜", "I'm coeliac", "I'm allergic to nuts"]
)
def test_what_may_do_harm_is_pinned(said: str) -> None:
    (memory,) = extract_by_rules(said)
    assert memory.is_pinned


def test_what_does_no_harm_is_not_pinned() -> None:
    for said in ("I'm not allergic to nuts", "I can't drive", "I don't eat pork"):
        (memory,) = extract_by_rules(said)
        assert not memory.is_pinned


@given(st.text(max_size=300))
def test_any_text_can_be_read(text: str) -> None:
    for remark in extract_by_rules(text):
        assert remark.text.strip()


@given(st.lists(st.sampled_from([*TOLD, *NOT_TOLD]), max_size=30))
def test_a_message_tells_only_so_much(parts: list[str]) -> None:
    assert len(extract_by_rules("\n".join(parts))) <= 10


@pytest.mark.parametrize(
    "said",
    ["Please use this from now on.", "always write them that way", "From now on, keep it like that!", "以后都这样写吧"],
)
def test_an_order_about_what_only_an_earlier_sentence_names_is_not_remembered_without_it(said: str) -> None:
    assert extract_by_rules(said) == []
    assert extract_by_rules("Please use British spelling from now on.") != []
