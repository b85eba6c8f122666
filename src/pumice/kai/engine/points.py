"""Define the extension points of the victim search, and the order of jobs in a tree of queues."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import chain
from math import isnan
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from pumice.algorithms.queue_order import QueueKey, compare_requests
from pumice.columns.dtypes import F64, Bool
from pumice.columns.job_rows import JobRows
from pumice.columns.views import Job, Node, Queue, Task
from pumice.framework.plugin import combine
from pumice.framework.plugin.errors import HookFunction, WrongAnswer
from pumice.framework.plugin.point import MultiFormQuestion, Point, TwoForms, as_it_is

if TYPE_CHECKING:  # at run time, most importers of these points need no engine
    from pumice.kai.engine.groups import Group, Subset
    from pumice.kai.engine.parts import Scenario


#: Names of the generators of victim sets. Source: KAI constants.
NODE_LOCAL, MULTI_NODE = "NodeLocalGreedy", "MultiNodeGang"
GENERATORS = (NODE_LOCAL, MULTI_NODE)


class QueueRequest(NamedTuple):
    """A queue as it is compared with its siblings.

    ``request``: what its next job asks for (R,). ``victims``: what its victims hold, including the next ones (R,).
    None: nothing.
    """

    queue: int
    request: F64 | None = None
    victims: F64 | None = None


def _key_of(hook: HookFunction, request: QueueRequest) -> QueueKey:
    """Return the key of a queue. Raises: WrongAnswer."""
    answer = hook(request)
    # The sum is a cheap test: it is NaN if a part is. A NaN is neither before nor after any other key.
    if not isinstance(answer, QueueKey) or isnan(sum(answer.key)) or isnan(sum(answer.share)):
        raise WrongAnswer(hook, answer, "a QueueKey of numbers")
    return answer


def _only_key(tiers: combine.Tiers, request: QueueRequest) -> QueueKey:
    """Return the key by the only hook."""
    (hook,) = chain.from_iterable(tiers)
    return _key_of(hook, request)


def _pair_of_keys(hook: HookFunction) -> HookFunction:
    """Return a comparison of two queues for a hook that gives the key of one."""

    def compare(left: QueueRequest, right: QueueRequest) -> int:
        one, other = _key_of(hook, left), _key_of(hook, right)
        return compare_requests(one.key, other.key, one.share, other.share)

    return compare


def _reason(tiers: combine.Tiers, *args: object) -> str | None:
    """Return the text of the first plugin, None if no plugin has a hook."""
    hook = next(chain.from_iterable(tiers), None)
    if hook is None:
        return None
    answer = hook(*args)
    if not isinstance(answer, str):
        raise WrongAnswer(hook, answer, "a text, empty to agree")
    return answer


def _first_yes_or_no(tiers: combine.Tiers, *args: object) -> bool | None:
    """Return the answer of the first plugin, None if no plugin has a hook."""
    hook = next(chain.from_iterable(tiers), None)
    # KAI calls the function that was registered first and no other, so a second plugin that limits queues has no
    # effect.
    return None if hook is None else combine.all_of([[hook]], *args)


def _numbers(tiers: combine.Tiers, *args: object) -> list[float]:
    """Return the number of each plugin, in order."""
    found = []
    for hook in chain.from_iterable(tiers):
        answer = hook(*args)
        # A NaN compares with nothing, so that an order by it would depend on the sort.
        if not isinstance(answer, bool | int | float | np.number) or np.isnan(answer):
            raise WrongAnswer(hook, answer, "a number")
        found.append(float(answer))
    return found


def _scores(tiers: combine.Tiers, task: Task, node: Node, used: F64) -> list[F64]:
    """Return the scores of each plugin, one for each device, in order."""
    found: list[F64] = []
    for hook in chain.from_iterable(tiers):
        answer = hook(task, node, used)
        numeric = isinstance(answer, np.ndarray) and answer.dtype.kind in "bif" and answer.shape == used.shape
        if not numeric or np.isnan(answer).any():
            raise WrongAnswer(hook, answer, f"an array of {len(used)} numbers")
        found.append(answer)
    return found


def _names(tiers: combine.Tiers) -> list[str]:
    """Return the name that each plugin gives, in order."""
    found = []
    for hook in chain.from_iterable(tiers):
        answer = hook()
        if answer not in GENERATORS:
            raise WrongAnswer(hook, answer, f"one of {', '.join(GENERATORS)}")
        found.append(answer)
    return found


def _finer(tiers: combine.Tiers, group: Group, within: Subset) -> list[Subset]:
    """Return the subsets into which plugins divide a subset, each plugin dividing those of the plugins before it."""
    found = [within]
    for hook in chain.from_iterable(tiers):
        finer: list[Subset] = []
        # Piped, as in KAI: a later plugin sees only what an earlier one has left.
        for each in found:
            answer = hook(group, each)
            if not isinstance(answer, list | tuple) or not all(isinstance(part, type(within)) for part in answer):
                raise WrongAnswer(hook, answer, "a list of Subset")
            finer += answer
        found = finer
    return found


queue_request_order: TwoForms[[QueueRequest], QueueKey, [QueueRequest, QueueRequest], int, int] = TwoForms(
    "queue_request_order",
    "Which of two sibling queues is first, given the next job of each? A QueueKey; or compare two, below 0: the left."
    " Ties: older, then name.",
    "whenever a job is chosen; reversed for victims",
    combine.first_nonzero,
    {("QueueRequest",): "key", ("QueueRequest", "QueueRequest"): "compare"},
)
queue_requests_compared: MultiFormQuestion[[QueueRequest, QueueRequest], int] = MultiFormQuestion(
    (queue_request_order,), {"key": _pair_of_keys, "compare": as_it_is}, combine.first_nonzero
)
queue_request_keyed: MultiFormQuestion[[QueueRequest], QueueKey] = MultiFormQuestion(
    (queue_request_order,), {"key": as_it_is}, _only_key
)
may_take: Point[[Queue, F64, bool], str, str | None] = Point(
    "may_take",
    "May the queue take this amount, for a preemptible job or not? The reason if it may not, else an empty text. Only"
    " the first plugin is asked.",
    "before any task of a job is placed",
    _reason,
    {("Queue", "F64", "bool"): "amount"},
)
may_reclaim: Point[[Job, F64], bool, bool | None] = Point(
    "may_reclaim",
    "May the job reclaim this amount from other queues? Only the first plugin is asked.",
    "before reclaim searches for victims",
    _first_yes_or_no,
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
    _numbers,
    {("int", "int"): "counts"},
)
node_subsets: Point[[Group, Subset], list[Subset], list[Subset]] = Point(
    "node_subsets",
    "In which subsets of these nodes may the group be placed, in the order to try? Plugins refine the answers.",
    "before a group of tasks, and each group in it, is placed",
    _finer,
    {("Group", "Subset"): "group"},
)
device_order: Point[[Task, Node, F64], F64, list[F64]] = Point(
    "device_order",
    "How good is each device of the node for the task, given its used part (0 for whole GPUs)? Higher is better; summed"
    " over plugins.",
    "when a task that shares GPUs has got a node",
    _scores,
    {("Task", "Node", "F64"): "used"},
)
keeps_placement: Point[[Task, Node], bool, bool] = Point(
    "keeps_placement",
    "Would the evicted task, placed on its node again, hold what it held there? If not, it is moved, although its node"
    " is the same. All plugins must agree.",
    "when an evicted task is placed on its node again",
    combine.all_of,
    {("Task", "Node"): "task"},
)
solution_start: Point[[], None, None] = Point(
    "solution_start",
    "A search for victims begins. Shares are measured by the present state until it ends.",
    "before anything is simulated for a job",
    combine.notify,
    {(): "none"},
    tells=True,
)
victim_sets: Point[[], str, list[str]] = Point(
    "victim_sets",
    f"Which generator makes sets of victims? {NODE_LOCAL}: of one node at a time. {MULTI_NODE}: of as few nodes as a"
    " gang needs. The search is made with each in turn until one succeeds.",
    "when a search for victims begins",
    _names,
    {(): "none"},
)
