"""Processes that share out tasks: all answers, in any order; none outlives its use, whatever happens."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from typing import Any

import pytest

from pumice.cli.workers import Line, Part, TaskResult, WorkerError, Workers


def squares(offset: int) -> Callable[[int, Line], Any]:
    def do(task: int, line: Line) -> int:
        line.tell(0.5)
        if task == 13:
            raise ValueError("thirteen")
        if task == 66:
            os._exit(7)
        while task == 99:  # until it gets a signal to stop
            line.tell(0.9)
            time.thread_time()
        return task * task + offset

    return do


def test_every_task_is_answered() -> None:
    with Workers(3, squares, 1) as workers:
        found = list(workers.run(list(range(8))))
    assert {each.task: each.value for each in found if isinstance(each, TaskResult)} == {i: i * i + 1 for i in range(8)}
    assert {each.done for each in found if isinstance(each, Part)} == {0.5}
    assert not any(process.is_alive() for process in workers._processes.values())


@pytest.mark.parametrize(
    ("task", "result"),
    [pytest.param(13, "ValueError: thirteen", id="raises"), pytest.param(66, "a worker process ended", id="dies")],
)
def test_a_worker_that_fails_is_an_error(task: int, result: str) -> None:
    with Workers(2, squares, 0) as workers, pytest.raises(WorkerError, match=result):
        list(workers.run([1, task, 2]))
    assert not any(process.is_alive() for process in workers._processes.values())


def test_leaving_early_stops_them() -> None:
    with Workers(2, squares, 0) as workers:
        for event in workers.run([99, 2]):
            if isinstance(event, TaskResult):
                break
    assert [process.exitcode for process in workers._processes.values()] == [0, 0]


def test_no_tasks_no_workers() -> None:
    with Workers(2, squares, 0) as workers:
        assert list(workers.run([])) == []
    assert workers._processes == {}
