"""sla: a job that has waited long enough is admitted and placed first."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from pumice.api import points
from pumice.columns.job_rows import JobRows
from pumice.columns.views import Job
from pumice.framework.cycle.session import Session
from pumice.framework.plugin.combine import Vote
from pumice.framework.plugin.errors import PolicyError
from pumice.model.workloads.podgroup import SLA_ANNOTATIONS
from pumice.testing.build import cluster, node, podgroup, pods, run, session
from tests.unit.volcano.evicting import LEVELS, gang

KEY = SLA_ANNOTATIONS[0]


def opened(*groups: Any, common: str = "", now: float = 0.0) -> Session:
    conf = f"tiers: [{{plugins: [{{name: sla, arguments: {{sla-waiting-time: '{common}'}}}}]}}]"
    waiting = [each for group in groups for each in pods(group.name, 1)]
    return session(cluster(node("n"), list(groups), waiting), conf, now=now)


def group(name: str, wait: str = "", creation: float = 0.0) -> Any:
    return podgroup(name, creation=creation, annotations={KEY: wait} if wait else {})


@pytest.mark.parametrize(
    ("own", "common", "seconds"),
    [
        pytest.param("1m", "", 60.0, id="its own"),
        pytest.param("", "1h", 3600.0, id="the common one"),
        pytest.param("1m", "1h", 60.0, id="its own before the common one"),
        pytest.param("soon", "1h", 3600.0, id="unless it cannot be read"),
        pytest.param("-1m", "", 0.0, id="none below nothing"),
    ],
)
def test_how_long_a_job_waits(own: str, common: str, seconds: float) -> None:
    assert opened(group("g", own), common=common).hooks.plugin("sla").waits[0] == seconds


def test_a_common_time_that_is_no_duration_is_reported() -> None:
    with pytest.raises(PolicyError, match="argument sla-waiting-time: found 'soon', wanted a duration such as 1h"):
        opened(common="soon")


@pytest.mark.parametrize(
    ("own", "now", "vote"),
    [
        pytest.param("1m", 69.0, Vote.ABSTAIN, id="not yet"),
        pytest.param("1m", 70.0, Vote.PERMIT, id="long enough"),
        pytest.param("", 999.0, Vote.ABSTAIN, id="it has no waiting time"),
    ],
)
def test_when_a_job_has_waited_long_enough(own: str, now: float, vote: Vote) -> None:
    ssn = opened(group("g", own, creation=10.0), now=now)
    assert ssn.hooks.plugin("sla").overdue(Job(ssn.tables, 0)) is vote


@pytest.mark.parametrize(("own", "asked"), [("1m", True), ("", False)])
def test_its_votes_are_asked_for_only_where_a_job_has_a_deadline(own: str, asked: bool) -> None:
    ssn = opened(group("g", own), group("other"))
    assert [ssn.has(point) for point in (points.job_enqueueable, points.job_pipelined)] == [asked, asked]


def test_the_earliest_deadline_comes_first_and_none_last() -> None:
    ssn = opened(group("none"), group("late", "3m"), group("early", "1m", 60.0))
    rows = np.flatnonzero(ssn.tables.jobs.alive)
    order = rows[ssn.hooks.plugin("sla").job_order(JobRows(ssn.tables, rows)).argsort()]
    assert [ssn.tables.jobs.uids[row] for row in order] == ["ns/early", "ns/late", "ns/none"]


@pytest.mark.parametrize(("now", "wakes"), [(0.0, 60.0), (60.0, 180.0), (180.0, None)])
def test_it_wakes_at_the_next_deadline(now: float, wakes: float | None) -> None:
    ssn = opened(group("late", "3m"), group("early", "1m"), group("none"), now=now)
    assert ssn.hooks.plugin("sla").wakes_at() == wakes


@pytest.mark.parametrize(
    ("for_part", "size", "now", "evicted", "pipelined"),
    [
        pytest.param("false", 3, 20.0, [], {}, id="it would not be whole"),
        pytest.param("true", 3, 20.0, ["ns/low-1"], {"ns/high-0": "n"}, id="as Volcano does"),
        pytest.param("false", 1, 20.0, ["ns/low-1"], {"ns/high-0": "n"}, id="it is whole then"),
        pytest.param("true", 3, 5.0, [], {}, id="it is not overdue"),
    ],
)
def test_who_leaves_for_an_overdue_gang(
    for_part: str, size: int, now: float, evicted: list[str], pipelined: dict[str, str]
) -> None:
    """Of two pods that run one may go, and the gang has pods of one core each."""
    state = cluster(LEVELS, node("n", 2), gang("low", 2, 1, on="n"), gang("high", size, size, level="high"))
    conf = f"""
tiers:
- plugins: [{{name: sla, arguments: {{sla-waiting-time: 10s, evictsForPart: {for_part}}}}}]
- plugins: [{{name: priority}}, {{name: gang}}, {{name: predicates}}]
"""
    found = run(state, conf, actions="allocate, preempt", now=now)
    assert (found.evicted, found.pipelined) == (evicted, pipelined)


def test_what_a_part_of_an_overdue_gang_was_promised_stays_reserved() -> None:
    """That is what the plugin is for: no other job takes what is being freed."""
    leaving = gang("old", 1, on="n", deletion=1.0)
    state = cluster(LEVELS, node("n", 1), leaving, gang("late", 2, 2, creation=1.0), gang("other", 1, 1, creation=15.0))
    conf = """
tiers:
- plugins: [{name: sla, arguments: {sla-waiting-time: 10s}}]
- plugins: [{name: gang}, {name: predicates}]
"""
    assert run(state, conf, actions="allocate", now=20.0).pipelined == {"ns/late-0": "n"}
