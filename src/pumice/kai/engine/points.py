"""Define the extension points of the victim search, and the turns of jobs in a tree of queues."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, NamedTuple

from pumice.columns.dtypes import F64, Bool
from pumice.columns.job_rows import JobRows
from pumice.columns.views import Job, Node, Queue, Task
from pumice.framework.plugin import combine
from pumice.framework.plugin.point import Point

if TYPE_CHECKING:  # at run time, most importers of these points need no engine
    from pumice.kai.engine.groups import Group, Subset
    from pumice.kai.engine.parts import Scenario


class Turn(NamedTuple):
    """A queue as it is compared with its siblings.

    ``request``: what its next job asks for (R,). ``victims``: what its victims hold, including the next ones (R,).
    None: nothing.
    """

    queue: int
    request: F64 | None = None
    victims: F64 | None = None


turn_order: Point[[Turn, Turn], int, int] = Point(
    "turn_order",
    "Which of two sibling queues is first, given the next job of each? Below 0: the left. Ties: older, then name.",
    "whenever a job is chosen; reversed for victims",
    combine.first_nonzero,
    {("Turn", "Turn"): "compare"},
)
may_take: Point[[Queue, F64, bool], str, str | None] = Point(
    "may_take",
    "May the queue take this amount, for a preemptible job or not? The reason if it may not, else an empty text. Only"
    " the first plugin is asked.",
    "before any task of a job is placed",
    combine.first_registered,
    {("Queue", "F64", "bool"): "amount"},
)
may_reclaim: Point[[Job, F64], bool, bool | None] = Point(
    "may_reclaim",
    "May the job reclaim this amount from other queues? Only the first plugin is asked.",
    "before reclaim searches for victims",
    combine.first_registered,
    {("Job", "F64"): "amount"},
)
_VICTIMS: Mapping[tuple[str, ...], str] = {("Job", "JobRows"): "jobs"}
reclaim_victims: Point[[Job, JobRows], Bool, Bool] = Point(
    "reclaim_victims",
    "Which jobs of other queues may be evicted for the job? A mask; all plugins must agree.",
    "when reclaim begins for a job",
    combine.every_mask,
    _VICTIMS,
)
preempt_victims: Point[[Job, JobRows], Bool, Bool] = Point(
    "preempt_victims",
    "Which jobs of its queue may be evicted for the job? A mask; all plugins must agree.",
    "when preempt begins for a job",
    combine.every_mask,
    _VICTIMS,
)
_VALID: Mapping[tuple[str, ...], str] = {("Scenario",): "scenario"}
reclaim_valid: Point[[Scenario], bool, bool] = Point(
    "reclaim_valid",
    "May reclaim evict these tasks for this job? All plugins must agree.",
    "when a simulation of reclaim has placed the job",
    combine.all_of,
    _VALID,
)
preempt_valid: Point[[Scenario], bool, bool] = Point(
    "preempt_valid",
    "May preempt evict these tasks for this job? All plugins must agree.",
    "when a simulation of preempt has placed the job",
    combine.all_of,
    _VALID,
)
consolidate_valid: Point[[Scenario], bool, bool] = Point(
    "consolidate_valid",
    "May consolidation move these tasks for this job? All plugins must agree.",
    "when a simulation of consolidation has placed the job",
    combine.all_of,
    _VALID,
)
pod_set_order: Point[[int, int], float, list[float]] = Point(
    "pod_set_order",
    "Which pod set of a job is first, given its active tasks and its minimum? A key, smaller first. Ties: name.",
    "when a job with all its minimums gets one more task, or loses one",
    combine.each,
    {("int", "int"): "counts"},
)
node_subsets: Point[[Group, Subset], list[Subset], list[Subset]] = Point(
    "node_subsets",
    "In which subsets of these nodes may the group be placed, in the order to try? Plugins refine the answers.",
    "before a group of tasks, and each group in it, is placed",
    combine.refine,
    {("Group", "Subset"): "group"},
)
device_order: Point[[Task, Node, F64], F64, list[F64]] = Point(
    "device_order",
    "How good is each device of the node for the task, given its used part (0 for whole GPUs)? Higher is better; summed"
    " over plugins.",
    "when a task that shares GPUs has got a node",
    combine.each,
    {("Task", "Node", "F64"): "used"},
)
solution_start: Point[[], None, None] = Point(
    "solution_start",
    "A search for victims begins. Shares are measured by the present state until it ends.",
    "before anything is simulated for a job",
    combine.notify,
    {(): "none"},
    tells=True,
)
