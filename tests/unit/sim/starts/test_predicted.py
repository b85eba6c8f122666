"""Predicted starts: by estimates, by ended jobs, with later arrivals; and why nothing can be said."""

from __future__ import annotations

import numpy as np
import pytest
from msgspec.structs import replace

from pumice.framework.plugin.policy_file import Policy, read_policy
from pumice.model.events import Object
from pumice.model.pod import Pod
from pumice.model.workloads.estimate import ESTIMATE_ANNOTATION
from pumice.model.workloads.past_job import PastJob
from pumice.ours.predictor import Predictor
from pumice.ours.start_scores import StartScores
from pumice.runtime.policy.languages import builtin_registry
from pumice.sim.starts.predicted import past_jobs, predicted_starts
from pumice.sim.starts.samples import Horizon, sampled_starts
from pumice.sim.workloads.spans import DURATION_ANNOTATION
from pumice.testing.build import node, pod, podgroup, pods, queue, resource

HOUR = 3600.0
DAY = Horizon(until_s=24 * HOUR, samples=2, seed=1)


def policy() -> Policy:
    plugins = [{"name": name} for name in ("gang", "predicates", "nodeorder")]
    return read_policy({"actions": "enqueue, allocate", "tiers": [{"plugins": plugins}]}, builtin_registry())


def job(name: str, *, estimate: str = "", started: float | None = None, count: int = 2) -> list[Object]:
    notes = {ESTIMATE_ANNOTATION: estimate} if estimate else {}
    group = podgroup(name, count, phase="Inqueue" if started is None else "Running", annotations=notes)
    where = {} if started is None else {"on": "n", "phase": "Running", "start_time": started}
    return [group, *pods(name, count, cpu=1, **where)]


def cluster(*jobs: list[Object]) -> list[Object]:
    return [queue("default"), node("n", cpu=2), *(obj for each in jobs for obj in each)]


def test_a_job_starts_when_the_one_before_it_ends_by_its_estimate() -> None:
    found = predicted_starts(
        cluster(job("a", estimate="3h", started=0.0), job("b", estimate="1h")), policy(), HOUR, DAY
    )
    assert list(found.by_job) == ["ns/b"]
    each = found.by_job["ns/b"]
    assert each.middle_s == pytest.approx(2 * HOUR, abs=5) and each.why_not == ""
    assert each.low_95_s == each.high_95_s, "nothing is drawn where estimates are all that is known"


def test_without_an_estimate_a_job_ends_by_its_age() -> None:
    many = replace(DAY, until_s=30 * 24 * HOUR, samples=16)
    found = predicted_starts(cluster(job("a", started=0.0), job("b")), policy(), 10 * HOUR, many)
    assert found.by_age == ("ns/a",)
    # Half of all jobs run for as long again as they have been running.
    each = found.by_job["ns/b"]
    assert 5 * HOUR < each.middle_s < 20 * HOUR and each.low_80_s < 3 * HOUR and each.high_80_s > 40 * HOUR


def test_a_job_that_seems_to_stay_is_why_nothing_can_be_said() -> None:
    old = 400 * 24 * HOUR
    found = predicted_starts(cluster(job("a", started=0.0), job("b")), policy(), old, DAY).by_job["ns/b"]
    assert np.isinf(found.middle_s)
    assert "without an estimate, so by age alone: 1 running" in found.why_not


def test_run_times_of_ended_jobs_give_an_interval() -> None:
    ended: list[Object] = []
    for i in range(1, 11):
        notes = {ESTIMATE_ANNOTATION: "10h"}
        ended.append(podgroup(f"a-{i}", 2, phase="Completed", annotations=notes))
        ended += [
            pod(f"a-{i}-{k}", f"a-{i}", on="n", phase="Succeeded", start_time=-20 * HOUR, finish_time=(i - 20) * HOUR)
            for k in (0, 1)
        ]
    many = Horizon(until_s=48 * HOUR, samples=32, seed=1)
    objects = [*cluster(job("a-99", estimate="10h", started=0.0), job("b", estimate="1h")), *ended]
    found = predicted_starts(objects, policy(), 0.0, many)
    assert found.learnt == 10
    each = found.by_job["ns/b"]
    assert 0 < each.low_80_s < each.middle_s < each.high_80_s <= 12 * HOUR
    # The least and the largest of the simulations are no bounds of 95 %.
    assert each.low_95_s < each.low_80_s and each.high_95_s > each.high_80_s


def test_a_job_that_waits_for_admission_has_the_pods_of_its_minimum() -> None:
    waits = podgroup("b", 2, phase="Pending", min_resources=resource(2, "2Gi"), annotations={ESTIMATE_ANNOTATION: "1h"})
    found = predicted_starts(cluster(job("a", estimate="3h", started=0.0), [waits]), policy(), HOUR, DAY)
    assert found.by_job["ns/b"].middle_s == pytest.approx(2 * HOUR, abs=5)


