"""``batch/v1`` CronJobs: when Jobs are created, replaced and deleted, and what the status says."""

from __future__ import annotations

from typing import Any

import pytest

from pumice.apiserver.cluster import Cluster
from pumice.apiserver.objects import Deletion, Target
from pumice.model.instants import epoch_of
from tests.unit.apiserver.worlds import Clock, cluster, create, node, settle

MINUTE_S = 60


@pytest.fixture
def clock() -> Clock:
    found = Clock()
    found.now -= found.now % MINUTE_S  # at a full minute
    return found


@pytest.fixture
def world(clock: Clock) -> Cluster:
    made = cluster(clock)
    create(made, node("n"))
    return made


def start(world: Cluster, schedule: str = "* * * * *", **spec: Any) -> None:
    template = {"spec": {"restartPolicy": "Never", "containers": [{"name": "c", "image": "i:1"}]}}
    job = {"metadata": {"labels": {"of": "c"}}, "spec": {"template": template}}
    obj = {"apiVersion": "batch/v1", "kind": "CronJob", "metadata": {"name": "c"}}
    create(world, {**obj, "spec": {"schedule": schedule, "jobTemplate": job, **spec}})
    settle(world)


def after(world: Cluster, clock: Clock, seconds: float) -> None:
    clock.now += seconds
    settle(world)


def jobs(world: Cluster) -> list[str]:
    return sorted(row.key for row in world.store.rows("jobs.batch") if not row.obj["metadata"].get("deletionTimestamp"))


def status(world: Cluster) -> dict[str, Any]:
    row = world.store.find("cronjobs.batch", "default/c")
    assert row is not None
    found: dict[str, Any] = row.obj.get("status") or {}
    return found


def finish(world: Cluster, key: str, how: str = "Complete", at: str = "") -> None:
    row, resource = world.store.find("jobs.batch", key), world.registry.find("batch", "v1", "jobs")
    assert row is not None and resource is not None
    ended = {"conditions": [{"type": how, "status": "True"}], **({"completionTime": at} if at else {})}
    world.objects.write(resource, row, {**row.obj, "status": {**row.obj.get("status", {}), **ended}})
    settle(world)


def name(minute: int, clock: Clock) -> str:
    """Return the key of the Job of a minute, counted from now."""
    return f"default/c-{int(clock.now) // MINUTE_S + minute}"


def reasons(world: Cluster) -> set[str]:
    return {row.obj["reason"] for row in world.store.rows("events") if row.obj["involvedObject"]["kind"] == "CronJob"}


def test_a_job_is_created_at_each_minute_and_not_before(world: Cluster, clock: Clock) -> None:
    start(world)
    assert not jobs(world)
    after(world, clock, 59)
    assert not jobs(world)
    after(world, clock, 1)
    assert jobs(world) == [name(0, clock)]
    after(world, clock, 60)
    assert jobs(world) == [name(-1, clock), name(0, clock)]
    row = world.store.find("jobs.batch", name(0, clock))
    assert row is not None
    metadata = row.obj["metadata"]
    assert metadata["labels"]["of"] == "c" and metadata["ownerReferences"][0]["kind"] == "CronJob"
    assert epoch_of(metadata["annotations"]["batch.kubernetes.io/cronjob-scheduled-timestamp"]) == clock.now
    assert epoch_of(status(world)["lastScheduleTime"]) == clock.now
    assert [each["name"] for each in status(world)["active"]] == [each.rpartition("/")[2] for each in jobs(world)]
    assert world.store.rows("pods"), "its Jobs run"


def test_a_suspended_one_creates_nothing(world: Cluster, clock: Clock) -> None:
    start(world, suspend=True)
    after(world, clock, 180)
    assert not jobs(world)


def test_after_a_pause_only_the_latest_time_counts(world: Cluster, clock: Clock) -> None:
    start(world)
    after(world, clock, 3600)
    assert jobs(world) == [name(0, clock)]


@pytest.mark.parametrize(("late", "created"), [(20, 1), (40, 0)])
def test_a_time_that_is_missed_by_more_than_the_deadline_is_left_out(
    world: Cluster, clock: Clock, late: int, created: int
) -> None:
    start(world, "0 * * * *", startingDeadlineSeconds=30)
    hour = 3600 - clock.now % 3600
    after(world, clock, hour + late)
    assert len(jobs(world)) == created
    assert ("MissSchedule" in reasons(world)) is not bool(created)


@pytest.mark.parametrize(("policy", "left"), [("Allow", [-1, 0]), ("Forbid", [-1]), ("Replace", [0])], ids=str)
def test_what_becomes_of_a_job_that_still_runs(world: Cluster, clock: Clock, policy: str, left: list[int]) -> None:
    start(world, concurrencyPolicy=policy)
    after(world, clock, 60)
    after(world, clock, 60)
    assert jobs(world) == [name(each, clock) for each in left]
    assert ("JobAlreadyActive" in reasons(world)) == (policy == "Forbid")


def test_finished_jobs_beyond_the_limits_are_deleted(world: Cluster, clock: Clock) -> None:
    start(world, successfulJobsHistoryLimit=1, failedJobsHistoryLimit=0)
    for how in ("Complete", "Complete", "Failed"):
        after(world, clock, 60)
        finish(world, name(0, clock), how, "2030-01-01T00:00:00Z" if how == "Complete" else "")
    assert jobs(world) == [name(-1, clock)]
    assert status(world)["lastSuccessfulTime"] == "2030-01-01T00:00:00Z" and not status(world).get("active")


def test_an_unreadable_schedule_is_told_once_a_minute(world: Cluster, clock: Clock) -> None:
    start(world, "every day")
    settle(world)
    told = [row.obj for row in world.store.rows("events") if row.obj["reason"] == "UnparseableSchedule"]
    assert len(told) == 1 and "every day" in told[0]["message"]
    after(world, clock, 3600)
    assert not jobs(world)


def test_its_jobs_go_with_it(world: Cluster, clock: Clock) -> None:
    start(world)
    after(world, clock, 60)
    row, resource = world.store.find("cronjobs.batch", "default/c"), world.registry.find("batch", "v1", "cronjobs")
    assert row is not None and resource is not None
    world.objects.delete(Target(resource, "default", "c"), Deletion())
    settle(world)
    after(world, clock, 120)
    assert not jobs(world)


def test_many_changes_leave_one_wake_for_each(world: Cluster, clock: Clock) -> None:
    start(world)
    for _ in range(5):
        after(world, clock, 60)
    assert len(world.cron_jobs._wakes) == 1
