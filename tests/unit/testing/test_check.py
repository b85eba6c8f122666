"""check_plugin finds each way to break the contract, says where and what to write, and has nothing against honest
plugins."""

from __future__ import annotations

from types import ModuleType
from typing import Any

import pytest

from pumice.framework.plugin.plugin import PLUGIN_ATTRIBUTE
from pumice.testing.build import cluster
from pumice.testing.check import check_plugin
from pumice.testing.checks import cycles, shrink
from tests.unit.testing import broken, honest

ROLLBACK = "answers otherwise after a rollback"
UNDECLARED = "reads what it does not declare"

#: By plugin: what is wrong, and what to write (both as the report says it).
FOUND = {
    "clock": (f"clock at job_order: {UNDECLARED}", "reads=(ROWS, NOW)"),
    "other-queues": (f"other_queues at overused: {UNDECLARED}", "reads=(ROWS, QUEUES)"),
    "other-jobs": (f"other_jobs at job_valid: {UNDECLARED}", "JOBS"),
    "other-pods": (f"other_pods at predicate: {UNDECLARED}", "PODS"),
    "other-nodes": ("other_nodes at node_order: answers otherwise once the tasks are there", "nodes.used"),
    "rows-left-out": (f"rows_left_out at node_order: {UNDECLARED}", "ROWS"),
    "number": ("number at overused: answers otherwise in the next session", "not the number of the session"),
    "plain-weight": (f"PlainWeight.queue_order at queue_order: {UNDECLARED}", "QUEUES"),
    "scaled": ("scaled at node_order: says something else of a row when others are asked about", "from that row alone"),
    "first-come": ("first_come at batch_node_order: the answer depends on the order of the rows", "any order"),
    "counts-on": ("counts_on at preemptable: says something else of a node's candidates", "candidates.apart(job)"),
    "one-way": ("one_way at queue_order: does not say the opposite when the two change places", "Below 0"),
    "unforeseen": ("Unforeseen.score at node_order: answers otherwise once the tasks are there", "per_task="),
    "second-thoughts": ("second_thoughts at predicate: had nothing to say of a task, and has of the next", "an array"),
    "waits-for-others": ("had nothing to say of a task, and has once another one of its job is placed", "an array"),
    "other-sums": ("says something else of a class than is said of it alone", "a row each"),
    "never-changes": ("what in_turn gives says something else of a task than is said of it alone", "placed(step"),
    "odd-names": ("odd_names at job_valid: is listed as answering equally for equal jobs", "Take the hook off"),
    "odd-tasks": ("odd_tasks at allocatable: is listed as answering equally for equal jobs", "differs in"),
    "sleepy": ("wakes_at: decides by the clock, and wakes_at() does not say when", "next such moment"),
    "plain-count": (f"PlainCount.queue_order at queue_order: {ROLLBACK}", 'keeps="python"'),
    "stale-flag": (f"StaleFlag.queue_order at queue_order: {ROLLBACK}", "ssn.column"),
    "one-sided": ("answers otherwise after what was committed was refused", "on_deallocate"),
    "counts-questions": ("the question left something behind", "Only hooks that are notified"),
    "keeps-too-long": (
        "keeps_too_long at allocatable: answers otherwise with a memo",
        "The same cluster, the same answer",
    ),
    "module-state": ("module_state at job_order: answers otherwise", "left in a module"),
    "raises": ("raises at predicate: raised KeyError: 'example.com/disk'", "broken.py:"),
    "not-a-number": ("not_a_number at node_order: answered array(", "broken.py:"),
    "says-false": ("says_false at predicate: answered False, wanted a FilterResult", "docs/points.md"),
    "maybe": ("maybe at overused: answered 'perhaps', wanted True or False", "docs/points.md"),
    "cannot-open": ("at opening: ValueError: too many values to unpack", "stops every cycle"),
    "fragile-told": ("FragileTold.came at on_allocate: KeyError", "has to cope"),
    "divides": ("argument parts: cannot live with a value that a policy file may hold", "problems(**arguments)"),
    "any-list": ("argument names: cannot live with a value that a policy file may hold", "problems(**arguments)"),
    "grumbles": ("argument limit: is refused unclearly", "names the argument"),
}
#: Before this one a seed shows another problem of the plugin, that whole cycles differ.
FIRST_SEED = {"odd-tasks": 11}
#: Clusters in which a memo once answered what did not hold any more, and a few others.
SEEDS = (0, 1, 7, 18, 26, 30)


def plugins_of(module: ModuleType) -> dict[str, Any]:
    found = [each for each in vars(module).values() if hasattr(each, PLUGIN_ATTRIBUTE)]
    return {getattr(each, PLUGIN_ATTRIBUTE).name: each for each in found}


def report_on(name: str, **more: Any) -> str:
    with pytest.raises(AssertionError) as caught:
        check_plugin(plugins_of(broken)[name], **more)
    return str(caught.value)


def test_each_broken_plugin_is_looked_for() -> None:
    assert plugins_of(broken).keys() == FOUND.keys()


@pytest.mark.parametrize("name", FOUND)
def test_a_broken_plugin_is_found_and_reported(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where, and what to write; how small a cluster gets that shows it is a test of its own."""
    monkeypatch.setattr(shrink, "ATTEMPTS_MAX", 5)
    problem, advice = FOUND[name]
    more = {"seeds": range(FIRST_SEED[name], FIRST_SEED[name] + 10)} if name in FIRST_SEED else {}
    report = report_on(name, **more)
    assert report.startswith(f"plugin {name}, ")
    assert problem in report
    assert advice in report


@pytest.mark.parametrize(("name", "jobs"), [("clock", 2), ("not-a-number", 1)])
def test_a_cluster_that_shows_it_is_cut_down_to_what_does(name: str, jobs: int) -> None:
    report = report_on(name)
    reports = [line.split()[0] for line in report.splitlines() if line.startswith("  ")]
    assert (reports.count("PodGroup"), reports.count("Node"), reports.count("Pod")) == (jobs, 1, 1), report
    assert name == "clock" or "answered array([nan]), wanted finite numbers" in report


def test_what_a_file_leaves_out_is_found_and_not_taken_for_the_memos(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cycles, "through_a_file", lambda snapshot, now: cluster().snapshot())
    with pytest.raises(AssertionError) as caught:
        check_plugin("gang", seeds=SEEDS, steps=1, values=False)
    assert "are not the same after the snapshot was saved and read and before" in str(caught.value)


@pytest.mark.parametrize("name", plugins_of(honest))
def test_a_plugin_that_says_what_it_reads_is_in_order(name: str) -> None:
    checked = check_plugin(plugins_of(honest)[name], seeds=SEEDS)
    assert checked.examples[name] == len(SEEDS) * 6
    assert all(key.startswith(f"{name}: ") for key in checked.asked)
