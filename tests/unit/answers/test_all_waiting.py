"""All waiting jobs by code, and the one change that frees most."""

from __future__ import annotations

from msgspec.structs import replace

from pumice.answers.all_waiting import overview
from pumice.answers.codes import Code
from pumice.answers.explanation import explain
from pumice.answers.world import Trials, World
from pumice.model.blockers import Amount
from pumice.model.devices.gpu import GpuShare
from pumice.model.events import Object
from pumice.model.queue import QueueSharing, Quota
from pumice.model.workloads.gang import Gang
from pumice.runtime.policy.conf import policy_of
from pumice.runtime.policy.languages import builtin_registry
from pumice.testing.build import node, podgroup, pods, queue, resource
from pumice.volcano.table import DEFAULT_CONF, volcano_registry


def world(*objects: Object) -> World:
    return World(objects, policy_of(DEFAULT_CONF, volcano_registry()), 0.0, ("volcano",))


def gang(name: str, of: str, gpus: int) -> list[Object]:
    return [podgroup(name, 1, of, min_resources=resource(1, "1Gi", gpus)), *pods(name, 1, gpu=gpus)]


def test_jobs_are_grouped_by_code_and_the_most_gpus_come_first() -> None:
    limited = queue("small", capability=resource(32, "64Gi", 1))
    jobs = [*gang("a", "small", 2), *gang("b", "small", 4), *gang("c", "big", 16)]
    found = overview(Trials(world(node("n", 64, "256Gi", 8), limited, queue("big"), *jobs), 16))
    assert [(group.code, group.jobs, group.gpus) for group in found.groups] == [
        (Code.ADMISSION, ("ns/c",), 16.0),
        (Code.QUEUE_LIMIT, ("ns/a", "ns/b"), 6.0),
    ]


def test_the_change_that_frees_most_was_run() -> None:
    limited = queue("small", capability=resource(32, "64Gi", 1))
    jobs = [*gang("a", "small", 2), *gang("b", "small", 4)]
    found = overview(Trials(world(node("n", 64, "256Gi", 8), limited, *jobs), 16))
    assert found.relief is not None
    assert found.relief.text == "no limit for queue small and those above it"
    assert (found.relief.jobs, found.relief.gpus) == (2, 6.0)


def test_without_waiting_jobs_there_is_nothing_to_say() -> None:
    found = overview(Trials(world(node("n"), queue("q"), *gang("a", "q", 0)), 16))
    assert (found.groups, found.relief) == ((), None)


def test_a_job_whose_pods_are_created_when_it_is_admitted_starts_by_that() -> None:
    waits = podgroup("a", 4, "q", min_resources=resource(4, "4Gi", 0), phase="Pending")
    runs = [podgroup("r", 1, "q"), *pods("r", 1, cpu=8, on="n")]
    found = overview(Trials(world(node("n", 9, "64Gi"), queue("q"), *runs, waits), 16))
    assert [group.code for group in found.groups] == [Code.ADMISSION]
    assert found.relief is not None and (found.relief.jobs, found.relief.cores) == (1, 4.0)


def test_a_job_that_shares_a_gpu_asks_for_its_part() -> None:
    half, line = GpuShare(fraction=0.5), replace(queue("q"), sharing=QueueSharing(*[Quota(None, None, 1.0)] * 3))
    group = replace(podgroup("a", 3, "q"), gang=Gang())
    asks = [
        replace(pod, spec=replace(pod.spec, gpu_share=half)) for pod in pods("a", 3, scheduler_name="kai-scheduler")
    ]
    kai = policy_of("dialect: kai\n", builtin_registry())
    given = World([node("n", gpu=1), line, group, *asks], kai, 0.0, ("kai-scheduler",))
    (found,) = overview(Trials(given, 16)).groups
    assert (found.jobs, found.gpus) == (("ns/a",), 1.5)
    assert explain(given, "ns/a").each == Amount("nvidia.com/gpu", 500.0)
