"""Which Jobs a JobFlow makes, in which order, how often, and what it says about them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from pumice.model.instants import stamp
from pumice.runtime.controllers.job_flow_spec import Retry, patched
from pumice.runtime.controllers.job_flows import FLOW_API, TEMPLATE_KEY, reconcile_job_flow, reconcile_job_template
from pumice.runtime.controllers.writes import Create, Delete, Emit, Patch, Wake, Write, merged
from tests.unit.runtime.controllers.job_world import JOB, NOW, task

Obj = dict[str, Any]


def after(*targets: str, **more: Any) -> Obj:
    return {"dependsOn": {"targets": list(targets), **more}}


def flow(*flows: Obj | str, **spec: Any) -> Obj:
    items = [{"name": each} if isinstance(each, str) else each for each in flows]
    metadata = {"name": "f", "namespace": "ns", "uid": "flow-uid", "creationTimestamp": stamp(NOW)}
    return {"apiVersion": FLOW_API, "kind": "JobFlow", "metadata": metadata, "spec": {"flows": items, **spec}}


def template(name: str) -> Obj:
    metadata = {"name": name, "namespace": "ns"}
    return {"apiVersion": FLOW_API, "kind": "JobTemplate", "metadata": metadata, "spec": {"tasks": [task("w", 2)]}}


class World:
    """A flow and its Jobs. ``look`` asks the controller once and does as it says."""

    def __init__(self, obj: Obj, templates: str = "abcde") -> None:
        self.obj, self.now = obj, NOW
        self.templates = {name: template(name) for name in templates}
        self.jobs: dict[str, Obj] = {}
        self.count = 0

    def look(self) -> list[Write]:
        writes = reconcile_job_flow(self.obj, list(self.jobs.values()), self.templates, self.now)
        for write in writes:
            match write:
                case Create(obj):
                    self.count += 1
                    made = {"uid": f"uid-{self.count}", "creationTimestamp": stamp(self.now)}
                    metadata = {**obj["metadata"], **made}
                    self.jobs[obj["metadata"]["name"]] = {**obj, "metadata": metadata}
                case Delete(ref):
                    del self.jobs[ref.name]
                case Patch(_, merge):
                    self.obj = merged(self.obj, merge)
        return writes

    def become(self, phase: str, *names: str) -> None:
        for name in names:
            state = {"phase": phase, "lastTransitionTime": stamp(self.now)}
            self.jobs[f"f-{name}"] = {**self.jobs[f"f-{name}"], "status": {"state": state}}

    @property
    def made(self) -> list[str]:
        self.look()
        return sorted(name.removeprefix("f-") for name in self.jobs)

    @property
    def phase(self) -> str:
        self.look()
        return str(self.obj["status"]["state"]["phase"])


def test_jobs_are_made_when_those_before_have_completed() -> None:
    world = World(flow("a", {"name": "b", **after("a")}, {"name": "c", **after("a")}, {"name": "d", **after("b", "c")}))
    assert (world.made, world.phase) == (["a"], "Pending")
    world.become("Running", "a")
    assert (world.made, world.phase) == (["a"], "Running")
    world.become("Completed", "a")
    assert world.made == ["a", "b", "c"]
    world.become("Completed", "b")
    assert world.made == ["a", "b", "c"]
    world.become("Completed", "c")
    assert world.made == ["a", "b", "c", "d"]
    world.become("Completed", "d")
    assert world.phase == "Succeed"
    assert world.obj["status"]["completedJobs"] == ["f-a", "f-b", "f-c", "f-d"]


def test_a_job_is_as_its_template_and_the_patch_say() -> None:
    wanted = {"tasks": [{"name": "w", "replicas": 5}], "queue": "gold"}
    world = World(flow({"name": "a", "patch": {"spec": wanted}}))
    world.look()
    job = world.jobs["f-a"]
    assert (job["apiVersion"], job["kind"], job["spec"]["queue"]) == (JOB, "Job", "gold")
    assert job["spec"]["tasks"] == [{**task("w", 2), "replicas": 5}]
    assert job["metadata"]["ownerReferences"][0]["uid"] == "flow-uid"
    assert job["metadata"]["annotations"] == job["metadata"]["labels"] == {TEMPLATE_KEY: "ns.a"}


@pytest.mark.parametrize(
    ("done", "made"),
    [((), ["a", "b"]), (("a",), ["a", "b", "c"]), (("b",), ["a", "b", "c"])],
)
def test_one_of_several_may_do(done: tuple[str, ...], made: list[str]) -> None:
    world = World(flow("a", "b", {"name": "c", **after("a", "b", strategy="any")}))
    world.look()
    world.become("Completed", *done)
    assert world.made == made


@pytest.mark.parametrize(
    ("counts", "far_enough"),
    [
        pytest.param({"Pending": 2}, False, id="none runs"),
        pytest.param({"Running": 1, "Pending": 1}, False, id="not as many as the task must have"),
        pytest.param({"Running": 2}, True, id="all run"),
        pytest.param({"Running": "2"}, False, id="no number"),
    ],
)
def test_a_job_may_wait_for_tasks_of_others(counts: Mapping[str, Any], far_enough: bool) -> None:
    probe = {"taskStatusList": [{"taskName": "w", "phase": "Running"}, {"taskName": "not of a", "phase": "Running"}]}
    world = World(flow("a", {"name": "b", **after("a", probe=probe)}))
    world.look()
    world.jobs["f-a"]["status"] = {"state": {"phase": "Running"}, "taskStatusCount": {"w": {"phase": counts}}}
    assert world.made == (["a", "b"] if far_enough else ["a"])
    world.become("Completed", "a")
    assert world.made == ["a", "b"]


def test_nothing_more_is_made_once_one_has_failed() -> None:
    world = World(flow("a", "b", {"name": "c", **after("b")}))
    world.look()
    world.become("Failed", "a")
    world.become("Completed", "b")
    assert (world.made, world.phase) == (["a", "b"], "Failed")
    world.become("Completed", "a")  # a user restarted it
    assert (world.made, world.phase) == (["a", "b", "c"], "Running")


@pytest.mark.parametrize(("policy", "left"), [("retain", ["a"]), ("delete", [])])
def test_what_stays_when_all_has_gone_well(policy: str, left: list[str]) -> None:
    world = World(flow("a", jobRetainPolicy=policy))
    world.look()
    world.become("Completed", "a")
    world.look()
    assert (world.made, world.phase) == (left, "Succeed")
    assert world.look() == [], "and it is not made again"


def test_a_job_that_failed_is_made_anew_after_a_while_and_so_often() -> None:
    world = World(
        flow({"name": "a", "retryPolicy": {"maxRetries": 2, "backoff": {"baseDelay": "1m", "maxDelay": "90s"}}})
    )
    world.look()
    for delay in (60.0, 90.0):
        world.become("Failed", "a")
        assert [write.after_s for write in world.look() if isinstance(write, Wake)] == [delay]
        assert world.phase == "Running"
        world.now += delay
        assert [write.ref.name for write in world.look() if isinstance(write, Delete)] == ["f-a"]
        assert world.made == ["a"] and "status" not in world.jobs["f-a"]
    world.become("Failed", "a")
    assert world.phase == "Failed"
    assert world.obj["status"]["retries"] == {"a": {"times": 2, "uid": "uid-2"}}


def test_a_job_that_is_always_run_again_counts_as_done_after_its_last_try() -> None:
    always = {"policy": "Always", "maxRetries": 2, "backoff": {"baseDelay": "1s", "type": "Constant"}}
    world = World(flow({"name": "a", "retryPolicy": always}, {"name": "b", **after("a")}))
    world.look()
    for end in ("Completed", "Failed"):
        world.become(end, "a")
        world.look()
        assert (world.made, world.phase) == (["a"], "Running"), "who waits for it waits on"
        world.now += 1
        assert [write.ref.name for write in world.look() if isinstance(write, Delete)] == ["f-a"]
        assert world.made == ["a"] and "status" not in world.jobs["f-a"]
    world.become("Completed", "a")
    assert world.made == ["a", "b"]
    world.become("Completed", "b")
    assert world.phase == "Succeed"


def test_a_job_that_was_aborted_is_not_run_again_even_where_it_always_is() -> None:
    world = World(flow("a", retryPolicy={"policy": "Always", "maxRetries": 2}))
    world.look()
    world.become("Aborted", "a")
    assert world.phase == "Failed"


def test_a_job_that_is_not_gone_yet_is_not_counted_twice() -> None:
    """What is watched of the flow and of its Jobs comes by two streams."""
    world = World(flow("a", retryPolicy={"maxRetries": 3, "backoff": {"baseDelay": "1s", "type": "Constant"}}))
    world.look()
    world.become("Failed", "a")
    world.now += 1
    failed = dict(world.jobs)
    world.look()
    world.jobs = failed
    assert world.look() == []
    assert (world.phase, world.obj["status"]["retries"]["a"]["times"]) == ("Running", 1)


def test_retries_of_a_flow_go_before_those_of_all() -> None:
    own = {"name": "a", "retryPolicy": {"policy": "Never", "maxRetries": 5}}
    world = World(flow(own, "b", retryPolicy={"maxRetries": 1}))
    world.look()
    world.become("Failed", "b")
    assert world.phase == "Running"
    world.become("Failed", "a")
    assert world.phase == "Failed"


def test_waiting_grows_and_has_an_end() -> None:
    assert [Retry(9).delay_s(n) for n in (0, 1, 2, 3, 4, 99)] == [30, 60, 120, 240, 300, 300]
    assert Retry(9, 5.0, doubles=False).delay_s(7) == 5.0


def test_a_missing_template_is_reported_and_waited_for() -> None:
    world = World(flow("a", "z"))
    said = [write for write in world.look() if isinstance(write, Emit) and write.type == "Warning"]
    assert [(each.reason, "JobTemplate z" in each.message) for each in said] == [("TemplateNotFound", True)]
    assert list(world.jobs) == ["f-a"]
    world.templates["z"] = template("z")
    assert world.made == ["a", "z"]


def test_the_status_tells_of_each_job_and_is_written_once() -> None:
    world = World(flow("a", "b"))
    world.look()
    world.become("Pending", "a", "b")
    world.look()
    world.become("Running", "a")
    world.now += 60
    world.look()
    status = world.obj["status"]
    assert (status["runningJobs"], status["pendingJobs"]) == (["f-a"], ["f-b"])
    first, second = status["jobStatusList"][0]["runningHistories"]
    assert first == {"state": "Pending", "startTimestamp": stamp(NOW), "endTimestamp": stamp(NOW + 60)}
    assert second == {"state": "Running", "startTimestamp": stamp(NOW + 60)}
    assert status["conditions"]["f-a"] == {"phase": "Running", "createTime": stamp(NOW)}
    world.now += 60
    assert world.look() == []


_LOOP = ({"name": "a", **after("c")}, {"name": "b", **after("a")}, {"name": "c", **after("b")}, "d")


@pytest.mark.parametrize(
    ("obj", "word"),
    [
        pytest.param(flow(*_LOOP), "a, b, c, which depend on each other", id="a circle"),
        pytest.param(flow({"name": "a", **after("a")}), "depend on each other", id="itself"),
        pytest.param(flow({"name": "a", **after("x")}), "found x, wanted one of a", id="one that is not there"),
        pytest.param(flow("a", "a"), "a second time", id="a name twice"),
        pytest.param(flow({"dependsOn": {}}), "spec.flows[0].name", id="no name"),
        pytest.param(flow("a" * 62), "at most 62 characters", id="a name that is too long"),
        pytest.param(flow(*(f"x{i}" for i in range(1001))), "at most 1000", id="very many"),
        pytest.param(flow("a", jobRetainPolicy="burn"), "spec.jobRetainPolicy", id="no policy"),
        pytest.param(flow({"name": "a", **after("b", strategy="some")}, "b"), "strategy", id="no strategy"),
        pytest.param(flow("a", retryPolicy={"maxRetries": 10**9}), "maxRetries", id="very many tries"),
        pytest.param(flow("a", retryPolicy={"policy": "Sometimes"}), "policy", id="no retry policy"),
        pytest.param(flow("a", retryPolicy={"backoff": {"baseDelay": "soon"}}), "a duration", id="no duration"),
        pytest.param(
            flow("b", {"name": "a", **after("b", probe={"httpGetList": [{"taskName": "w", "path": "/", "port": 1}]})}),
            "HTTP probes are not supported",
            id="an address to ask",
        ),
        pytest.param(flow("a") | {"spec": {"flows": 5}}, "spec.flows", id="no list"),
    ],
)
def test_what_cannot_be_meant_is_reported_and_nothing_is_made(obj: Obj, word: str) -> None:
    world = World(obj)
    (reports,) = world.look()
    assert isinstance(reports, Emit) and (reports.type, reports.reason) == ("Warning", "InvalidSpec")
    assert word in reports.message


def test_lists_are_patched_by_name() -> None:
    spec = {"tasks": [{"name": "x", "n": 1}, {"name": "y", "n": 2}], "plain": [1, 2]}
    patch = {"tasks": [{"name": "y", "n": 3}, {"name": "z"}], "plain": [3]}
    assert patched(spec, patch) == {
        "tasks": [{"name": "x", "n": 1}, {"name": "y", "n": 3}, {"name": "z"}],
        "plain": [3],
    }


def test_a_template_says_what_was_made_of_it() -> None:
    world = World(flow("a", "b"))
    world.look()
    (patch,) = reconcile_job_template(world.templates["a"], list(world.jobs.values()))
    assert isinstance(patch, Patch) and patch.merge == {"status": {"jobDependsOnList": ["f-a"]}}
    said = world.templates["a"] | patch.merge
    assert reconcile_job_template(said, list(world.jobs.values())) == []