def test_a_job_that_waits_for_admission_has_pods_of_each_role() -> None:
    asks = {"roles": {"driver": 1, "worker": 2}, "min_resources": resource(2, "2Gi")}
    waits = podgroup("b", 3, phase="Pending", annotations={ESTIMATE_ANNOTATION: "1h"}, **asks)
    found = predicted_starts(cluster(job("a", estimate="3h", started=0.0), [waits]), policy(), HOUR, DAY)
    assert found.by_job["ns/b"].middle_s == pytest.approx(2 * HOUR, abs=5)


def test_later_jobs_come_as_they_came_before() -> None:
    """The order is by priority, and what comes later has a higher one: it is drawn, and delays."""
    objects = cluster(job("a", estimate="30h", started=0.0))
    now = 30 * HOUR - 60
    past = [
        PastJob(f"ns/p{i}", "default", "", "p", 2, resource(1, "1Gi", 0, 1), 6 * HOUR, i * HOUR, 6 * HOUR)
        for i in range(29)
    ]
    objects += job("b", estimate="1h")
    alone = sampled_starts(objects, policy(), now, Predictor(), (), DAY).by_job["ns/b"]
    among = sampled_starts(objects, policy(), now, Predictor(), past, DAY).by_job["ns/b"]
    assert (alone <= 120).all()
    assert (among >= alone).all()


def test_the_same_input_gives_the_same_starts() -> None:
    objects = cluster(job("a", estimate="3h", started=0.0), job("b", estimate="1h"), job("c", estimate="1h"))
    first, again = (predicted_starts(objects, policy(), HOUR, DAY) for _ in range(2))
    assert first == again


def test_steps_bound_how_far_simulations_look() -> None:
    waiting = [job(f"b{i}", estimate="1h") for i in range(6)]
    objects = cluster(job("a", estimate="3h", started=0.0), *waiting)
    whole = predicted_starts(objects, policy(), HOUR, DAY)
    assert predicted_starts(objects, policy(), HOUR, replace(DAY, steps_max=10**6)) == whole
    some = predicted_starts(objects, policy(), HOUR, replace(DAY, steps_max=120))
    assert some.samples == DAY.samples and some.until_s < whole.until_s
    assert some.by_job["ns/b0"] == whole.by_job["ns/b0"]
    last = some.by_job["ns/b5"]
    assert np.isinf(last.middle_s) and "does not start within the time that is simulated" in last.why_not


def test_too_few_steps_for_one_simulation_are_said() -> None:
    objects = cluster(job("a", estimate="3h", started=0.0), job("b", estimate="1h"))
    found = predicted_starts(objects, policy(), HOUR, replace(DAY, steps_max=1))
    assert found.samples == 0 and found.by_job["ns/b"].why_not == "no simulation ended within 1 steps"


def test_predictions_are_passed_to_the_scores() -> None:
    scores = StartScores()
    objects = cluster(job("a", estimate="3h", started=0.0), job("b", estimate="1h"))
    predicted_starts(objects, policy(), HOUR, DAY, scores=scores)
    scores.started("ns/b", 3 * HOUR + 2)
    found = predicted_starts(objects, policy(), HOUR, DAY, scores=scores)
    assert found.record is not None and found.record.known == 1


def test_jobs_of_which_all_pods_have_ended_have_a_run_time() -> None:
    part = [
        podgroup("x-1", 2, creation=5.0),
        pod("x-1-0", "x-1", phase="Succeeded", start_time=10.0, finish_time=70.0),
        pod("x-1-1", "x-1", phase="Running", start_time=20.0),
    ]
    assert [each.ran_s for each in past_jobs(part)] == [None]
    whole = [*part[:2], pod("x-1-1", "x-1", phase="Failed", start_time=20.0, finish_time=80.0)]
    assert [(each.ran_s, each.name, each.pods) for each in past_jobs(whole)] == [(70.0, "x-", 2)]


def test_the_true_run_time_is_not_used() -> None:
    """A pod of a simulated cluster says how long it will run; in a forecast its estimate counts."""
    runs = job("a", estimate="3h", started=0.0)
    knows = [
        replace(obj, annotations={**obj.annotations, DURATION_ANNOTATION: "90m"}) if isinstance(obj, Pod) else obj
        for obj in runs
    ]
    waits = job("b", estimate="1h")
    first, again = (predicted_starts(cluster(each, waits), policy(), HOUR, DAY) for each in (runs, knows))
    assert first == again and first.by_job["ns/b"].middle_s == pytest.approx(2 * HOUR, abs=5)
