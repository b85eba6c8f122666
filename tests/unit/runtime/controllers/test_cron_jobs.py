"""What a CronJob makes, when, and what it forgets."""

from __future__ import annotations

from typing import Any

import pytest

from pumice.model.instants import epoch_of
from pumice.runtime.controllers.cron_jobs import SCHEDULED_AT, reconcile_cron_job
from pumice.runtime.controllers.writes import Create, Delete, Emit, Patch, Wake, Write
from tests.unit.runtime.controllers.job_world import JOB, task

Obj = dict[str, Any]
UID = "cron-uid"


def cron(last: str = "", **spec: Any) -> Obj:
    metadata = {"name": "c", "namespace": "ns", "uid": UID, "creationTimestamp": "2026-03-01T00:00:00Z"}
    template = {"metadata": {"labels": {"a": "b"}, "annotations": {"x": "y"}}, "spec": {"tasks": [task()]}}
    written = {"schedule": "0 * * * *", "jobTemplate": template, **spec}
    status = {"lastScheduleTime": last} if last else {}
    return {"apiVersion": JOB, "kind": "CronJob", "metadata": metadata, "spec": written, "status": status}


def job(name: str, phase: str = "Running", made: str = "2026-03-01T01:00:00Z", owner: str = UID) -> Obj:
    owners = [{"apiVersion": JOB, "kind": "CronJob", "name": "c", "uid": owner, "controller": True}]
    metadata = {"name": name, "namespace": "ns", "uid": name, "creationTimestamp": made, "ownerReferences": owners}
    state = {"phase": phase, "lastTransitionTime": made}
    return {"apiVersion": JOB, "kind": "Job", "metadata": metadata, "spec": {}, "status": {"state": state}}


def due(text: str) -> str:
    """The name of the Job for a time."""
    return f"c-{int(moment(text)) // 60}"


def moment(text: str) -> float:
    found = epoch_of(f"2026-03-01T{text}Z")
    assert found is not None
    return found


def asked(obj: Obj, *jobs: Obj, at: str = "03:00:10") -> list[Write]:
    return reconcile_cron_job(obj, list(jobs), moment(at))


def made(writes: list[Write]) -> list[str]:
    return [write.obj["metadata"]["name"] for write in writes if isinstance(write, Create)]


def deleted(writes: list[Write]) -> list[str]:
    return [write.ref.name for write in writes if isinstance(write, Delete)]


def reasons(writes: list[Write]) -> list[str]:
    return [write.reason for write in writes if isinstance(write, Emit)]


def status(writes: list[Write]) -> Obj:
    return {key: value for write in writes if isinstance(write, Patch) for key, value in write.merge["status"].items()}


_RAN = due("02:00:00")


@pytest.mark.parametrize(
    ("obj", "jobs", "at", "makes", "says"),
    [
        pytest.param(cron(), [], "03:00:10", ["03:00:00"], ["SuccessfulCreate"], id="the last that is due, alone"),
        pytest.param(cron(), [], "00:30:00", [], [], id="not due yet"),
        pytest.param(cron("2026-03-01T03:00:00Z"), [], "03:30:00", [], [], id="made before"),
        pytest.param(cron(), [job(due("03:00:00"))], "03:00:10", [], [], id="made, and the status does not say so"),
        pytest.param(cron("2026-03-02T03:00:00Z"), [], "03:30:00", [], ["FutureScheduleTime"], id="made in the future"),
        pytest.param(cron(suspend=True), [], "03:00:10", [], [], id="suspended"),
        pytest.param(
            cron(startingDeadlineSeconds=60),
            [],
            "03:00:59",
            ["03:00:00"],
            ["SuccessfulCreate"],
            id="late, not too late",
        ),
        pytest.param(cron(startingDeadlineSeconds=60), [], "03:01:01", [], ["MissSchedule"], id="too late"),
        pytest.param(cron(), [job(_RAN)], "03:00:10", ["03:00:00"], ["SuccessfulCreate"], id="two at a time"),
        pytest.param(
            cron(concurrencyPolicy="Forbid"), [job(_RAN)], "03:00:10", [], ["JobAlreadyActive"], id="one at a time"
        ),
        pytest.param(
            cron(concurrencyPolicy="Forbid"),
            [job(_RAN, "Completed")],
            "03:00:10",
            ["03:00:00"],
            ["SuccessfulCreate"],
            id="one after the other",
        ),
        pytest.param(
            cron(concurrencyPolicy="Forbid"),
            [job("other", owner="another")],
            "03:00:10",
            ["03:00:00"],
            ["SuccessfulCreate"],
            id="jobs of others do not count",
        ),
        pytest.param(
            cron(timeZone="Asia/Kolkata", schedule="30 8 * * *"),
            [],
            "03:00:10",
            ["03:00:00"],
            ["SuccessfulCreate"],
            id="half past eight is three",
        ),
    ],
)
def test_when_a_job_is_made(obj: Obj, jobs: list[Obj], at: str, makes: list[str], says: list[str]) -> None:
    writes = asked(obj, *jobs, at=at)
    assert made(writes) == [due(each) for each in makes]
    assert reasons(writes) == says


