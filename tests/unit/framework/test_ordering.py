"""Who goes first. Every table holds for plugins that give keys and for plugins that compare pairs alike."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from pumice.columns.rows import JobRows, TaskRows
from pumice.columns.views import Job, Queue, SubJob, Task
from pumice.framework import points
from pumice.framework.ordering import (
    Heap,
    Keyer,
    compare_jobs,
    compare_queues,
    compare_tasks,
    heaps_by,
    job_keyer,
    queue_keyer,
    sorted_tasks,
    sub_job_keyer,
)
from pumice.framework.plugin import plugin
from pumice.framework.session import Session
from pumice.framework.victims import victim_queue
from pumice.model.podgroup import SubGroupPolicy
from pumice.testing.build import cluster, node, pod, podgroup, pods, queue, session

# -- opinions, each as a key and as a comparison


def sign(a: Any, b: Any) -> int:
    return int(a > b) - int(a < b)


def minimum_key(ssn: Session, jobs: JobRows) -> Any:
    return jobs.tables.jobs.min_available[jobs.rows]


def minimum_compare(ssn: Session, left: Job, right: Job) -> int:
    return sign(left.min_available, right.min_available)


def indifferent_key(ssn: Session, jobs: JobRows) -> Any:
    return np.zeros(len(jobs))


def indifferent_compare(ssn: Session, left: Job, right: Job) -> int:
    return 0


def weight_key(ssn: Session, queue: Queue) -> int:
    return -queue.obj.weight


def weight_compare(ssn: Session, left: Queue, right: Queue) -> int:
    return sign(right.obj.weight, left.obj.weight)


def task_key(ssn: Session, tasks: TaskRows) -> Any:
    return -tasks.priority


def task_compare(ssn: Session, left: Task, right: Task) -> int:
    return sign(right.priority, left.priority)


def size_key(ssn: Session, sub: SubJob) -> int:
    return -len(sub.tasks)


def size_compare(ssn: Session, left: SubJob, right: SubJob) -> int:
    return sign(len(right.tasks), len(left.tasks))


def opened(objects: Any, *tiers: list[tuple[points.Point, Callable[..., Any]]]) -> Session:
    """A session whose plugins have one hook each, in tiers."""
    made, entries = [], []
    for tier in tiers:
        names = []
        for point, hook in tier:
            names.append(f"p{len(made)}")
            made.append(plugin(names[-1])(point(anew(hook))))
        entries.append("- plugins: [" + ", ".join(f"{{name: {name}}}" for name in names) + "]\n")
    return session(cluster(*objects), "tiers:\n" + "".join(entries), plugins=made)


def anew(hook: Callable[..., Any]) -> Callable[..., Any]:
    """The same hook in a function of its own, since a point marks the one that it is given."""
    twin = type(hook)(hook.__code__, hook.__globals__)
    twin.__annotations__ = hook.__annotations__
    return twin


# -- jobs

JOBS = [
    podgroup("old-big", 3, creation=1.0),
    podgroup("old-small", 1, creation=1.0),
    podgroup("new-big", 3, creation=2.0),
    podgroup("new-small", 1, creation=2.0),
    podgroup("a-new-small", 1, creation=2.0),
]
BY_AGE = "old-big old-small a-new-small new-big new-small"
BY_MINIMUM = "old-small a-new-small new-small old-big new-big"


@pytest.mark.parametrize(
    ("tiers", "order"),
    [
        pytest.param([], BY_AGE, id="nobody: age, then UID"),
        pytest.param([[minimum_key]], BY_MINIMUM, id="a key"),
        pytest.param([[minimum_compare]], BY_MINIMUM, id="a comparison"),
        pytest.param([[indifferent_key, minimum_key]], BY_MINIMUM, id="keys, the first without opinion"),
        pytest.param([[indifferent_key], [minimum_compare]], BY_MINIMUM, id="a key, then a comparison"),
        pytest.param([[indifferent_compare], [minimum_key]], BY_MINIMUM, id="a comparison, then a key"),
        pytest.param([[indifferent_compare]], BY_AGE, id="a comparison without opinion"),
    ],
)
def test_order_of_jobs(tiers: list[list[Any]], order: str) -> None:
    """However it is asked for: from a heap, or pair by pair. (Many at once: test_jobs_in_order.py.)"""
    ssn = opened(JOBS, *[[(points.job_order, hook) for hook in tier] for tier in tiers])
    rows = np.arange(len(JOBS))
    keyer, name = job_keyer(ssn), [uid.removeprefix("ns/") for uid in ssn.tables.jobs.uids[: len(JOBS)]]
    wanted = order.split()
    assert [name[r] for r in Heap(keyer, rows.tolist()).pop_all()] == wanted
    places = {(a, b): sign(wanted.index(name[a]), wanted.index(name[b])) for a in rows for b in rows}
    for pair, place in places.items():
        assert compare_jobs(ssn, *pair) in (0, place)


def test_plugins_without_opinion_leave_two_jobs_equal() -> None:
    ssn = opened(JOBS, [(points.job_order, minimum_key)])
    assert [compare_jobs(ssn, 0, other) for other in range(4)] == [0, 1, 0, 1]


def test_a_key_that_changes_counts_from_the_next_push() -> None:
    """What an action changes is what it has just popped; comparisons look at things as they are."""
    ssn = opened(JOBS, [(points.job_order, minimum_key)])
    heap = Heap(job_keyer(ssn), [0, 1])
    assert heap.pop() == 1
    ssn.tables.jobs.min_available[1] = 9
    heap.push(1)
    assert heap.pop_all() == [0, 1]


# -- heaps


def by_value(rows: list[int]) -> list[Any]:
    return [-row for row in rows]


def test_a_heap() -> None:
    heap = Heap(by_value, [1, 3, 2])
    twin = heap.copy()
    heap.push(5)
    assert (heap.peek(), len(heap), sorted(heap.rows())) == (5, 4, [1, 2, 3, 5])
    assert [heap.pop() for _ in range(4)] == [5, 3, 2, 1]
    assert (len(heap), len(Heap(by_value))) == (0, 0)
    assert (twin.pop_all(), len(twin)) == ([3, 2, 1], 0)


def test_a_heap_for_each_group() -> None:
    asked: list[list[int]] = []

    def keyer(rows: list[int]) -> list[Any]:
        asked.append(rows)
        return by_value(rows)

    found = heaps_by(keyer, np.array([4, 5, 6, 7]), np.array([1, 0, 1, 0]))
    assert {group: heap.pop_all() for group, heap in found.items()} == {1: [6, 4], 0: [7, 5]}
    assert asked == [[4, 5, 6, 7]], "all keys at once"
    assert heaps_by(keyer, np.array([], dtype=np.int64), np.array([], dtype=np.int64)) == {}


def test_equal_keys_go_by_row() -> None:
    keyer: Keyer = lambda rows: [0] * len(rows)  # noqa: E731  a keyer in one line
    assert Heap(keyer, [2, 0, 1]).pop_all() == [0, 1, 2]


# -- queues

QUEUES = [queue("b", 1, creation=1.0), queue("c", 5, creation=1.0), queue("a", 1, creation=2.0)]


@pytest.mark.parametrize(
    ("tiers", "order"),
    [
        pytest.param([], "b c a", id="nobody: age, then name"),
        pytest.param([[weight_key]], "c b a", id="a key"),
        pytest.param([[weight_compare]], "c b a", id="a comparison"),
        pytest.param([[weight_compare, weight_key]], "c b a", id="both"),
    ],
)
def test_order_of_queues(tiers: list[list[Any]], order: str) -> None:
    ssn = opened(QUEUES, *[[(points.queue_order, hook) for hook in tier] for tier in tiers])
    names = ssn.tables.queues.names
    wanted = [names.index(name) for name in order.split()]
    assert Heap(queue_keyer(ssn), [0, 1, 2]).pop_all() == wanted
    found = [[compare_queues(ssn, a, b) for b in wanted] for a in wanted]
    assert found == [[0, -1, -1], [1, 0, -1], [1, 1, 0]]


# -- tasks


def in_gang(*members: Any) -> list[Any]:
    return [node("n"), podgroup("g"), *members]


@pytest.mark.parametrize(
    ("members", "order"),
    [
        pytest.param([("g-t-10", 0, 0), ("g-t-9", 5, 0)], "g-t-9 g-t-10", id="the number at the end of the name"),
        pytest.param([("g-10", 0, 0), ("g-9", 5, 0)], "g-10 g-9", id="which needs three parts: else the older"),
        pytest.param([("g-t-x", 1, 0), ("g-t-1", 2, 0)], "g-t-x g-t-1", id="and a number in both names"),
        pytest.param([("b", 0, 0), ("a", 0, 0)], "a b", id="of one age, by UID"),
        pytest.param([("a", 0, 1), ("b", 0, 9)], "b a", id="what plugins say before all that"),
        pytest.param([("g-t-1", 0, 7), ("g-t-0", 0, 7), ("b", 0, 8)], "b g-t-0 g-t-1", id="and the rest after"),
    ],
)
@pytest.mark.parametrize("hook", [task_key, task_compare], ids=["key", "comparison"])
def test_order_of_tasks(members: list[tuple[str, float, int]], order: str, hook: Any) -> None:
    """Members as (name, creation, priority)."""
    gang = [pod(name, "g", creation=creation, priority=value) for name, creation, value in members]
    ssn = opened(in_gang(*gang), [(points.task_order, hook)])
    rows = ssn.tables.jobs.tasks[0]
    found = [ssn.tables.tasks.pods[row].name for row in sorted_tasks(ssn, rows)]
    assert found == order.split()
    row_of = {ssn.tables.tasks.pods[row].name: row for row in rows.tolist()}
    ordered = [row_of[name] for name in order.split()]
    for i, left in enumerate(ordered):
        assert [compare_tasks(ssn, left, right) for right in ordered] == [sign(i, k) for k in range(len(ordered))]


def test_without_plugins_tasks_stay_as_they_come() -> None:
    ssn = opened(in_gang(pod("b", "g"), pod("a", "g", priority=9)))
    assert [ssn.tables.tasks.pods[row].name for row in sorted_tasks(ssn, ssn.tables.jobs.tasks[0])] == ["a", "b"]
    backwards = ssn.tables.jobs.tasks[0][::-1]
    assert sorted_tasks(ssn, backwards) is backwards


# -- sub-jobs


@pytest.mark.parametrize(
    ("hooks", "first", "order"),
    [
        pytest.param([], "", "2 10 10b 11", id="nobody: index, then UID"),
        pytest.param([size_key], "", "11 2 10 10b", id="a key"),
        pytest.param([size_compare], "", "11 2 10 10b", id="a comparison"),
        pytest.param([], "10b", "10b 2 10 11", id="what has begun goes before all"),
        pytest.param([size_key], "10b", "10b 11 2 10", id="also before what keys say"),
        pytest.param([size_compare], "10b", "10b 11 2 10", id="also before what comparisons say"),
    ],
)
def test_order_of_sub_jobs(hooks: list[Any], first: str, order: str) -> None:
    """Four parts of one gang by the label ``part``, the one called 11 being the largest."""
    policy = SubGroupPolicy("p", match_label_keys=("part", "side"))
    parts = [("11", "-"), ("10", "-"), ("10", "b"), ("2", "-"), ("11", "-")]
    labels = [{"part": part, "side": side} for part, side in parts]
    gang = [pod(f"p{i}", "g", labels=each) for i, each in enumerate(labels)]
    tiers = [[(points.sub_job_order, hook) for hook in hooks]] if hooks else []
    ssn = opened([node("n"), podgroup("g", 1, sub_groups=[policy]), *gang], *tiers)
    rows = list(ssn.tables.jobs.subs[0])
    name = {row: ssn.tables.subs.uids[row].removeprefix("ns/g/p-").replace("-", "") for row in rows}
    keyer = sub_job_keyer(ssn, frozenset(row for row in rows if name[row] == first))
    assert [name[row] for row in Heap(keyer, rows).pop_all()] == order.split()


# -- victims


@plugin("queues-say")
@points.victim_queue_order
def queues_say(ssn: Session, left: Queue, right: Queue, preemptor: Queue) -> int:
    """The queue whose weight is that of the preemptor's keeps its tasks."""
    return sign(left.obj.weight == preemptor.obj.weight, right.obj.weight == preemptor.obj.weight)


