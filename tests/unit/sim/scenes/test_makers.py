"""CronJobs and JobFlows in a simulation: their Jobs come one after the other, as on a cluster."""

from __future__ import annotations

from typing import Any

from pumice.model.manifest import Decoder
from pumice.sim.run import Run, simulate
from pumice.sim.scenes.manifests import scene_of
from pumice.sim.settings import SimSettings
from pumice.testing.build import node, policy, queue

FLOW, BATCH = "flow.volcano.sh/v1alpha1", "batch.volcano.sh/v1alpha1"
START = 1_800_000_000.0  # 08:00:00 UTC


def spec(minutes: int = 10, replicas: int = 1) -> dict[str, Any]:
    container = {"name": "c", "image": "i", "resources": {"requests": {"cpu": "1"}}}
    task = {"name": "w", "replicas": replicas, "template": {"spec": {"containers": [container]}}}
    return {"tasks": [task], "runningEstimate": f"{minutes}m"}


def obj(api: str, kind: str, name: str, **spec: Any) -> dict[str, Any]:
    return {"apiVersion": api, "kind": kind, "metadata": {"name": name, "namespace": "ns"}, "spec": spec}


def run(*objects: dict[str, Any], until: float | None = None) -> Run:
    decoder = Decoder()
    scene = scene_of([node("n", 8), queue(), *(decoder.decode(each) for each in objects)])
    return simulate(scene, policy(), SimSettings(start=START, until=until, check_laws=True))


def times(found: Run) -> dict[str, tuple[float, float | None]]:
    """When each job came and ended, in minutes from the start; cycles take a second here and there."""
    return {
        record.key: ((record.submitted - START) // 60, None if record.ended is None else (record.ended - START) // 60)
        for record in found.history.jobs
    }


def test_jobs_of_a_flow_follow_each_other() -> None:
    flows = [{"name": "a"}, {"name": "b", "dependsOn": {"targets": ["a"]}}, {"name": "c"}]
    templates = [obj(FLOW, "JobTemplate", name, **spec(minutes)) for name, minutes in (("a", 10), ("b", 5), ("c", 30))]
    found = run(obj(FLOW, "JobFlow", "f", flows=flows), *templates)
    assert times(found) == {"ns/f-a": (0, 10), "ns/f-b": (10, 15), "ns/f-c": (0, 30)}
    assert (found.result.completed, found.result.problems) == (3, ())


def test_a_job_may_begin_when_another_runs() -> None:
    probe = {"taskStatusList": [{"taskName": "w", "phase": "Running"}]}
    flows = [{"name": "a"}, {"name": "b", "dependsOn": {"targets": ["a"], "probe": probe}}]
    found = run(obj(FLOW, "JobFlow", "f", flows=flows), *(obj(FLOW, "JobTemplate", name, **spec()) for name in "ab"))
    assert times(found) == {"ns/f-a": (0, 10), "ns/f-b": (0, 10)}


def test_a_cron_job_makes_its_jobs_until_the_end() -> None:
    cron = obj(BATCH, "CronJob", "c", schedule="*/30 * * * *", jobTemplate={"spec": spec(10)})
    found = run(cron, until=95 * 60)
    assert sorted(times(found).values(), key=str) == [(30, 40), (60, 70), (90, None)]


def test_one_that_still_runs_is_waited_for() -> None:
    cron = obj(
        BATCH, "CronJob", "c", schedule="*/30 * * * *", jobTemplate={"spec": spec(45)}, concurrencyPolicy="Forbid"
    )
    found = run(cron, until=100 * 60)
    assert sorted(times(found).values(), key=str) == [(30, 75), (75, None)]


def test_what_cannot_be_simulated_is_said() -> None:
    cron = obj(BATCH, "CronJob", "c", schedule="@daily", jobTemplate={"spec": spec()})
    assert run(cron).result.problems == ("CronJob ns/c: creates no jobs without --until, because it would never stop",)
    broken = obj(BATCH, "CronJob", "c", schedule="at noon", jobTemplate={"spec": spec()})
    (problem,) = run(broken, until=60.0).result.problems
    assert problem.startswith("CronJob ns/c: UnparseableSchedule: found 'at noon'")
    flow = obj(FLOW, "JobFlow", "f", flows=[{"name": "a"}])
    (problem,) = run(flow).result.problems
    assert "TemplateNotFound: JobTemplate a does not exist" in problem
    odd = obj(FLOW, "JobTemplate", "a", tasks=[{"name": "w", "replicas": -1}])
    (problem,) = run(flow, odd).result.problems
    assert "spec.tasks[0].replicas" in problem


def test_a_flow_that_never_fits_is_reported_by_its_job() -> None:
    found = run(obj(FLOW, "JobFlow", "f", flows=[{"name": "a"}]), obj(FLOW, "JobTemplate", "a", **spec(10, 99)))
    assert [each.job for each in found.waiting] == ["ns/f-a"]
    assert [each.job for each in found.stuck] == ["ns/f-a"]
