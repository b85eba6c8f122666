"""The extension points that the search for victims asks, and turns of jobs in a tree of queues."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, NamedTuple

from pumice.columns.dtypes import F64, Bool
from pumice.columns.job_rows import JobRows
from pumice.columns.views import Job, Node, Queue, Task
from pumice.framework.plugin import combine
from pumice.framework.plugin.point import Point

if TYPE_CHECKING:  # most that speak of victims search for none
    from pumice.kai.engine.groups import Group, Subset
    from pumice.kai.engine.parts import Scenario


class Turn(NamedTuple):
    """A queue among its siblings: what its next job asks for, and what its victims hold, those that went and the next
    ones (R,); None for nothing."""

    queue: int
    request: F64 | None = None
    victims: F64 | None = None


turn_order: Point[[Turn, Turn], int, int] = Point(
    "turn_order",
    "Which of two sibling queues goes first, with the jobs that would? Below 0: the left. Ties: older, then name.",
    "whenever a job is chosen, and reversed for victims",
    combine.first_nonzero,
    {("Turn", "Turn"): "compare"},
)
may_take: Point[[Queue, F64, bool], str, str | None] = Point(
    "may_take",
    "May the queue take on so much more, for a preemptible job or not? The reason why not, empty if it may. Only the"
    " first plugin is asked.",
    "before any task of a job is placed",
    combine.first_registered,
    {("Queue", "F64", "bool"): "amount"},
)
may_reclaim: Point[[Job, F64], bool, bool | None] = Point(
    "may_reclaim",
    "May the job take so much back from other queues? Only the first plugin is asked.",
    "before reclaim looks for victims",
    combine.first_registered,
    {("Job", "F64"): "amount"},
)
_VICTIMS: Mapping[tuple[str, ...], str] = {("Job", "JobRows"): "jobs"}
reclaim_victims: Point[[Job, JobRows], Bool, Bool] = Point(
    "reclaim_victims",
    "Which jobs of other queues may leave for the job? A mask; all plugins must agree.",
    "when reclaim begins for a job",
    combine.every_mask,
    _VICTIMS,
)
preempt_victims: Point[[Job, JobRows], Bool, Bool] = Point(
    "preempt_victims",
    "Which jobs of its queue may leave for the job? A mask; all plugins must agree.",
    "when preempt begins for a job",
    combine.every_mask,
    _VICTIMS,
)
_VALID: Mapping[tuple[str, ...], str] = {("Scenario",): "scenario"}
reclaim_valid: Point[[Scenario], bool, bool] = Point(
    "reclaim_valid",
    "Is it right that these leave for that? All plugins must agree.",
    "when a simulation of reclaim placed the job",
    combine.all_of,
    _VALID,
)
preempt_valid: Point[[Scenario], bool, bool] = Point(
    "preempt_valid",
    "The same for preempt.",
    "when a simulation of preempt placed the job",
    combine.all_of,
    _VALID,
)
consolidate_valid: Point[[Scenario], bool, bool] = Point(
    "consolidate_valid",
    "The same for consolidation.",
    "when a simulation of consolidation placed the job",
    combine.all_of,
    _VALID,
)
pod_set_order: Point[[int, int], float, list[float]] = Point(
    "pod_set_order",
    "Where does a pod set of so many active tasks and such a minimum come among those of its job? A key, smaller first."
    " Ties: name.",
    "when a job that has all its minimums gets one task more, or gives one",
    combine.each,
    {("int", "int"): "counts"},
)
node_subsets: Point[[Group, Subset], list[Subset], list[Subset]] = Point(
    "node_subsets",
    "Which parts of these nodes may the group be placed in, the first to try first? Plugins refine each other's.",
    "before a group of tasks, and each group in it, is placed",
    combine.refine,
    {("Group", "Subset"): "group"},
)
device_order: Point[[Task, Node, F64], F64, list[F64]] = Point(
    "device_order",
    "How good is each device of the node for the task, that part of it being used (0 for whole GPUs)? Higher is better;"
    " summed over plugins.",
    "when a task that shares GPUs was given a node",
    combine.each,
    {("Task", "Node", "F64"): "used"},
)
solution_start: Point[[], None, None] = Point(
    "solution_start",
    "A search for victims begins: what is now is what shares are measured by until it ends.",
    "before anything is simulated for a job",
    combine.notify,
    {(): "none"},
    tells=True,
)
