"""Choose nodes for equal tasks of which hooks say something task by task, without booking them.

A class sees a node differently after tasks of it were placed there; that is asked ahead with hypothetical rows. What
hooks say of single tasks is updated by each placement (``in_turn``). So each task is chosen for as if those before it
were placed.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import isfinite
from typing import NamedTuple

import numpy as np

from pumice.algorithms.top_k import top_k
from pumice.columns.dtypes import F64, AnyArray, Bool
from pumice.columns.rows import NodeRows, TaskRows
from pumice.framework.plugin import points
from pumice.framework.plugin.errors import PluginFault, WrongAnswer
from pumice.framework.plugin.hooks import Hooks
from pumice.framework.plugin.incremental import FilterInTurn, Hook, InTurn, ScoreInTurn
from pumice.placing.feasibility import Feasibility

#: Hypothetical rows per call, and those of one node at first, because few nodes get several tasks.
_LOOK_MAX = 256
_FIRST_LOOK = 4


class IncrementalHooks(NamedTuple):
    """What hooks say of tasks that are placed one after the other, each with its hook. ``scores`` may be numbers."""

    filters: list[tuple[Hook, FilterInTurn]]
    scores: list[tuple[Hook, ScoreInTurn | float]]

    @property
    def is_plain(self) -> bool:
        """True if no hook distinguishes nodes, so that the class decides."""
        return not self.followers

    @property
    def followers(self) -> list[tuple[Hook, InTurn]]:
        """All that must be notified of placements."""
        return [(hook, each) for hook, each in (*self.filters, *self.scores) if isinstance(each, InTurn)]

    @property
    def on_top(self) -> list[float]:
        """The numbers at the beginning of the scores."""
        found: list[float] = []
        # Only the leading ones: floating-point sums depend on the order, and the score must equal that of one task.
        for _, each in self.scores:
            if isinstance(each, ScoreInTurn):
                break
            found.append(each)
        return found

    def count(self, tasks: int) -> int:
        """Return for how many of the tasks the answers hold."""
        return min((each.count for _, each in self.followers), default=tasks)


def said_of(hooks: Hooks, tasks: TaskRows, nodes: NodeRows) -> IncrementalHooks | None:
    """Return what hooks say of the tasks, or None if a hook can answer for the first task only."""
    filters = hooks.ask(points.filters_in_turn, tasks, nodes)
    # Scores are not asked for then: each task must be booked anyway.
    if filters is None:
        return None
    scores = hooks.ask(points.scores_in_turn, tasks, nodes)
    return None if scores is None else IncrementalHooks(filters, scores)


#: A node for a class: whether it can be placed there now or later, whether now, and the score.
_Step = tuple[bool, bool, float]


class Filling:
    """P nodes that are filled with ``count`` tasks of one class. Shapes (P,).

    ``passes``: the class can be placed there, now or later. ``fits``: now. ``score``: of the class, plus some numbers.
    A node that got a task is up to date once it was ``renewed``.
    """

    __slots__ = (
        "_cls",
        "_feasible",
        "_left",
        "_nodes",
        "_on_top",
        "_stale",
        "_steps",
        "_taken",
        "fits",
        "passes",
        "score",
    )

    def __init__(self, feasible: Feasibility, cls: int, nodes: NodeRows, count: int, on_top: Sequence[float]) -> None:
        # Copied and picked once; what placements change is written into these arrays and not into the answer of the
        # class.
        fit = feasible.of(cls)
        self._feasible, self._cls, self._nodes, self._left, self._on_top = feasible, cls, nodes, count, on_top
        allowed = nodes.pick(fit.allowed)
        self.passes: Bool = allowed & nodes.pick(fit.future_fits)
        self.fits: Bool = allowed & nodes.pick(fit.idle_fits)
        self.score: F64 = self._topped(nodes.pick(fit.score).copy())
        self._taken: dict[int, int] = {}  # by position, how many tasks it got
        self._stale: list[int] = []
        #: By position, what the node is with more tasks on it, and from how many on.
        self._steps: dict[int, tuple[int, list[_Step]]] = {}

    def _topped(self, score: F64) -> F64:
        for each in self._on_top:
            score = score + each
        return score

    def one_more(self, place: int) -> None:
        """Place a task on the node at a position."""
        self._taken[place] = self._taken.get(place, 0) + 1
        self._left -= 1
        # A list and no set, since few nodes are out of date at one time, and order must be fixed.
        if place not in self._stale:
            self._stale.append(place)

    def stale(self, wanted: Bool) -> list[int]:
        """Return the positions of wanted nodes that are not up to date."""
        return [place for place in self._stale if wanted[place]]

    def renew(self, stale: list[int], likely: Callable[[], list[int]]) -> None:
        """Update nodes. ``likely``: positions that may get tasks soon."""
        unknown = [place for place in stale if not self._knows(place)]
        if unknown:
            # Nodes that may be next are examined in the same call, since a call costs more than its rows.
            self._look_further(unknown, [place for place in likely() if place not in self._steps])
        for place in stale:
            first, steps = self._steps[place]
            self.passes[place], self.fits[place], self.score[place] = steps[self._taken[place] - first]
            self._stale.remove(place)

    def _knows(self, place: int) -> bool:
        """Return True if the state of a node with its present number of tasks is known."""
        known = self._steps.get(place)
        return known is not None and self._taken[place] < known[0] + len(known[1])

    def _look_further(self, places: list[int], others: list[int]) -> None:
        """Examine nodes with more tasks on them: ``places`` from their present number on, ``others`` from one on."""
        firsts = {**dict.fromkeys(others, 1), **{place: self._taken[place] for place in places}}
        most, rows = max(firsts.values()), self._nodes.rows[list(firsts)]
        # Twice as many as the fullest node has, so that a node that gets many tasks is examined rarely.
        width = max(1, min(max(_FIRST_LOOK, 2 * most), self._left, _LOOK_MAX // len(rows)))
        after = np.add.outer(list(firsts.values()), np.arange(float(width))).ravel()
        # Several numbers of tasks per node in one call, so that a node that fills up is rarely asked about again.
        hypothetical = NodeRows(self._nodes.tables, np.repeat(rows, width), after=after, cls=self._cls)
        allowed, idle_fits, future_fits, score = self._feasible.look(self._cls, hypothetical)
        found = [each.tolist() for each in (allowed & future_fits, allowed & idle_fits, self._topped(score))]
        steps = list(zip(*found, strict=True))
        for i, (place, first) in enumerate(firsts.items()):
            self._steps[place] = first, steps[i * width : (i + 1) * width]


class BatchSteps:
    """Chooses nodes for K tasks of one class.

    ``roles`` (K,) and ``open_to`` by role: nodes that failed a task of a role other than 0 are not tried for the next
    one; results of these tasks are added to it. None: roles do not matter.
    """

    __slots__ = (
        "_asked",
        "_filling",
        "_filters",
        "_followers",
        "_hooks",
        "_open_to",
        "_passing",
        "_places",
        "_roles",
        "_scores",
        "_terms",
        "_worth",
    )

    def __init__(
        self,
        hooks: Hooks,
        filling: Filling,
        said: IncrementalHooks,
        roles: Sequence[int],
        open_to: dict[int, Bool] | None,
    ) -> None:
        self._hooks, self._filling, self._filters = hooks, filling, said.filters
        # Leading numbers are part of the filling's score already.
        self._scores, self._followers = said.scores[len(said.on_top) :], said.followers
        self._roles, self._open_to = roles[: said.count(len(roles))], open_to
        self._asked: Hook | None = None  # whose answer is in use
        #: (P,) Nodes that take the present task, now or later, and its score on nodes that take it now, else -inf.
        self._passing: Bool = filling.passes
        self._worth: F64 = filling.score
        #: Candidates (positions), and the terms that are added to their class scores.
        self._places: AnyArray = np.zeros(0, dtype=np.int64)
        self._terms: list[F64 | float] = []

    def choose(self) -> list[int]:
        """Return positions of nodes with idle room for the first tasks, up to one that finds none or that must be
        chosen for by itself. Raises: PluginFault."""
        try:
            return self._choose()
        except PluginFault:
            raise
        except Exception as error:
            # An error in this module is not a plugin's fault.
            if self._asked is None:
                raise
            asked = (*points.filters_in_turn.points, *points.scores_in_turn.points)
            raise self._hooks.fault_of(self._asked, error, *asked) from error

    def _choose(self) -> list[int]:
        """Choose without attributing errors to plugins."""
        picked: list[int] = []
        for step, role in enumerate(self._roles):
            # Most placements change nothing but the node itself, and then all other nodes are as they were.
            if not picked or self._changes(step - 1, picked[-1]):
                self._look(step, role)
            # Of equal scores the first row, as ``choose`` takes it.
            place = int(self._worth.argmax())
            # No node is left, or a score is not a number: if not one of these, choosing the task alone reports it.
            if not isfinite(self._worth[place]):
                self._check_terms()
                break
            if self._open_to is not None and role:
                self._open_to[role] = self._passing.copy()
            picked.append(place)
        return picked

    def _changes(self, step: int, place: int) -> bool:
        """Return True if placing the task of a step changes anything for the next task on other nodes."""
        filling = self._filling
        filling.one_more(place)
        changes = self._open_to is not None
        for hook, each in self._followers:
            self._asked = hook
            # Each must be notified, also after one has said that something changes.
            changes |= each.placed(step, place)
        self._asked = None
        if changes:
            return True
        filling.renew([place], self._likely)
        if filling.fits[place]:
            self._worth[place] = self._total(place)
            return False
        self._worth[place] = -np.inf
        # Scores are scaled over the candidates, so one less may change all others.
        return bool(self._scores)  # there is one candidate less to score

    def _total(self, place: int) -> float:
        """Return the score of a candidate."""
        total, at = float(self._filling.score[place]), int(self._places.searchsorted(place)) if self._terms else 0
        # In the order of the hooks, so that the sum equals that of the whole array to the last bit.
        for term in self._terms:
            total += term[at] if isinstance(term, np.ndarray) else term
        return total

    def _likely(self) -> list[int]:
        """Return the best candidates of the last step, as many as there are tasks."""
        found: list[int] = top_k(self._worth, len(self._roles)).tolist()
        return found

    def _look(self, step: int, role: int) -> None:
        """Compute what holds for the task of a step."""
        self._passing = self._passes(step, role)
        open_to, score = self._passing & self._filling.fits, self._filling.score
        if not self._scores:
            self._worth = np.where(open_to, score, -np.inf)
            return
        places = self._places = open_to.nonzero()[0]
        # With one candidate no score can change the choice.
        self._terms = [self._term(hook, each, step) for hook, each in self._scores] if len(places) > 1 else []
        self._worth = np.full(len(score), -np.inf)
        self._worth[places] = sum(self._terms, score[places])

    def _passes(self, step: int, role: int) -> Bool:
        """Return nodes that take the task of a step, now or later. Shape (P,)."""
        filling = self._filling
        before = self._open_to.get(role) if self._open_to is not None else None
        found = filling.passes if before is None else filling.passes & before
        for hook, each in self._filters:
            self._asked = hook
            open_to = each.open_to(step)
            # The answer comes from plugin code, so its type is checked before it is combined.
            if not isinstance(open_to, np.ndarray) or open_to.dtype != np.bool_ or open_to.shape != found.shape:
                raise WrongAnswer(hook, open_to, f"a mask over {len(found)} nodes")
            found = found & open_to
        self._asked = None
        stale = filling.stale(found)
        if stale:
            filling.renew(stale, self._likely)
            found = found & filling.passes
        return found

    def _term(self, hook: Hook, each: ScoreInTurn | float, step: int) -> F64 | float:
        """Return what a score adds for the candidates."""
        if not isinstance(each, ScoreInTurn):
            return each
        self._asked = hook
        found = each.score(step, self._places)
        if not isinstance(found, np.ndarray) or found.shape != self._places.shape or found.dtype.kind not in "biuf":
            raise WrongAnswer(hook, found, f"one number for each of {len(self._places)} nodes")
        self._asked = None
        return found

    def _check_terms(self) -> None:
        """Check that the scores of the last step are finite. Raises: WrongAnswer."""
        for (hook, _), term in zip(self._scores, self._terms, strict=False):
            if not np.isfinite(term).all():
                self._asked = hook
                raise WrongAnswer(hook, term, "finite numbers")
