"""What plugins would say of victims a little later, as far as they declare it: after some have left, and after more of
the preemptor's job were promised a place."""

from __future__ import annotations

from typing import Any

import numpy as np

from pumice.columns.dtypes import Bool
from pumice.columns.rows import Candidates
from pumice.columns.views import Task
from pumice.framework.combine import Named, is_mask
from pumice.framework.hooks import Hook
from pumice.framework.point import BY_JOB, COUNTS_DOWN, NOBODY_NEW, Asked
from pumice.framework.session import Session


class Ballot:
    """The hooks at a point that asks for victims, one by one."""

    __slots__ = ("_hooks", "_tiers")

    def __init__(self, ssn: Session, votes: Asked[[Task, Candidates], Bool]) -> None:
        self._hooks = ssn.hooks
        self._tiers: list[list[Hook]] = [
            [hook._replace(call=votes.forms[hook.form](hook.call)) for hook in tier]
            for tier in ssn.hooks.tiers(votes.points[0])
        ]

    @property
    def can_tell(self) -> bool:
        """Whether ``named`` may have an answer."""
        return bool(self._tiers) and all(_says(hook, BY_JOB, COUNTS_DOWN) for hook in self._tiers[0])

    def named(self, task: Task, candidates: Candidates) -> Bool | None:
        """Whom plugins name of the candidates of one node, each of another job: (rows,). None where it is not sure that
        they would name the others of them once one has left and a task like this one was promised a place."""
        tables = candidates.tables
        equal = len(set(candidates.classes)) < 2 and len(np.unique(tables.jobs.queue[candidates.job])) < 2
        for tier in self._tiers:
            answers = [(hook, self._ask(hook, task, candidates)) for hook in tier]
            if any(_says(hook, BY_JOB) and _names_nobody(answer) for hook, answer in answers):
                continue  # this ends the tier, now and later
            found = np.ones(len(candidates), dtype=bool)
            for hook, answer in answers:
                if not _says(hook, BY_JOB) and not (equal and _says(hook, COUNTS_DOWN)):
                    return None
                if is_mask(answer, candidates):
                    found &= answer
                elif answer is not None:
                    return None
            if any(answer is not None for _, answer in answers):
                return found if np.count_nonzero(found) else None
        return np.zeros(len(candidates), dtype=bool)

    def nobody(self, task: Task, candidates: Candidates) -> Bool:
        """On which of the nodes nobody is named, and nobody will be however many more of the task's job are promised a
        place, while all else is as it is. Shape (nodes,)."""
        found = np.ones(candidates.node_count, dtype=bool)
        for tier in self._tiers:
            ended = np.zeros(candidates.node_count, dtype=bool)
            for hook in tier:
                if _says(hook, BY_JOB, NOBODY_NEW):
                    ended |= self._ends(self._ask(hook, task, candidates), candidates)
            found &= ended
        return found

    def _ask(self, hook: Hook, task: Task, candidates: Candidates) -> Any:
        return self._hooks.ask_one(hook, task, candidates)

    def _ends(self, answer: Any, candidates: Candidates) -> Bool:
        """On which of the nodes a hook has an opinion and names nobody."""
        mask, speaks = answer if isinstance(answer, Named) else (answer, True)
        if not is_mask(mask, candidates):
            return np.zeros(candidates.node_count, dtype=bool)
        return ~candidates.nodes_where(mask) & speaks


def _names_nobody(answer: Any) -> bool:
    return isinstance(answer, np.ndarray) and not np.count_nonzero(answer)


def _says(hook: Hook, *words: str) -> bool:
    """Whether a hook declares one of some words."""
    return hook.reads is not None and not set(words).isdisjoint(hook.reads)
