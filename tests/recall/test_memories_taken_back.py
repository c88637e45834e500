"""What users take back is remembered no longer, however they do that; what only sounds like it takes nothing back."""

from __future__ import annotations

import pytest

from benchmarks.memory_sentences import remembered


@pytest.mark.parametrize(
    "messages",
    [
        ["from now on reply in Spanish", "nah, dutch again pls"],
        ["always answer in Polish", "can we go back to English"],
        ["always answer in Polish", "ab jetzt wieder english bitte"],
        ["always answer in Polish", "no more polish please"],
        ["以后都用日语回答我", "换回中文吧"],
        ["以后都用日语回答我", "算了，还是用中文"],
        ["以后都用日语回答我", "English again please"],
        ["I'm pescatarian", "i was pescatarian but no longer"],
        ["I'm pescatarian", "I used to be pescatarian"],
        ["im lactose intolerant", "no longer lactose intolerant"],
        ["I'm vegetarian", "I quit being vegetarian in May"],
        ["I'm allergic to wasps", "I was allergic to wasps until last summer"],
        ["我是素食者", "我早就不是素食者了"],
        ["我不喝咖啡", "我现在又喝咖啡了"],
        ["I use a Dvorak keyboard", "we don't do that here", "I don't use a Dvorak keyboard any more"],
        ["I live in Porto", "I used to live in Porto"],
        ["never use emojis", "hm, emojis are fine again, ok? 😀"],
        ["以后都用日语回答我", "哈哈换回中文吧😀"],
    ],
)
def test_what_was_taken_back_is_remembered_no_longer(messages: list[str]) -> None:
    before, after = remembered(messages[0]), remembered(" // ".join(messages))
    assert before
    assert not set(before) & set(after)


@pytest.mark.parametrize(
    ("said", "after"),
    [
        ("my name is Otto // jk, call me Ottilie", ["The user wants to be called Ottilie."]),
        ("call me Boss // haha just kidding! my name is Nils", ["The user's name is Nils."]),
        ("我叫大魔王 // 开玩笑的，叫我小林", ["用户希望被称为小林。"]),
        ("my name is Otto // my name isn't Otto, it's Oskar", ["The user's name is Oskar."]),
        ("我叫林晓 // 我不叫林晓，我叫林小", ["用户的名字是林小。"]),
        ("I live in Porto // we've moved to Braga last month", ["The user lives in Braga."]),
        ("I live in Porto // moved to Braga last May", ["The user lives in Braga."]),
        ("我住在成都 // 我们上个月搬到昆明了", ["用户住在昆明。"]),
        ("我住在成都 // 搬家了，我现在住在昆明", ["用户住在昆明。"]),
        ("I live in Lyon // I no longer live in Lyon, I'm in Nantes now", ["The user lives in Nantes."]),
        ("Call me Max // please call me Maximilian instead", ["The user wants to be called Maximilian."]),
        ("From now on use metric units // from now on imperial please", ["from now on imperial"]),
        ("I'm vegetarian // I eat meat these days", ['The user said: "I eat meat these days".']),
        ("I'm vegetarian // had a great steak, I eat meat these days", []),
        ("我们的预算是5万元 // 我们的预算改成8万元了", ["用户说：“我们的预算改成8万元了”。"]),
        (
            "Our warehouse is in Pisa. // Change of plan: not Pisa any more, we move the warehouse to Antwerp.",
            ['The user said: "we move the warehouse to Antwerp".'],
        ),
        (
            "My manager is Eva Lind. // My manager is now Karl Otto.",
            ['The user said: "My manager is now Karl Otto".'],
        ),
    ],
)
def test_what_is_said_later_takes_the_place_of_it(said: str, after: list[str]) -> None:
    assert remembered(said) == after


@pytest.mark.parametrize(
    ("first", "later"),
    [
        ("always answer in French", "translate this to english again"),
        ("always answer in French", "I learned English again last year"),
        ("always answer in English", "english again please"),
        ("I'm vegan", "I'm not sure about vegan cheese any more"),
        ("I'm vegan", "I was vegan in college already"),
        ("I live in Porto", "I don't live in fear anymore"),
        ("I live in Porto", "we moved to Kubernetes last week"),
        ("I live in Porto", "we moved to Friday"),
        ("I live in Porto", "my brother moved to Lyon"),
        ("I'm allergic to wasps", "my boss used to be allergic to wasps"),
        ("我是素食者", "我妈不是素食者了"),
        ("我住在成都", "我们搬到新楼了"),
        ("Our warehouse is in Rotterdam.", "Our office is in Antwerp."),
        ("My manager is Eva Lind.", "My manager is in Paris."),
        ("我们的预算是5万元", "我们的截止日期是5月3号"),
    ],
)
def test_what_only_sounds_like_it_takes_nothing_back(first: str, later: str) -> None:
    (memory,) = remembered(first)
    assert memory in remembered(f"{first} // {later}")


@pytest.mark.parametrize(
    ("said", "quoted"),
    [
        ("we use Polars 1.4 , is the lazy api still a thing", 'The user said: "we use Polars 1.4".'),
        ("I use fish, does it support aliases", 'The user said: "I use fish".'),
    ],
)
def test_a_question_beside_a_fact_is_no_part_of_it(said: str, quoted: str) -> None:
    assert remembered(said) == [quoted]


def test_what_was_said_in_jest_is_not_remembered() -> None:
    assert remembered("I'm vegan jk") == []
