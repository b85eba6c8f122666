"""From decoded objects to what is there and what arrives; and the examples that are shipped."""

from __future__ import annotations

import math
from pathlib import Path

import pytest
from msgspec.structs import replace

from pumice.model.bind_request import BindRequest
from pumice.model.devices.claims import ResourceClaim
from pumice.model.pod import Pod
from pumice.model.queue import PriorityClass, Queue
from pumice.model.workloads.job import BatchJob, JobTask, PodTemplate, VolcanoJob
from pumice.model.workloads.podgroup import PodGroup
from pumice.runtime.files.manifests import load_manifests
from pumice.runtime.problems.problem import Severity
from pumice.sim.scenes.manifests import ManifestJob, scene_of
from pumice.sim.workloads.work import LooseGang
from tests.unit.sim.kit import SPECS, node, pod, simulation, world

EXAMPLES = Path(__file__).parents[4] / "examples"


def volcano_job(name: str, size: int = 2, uid: str = "", **annotations: str) -> VolcanoJob:
    task = JobTask("worker", size, PodTemplate(SPECS[1]))
    notes = {f"pumice.dev/{key}": value for key, value in annotations.items()}
    return VolcanoJob("ns", name, (task,), size, uid=uid, annotations=notes)


def test_a_volcano_job_arrives_and_runs_as_its_annotations_say() -> None:
    scene = scene_of([volcano_job("a", arrival="5m", duration="1h30m"), node("n0"), Queue("default")])
    (work,) = scene.works
    assert isinstance(work, ManifestJob)
    assert (work.key, work.arrival_s, work.duration_s) == ("ns/a", 300, 5400)
    group, pods = work.expand(300.0)
    assert (group.creation, [p.key for p in pods]) == (300, ["ns/a-worker-0", "ns/a-worker-1"])
    assert [type(obj).__name__ for obj in scene.objects] == ["Queue", "Node"]


def test_without_a_duration_the_estimate_counts_or_it_runs_for_ever() -> None:
    assert math.isinf(ManifestJob(volcano_job("a")).duration_s)
    assert ManifestJob(replace(volcano_job("a"), running_estimate_s=60.0)).duration_s == 60


@pytest.mark.parametrize("text", ["soon", "-5m", "9999999h", "5"])
def test_spans_that_are_none_are_named_and_left_out(text: str) -> None:
    scene = scene_of([volcano_job("a", arrival=text)])
    (problem,) = scene.problems
    assert problem.where == "VolcanoJob ns/a"
    assert problem.what.startswith("annotation pumice.dev/arrival: ")
    assert scene.works[0].arrival_s == 0


def test_pods_of_a_group_make_a_gang_and_pods_of_none_get_one() -> None:
    notes = {"scheduling.k8s.io/group-name": "g"}
    loose = [pod("g-2", annotations=notes), pod("g-10", annotations=notes)]
    stray = pod("stray", annotations={"scheduling.k8s.io/group-name": "unknown"})
    scene = scene_of([*loose, stray, pod("bare"), PodGroup("ns", "g", "u", min_member=2)])
    assert [work.key for work in scene.works] == ["ns/g", "ns/podgroup-uid-bare"]
    gang = scene.works[0]
    assert isinstance(gang, LooseGang)
    assert [p.name for p in gang.pods] == ["g-2", "g-10"]
    assert scene.objects == (stray,)


def test_a_job_whose_group_is_there_already_only_says_how_long() -> None:
    group = PodGroup("ns", "a-1", "u", min_member=1)
    member = pod("a-worker-0", annotations={"scheduling.k8s.io/group-name": "a-1"})
    scene = scene_of([volcano_job("a", uid="1", duration="10s"), group, member])
    (work,) = scene.works
    assert isinstance(work, LooseGang)
    assert (work.duration_s, [p.key for p in work.pods]) == (10, ["ns/a-worker-0"])


def test_the_order_of_objects_does_not_matter() -> None:
    objects = [
        volcano_job("b"),
        volcano_job("a"),
        node("n1"),
        node("n0"),
        Queue("q1"),
        Queue("q0"),
        pod("x"),
        pod("y"),
        PriorityClass("high", 10),
    ]
    one, two = scene_of(objects), scene_of(reversed(objects))
    assert one.objects == two.objects
    assert [work.key for work in one.works] == [work.key for work in two.works]


def tasked(name: str, *tasks: str, **more: object) -> VolcanoJob:
    """A job with one pod a task."""
    made = tuple(JobTask(task, 1, PodTemplate(SPECS[1])) for task in tasks)
    return VolcanoJob("ns", name, made, len(made), **more)  # type: ignore[arg-type]  # fields of a job, by name


