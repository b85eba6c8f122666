"""What pods used until they ended, by the value of a label: against a plain integral over every second."""

from __future__ import annotations

from collections.abc import Sequence
from math import floor
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from pumice.columns.dtypes import CPU
from pumice.columns.snapshot import Snapshot
from pumice.model.events import Gone, PodsGone, PodsSeen, Seen
from pumice.model.pod import Pod, PodSpec
from pumice.model.usage import SPANS, UsageWindow
from pumice.runtime.files.snapshot_file import Cycle, read_cycle, write_cycle
from pumice.state import label_usage
from pumice.state.store import Store
from pumice.testing.build import cluster, node, pod, resource

DAY = UsageWindow("user", 86_400.0)
SPAN = DAY.span_s
START = 1000 * DAY.window_s


def ran(name: str, user: str, start: float, end: float | None = None, cpu: int = 1, **more: Any) -> Pod:
    """A pod that runs from ``start`` on, or ended at ``end``."""
    phase = "Running" if end is None else "Succeeded"
    labels = {"user": user} if user else {}
    more = {"on": "n", "phase": phase, "start_time": start, "finish_time": end, **more}
    return pod(name, cpu=cpu, labels=labels, **more)


def another(name: str, start: float) -> Pod:
    """A pod of the same name that waits."""
    return replace(pod(name, labels={"user": "ann"}, creation=start), uid="another")


def kept(*objects: Any, windows: Sequence[UsageWindow] = (DAY,)) -> Store:
    store = cluster(node("n"), *objects)
    store.keep_usage(windows)
    return store


def cpu_hours(snapshot: Snapshot, now: float, window: UsageWindow = DAY) -> dict[str, float]:
    """By value, core-hours of pods that have ended."""
    used = snapshot.tables.label_usages.used(window, now)
    return {user: float(amounts[CPU]) / 1000 / 3600 for user, amounts in sorted(used.items())}


def test_a_pod_counts_from_its_start_to_its_end() -> None:
    store = kept()
    store.apply(Seen(ran("a", "ann", START)))
    assert cpu_hours(store.snapshot(START + 1800), START + 1800) == {}, "it runs: nothing has ended"
    store.apply(Seen(ran("a", "ann", START, START + 7200, cpu=1)))
    store.apply(Seen(ran("b", "bob", START, START + 3600, cpu=2)))
    store.apply(Seen(ran("c", "ann", START + 3600, START + 7200, cpu=4)))
    now = START + 7300
    assert cpu_hours(store.snapshot(now), now) == {"ann": 6.0, "bob": 2.0}


@pytest.mark.parametrize("together", [False, True], ids=["one by one", "together"])
def test_a_pod_that_is_deleted_ends_when_that_is_noticed(together: bool) -> None:
    store = kept(ran("a", "ann", START), ran("b", "ann", START))
    if together:
        store.apply(PodsGone(("ns/a", "ns/b")))
    else:
        store.apply_all([Gone(Pod, "ns/a"), Gone(Pod, "ns/b")])
    assert cpu_hours(store.snapshot(START + 3600), START + 3600) == {"ann": 2.0}


@pytest.mark.parametrize(
    ("events", "hours"),
    [
        pytest.param([ran("a", "ann", START, START + 3600)] * 2, 1.0, id="seen twice"),
        pytest.param([ran("a", "ann", START), ran("a", "ann", START, START + 3600)], 1.0, id="seen running before"),
        pytest.param([ran("a", "ann", START, START + 3600), None], 1.0, id="deleted later"),
        pytest.param([ran("a", "ann", START), ran("a", "ann", START, phase="Failed")], 2.0, id="ends without a moment"),
        pytest.param([ran("a", "ann", START, phase="Failed")], 0.0, id="had ended, and does not say when"),
        pytest.param([pod("a", labels={"user": "ann"}), None], 0.0, id="never started"),
        pytest.param(
            [ran("a", "bob", START), ran("a", "ann", START, START + 3600)], 1.0, id="another label at the end"
        ),
        pytest.param([ran("a", "ann", START), another("a", START + 3600)], 2.0, id="another of its name"),
        pytest.param([ran("a", "ann", START, START + 9e9)], 2.0, id="an end that is to come"),
        pytest.param([ran("a", "ann", START + 3600, START)], 0.0, id="an end before its start"),
    ],
)
def test_a_pod_counts_once(events: list[Pod | None], hours: float) -> None:
    store, now = kept(), START + 7200
    for event in events:
        store.apply(Gone(Pod, "ns/a") if event is None else Seen(event))
        found = store.snapshot(now)
    assert cpu_hours(found, now).get("ann", 0.0) == hours
    assert cpu_hours(found, now).get("bob", 0.0) == 0.0


