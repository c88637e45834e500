"""Values met lately, by a key."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

from everthread.core.recent import Recent


def test_what_is_asked_for_again_and_again_stays() -> None:
    recent: Recent[int, str] = Recent(4)
    for number in range(100):
        recent.put(number, str(number))
        recent.put(-1, "often")
        assert recent.get(-1) == "often"
    assert recent.get(0) is None
    assert recent.get(99) == "99"


def test_it_holds_no_more_than_twice_what_it_may() -> None:
    recent: Recent[int, bytes] = Recent(1_000)
    for number in range(1_000):
        recent.put(number, b"", 100)
    assert 10 <= len(recent) <= 20


def test_nothing_is_left_after_it_was_cleared() -> None:
    recent: Recent[int, str] = Recent(2)
    for number in range(3):
        recent.put(number, "said")
    recent.clear()
    assert len(recent) == 0
    assert recent.get(2) is None


def test_any_number_of_threads_get_what_was_put() -> None:
    recent: Recent[int, str] = Recent(8)

    def use(number: int) -> bool:
        recent.put(number % 31, str(number % 31))
        return recent.get(number % 17) in (None, str(number % 17))

    with ThreadPoolExecutor(8) as threads:
        assert all(threads.map(use, range(4_000)))