@pytest.mark.parametrize(
    ("first", "second", "why"),
    [
        pytest.param(
            tasked("a", "b-c"), tasked("a-b", "c"), "pod ns/a-b-c-0 would be that of Job ns/a as well", id="two jobs"
        ),
        pytest.param(
            tasked("a", "x", uid="b-c"),
            tasked("a-b", "y", uid="c"),
            "PodGroup ns/a-b-c would be that of Job ns/a as well",
            id="the groups of two jobs",
        ),
        pytest.param(
            BatchJob("ns", "a-b", PodTemplate(SPECS[1])),
            tasked("a-b-c", "c"),
            "",
            id="other names",
        ),
        pytest.param(
            BatchJob("ns", "a-b", PodTemplate(SPECS[1])),
            replace(tasked("a", "b"), creation=1.0),
            "pod ns/a-b-0 would be that of Job ns/a-b as well",
            id="a job of kubernetes",
        ),
        pytest.param(
            pod("a-b-0"),
            tasked("a", "b"),
            "pod ns/a-b-0 exists already and belongs to another job",
            id="a pod that is there",
        ),
        pytest.param(pod("a-b-1"), tasked("a", "b"), "", id="a pod with a number beyond"),
        pytest.param(pod("a-b-00"), tasked("a", "b"), "", id="a pod with another number"),
    ],
)
def test_no_pod_is_lost_to_another_of_its_name(first: object, second: VolcanoJob, why: str) -> None:
    """What comes first keeps the name; the job that cannot have it is left out, and named."""
    for objects in ([first, second], [second, first]):
        scene = scene_of([*objects, node("n0"), Queue("default")])  # type: ignore[list-item]
        left_out = [problem for problem in scene.problems if problem.severity is Severity.ERROR]
        assert [str(problem) for problem in left_out] == ([f"error: Job {second.key}: left out: {why}"] if why else [])
        works = [work.expand(0.0) for work in scene.works]
        names = [made.key for _, pods in works for made in pods]
        assert len(names) == len(set(names))


def test_older_jobs_keep_their_names() -> None:
    older, newer = replace(tasked("a-b", "c"), creation=1.0), replace(tasked("a", "b-c"), creation=2.0)
    scene = scene_of([newer, older, Queue("default")])
    assert [work.key for work in scene.works] == ["ns/a-b"]


def test_the_pods_of_a_job_that_are_there_are_its_own() -> None:
    notes = {"scheduling.k8s.io/group-name": "a"}
    there = [pod("a-b-0", annotations=notes), PodGroup("ns", "a", "u", min_member=1)]
    scene = scene_of([tasked("a", "b"), *there, Queue("default")])
    assert [work.key for work in scene.works] == ["ns/a"]
    assert not scene.problems


def test_a_kubernetes_job_runs_its_pods_each_for_itself() -> None:
    job = BatchJob(
        "ns", "k", PodTemplate(SPECS[1]), parallelism=2, completions=5, annotations={"pumice.dev/duration": "9s"}
    )
    scene = scene_of([job, node("n0"), Queue("default")])
    (work,) = scene.works
    assert [p.annotations["pumice.dev/duration"] for p in work.expand(0.0)[1]] == ["9s", "9s"]
    assert [str(p) for p in scene.problems] == [
        "warning: Job ns/k: completions 5 above parallelism: only the first 2 pods are run"
    ]
    cluster, controller = world()
    scene.enter(cluster, controller)
    result = simulation(cluster, controller)[0].run()
    assert (result.completed, result.now) == (1, 9)


def test_what_a_simulation_does_not_use_is_said() -> None:
    scene = scene_of([BindRequest("ns", "request", "pod", "n0"), ResourceClaim("ns", "claim")])
    assert [str(p) for p in scene.problems] == ["note: BindRequest ns/request: is not used by a simulation yet"]


def test_the_demo_example_runs_but_for_the_job_that_cannot() -> None:
    manifests = load_manifests([EXAMPLES / "demo"])
    assert manifests.problems == ()
    scene = scene_of(manifests.objects)
    assert scene.problems == ()
    assert 20 <= len(scene.works) <= 30
    cluster, controller = world()
    scene.enter(cluster, controller)
    assert {len(cluster.nodes), len(cluster.hypernodes)} == {12, 4}
    result = simulation(cluster, controller)[0].run()
    assert (result.completed, result.pending, result.problems) == (len(scene.works) - 1, ("demo/giant",), ())


@pytest.mark.parametrize(("folder", "minimum"), [("debug-gang", 8), ("debug-gang-min-6", 6)])
def test_the_gang_example_is_the_one_of_the_guide(folder: str, minimum: int) -> None:
    manifests = load_manifests([EXAMPLES / folder])
    assert manifests.problems == ()
    scene = scene_of(manifests.objects)
    assert scene.problems == ()
    (work,) = scene.works
    group, pods = work.expand(0.0)
    assert (group.key, group.min_member, dict(group.min_task_member)) == ("ml/tf", minimum, {"ps": 1, "worker": 7})
    assert [p.name for p in pods] == ["tf-ps-0", *(f"tf-worker-{i}" for i in range(7))]
    assert {(p.spec.request.milli_cpu, p.spec.request.memory) for p in pods} == {(1000, 2**30)}
    assert [obj.name for obj in scene.objects if not isinstance(obj, Pod)] == ["default", *(f"n{i}" for i in range(6))]
