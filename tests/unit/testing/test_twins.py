"""A hook that is listed as answering equally is caught at every point where it tells equal jobs apart."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest

from pumice.columns.rows import TaskRows
from pumice.columns.views import Job, SubJob, Task
from pumice.framework.plugin import combine
from pumice.framework.plugin.plugin import plugin
from pumice.testing.build import cluster, node, pod, podgroup, session
from pumice.testing.checks.answers import Asking
from pumice.testing.checks.breach import Breach
from pumice.testing.checks.questions import NOTIFIED
from pumice.testing.checks.twins import CHANGES, equal_jobs_are_answered_equally, with_twin
from pumice.volcano.eviction.context import EvictionContext
from pumice.volcano.points import POINTS
from tests.unit.framework.kit import answers_equally

ABOUT_ONE = {"Task", "TaskRows", "Job", "SubJob", "EvictionContext"}
FORMS = [
    pytest.param(point, takes, id=f"{point.name} ({', '.join(takes)})")
    for point in POINTS.values()
    for takes in point.forms
    if ABOUT_ONE & set(takes) and point.combinator is not combine.notify and point.name not in NOTIFIED
    if point.name != "victim_tasks"  # asked about all that runs
]
CLUSTER = [
    node("n1", cpu=4),
    node("n2", cpu=4),
    podgroup("runs", 1),
    pod("runs-0", "runs", on="n1"),
    podgroup("waits", 2),
    pod("waits-0", "waits"),
    pod("waits-1", "waits"),
]


def keys(argument: Any) -> list[str]:
    """Names of the tasks or the job that a hook is asked about."""
    match argument:
        case Task() | Job():
            return [argument.key]
        case SubJob():
            return [argument.job.key]
        case EvictionContext():
            return [argument.job.key]
        case TaskRows():
            return [each.key for each in argument.pods]
    return []


def by_name(point: Any, takes: tuple[str, ...]) -> Any:
    """A plugin with one hook, which answers by the names of what it is asked about."""
    names = [f"a{i}" for i in range(len(takes))]
    space: dict[str, Any] = {"keys": keys}
    asked = f"[key for each in ({', '.join(names)},) for key in keys(each)]"
    exec(f"def by_name(ssn, {', '.join(names)}): return any('twin' in key for key in {asked})", space)
    hook = space["by_name"]
    hook.__annotations__ = dict(zip(names, takes, strict=True))
    return answers_equally(plugin("by-name")(point(hook)))


@pytest.mark.parametrize(("point", "takes"), FORMS)
def test_a_hook_that_reads_a_name_is_caught_at_each_point(point: Any, takes: tuple[str, ...]) -> None:
    drawn = (with_twin(CLUSTER, Random(seed)) for seed in range(200))
    twins = next(each for each in drawn if each is not None and each.field == "labels")
    conf, mine = "tiers: [{plugins: [{name: by-name}]}]", by_name(point, takes)
    ssn = session(cluster(list(twins.objects)), conf, plugins=[mine])
    with pytest.raises(Breach, match="which differs in labels"):
        equal_jobs_are_answered_equally(Asking(ssn, ("by-name",)), twins, Random(1))


def test_the_copy_differs_in_each_field_in_turn() -> None:
    fields = set()
    for seed in range(200):
        twins = with_twin(CLUSTER, Random(seed))
        assert twins is not None
        assert (twins.job, len(twins.objects)) == ("ns/waits", len(CLUSTER) + 3)
        fields.add(twins.field)
    assert fields == set(CHANGES)


def test_a_job_that_runs_has_no_copy() -> None:
    assert with_twin(CLUSTER[:4], Random(1)) is None