def test_pods_without_the_label_are_counted_together() -> None:
    store = kept(ran("a", "", START, START + 3600), ran("b", "", START, START + 3600))
    assert cpu_hours(store.snapshot(START + 3600), START + 3600) == {"": 2.0}


def test_what_is_older_than_the_window_no_longer_counts() -> None:
    store = kept(ran("a", "ann", START, START + 2 * SPAN))
    found = store.snapshot(START + 2 * SPAN)
    hours = [cpu_hours(found, START + span * SPAN)["ann"] for span in (SPANS - 1, SPANS, SPANS + 1, SPANS + 2, 99)]
    assert hours == [2.0, 1.0, 0.0, 0.0, 0.0]


def test_every_window_has_its_own_sums() -> None:
    hour, team = UsageWindow("user", 3600.0), UsageWindow("team", 86_400.0)
    store = kept(windows=(DAY, hour, team))
    store.apply(Seen(ran("a", "ann", START, START + 7200)))
    found = store.snapshot(START + 7200)
    assert cpu_hours(found, START + 7200, DAY) == {"ann": 2.0}
    assert cpu_hours(found, START + 7200, hour) == {"ann": pytest.approx(23 / 24)}, "the newest span has just begun"
    assert cpu_hours(found, START + 7200, team) == {"": 2.0}


def test_a_window_that_is_new_counts_the_pods_that_are_still_there() -> None:
    store = kept(ran("a", "ann", START, START + 3600), windows=())
    assert not store.snapshot(START + 3600).tables.label_usages.alive.any(), "nothing is kept"
    store.keep_usage((DAY,))
    assert cpu_hours(store.snapshot(START + 3600), START + 3600) == {"ann": 1.0}
    store.keep_usage(())
    assert cpu_hours(store.snapshot(START + 3600), START + 3600) == {}
    assert not store.snapshot().tables.label_usages.alive.any()


