"""tdm: how many tasks a job lets go, how often, and what a policy file may say."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from pumice.columns.rows import Candidates, TaskRows
from pumice.columns.views import Task
from pumice.framework.cycle.session import Session
from pumice.framework.plugin.errors import PolicyError
from pumice.model.decisions import Writes
from pumice.model.workloads.podgroup import MAX_MISSING_ANNOTATION, MIN_RUNNING_ANNOTATION
from pumice.state.store import Store
from pumice.testing.build import cluster, node, pod, podgroup, policy, session
from pumice.testing.check import check_plugin
from pumice.volcano.plugins.tdm import EVICTED_AT, Tdm

PREEMPTABLE = {"volcano.sh/preemptable": "true"}
ZONE = {"volcano.sh/revocable-zone": "night"}
CONF = """
actions: allocate
tiers: [{plugins: [{name: tdm, arguments: {tdm.revocable-zone.night: "1:00-5:00", tdm.evict.period: 10m}}]}]
"""
AFTER = 10 * 3600.0


def store(notes: dict[str, str] | None = None, count: int = 5) -> Store:
    """A job that runs in the zone, and as many pods outside of it."""
    members = [pod(f"z{i}", "g", on="z", annotations=PREEMPTABLE, creation=float(i)) for i in range(count)]
    others = [pod(f"o{i}", "h", on="o", annotations=PREEMPTABLE, creation=float(i)) for i in range(count)]
    groups = [podgroup("g", annotations=notes or {}), podgroup("h", annotations=notes or {}), podgroup("w")]
    waiting = pod("w", "w", annotations={"volcano.sh/preemptable": "false"})
    return cluster(node("z", labels=ZONE), node("o", creation=1.0), groups, members, others, waiting)


def tdm_of(ssn: Session) -> Tdm:
    found = ssn.hooks.plugin("tdm")
    assert isinstance(found, Tdm)
    return found


def names(ssn: Session, mask: Any) -> list[str]:
    return [ssn.tables.tasks.pods[row].name for row in running(ssn)[mask].tolist()]


def running(ssn: Session) -> Any:
    rows = [row for row, each in enumerate(ssn.tables.tasks.pods) if each is not None and each.node_name]
    return np.array(sorted(rows, key=lambda row: ssn.tables.tasks.pods[row].name))


def victims(ssn: Session) -> list[str]:
    return names(ssn, tdm_of(ssn).victim_tasks(TaskRows(ssn.tables, running(ssn))))


@pytest.mark.parametrize(
    ("notes", "count"),
    [
        pytest.param({}, 1, id="a job that says nothing: one"),
        pytest.param({MAX_MISSING_ANNOTATION: "3"}, 3, id="a number that may be missing"),
        pytest.param({MAX_MISSING_ANNOTATION: "30%"}, 2, id="a part of its tasks, rounded up"),
        pytest.param({MAX_MISSING_ANNOTATION: "0"}, 0, id="none"),
        pytest.param({MAX_MISSING_ANNOTATION: "many"}, 0, id="what is no number is none"),
        pytest.param({MIN_RUNNING_ANNOTATION: "4"}, 1, id="a number that must run"),
        pytest.param({MIN_RUNNING_ANNOTATION: "50%"}, 2, id="a part that must run"),
        pytest.param({MIN_RUNNING_ANNOTATION: "9"}, 1, id="more than there are: one, as in Volcano"),
        pytest.param({MIN_RUNNING_ANNOTATION: "4", MAX_MISSING_ANNOTATION: "4"}, 1, id="of both the former counts"),
    ],
)
def test_how_many_tasks_a_job_lets_go(notes: dict[str, str], count: int) -> None:
    ssn = session(store(notes), CONF, now=AFTER)
    assert victims(ssn) == [f"z{i}" for i in range(count)]


def test_in_the_zones_hours_everybody_stays() -> None:
    assert victims(session(store(), CONF, now=2 * 3600.0)) == []


def test_a_zone_without_hours_of_its_own_is_left_alone() -> None:
    assert victims(session(store(), CONF.replace("night:", "day:"), now=AFTER)) == []


def test_outside_of_zones_an_ordinary_task_may_take_the_place_of_preemptable_ones() -> None:
    ssn = session(store({MAX_MISSING_ANNOTATION: "2"}), CONF, now=AFTER)
    rows, tasks = running(ssn), ssn.tables.tasks
    candidates = Candidates(ssn.tables, rows, np.array([0, 5, 10]))
    by_name = {each.name: row for row, each in enumerate(tasks.pods) if each is not None}
    found = tdm_of(ssn).preemptable_tasks(Task(ssn.tables, by_name["w"]), candidates)
    assert names(ssn, found) == ["o0", "o1"]
    assert not tdm_of(ssn).preemptable_tasks(Task(ssn.tables, by_name["z0"]), candidates).any()


def test_after_an_eviction_none_before_the_period_is_over() -> None:
    state = store()
    first = session(state, CONF.replace("actions: allocate", "actions: allocate"), now=AFTER)
    assert victims(first)
    state.remember(Writes(notes={EVICTED_AT: AFTER}))
    soon, later = session(state, CONF, now=AFTER + 599), session(state, CONF, now=AFTER + 600)
    assert (victims(soon), bool(victims(later))) == ([], True)
    assert tdm_of(soon).wakes_at() == AFTER + 600


def test_where_all_nodes_are_gone_only_hours_wake() -> None:
    state = cluster(podgroup("g"), pod("z0", "g", annotations=PREEMPTABLE))
    state.remember(Writes(notes={EVICTED_AT: AFTER}))
    assert tdm_of(session(state, CONF, now=AFTER + 1)).wakes_at() == 24 * 3600.0


def test_where_nobody_is_left_to_be_evicted_only_hours_wake() -> None:
    state = store(count=0)
    state.remember(Writes(notes={EVICTED_AT: AFTER}))
    assert tdm_of(session(state, CONF, now=AFTER + 1)).wakes_at() == 24 * 3600.0


def test_an_invalid_time_in_a_policy_is_reported() -> None:
    with pytest.raises(PolicyError) as caught:
        policy(CONF.replace("1:00-5:00", "1-5").replace("10m", "soon"))
    text = str(caught.value)
    assert "argument tdm.revocable-zone.night: found '1-5', wanted two times such as 9:30-18:00" in text
    assert "argument tdm.evict.period: found 'soon', wanted a duration such as 1m" in text


def test_it_keeps_the_contract_of_plugins() -> None:
    check_plugin("tdm", arguments={"tdm.revocable-zone.night": "1:00-5:00"}, seeds=range(8))
