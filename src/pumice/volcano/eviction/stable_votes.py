"""What plugins would say of victims a little later, as far as they declare it: after some have left, and after more of
the preemptor's job were promised a place."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from pumice.columns.dtypes import Bool
from pumice.columns.rows import Candidates
from pumice.columns.views import Task
from pumice.framework.cycle.session import Session
from pumice.framework.plugin.combine import Named, is_mask
from pumice.framework.plugin.hooks import Hook
from pumice.framework.plugin.point import BY_JOB, COUNTS_DOWN, NOBODY_NEW, Asked


class _Voter(NamedTuple):
    """A hook, and what it declares."""

    hook: Hook
    by_job: bool
    counts_down: bool
    nobody_new: bool


class Ballot:
    """The hooks at a point that asks for victims, one by one."""

    __slots__ = ("_hooks", "_tiers", "can_tell")

    def __init__(self, ssn: Session, votes: Asked[[Task, Candidates], Bool]) -> None:
        self._hooks = ssn.hooks
        self._tiers = [
            [_voter(hook._replace(call=votes.forms[hook.form](hook.call))) for hook in tier]
            for tier in ssn.hooks.tiers(votes.points[0])
        ]
        #: Whether ``named`` may have an answer.
        self.can_tell = bool(self._tiers) and all(voter.by_job or voter.counts_down for voter in self._tiers[0])

    def named(self, task: Task, candidates: Candidates) -> Bool | None:
        """Whom plugins name of the candidates of one node: (rows,). None where it is not sure that they would name the
        others of them once one, who is the only one of his job there, has left and a task like this one was promised a
        place."""
        for tier in self._tiers:
            answers = [(voter, self._hooks.ask_one(voter.hook, task, candidates)) for voter in tier]
            if any(voter.by_job and _names_nobody(answer) for voter, answer in answers):
                continue  # this ends the tier, now and later
            found: Bool | None = None
            for voter, answer in answers:
                if not voter.by_job and not (voter.counts_down and _are_equal(candidates)):
                    return None
                if is_mask(answer, candidates):
                    found = answer if found is None else found & answer
                elif answer is not None:
                    return None
            if found is not None:
                return found if np.count_nonzero(found) else None
        return np.zeros(len(candidates), dtype=bool)

    def nobody(self, task: Task, candidates: Candidates) -> Bool:
        """On which of the nodes nobody is named, and nobody will be however many more of the task's job are promised a
        place, while all else is as it is. Shape (nodes,)."""
        found = np.ones(candidates.node_count, dtype=bool)
        for tier in self._tiers:
            ended = np.zeros(candidates.node_count, dtype=bool)
            for voter in tier:
                if voter.by_job or voter.nobody_new:
                    ended |= _ends(self._hooks.ask_one(voter.hook, task, candidates), candidates)
            found &= ended
        return found


def _voter(hook: Hook) -> _Voter:
    said = hook.reads or ()
    return _Voter(hook, BY_JOB in said, COUNTS_DOWN in said, NOBODY_NEW in said)


def _are_equal(candidates: Candidates) -> bool:
    """Whether all are of one class and one queue."""
    queue = candidates.queue
    return candidates.alike and not np.count_nonzero(queue - queue[0]) if len(candidates) else True


def _names_nobody(answer: Any) -> bool:
    return isinstance(answer, np.ndarray) and not np.count_nonzero(answer)


def _ends(answer: Any, candidates: Candidates) -> Bool:
    """On which of the nodes a hook has an opinion and names nobody."""
    mask, speaks = answer if isinstance(answer, Named) else (answer, True)
    if not is_mask(mask, candidates):
        return np.zeros(candidates.node_count, dtype=bool)
    return ~candidates.nodes_where(mask) & speaks