def test_a_job_is_as_its_template_says() -> None:
    (found,) = [
        write.obj for write in asked(cron(timeZone="Asia/Kolkata", schedule="@hourly")) if isinstance(write, Create)
    ]
    metadata = found["metadata"]
    assert (metadata["labels"], metadata["annotations"]["x"]) == ({"a": "b"}, "y")
    assert metadata["annotations"][SCHEDULED_AT] == "2026-03-01T08:00:00+05:30"
    assert metadata["ownerReferences"][0]["uid"] == UID and metadata["ownerReferences"][0]["controller"] is True
    assert found["spec"] == {"tasks": [task()]} and (found["apiVersion"], found["kind"]) == (JOB, "Job")


def test_what_runs_is_replaced() -> None:
    writes = asked(cron(concurrencyPolicy="Replace"), job(_RAN))
    assert (deleted(writes), made(writes)) == ([_RAN], [due("03:00:00")])
    assert status(writes) == {"lastScheduleTime": "2026-03-01T03:00:00Z"}


def test_the_status_says_what_runs_and_when_it_last_went_well() -> None:
    obj = cron("2026-03-01T03:00:00Z")
    writes = asked(obj, job("a", made="2026-03-01T01:00:00Z"), job("b", "Completed", "2026-03-01T02:10:00Z"))
    assert [each["name"] for each in status(writes)["active"]] == ["a"]
    assert status(writes)["lastSuccessfulTime"] == "2026-03-01T02:10:00Z"
    settled = {**obj, "status": {**obj["status"], **status(writes)}}
    again = asked(settled, job("a", made="2026-03-01T01:00:00Z"), job("b", "Completed", "2026-03-01T02:10:00Z"))
    assert [write for write in again if not isinstance(write, Wake)] == []


@pytest.mark.parametrize(
    ("limits", "gone"),
    [
        ({}, ["s1", "f1"]),
        ({"successfulJobsHistoryLimit": 0, "failedJobsHistoryLimit": 0}, ["s1", "s2", "s3", "s4", "f1", "f2"]),
        ({"successfulJobsHistoryLimit": 9, "failedJobsHistoryLimit": 9}, []),
    ],
)
def test_the_oldest_that_finished_are_forgotten(limits: dict[str, int], gone: list[str]) -> None:
    done = [job(f"s{i}", "Completed", f"2026-03-01T00:0{i}:00Z") for i in (4, 2, 3, 1)]
    failed = [job("f2", "Failed", "2026-03-01T00:02:00Z"), job("f1", "Terminated", "2026-03-01T00:01:00Z")]
    assert deleted(asked(cron("2026-03-01T03:00:00Z", **limits), *done, *failed, job("runs"))) == gone


def test_it_is_looked_at_when_it_is_due_next_and_at_least_once_a_day() -> None:
    def wait_s(obj: Obj) -> list[float]:
        return [write.after_s for write in asked(obj) if isinstance(write, Wake)]

    assert wait_s(cron()) == [59 * 60 + 50]
    assert wait_s(cron(schedule="0 0 1 1 *")) == [86_400]
    assert wait_s(cron(suspend=True)) == []


@pytest.mark.parametrize(
    ("spec", "reason", "word"),
    [
        ({"schedule": "at noon"}, "UnparseableSchedule", "five fields"),
        ({"schedule": ""}, "UnparseableSchedule", "five fields"),
        ({"timeZone": "Nowhere"}, "UnparseableSchedule", "Nowhere"),
        ({"schedule": 5}, "InvalidSpec", "spec.schedule"),
        ({"concurrencyPolicy": "Maybe"}, "InvalidSpec", "spec.concurrencyPolicy"),
        ({"startingDeadlineSeconds": -1}, "InvalidSpec", "spec.startingDeadlineSeconds"),
        ({"successfulJobsHistoryLimit": -1}, "InvalidSpec", "spec.successfulJobsHistoryLimit"),
        ({"jobTemplate": {}}, "InvalidSpec", "at least one task"),
        ({"jobTemplate": []}, "InvalidSpec", "spec.jobTemplate"),
    ],
)
def test_what_cannot_be_done_is_reported_and_nothing_is_made(spec: Obj, reason: str, word: str) -> None:
    (reports,) = asked(cron(**spec))
    assert isinstance(reports, Emit) and (reports.type, reports.reason) == ("Warning", reason)
    assert word in reports.message


def test_a_name_that_leaves_no_room_for_the_minute_is_reported() -> None:
    obj = cron()
    obj["metadata"]["name"] = "c" * 53
    (reports,) = asked(obj)
    assert isinstance(reports, Emit) and "at most 52" in reports.message


def test_one_that_is_being_deleted_is_left_alone() -> None:
    obj = cron()
    obj["metadata"]["deletionTimestamp"] = "2026-03-01T02:00:00Z"
    assert asked(obj) == []
