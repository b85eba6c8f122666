"""What goes first. Every table holds for plugins that give keys and for plugins that compare pairs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from pumice.columns.job_rows import JobRows
from pumice.columns.rows import TaskRows
from pumice.columns.views import Job, Queue, Task
from pumice.framework.cycle.ordering import Heap, Keyer, live, older
from pumice.framework.cycle.session import Session
from pumice.framework.plugin import points
from pumice.framework.plugin.plugin import plugin
from pumice.testing.build import cluster, node, pod, podgroup, queue, session
from tests.unit.framework.kit import anew

# -- opinions, each as a key and as a comparison


def sign(a: Any, b: Any) -> int:
    return int(a > b) - int(a < b)


def minimum_key(ssn: Session, jobs: JobRows) -> Any:
    return jobs.tables.jobs.min_available[jobs.rows]


def minimum_compare(ssn: Session, left: Job, right: Job) -> int:
    return sign(left.min_available, right.min_available)


def waits_key(ssn: Session, jobs: JobRows) -> Any:
    return jobs.tables.jobs.waits[jobs.rows]


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


def opened(objects: Any, *tiers: list[tuple[Any, Callable[..., Any]]]) -> Session:
    """A session whose plugins have one hook each, in tiers."""
    made, entries = [], []
    for tier in tiers:
        names = []
        for point, hook in tier:
            names.append(f"p{len(made)}")
            made.append(plugin(names[-1])(point(anew(hook))))
        entries.append("- plugins: [" + ", ".join(f"{{name: {name}}}" for name in names) + "]\n")
    return session(cluster(*objects), "tiers:\n" + "".join(entries), plugins=made)


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
    """However it is asked for: from a heap, or pair by pair. (Many at once: below.)"""
    ssn = opened(JOBS, *[[(points.job_order, hook) for hook in tier] for tier in tiers])
    rows = np.arange(len(JOBS))
    keyer, name = ssn.order.job_keys(), [uid.removeprefix("ns/") for uid in ssn.tables.jobs.uids[: len(JOBS)]]
    wanted = order.split()
    assert [name[r] for r in Heap(keyer, rows.tolist()).pop_all()] == wanted
    places = {(a, b): sign(wanted.index(name[a]), wanted.index(name[b])) for a in rows for b in rows}
    for pair, place in places.items():
        assert ssn.order.compare_jobs(*pair) in (0, place)


def test_plugins_without_opinion_leave_two_jobs_equal() -> None:
    ssn = opened(JOBS, [(points.job_order, minimum_key)])
    assert [ssn.order.compare_jobs(0, other) for other in range(4)] == [0, 1, 0, 1]


def test_a_key_that_changes_counts_from_the_next_push() -> None:
    """What an action changes is what it has just popped; comparisons look at things as they are."""
    ssn = opened(JOBS, [(points.job_order, waits_key)])
    ssn.journal.put(ssn.tables.jobs["waits"], 0, 1)
    heap = Heap(ssn.order.job_keys(), [0, 1])
    assert heap.pop() == 1
    ssn.journal.put(ssn.tables.jobs["waits"], 1, 9)
    heap.push(1)
    assert heap.pop_all() == [0, 1]


@pytest.mark.parametrize(
    ("hook", "order"),
    [
        pytest.param(None, BY_AGE, id="nobody"),
        pytest.param(minimum_key, BY_MINIMUM, id="a key"),
        pytest.param(minimum_compare, BY_MINIMUM, id="a comparison"),
    ],
)
@pytest.mark.parametrize("rows", [[], [3], [4, 1, 3], list(range(5)), list(range(5))[::-1]], ids=str)
def test_waiting_jobs_in_order(hook: Any, order: str, rows: list[int]) -> None:
    """One after the other, as a heap of them would give them."""
    ssn = opened(JOBS, [(points.job_order, hook)]) if hook else opened(JOBS)
    name = [uid.removeprefix("ns/") for uid in ssn.tables.jobs.uids[: len(JOBS)]]
    found = list(ssn.order.jobs_in_order(np.array(rows, dtype=np.int64)))
    assert [name[row] for row in found] == [each for each in order.split() if each in {name[row] for row in rows}]
    assert found == (Heap(ssn.order.job_keys(), rows).pop_all() if rows else [])


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
    names = list(ssn.tables.queues.names)
    wanted = [names.index(name) for name in order.split()]
    assert Heap(ssn.order.queue_keys(), [0, 1, 2]).pop_all() == wanted
    found = [[ssn.order.compare_queues(a, b) for b in wanted] for a in wanted]
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
    found = [ssn.tables.tasks.pods[row].name for row in ssn.order.sorted_tasks(rows)]
    assert found == order.split()
    row_of = {ssn.tables.tasks.pods[row].name: row for row in rows.tolist()}
    ordered = [row_of[name] for name in order.split()]
    for i, left in enumerate(ordered):
        assert [ssn.order.compare_tasks(left, right) for right in ordered] == [sign(i, k) for k in range(len(ordered))]


def test_without_plugins_tasks_stay_as_they_come() -> None:
    ssn = opened(in_gang(pod("b", "g"), pod("a", "g", priority=9)))
    assert [ssn.tables.tasks.pods[row].name for row in ssn.order.sorted_tasks(ssn.tables.jobs.tasks[0])] == ["a", "b"]
    backwards = ssn.tables.jobs.tasks[0][::-1]
    assert ssn.order.sorted_tasks(backwards) is backwards


# -- what all orders are made of


@pytest.mark.parametrize(
    ("left", "right", "sign_of"),
    [
        pytest.param(0, 1, -1, id="the older"),
        pytest.param(1, 0, 1, id="the younger"),
        pytest.param(1, 2, 1, id="of one age, the later name"),
        pytest.param(2, 1, -1, id="of one age, the earlier name"),
        pytest.param(1, 1, 0, id="the same"),
    ],
)
def test_older(left: int, right: int, sign_of: int) -> None:
    assert older([1.0, 2.0, 2.0], ["x", "b", "a"], left, right) == sign_of


def test_live_keys_compare_rows_as_they_meet() -> None:
    worth = {0: 5, 1: 3, 2: 4}
    heap = Heap(live(lambda a, b: worth[a] - worth[b]), [0, 1, 2])
    assert heap.pop_all() == [1, 2, 0]
