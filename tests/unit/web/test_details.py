"""One job and one node, with their pods."""

from __future__ import annotations

import pytest

from pumice.runtime.job_times import JobTimes, job_states
from pumice.runtime.serving.viewers import Scope
from pumice.web import details
from pumice.web.seen import as_seen
from pumice.web.summary import CycleSummary
from tests.unit.web.worlds import base, summary


@pytest.fixture(scope="module")
def shown() -> CycleSummary:
    return summary()


def row(found: CycleSummary, name: str) -> int:
    return list(found.jobs.names).index(name)


def test_the_pods_of_a_job_say_where_they_are(shown: CycleSummary) -> None:
    found = details.pods_of_job(shown, row(shown, "ns/runs"))
    assert [(pod["name"], pod["node"], pod["status"]) for pod in found["pods"]] == [
        ("runs-0", "n0", "Running"),
        ("runs-1", "n0", "Running"),
    ]
    waiting = details.pods_of_job(shown, row(shown, "ns/large"))
    assert {pod["node"] for pod in waiting["pods"]} == {""} and waiting["pods_left_out"] == 0


def test_pods_of_one_answer_are_bounded(shown: CycleSummary, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(details, "PODS_MAX", 4)
    found = details.pods_of_job(shown, row(shown, "ns/large"))
    assert len(found["pods"]) == 4 and found["pods_left_out"] == 2


def test_a_node_has_its_pods_groups_and_what_waiting_jobs_lack_on_it(shown: CycleSummary) -> None:
    found = details.node(shown, "n0")
    assert {pod["job"] for pod in found["pods"] if pod["status"] == "Running"} == {"ns/runs"}
    assert found["groups"] == [{"name": "topology.kubernetes.io/rack", "group": "a"}]
    assert found["lacks"]["fit"] + sum(each["jobs"] for each in found["lacks"]["short"]) == 2
    assert details.node(shown, "n2")["closed"] == "cordoned"


@pytest.mark.parametrize("name", ["", "nope"])
def test_a_node_that_is_not_there_is_refused(shown: CycleSummary, name: str) -> None:
    with pytest.raises(details.NoSuchNode):
        details.node(shown, name)


def test_a_tenant_gets_the_pods_of_their_jobs_without_names_of_nodes(shown: CycleSummary) -> None:
    nothing = as_seen(shown, Scope(frozenset({"other"}), nodes=False))
    assert len(nothing.pods.names) == 0 and len(nothing.devices.names) == 0
    own = as_seen(shown, Scope(frozenset({"ns"}), nodes=False))
    found = details.pods_of_job(own, row(own, "ns/runs"))
    assert [pod["node"] for pod in found["pods"]] == ["", ""] and len(found["pods"]) == 2
    with pytest.raises(details.NoSuchNode):
        details.node(own, "n0")


def test_the_time_of_a_job_goes_up_to_the_last_cycle() -> None:
    times = JobTimes()
    times.take(job_states(base().outcome))
    found = details.time_of_job(times, "ns/large", until=130.0)
    assert found is not None and found["until"] == 130.0 and found["moments"] == [(100.0, "Shortage")]
    assert found["seconds"] == {"Shortage": 30.0}
    assert details.time_of_job(times, "ns/none", until=130.0) is None
