"""Plugins of a session: when they are built, who is asked, and who is blamed."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from pumice.columns.job_rows import JobRows
from pumice.columns.runs import TaskRun
from pumice.columns.views import Job, Queue
from pumice.framework.cycle.session import Session
from pumice.framework.plugin import points
from pumice.framework.plugin.errors import PluginError, PluginFault
from pumice.framework.plugin.hooks import Hooks
from pumice.framework.plugin.plugin import plugin
from pumice.framework.plugin.point import JOBS, NOW, PODS, QUEUES, ROWS, Reads
from pumice.framework.plugin.resolution import Reading
from pumice.testing.build import cluster, node, podgroup, pods, session

STATE = cluster(node("n"), podgroup("g", 2), pods("g", 2)).snapshot()


@plugin("classic", keeps="python")
class Classic:
    """A plugin in Volcano's life cycle: it adds its hooks when the session opens."""

    def __init__(self, ssn: Session) -> None:
        self.reports: list[str] = []

    def on_session_open(self, ssn: Session) -> None:
        ssn.add(points.overused, self.overused)
        ssn.add(points.on_deallocate, self.gone)

    def overused(self, queue: Queue) -> bool:
        return queue.obj.weight > 1

    def gone(self, run: TaskRun) -> None:
        self.reports.append("gone")


@plugin("modern")
class Modern:
    def __init__(self, ssn: Session) -> None:
        self.own = ssn.column("modern.own", "job", values=np.array([4.0]))
        self.other = ssn.column("modern.other")

    @points.job_order(reads=(ROWS,))
    def order(self, jobs: JobRows) -> Any:
        return self.own.array[jobs.rows]

    @points.job_ready
    def ready(self, job: Job) -> int:
        raise KeyError("in\nhere")

    def aside(self) -> None:
        raise ValueError("beside every point")


@plugin("wrong-answer")
@points.job_valid
def wrong_answer(ssn: Session, job: Job) -> Any:
    return 7


def hooks(names: str, *more: Callable[..., Any]) -> Hooks:
    return opened(names, *more).hooks


def opened(names: str, *more: Callable[..., Any]) -> Session:
    conf = f"tiers: [{{plugins: {[{'name': name} for name in names.split()]}}}]"
    return session(STATE, conf, plugins=[Classic, Modern, wrong_answer, *more])


# -- plugins


def test_plugins_are_open_in_the_order_of_the_policy() -> None:
    assert [(name, type(each)) for name, each in hooks("modern classic").opened] == [
        ("modern", Modern),
        ("classic", Classic),
    ]


def test_hooks_that_were_added_are_asked_like_those_of_a_class() -> None:
    found = hooks("classic modern")
    assert [hook.plugin for hook in found.at(points.overused, points.job_order)] == ["classic", "modern"]
    assert (found.has(points.overused), found.has(points.allocatable)) == (True, False)


def test_a_hook_that_is_added_too_late_is_an_error() -> None:
    with pytest.raises(PluginError, match=r"hook at point overused added outside of on_session_open"):
        hooks("classic").add(points.overused, lambda queue: True)


def test_a_plugin_that_fails_while_it_opens_is_named() -> None:
    @plugin("stillborn")
    class Stillborn:
        def __init__(self, ssn: Session) -> None:
            raise RuntimeError("not today")

        @points.overused
        def overused(self, queue: Queue) -> bool:
            return False

    with pytest.raises(PluginFault, match="not today") as caught:
        hooks("modern stillborn", Stillborn)
    assert (caught.value.plugin, caught.value.point, caught.value.hook) == ("stillborn", "opening", "__init__")


def test_who_hears_of_a_rollback() -> None:
    """Plugins with state of their own; what is in columns is rolled back as it is."""
    ssn = opened("modern classic")
    assert (len(ssn.hooks.notified_by_inverse(points.on_deallocate)), ssn.hooks.with_python_state) == (1, {"classic"})
    assert [ssn.hooks.keeps_state(ssn.world, name) for name in ("classic", "modern", "wrong-answer")] == [
        True,
        True,
        False,
    ]


# -- who is blamed


