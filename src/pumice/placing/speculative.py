"""Choose nodes for tasks of several classes together.

Each task should get the node that is best once those before it are placed. Only nodes that were taken have changed by
then, so examining all nodes again for each task would mostly repeat what is known. Instead, all classes are evaluated
over all nodes at once. Each task is guessed to go to the best node that no task before it took. All are booked there,
and the nodes that were taken are examined again. That shows the first task that would prefer a node that one before it
took: it goes there, all before it are confirmed, and the rest is guessed again. The result equals choosing one by one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import groupby, pairwise
from math import isfinite

import numpy as np

from pumice.columns.dtypes import F64, AnyArray, Bool
from pumice.columns.journal import Journal
from pumice.columns.rows import ClassRows, NodeRows
from pumice.placing.feasibility import Feasibility

#: Tasks times nodes that are evaluated together: enough to make calls cheap, and few enough for a CPU cache.
LOOK_MAX = 1 << 14
#: Tasks that are guessed for together. With more of them, more guesses are wrong.
TASKS_MAX = 32

#: Books tasks (rows) on nodes (rows) while nodes are chosen. Returns whether the plugins agree.
Hold = Callable[[Sequence[int], Sequence[int]], bool]


def tasks_at_once(nodes: int) -> int:
    """Return for how many tasks to choose together over so many nodes."""
    # Over very many nodes even a few tasks fill the cache, and tasks are then chosen one by one.
    return min(TASKS_MAX, LOOK_MAX // max(1, nodes))


def portions(classes: Sequence[int], *, mixes: bool, roles_matter: bool) -> Iterator[range]:
    """Yield ranges of tasks that are chosen for together: runs of one class, or with ``mixes`` neighbours of several.
    With ``roles_matter``, a run is treated like other neighbours."""
    begin = end = 0
    for _, run in groupby(classes):
        length = len(list(run))
        if not mixes or (length > 1 and not roles_matter):
            if end > begin:
                yield range(begin, end)
            begin, end = end, end + length
            yield range(begin, end)
            begin = end
        else:
            end += length
    if end > begin:
        yield range(begin, end)


class SpeculativeBatch:
    """Chooses nodes for K tasks (rows) over P nodes.

    ``extra`` (K,): what is added to each task's class score, equally on all nodes. ``roles`` (K,): a node that failed a
    task of a role other than 0 is not tried for the next one. ``open_to``: by role, which of the nodes have not;
    results of these tasks are added to it. None: roles do not matter.
    """

    __slots__ = (
        "_classes",
        "_extra",
        "_feasible",
        "_idle",
        "_nodes",
        "_open_to",
        "_passes",
        "_roles",
        "_rows",
        "_score",
        "_worth",
    )

    def __init__(
        self,
        feasible: Feasibility,
        nodes: NodeRows,
        rows: Sequence[int],
        extra: Sequence[float],
        open_to: dict[int, Bool] | None,
    ) -> None:
        tasks = nodes.tables.tasks
        self._feasible, self._nodes, self._rows = feasible, nodes, rows
        self._open_to = {} if open_to is None else open_to
        self._classes: list[int] = tasks.cls[rows].tolist()
        # Most tasks have no score of their own, and an addition of zeros over all nodes would cost.
        self._extra: F64 | None = np.array(extra)[:, None] if any(extra) else None
        #: Indices of tasks by role.
        self._roles: dict[int, list[int]] = {}
        if open_to is not None:
            for i, role in enumerate(tasks.role[rows].tolist()):
                if role:
                    self._roles.setdefault(role, []).append(i)
        #: (K, P), for each task at its step as far as known: what filters say, whether it fits what is idle, the score;
        #: and the score where it may go, -inf elsewhere.
        self._passes, self._idle, self._score = self._look(0, nodes)
        self._worth = self._worth_of(slice(None))

    def choose(self, journal: Journal, hold: Hold) -> list[int]:
        """Return nodes (rows) for the first tasks, up to one that finds none or that must be chosen for by itself. The
        tasks stay booked there."""
        picked: list[int] = []
        while len(picked) < len(self._rows):
            begun, mark = len(picked), journal.mark()
            guess = self._guess(begun)
            if not guess or not self._hold(begun, guess, hold):
                journal.rollback(mark)
                break
            found = self._checked(begun, guess)
            # Journalled bookings cannot be moved to other nodes, so all are taken back and the right ones made.
            if found != guess:
                journal.rollback(mark)
                if not found or not self._hold(begun, found, hold):
                    # The guess is taken back and the corrected choice booked, so that later guesses see the true state.
                    journal.rollback(mark)
                    break
                self._renew(begun + len(found), np.array(sorted({*guess, *found})))
            picked += found
        self._note(len(picked))
        return [int(self._nodes.rows[place]) for place in picked]

    def _hold(self, begun: int, places: Sequence[int], hold: Hold) -> bool:
        return hold(self._rows[begun : begun + len(places)], self._nodes.rows[places].tolist())

    def _guess(self, begun: int) -> list[int]:
        """Return for each task from ``begun`` on the best node that none of them took, up to one without. Positions of
        nodes."""
        worth, guess = self._worth, []
        for i in range(begun, len(self._rows)):
            place = int(worth[i].argmax())
            if not isfinite(worth[i, place]):
                break
            guess.append(place)
            worth[i + 1 :, place] = -np.inf  # until what was taken has been looked at again
        return guess

    def _checked(self, begun: int, guess: list[int]) -> list[int]:
        """Return the booked guess up to the first task that prefers a node that one before it took, with that node,
        unless its scores are not numbers."""
        places, count = np.array(guess), len(guess)
        self._renew(begun + 1, places, begun)
        worth = self._worth[begun : begun + count, places]
        own = worth.diagonal()[:, None]
        # At equal scores the lower position is chosen, so that the result does not depend on the order of guesses.
        less = (worth < own) | ((worth == own) & (places > places[:, None]))
        wrong = np.tril(~less, -1).any(axis=1).nonzero()[0]
        if not len(wrong):
            return guess
        first = int(wrong[0])
        rather = int(self._worth[begun + first].argmax())
        return [*guess[:first], rather] if isfinite(self._worth[begun + first, rather]) else guess[:first]

    def _renew(self, first: int, places: AnyArray, begun: int | None = None) -> None:
        """Examine some nodes again, for tasks from ``first`` on. With ``begun``, the tasks from there on are booked on
        these nodes, one on each, and only tasks after it see the node as it is now."""
        if first < len(self._rows):
            looks = self._look(first, NodeRows(self._nodes.tables, self._nodes.rows[places]))
            for known, found in zip((self._passes, self._idle, self._score), looks, strict=True):
                if begun is not None:
                    later = np.arange(first, len(self._rows))[:, None] > np.arange(begun, begun + len(places))
                    found = np.where(later, found, known[first:, places])
                known[first:, places] = found
        self._worth[:, places] = self._worth_of(places)

    def _look(self, first: int, nodes: NodeRows) -> tuple[Bool, Bool, F64]:
        """Return for tasks from ``first`` on: where filters pass, where the task fits what is idle, and the score."""
        classes = self._classes[first:]
        # In order of appearance, so that the result does not depend on the numbers of classes.
        distinct = list(dict.fromkeys(classes))
        look = self._feasible.look_of_each(ClassRows(nodes.tables, np.array(distinct)), nodes)
        passes, idle, score = look.allowed & look.future_fits, look.idle_fits, look.score
        # Evaluated once per class; tasks of one class share the rows.
        if len(distinct) < len(classes):
            place = {cls: i for i, cls in enumerate(distinct)}
            which = [place[cls] for cls in classes]
            passes, idle, score = passes[which], idle[which], score[which]
        return passes, idle, score if self._extra is None else score + self._extra[first:]

    def _worth_of(self, places: AnyArray | slice) -> F64:
        """Return the score of some nodes where tasks may go, -inf elsewhere. Shape (K, places)."""
        fits = self._open(places) & self._idle[:, places]
        return np.where(fits, self._score[:, places], -np.inf)

    def _open(self, places: AnyArray | slice) -> Bool:
        """Return the nodes that pass for the task itself and for those of its role before it. Shape (K, places)."""
        found = self._passes[:, places]
        if not self._roles:
            return found
        # Copied, because the mask of filters stays as it is for later steps.
        found = found.copy()
        for role, tasks in self._roles.items():
            before = self._open_to.get(role)
            if before is not None:
                found[tasks[0]] &= before[places]
            for one, next_one in pairwise(tasks):
                found[next_one] &= found[one]
        return found

    def _note(self, count: int) -> None:
        """Note which nodes the first ``count`` tasks have left open for their roles."""
        for role, tasks in self._roles.items():
            placed = [i for i in tasks if i < count]
            if placed:
                found = np.logical_and.reduce(self._passes[placed], axis=0)
                before = self._open_to.get(role)
                self._open_to[role] = found if before is None else found & before
