"""States of queues: which ones must exist, opening and closing, and the rule between parent and child.

Source: Volcano's queue controller and its bootstrap of queues.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from enum import StrEnum
from typing import Final

from pumice.model.manifest.reading.fields import Obj
from pumice.model.status import PodGroupPhase
from pumice.runtime.controllers.writes import (
    COMMAND_API,
    GROUP_API,
    Create,
    Delete,
    Emit,
    Patch,
    Write,
    annotations_of,
    leaving,
    meta,
    part,
    ref_of,
)

ROOT = "root"
CLOSED_BY_PARENT = "volcano.sh/closed-by-parent"


class QueueAction(StrEnum):
    OPEN = "OpenQueue"
    CLOSE = "CloseQueue"
    SYNC = "SyncQueue"


OPEN, CLOSED, CLOSING, UNKNOWN = "Open", "Closed", "Closing", "Unknown"
_IF_EMPTY = "Closed, once no PodGroup is left"  # the result of closing depends on the PodGroups

#: (state now, action) -> state.
_MOVES: Final[dict[tuple[str, QueueAction], str]] = {
    (OPEN, QueueAction.OPEN): OPEN,
    (OPEN, QueueAction.CLOSE): _IF_EMPTY,
    (OPEN, QueueAction.SYNC): OPEN,
    (CLOSING, QueueAction.OPEN): OPEN,
    (CLOSING, QueueAction.CLOSE): _IF_EMPTY,
    (CLOSING, QueueAction.SYNC): _IF_EMPTY,
    (CLOSED, QueueAction.OPEN): OPEN,
    (CLOSED, QueueAction.CLOSE): CLOSED,
    (CLOSED, QueueAction.SYNC): CLOSED,
    (UNKNOWN, QueueAction.OPEN): OPEN,
    (UNKNOWN, QueueAction.CLOSE): _IF_EMPTY,
    (UNKNOWN, QueueAction.SYNC): UNKNOWN,
}


def next_state(state: str, action: QueueAction, group_count: int) -> str:
    """Return the state after an action. No state is Open; an unknown one is Unknown."""
    now = state or OPEN
    found = _MOVES[now if now in (OPEN, CLOSED, CLOSING) else UNKNOWN, action]
    if found != _IF_EMPTY:
        return found
    return CLOSED if group_count == 0 else CLOSING


def missing_queues(names: Iterable[str], default: str = "default") -> list[Write]:
    """Return the queues that every cluster has, if they do not exist: ``root`` and the default one."""
    there = set(names)
    wanted = {ROOT: False, default: True}
    return [Create(_queue(name, reclaimable)) for name, reclaimable in wanted.items() if name not in there]


def _queue(name: str, reclaimable: bool) -> Obj:
    spec = {"weight": 1, "reclaimable": reclaimable, **({} if name == ROOT else {"parent": ROOT})}
    return {"apiVersion": GROUP_API, "kind": "Queue", "metadata": {"name": name}, "spec": spec}


def counts_by_phase(groups: Iterable[Obj]) -> dict[str, int]:
    """Return the number of a queue's PodGroups by phase, for all phases. No phase is Pending."""
    found = Counter(part(group, "status").get("phase") or PodGroupPhase.PENDING.value for group in groups)
    return {phase.value: found[phase.value] for phase in PodGroupPhase}


def reconcile_queue(
    queue: Obj, group_count: int, parent: Obj | None = None, action: QueueAction = QueueAction.SYNC
) -> list[Write]:
    """Return writes that correct a queue's state, after an action if there is one.

    ``parent``: the object that ``spec.parent`` names, None for root, or if it does not exist. Children follow their
    parent in their own sync, so a queue must be examined whenever its parent has changed.
    """
    if leaving(queue):
        return []
    if meta(queue)["name"] == ROOT:  # it is never closed
        opened = QueueAction.OPEN if action is QueueAction.OPEN else QueueAction.SYNC
        return _set_state(queue, next_state(state_of(queue), opened, group_count))
    if action is QueueAction.OPEN and parent is not None and _shut(parent):
        text = f"Open queue failed: parent queue {meta(parent)['name']} is {state_of(parent)}"
        return [Emit(ref_of(queue), "Warning", "OpenQueue", text)]
    writes: list[Write] = []
    if not part(queue, "spec").get("parent"):
        writes.append(Patch(ref_of(queue), {"spec": {"parent": ROOT}}))
    followed = _follow(queue, parent) if action is QueueAction.SYNC else action
    marked = annotations_of(queue).get(CLOSED_BY_PARENT) == "true"
    if followed is not action and followed is QueueAction.CLOSE and not marked:
        writes.append(_mark(queue, "true"))  # first, because a queue that is closed without it would stay closed
    state = next_state(state_of(queue), followed, group_count)
    writes += _set_state(queue, state)
    if state == OPEN and marked:
        writes.append(_mark(queue, "false"))
    if action is QueueAction.CLOSE and state_of(queue) == OPEN:
        writes.append(Emit(ref_of(queue), "Normal", "CloseQueue", "Close queue succeed"))
    return writes


def consume_command(command: Obj) -> tuple[list[Write], QueueAction | None]:
    """Return writes for a command for a queue: it is deleted in any case. The action is None if it is not one of
    ours."""
    if command.get("apiVersion") != COMMAND_API or leaving(command):
        return [], None
    written = command.get("action")
    action = QueueAction(written) if written in tuple(QueueAction) else None
    return [Delete(ref_of(command))], action


def state_of(queue: Obj) -> str:
    """Return the state. A queue without one is open."""
    return str(part(queue, "status").get("state") or OPEN)


def _follow(queue: Obj, parent: Obj | None) -> QueueAction:
    """Return what the parent's state requires of a queue without an action of its own."""
    shut = _shut(queue)
    if parent is None:
        return QueueAction.SYNC
    if _shut(parent):
        return QueueAction.SYNC if shut else QueueAction.CLOSE
    by_parent = annotations_of(queue).get(CLOSED_BY_PARENT) == "true"
    return QueueAction.OPEN if shut and by_parent and state_of(parent) == OPEN else QueueAction.SYNC


def _shut(queue: Obj) -> bool:
    return state_of(queue) in (CLOSED, CLOSING)


def _mark(queue: Obj, value: str) -> Patch:
    return Patch(ref_of(queue), {"metadata": {"annotations": {CLOSED_BY_PARENT: value}}})


def _set_state(queue: Obj, state: str) -> list[Write]:
    """Return a write of the state if it differs, or is missing."""
    if part(queue, "status").get("state") == state:
        return []
    return [Patch(ref_of(queue), {"status": {"state": state}}, "status")]