def at_point(ssn: Session) -> None:
    ssn.ask(points.job_ready, Job(ssn.tables, 0))


def alone(ssn: Session) -> None:
    (hook,) = ssn.hooks.at(points.job_ready)
    ssn.hooks.ask_one(hook, Job(ssn.tables, 0))


def beside(ssn: Session) -> None:
    ssn.hooks.guard("modern", "figures", ssn.hooks.plugin("modern").aside)


def wrong(ssn: Session) -> None:
    ssn.ask(points.job_valid, Job(ssn.tables, 0))


@pytest.mark.parametrize(
    ("does", "names", "problem"),
    [
        pytest.param(at_point, "modern job_ready Modern.ready", "KeyError: 'in\\nhere'", id="at a point"),
        pytest.param(alone, "modern job_ready Modern.ready", "KeyError: 'in\\nhere'", id="one hook"),
        pytest.param(beside, "modern figures Modern.aside", "ValueError: beside every point", id="beside every point"),
        pytest.param(wrong, "wrong-answer job_valid wrong_answer", "answered 7, wanted", id="of no use"),
    ],
)
def test_a_fault_names_who_did_it(does: Callable[[Session], None], names: str, problem: str) -> None:
    with pytest.raises(PluginFault) as caught:
        does(opened("modern wrong-answer"))
    fault = caught.value
    assert f"{fault.plugin} {fault.point} {fault.hook}" == names
    assert fault.problem.startswith(problem)
    assert fault.where.rpartition(":")[0] == __file__


@plugin("opens-badly")
class OpensBadly:
    def __init__(self, ssn: Session) -> None:
        self.own = ssn.column("opens-badly.own", "user")

    @points.job_ready
    def ready(self, job: Job) -> bool:
        return True


@plugin("opens-badly-too", keeps="python")
class OpensBadlyToo:
    def __init__(self, ssn: Session) -> None:
        self.ssn = ssn

    def on_session_open(self, ssn: Session) -> None:
        ssn.column("no dot")


@pytest.mark.parametrize("name", ["opens-badly", "opens-badly-too"])
def test_a_fault_at_opening_names_the_line_of_the_plugin_although_pumice_raised(name: str) -> None:
    with pytest.raises(PluginFault, match=f"plugin {name}, .* at opening") as caught:
        opened(name, OpensBadly, OpensBadlyToo)
    file, _, line = caught.value.where.rpartition(":")
    assert file == __file__
    assert "ssn.column(" in Path(file).read_text(encoding="utf-8").splitlines()[int(line) - 1]


def test_what_no_plugin_had_a_part_in_is_no_fault_of_theirs() -> None:
    ssn, ours = opened("modern"), ValueError("ours")
    assert ssn.hooks.blame(ours, points.job_ready) is ours


# -- what answers rest on


@pytest.mark.parametrize(
    ("reads", "columns"),
    [
        pytest.param(None, {"own", "other"}, id="nothing said: all that the plugin keeps"),
        pytest.param((), set(), id="nothing"),
        pytest.param(("modern.own",), {"own"}, id="a column by name"),
        pytest.param((NOW,), {"now"}, id="the clock"),
        pytest.param((JOBS,), {"own", "jobs"}, id="all jobs, and what plugins keep of them"),
        pytest.param((QUEUES,), {"queues"}, id="all queues"),
        pytest.param((PODS,), {"tasks"}, id="all pods"),
    ],
)
def test_which_columns_an_answer_rests_on(reads: Reads | None, columns: set[str]) -> None:
    ssn = opened("modern")
    world, modern = ssn.world, ssn.hooks.plugin("modern")
    named = {"own": [modern.own], "other": [modern.other], "now": [world.now]}
    named |= {name: list(getattr(ssn.tables, name).columns.values()) for name in ("jobs", "queues", "tasks")}
    (hook,) = ssn.hooks.at(points.job_order)
    found = Reading.of([hook._replace(reads=reads)]).columns(world)
    assert {id(column) for column in found} == {id(column) for name in columns for column in named[name]}
    assert Reading.of([hook._replace(reads=(PODS,))], pods=False).columns(world) == []