def test_without_a_window_no_pod_is_looked_at(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise AssertionError("it was looked at")

    for name in ("seen", "gone", "settle"):
        monkeypatch.setattr(label_usage.LabelUsage, name, refuse)
    store = cluster(node("n"), ran("a", "ann", START))
    store.apply_all([Seen(ran("a", "ann", START, START + 1)), Gone(Pod, "ns/a")])
    assert not store.snapshot(START + 2).tables.label_usages.capacity


def test_a_resource_that_comes_later_moves_no_amount() -> None:
    store = kept(ran("a", "ann", START, START + 3600))
    assert cpu_hours(store.snapshot(START + 3600), START + 3600) == {"ann": 1.0}
    store.apply(Seen(node("m", gpu=8)))
    store.apply(Seen(ran("b", "ann", START, START + 3600, gpu=2)))
    tables = store.snapshot(START + 3600).tables
    used = tables.label_usages.used(DAY, START + 3600)["ann"]
    amounts = {name: used[place] / 3600 for name, place in tables.axis.column.items()}
    assert amounts == {"cpu": 2000, "memory": 2**31, "nvidia.com/gpu": 2000, "pods": 2}


def test_amounts_outlive_a_resource_that_no_node_offers() -> None:
    hopeless = replace(pod("hopeless"), spec=PodSpec(resource(1, **{"example.com/none": 1})))
    store = kept(ran("a", "ann", START, START + 3600), hopeless)
    store.snapshot(START + 3600)
    store.apply_all([Gone(Pod, "ns/hopeless"), Seen(node("m", gpu=8))])
    assert cpu_hours(store.snapshot(START + 3600), START + 3600) == {"ann": 1.0}


def test_of_too_many_values_the_one_goes_that_was_not_used_for_longest(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(label_usage, "VALUES_MAX", 3)
    store = kept()
    for hour, user in enumerate(("old", "ann", "bob", "old", "eve", "dan")):
        store.apply(Seen(ran(f"p{hour}", user, START + hour * 3600, START + hour * 3600 + 3599)))
        found = store.snapshot(START + hour * 3600 + 3599)
    assert sorted(found.tables.label_usages.used(DAY, START)) == ["dan", "eve", "old"]


def test_a_snapshot_keeps_its_sums(tmp_path: Path) -> None:
    store, now = kept(ran("a", "ann", START, START + 3600)), START + 3600
    before = store.snapshot(now)
    store.apply(Seen(ran("b", "ann", START, START + 3600)))
    after = store.snapshot(now)
    assert (cpu_hours(before, now), cpu_hours(after, now)) == ({"ann": 1.0}, {"ann": 2.0})
    write_cycle(tmp_path / "cycle.zip", Cycle(after, now, "tiers: []"))
    assert cpu_hours(read_cycle(tmp_path / "cycle.zip").snapshot, now) == {"ann": 2.0}


runs = st.tuples(st.sampled_from(["ann", "bob"]), st.integers(0, 300), st.integers(0, 200), st.integers(1, 3))


@given(st.lists(runs, max_size=12), st.integers(0, 400))
def test_sums_are_those_of_every_second(pods: list[tuple[str, int, int, int]], until: int) -> None:
    """Of a window of four minutes, in which a span is ten seconds; events come in the order of ends."""
    window = UsageWindow("user", 240.0)
    store, ended = kept(windows=(window,)), []
    for i, (user, start, length, cpu) in enumerate(sorted(pods, key=lambda each: each[1] + each[2])):
        end = START + start + length
        if end <= START + until:
            ended.append((user, START + start, end, cpu))
            store.apply(PodsSeen({f"ns/p{i}": ran(f"p{i}", user, START + start, end, cpu)}))
            store.snapshot(end)
    now = START + until
    oldest = (floor(now / window.span_s) - SPANS + 1) * window.span_s
    seconds = {
        user: sum(cpu * max(0.0, min(end, now) - max(start, oldest)) for who, start, end, cpu in ended if who == user)
        for user in ("ann", "bob")
    }
    found = store.snapshot(now).tables.label_usages.used(window, now)
    for user, wanted in seconds.items():
        assert np.isclose(found[user][CPU] / 1000 if user in found else 0.0, wanted)


@pytest.mark.parametrize(
    ("window", "problem"),
    [
        pytest.param(UsageWindow("user", 86_400.0), "", id="well"),
        pytest.param(UsageWindow("", 3600.0), "usage by a label: found '', wanted a name of 1 to 317", id="no label"),
        pytest.param(UsageWindow("x" * 318, 3600.0), "usage by a label: found 'xxxx", id="a label that is too long"),
        pytest.param(
            UsageWindow("user", 1.0), "usage over a window: found 1 s, wanted 60 to 34,560,000 s", id="too short"
        ),
        pytest.param(UsageWindow("user", float("nan")), "usage over a window: found nan s", id="no number"),
        pytest.param(UsageWindow("user", 1e12), "usage over a window: found 1e+12 s", id="too long"),
    ],
)
def test_a_window_says_what_is_wrong_with_it(window: UsageWindow, problem: str) -> None:
    assert window.problem.startswith(problem)
    assert bool(window.problem) == bool(problem)


def test_a_pod_that_ends_again_under_another_uid_counts_again() -> None:
    store = kept()
    first = ran("a", "ann", START, START + 3600)
    store.apply(Seen(first))
    store.apply(Seen(replace(first, uid="second", start_time=START + 3600, finish_time=START + 7200)))
    assert cpu_hours(store.snapshot(START + 7200), START + 7200) == {"ann": 2.0}
