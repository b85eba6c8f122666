"""When objects are due again: each once, in order of time."""

from __future__ import annotations

from pumice.apiserver.actors.wakes import Wakes


def wakes(**at: float) -> Wakes[str]:
    made = Wakes[str]()
    for key, when in at.items():
        made.add(key, when)
    return made


def test_keys_come_in_order_of_time_and_each_once() -> None:
    found = wakes(b=2.0, a=1.0, c=3.0)
    assert list(found.take(2.5)) == ["a", "b"] and len(found) == 1 and found.next_at == 3.0
    assert list(found.take(2.5)) == []


def test_of_several_times_of_a_key_the_earliest_counts() -> None:
    found = wakes(a=5.0)
    for at in (7.0, 3.0, 4.0):
        found.add("a", at)
    assert len(found) == 1 and list(found.take(10.0)) == ["a"] and found.next_at is None


def test_a_key_that_was_dropped_is_not_due() -> None:
    found = wakes(a=1.0, b=2.0)
    found.drop("a")
    found.drop("absent")
    assert found.next_at == 2.0 and list(found.take(10.0)) == ["b"]


def test_a_key_that_was_due_may_be_noted_again() -> None:
    found = wakes(a=1.0)
    assert list(found.take(1.0)) == ["a"]
    found.add("a", 9.0)
    assert found.next_at == 9.0
