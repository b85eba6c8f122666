"""The order of events is (time, priority, id), and nothing else."""

from __future__ import annotations

import math

import pytest

from pumice.sim.engine import Engine, Priority


def test_order_is_time_then_priority_then_id() -> None:
    engine, ran = Engine(), []
    engine.at(2, ran.append, "late")
    engine.at(1, ran.append, "start", priority=Priority.START)
    engine.at(1, ran.append, "end 1", priority=Priority.END)
    engine.at(1, ran.append, "end 2", priority=Priority.END)
    engine.at(1, ran.append, "fault", priority=Priority.FAULT)
    assert engine.advance(2) == 5
    assert ran == ["fault", "end 1", "end 2", "start", "late"]
    assert engine.now == 2


def test_events_added_in_a_moment_run_in_it() -> None:
    engine, ran = Engine(), []

    def first() -> None:
        ran.append("first")
        engine.after(0, ran.append, "added")

    engine.at(5, first)
    engine.at(5, ran.append, "second")
    engine.advance(5)
    assert ran == ["first", "second", "added"]


def test_idle_time_is_one_step() -> None:
    engine = Engine()
    engine.at(1e9, lambda: None)
    assert engine.next_time() == 1e9
    assert engine.step()
    assert (engine.now, engine.events_run, engine.step()) == (1e9, 1, False)


def test_cancelled_events_do_not_run() -> None:
    engine, ran = Engine(), []
    kept = engine.at(1, ran.append, "kept")
    dropped = engine.at(1, ran.append, "dropped")
    assert engine.cancel(dropped)
    assert not engine.cancel(dropped)
    engine.advance(1)
    assert ran == ["kept"]
    assert not engine.cancel(kept)


def test_many_cancelled_events_leave_nothing_behind() -> None:
    engine = Engine()
    for event in [engine.at(1, lambda: None) for _ in range(10_000)]:
        engine.cancel(event)
    assert len(engine) == 0
    assert len(engine._heap) <= 1024
    assert engine.next_time() is None


@pytest.mark.parametrize("time", [4.9, -math.inf, math.inf, math.nan])
def test_times_that_are_none_are_refused(time: float) -> None:
    engine = Engine(start=5)
    with pytest.raises(ValueError, match="wanted a time from 5 on"):
        engine.at(time, lambda: None)


@pytest.mark.parametrize("there", [0, 100], ids=["many", "few beside what is there"])
def test_several_at_once_come_as_one_after_the_other(there: int) -> None:
    due = [(3.0, "c"), (1.0, "a"), (3.0, "d"), (2.0, "b")]
    single, at_once, ran, likewise = Engine(), Engine(), list[str](), list[str]()
    for engine in (single, at_once):
        for _ in range(there):
            engine.at(4, lambda: None)
    for time, value in due:
        single.at(time, ran.append, value, priority=Priority.ARRIVE)
    at_once.at_all(iter(due), likewise.append, Priority.ARRIVE)
    for engine, reports in ((single, ran), (at_once, likewise)):
        engine.at(3, reports.append, "end", priority=Priority.END)
        engine.advance(4)
    assert ran == likewise == ["a", "b", "end", "c", "d"]


def test_of_several_with_a_time_that_is_none_nobody_comes() -> None:
    engine = Engine(start=5)
    with pytest.raises(ValueError, match="cannot schedule at 4"):
        engine.at_all([(6, "a"), (4, "b")], lambda value: None)
    assert len(engine) == 0


def test_after_each_is_called_after_every_event() -> None:
    engine, seen = Engine(), []
    engine.at(1, seen.append, "a")
    engine.at(2, seen.append, "b")
    engine.advance(3, lambda: seen.append("checked"))
    assert seen == ["a", "checked", "b", "checked"]
    assert engine.now == 3


def test_an_event_goes_on_in_its_own_place() -> None:
    engine, ran = Engine(), []

    def first() -> None:
        ran.append("first")
        engine.after(0, ran.append, "what ends", priority=Priority.END)
        engine.go_on(ran.append, "the rest of the first")

    engine.at(5, first, priority=Priority.START)
    engine.at(5, ran.append, "second", priority=Priority.START)
    assert engine.advance(5) == 4
    assert ran == ["first", "what ends", "the rest of the first", "second"]
    with pytest.raises(ValueError, match="no event is running"):
        engine.go_on(ran.append, "nothing")
