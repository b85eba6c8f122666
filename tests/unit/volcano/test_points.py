"""The points of Volcano's language: which there are, how each combines, and what switches it off."""

from __future__ import annotations

import pytest

from pumice.framework.plugin import points as shared
from pumice.framework.plugin.point import Question
from pumice.volcano import points
from pumice.volcano.points import FEATURE_SWITCHES, POINTS
from pumice.volcano.table import volcano_registry

#: Written from the table of Volcano's extension points, never from ours: point, switches of which one must be on (none:
#: always on), how its answers are combined. Where ours says more than Volcano's (a filter all of its reasons, a queue
#: how many tasks, a rejection its text) the combinator is the one that keeps it.
VOLCANO = {
    "job_order": ("JobOrder", "first_nonzero"),
    "queue_order": ("QueueOrder", "first_nonzero"),
    "victim_queue_order": ("", "first_nonzero"),
    "task_order": ("TaskOrder", "first_nonzero"),
    "sub_job_order": ("SubJobOrder", "first_nonzero"),
    "cluster_order": ("ClusterOrder", "first_nonzero"),
    "predicate": ("Predicate", "filter_results"),
    "pre_predicate": ("Predicate", "first_unfit"),
    "node_order": ("NodeOrder", "total"),
    "batch_node_order": ("NodeOrder", "total"),
    "node_map": ("NodeOrder", "each"),
    "node_reduce": ("NodeOrder", "each"),
    "best_node": ("BestNode", "first_row"),
    "hyper_node_order": ("HyperNodeOrder", "finite_scores"),
    "hyper_node_gradient_for_job": ("HyperNodeGradient", "first_gradient"),
    "hyper_node_gradient_for_sub_job": ("HyperNodeGradient", "first_gradient"),
    "preemptable": ("Preemptable", "intersect_by_node"),
    "reclaimable": ("Reclaimable", "intersect_by_node"),
    "unified_evictable": ("", "intersect"),
    "overused": ("Overused", "any_of"),
    "preemptive": ("Preemptive", "all_of"),
    "allocatable": ("Allocatable", "fewest"),
    "job_ready": ("JobReady", "most_missing"),
    "sub_job_ready": ("SubJobReady", "most_missing"),
    "job_pipelined": ("JobPipelined", "vote"),
    "sub_job_pipelined": ("SubJobPipelined", "vote"),
    "job_enqueueable": ("JobEnqueued", "rejection"),
    "job_enqueued": ("JobEnqueued", "notify"),
    "gate_taken_off": ("Allocatable", "notify"),  # what its Allocatable hooks note where a gate is taken off
    "job_starving": ("JobStarving", "first_tier_agrees"),
    "job_valid": ("", "first_invalid"),
    "target_job": ("TargetJob", "first_registered"),
    "reserved_nodes": ("ReservedNodes", "notify"),
    "victim_tasks": ("Victim", "union"),
    "simulate_remove_task": ("Preemptable Allocatable", "first_unfit"),
    "simulate_add_task": ("Preemptable Allocatable", "first_unfit"),
    "simulate_predicate": ("Predicate", "first_unfit"),
    "simulate_allocatable": ("Allocatable", "all_of"),
    "on_allocate": ("", "notify"),
    "on_deallocate": ("", "notify"),
    "bind_context": ("", "merge"),
    "waits": ("Predicate", "any_mask"),  # what its filters of volumes and claims do within Reserve and PreBind
    "session_close": ("", "notify"),  # its OnSessionClose, which is no extension point there
}


SWITCHES = volcano_registry().dialects["volcano"].switches


@pytest.mark.parametrize("name", VOLCANO)
def test_every_point_of_volcano(name: str) -> None:
    point, (switches, combinator) = POINTS[name], VOLCANO[name]
    assert (point.name, point.any_switch) == (name, tuple(switches.split()))
    assert point.combinator.__name__ == combinator
    assert point is getattr(points, name)


def test_one_point_is_not_volcano_s() -> None:
    """Its plugin conformance answers KAI's consolidation, where a policy names that action."""
    assert POINTS.keys() == {*VOLCANO, "consolidate_victims"}


def test_the_framework_s_own_are_among_them() -> None:
    own = {name: value for name, value in vars(shared).items() if isinstance(value, Question)}
    assert own.items() <= POINTS.items()


def test_switches_are_on_when_not_written_but_for_two() -> None:
    assert SWITCHES.keys() - {"Hierarchy"} == {switch for each, _ in VOLCANO.values() for switch in each.split()}
    assert {switch for switch, default in SWITCHES.items() if not default} == {"ClusterOrder", "Hierarchy"}
    assert FEATURE_SWITCHES == {"Hierarchy": False}


def test_points_whose_hooks_are_notified_and_not_asked() -> None:
    """Of a plugin that is listed twice each instance hears of it."""
    assert {name for name, point in POINTS.items() if point.tells} == {"on_allocate", "on_deallocate", "session_close"}