@pytest.mark.parametrize(
    ("preemptor", "conf", "order"),
    [
        pytest.param("x-0", "tiers: []", "late-1 late-0 early-1 early-0", id="of one queue: the last of the last job"),
        pytest.param("z-0", "tiers: []", "y-0 late-1 late-0 early-1 early-0", id="of two: the last queue first"),
        pytest.param(
            "z-0",
            "tiers: [{plugins: [{name: queues-say}]}]",
            "late-1 late-0 early-1 early-0 y-0",
            id="unless plugins say otherwise",
        ),
    ],
)
def test_who_is_evicted_first(preemptor: str, conf: str, order: str) -> None:
    queues = [queue("q1", 1), queue("q2", 2, creation=1.0), queue("q3", 2, creation=2.0)]
    gangs = {"early": ("q1", 2), "late": ("q1", 2), "x": ("q1", 1), "y": ("q2", 1), "z": ("q3", 1)}
    objects = [
        [podgroup(name, 1, of, creation=float(i)), pods(name, count, on="n", creation=float(i))]
        for i, (name, (of, count)) in enumerate(gangs.items())
    ]
    state = cluster(node("n"), *queues, *[each for pair in objects for each in pair])
    ssn = session(state, conf, plugins=[queues_say])
    row_of = {p.name: row for row, p in enumerate(ssn.tables.tasks.pods) if p is not None}
    heap = victim_queue(ssn, [row_of[name] for name in sorted(order.split())], row_of[preemptor])
    name_of = {row: name for name, row in row_of.items()}
    assert [name_of[row] for row in heap.pop_all()] == order.split()
