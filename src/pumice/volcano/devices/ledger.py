"""Track which pod has what of which card during a session.

Two sums are kept per card: its use ``now``, and its use once releasing pods are gone and pipelined pods have come
(``soon``). A placement is searched in ``soon``; a pod is bound only if it fits beside both.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from functools import reduce
from operator import or_
from typing import NamedTuple

import numpy as np
from msgspec import Struct

from pumice.columns.counting import HELD
from pumice.columns.dtypes import I64, AnyArray, Bool
from pumice.columns.tables import Tables
from pumice.framework.cycle.session import Session
from pumice.framework.plugin.filter_result import Unfit
from pumice.model.devices.shared_devices import DeviceAsk
from pumice.model.node import Node
from pumice.model.status import TaskStatus
from pumice.placing.derived import derived
from pumice.volcano.devices.cards import (
    COLUMNS,
    MEMORY,
    NUM,
    CardPlacement,
    Cards,
    Family,
    Part,
    Wanted,
    as_both,
    unfit,
)
from pumice.volcano.devices.exclusive import Rules
from pumice.volcano.devices.vgpu import HAMI_CORE, Vgpus

_NOWHERE, _PROMISED, _THERE, _LEAVING = range(4)
# A task that was promised cards will use them, and a leaving one still does.
_IN_SOON, _IN_NOW = (_PROMISED, _THERE), (_THERE, _LEAVING)
#: Largest number of cards of a node: the cards of a task are the bits of a 64-bit integer.
_BITS = 62


class Here(NamedTuple):
    """Cards of one kind (``family``, by number) on a node, beginning at ``first`` among all of its cards."""

    family: int
    first: int
    cards: Cards
    kind: int  # equal for cards that differ only in their names

    @property
    def end(self) -> int:
        """The index after the last of these cards."""
        return self.first + len(self.cards.cards)


class Fit(Struct, frozen=True):
    """What a pod gets on a node, as (number of the kind, cards) pairs, and the score of that."""

    placed: tuple[tuple[int, CardPlacement], ...] = ()
    score: float = 0.0


class Ask(NamedTuple):
    """The request of a class for one kind, by number of the kind."""

    family: int
    wanted: Wanted


_NONE = Fit()


def asking_tasks(tables: Tables, families: Sequence[Family]) -> AnyArray:
    """Return the rows of tasks that ask for any of these kinds."""
    if not families:
        return np.zeros(0, dtype=np.int64)
    specs = tables.classes.specs
    asks = [each is not None and each.devices is not None and bool(_asks(each.devices, families)) for each in specs]
    rows = np.flatnonzero(tables.tasks.alive)
    return rows[np.array(asks, dtype=bool)[tables.tasks.cls[rows]]] if any(asks) else rows[:0]


def _asks(ask: DeviceAsk, families: Sequence[Family]) -> tuple[Ask, ...]:
    """Return the requests of a class for all kinds."""
    each = ((i, family.asked(ask)) for i, family in enumerate(families))
    return tuple(Ask(i, wanted) for i, wanted in each if wanted is not None)


class CardLedger:
    """The ledger of a session.

    ``asks``: requests by class. ``now``, ``soon`` (N, D, 5): use of each card of each node. For each of the K tasks
    that ask for cards there are columns (K,): state, node from 1, cards as bits, and an index into a list of ``Fit``.
    """

    def __init__(self, ssn: Session, families: Sequence[Family], rows: AnyArray, policy: str, rules: Rules) -> None:
        self.ssn, self._families, self._policy = ssn, families, policy
        tables = self._tables = ssn.tables
        facts, question = derived(ssn), ("cards", *(family.question for family in families))
        self._here = facts.get(question, lambda: _cards_of_all(facts.facts.objs, families))
        specs = tables.classes.specs
        self.asks = [() if each is None or each.devices is None else _asks(each.devices, families) for each in specs]
        self._rows: list[int] = rows.tolist()
        self._index = {row: i for i, row in enumerate(self._rows)}
        pods = tables.tasks.pods
        self._keys = [rules.keys_of(pods[row]) for row in self._rows]
        # Only tasks with such rules are listed, so that all others skip the search for neighbours.
        self._apart = {row: keys for row in self._rows if (keys := rules.apart(pods[row]))}
        # Only grows: after a rollback, the columns no longer refer to an entry, which then does no harm.
        self._fits: list[Fit] = [_NONE]
        self._found: dict[Hashable, CardPlacement | Unfit] = {}
        self._leaving: tuple[tuple[int, int], bool] | None = None
        self._begin()

    def figures(self) -> dict[str, AnyArray]:
        """Return the memory of cards, -1 where there is none, what of it is held, and how many containers hold some.
        Shapes (N, D)."""
        facts = derived(self.ssn)
        memory = facts.get(("memory of cards", *(family.question for family in self._families)), self._memory)
        now = self.now.array
        return {"device.memory": memory, "device.used": now[..., MEMORY], "device.containers": now[..., NUM]}

    def _memory(self) -> I64:
        found = np.full(self.now.array.shape[:2], -1, dtype=np.int64)
        for node, kinds in enumerate(self._here):
            for here in kinds:
                found[node, here.first : here.end] = [card.memory for card in here.cards.cards]
        return found

    def families_of(self, cls: int) -> list[int]:
        """Return the numbers of the kinds for which a class asks."""
        return [number for number, _ in self.asks[cls]]

    def _begin(self) -> None:
        """Enter what running pods have, by their annotations or by annotations that are still to be written."""
        tasks, count = self._tables.tasks, len(self._rows)
        width = max((here[-1].end for here in self._here if here), default=0)
        # One width for all nodes, that of the node with most cards, because a column has one shape.
        now = np.zeros((len(self._here), width, COLUMNS), dtype=np.int64)
        soon = np.zeros_like(now)
        state, on, got, cards = (np.zeros(count, dtype=np.int64) for _ in range(4))
        # A binding that is under way has no annotation in the cache yet; what it was given counts already.
        unsaid = {grant.key: dict(grant.annotations) for grant in self._tables.device_grants.objs}
        for i, row in enumerate(self._rows):
            node, status = int(tasks.node[row]), int(tasks.status[row])
            if node < 0 or not (HELD[status] or status == TaskStatus.RELEASING):
                continue
            pod = tasks.pods[row]
            fit = self._had(row, node, pod.annotations if pod.node_name else unsaid.get(pod.key, {}))
            state[i], on[i], got[i] = (_THERE if HELD[status] else _LEAVING), node + 1, len(self._fits)
            cards[i] = self._bits(fit, node)
            self._fits.append(fit)
            self._add(fit, node, now[node], 1)
            # A releasing pod uses its cards now and not later, so it is in the first sum only.
            if HELD[status]:
                self._add(fit, node, soon[node], 1)
        column = self.ssn.column
        self.now = column("deviceshare.now", "node", width, COLUMNS, values=now)
        self.soon = column("deviceshare.soon", "node", width, COLUMNS, values=soon)
        self._state, self._on = column("deviceshare.state", values=state), column("deviceshare.on", values=on)
        self._got, self._cards = column("deviceshare.got", values=got), column("deviceshare.cards", values=cards)

    def _had(self, row: int, node: int, annotations: Mapping[str, str]) -> Fit:
        """Return what a pod has according to its annotations."""
        tasks, found = self._tables.tasks, []
        for family, wanted in self.asks[int(tasks.cls[row])]:
            here = self._of(node, family)
            if here is not None:
                had = self._families[family].had(annotations, tasks.pods[row], wanted, here.cards)
                found.append((family, had))
        return Fit(tuple(found))

    # -- what there is room for ---------------------------------------------------------------------------------------

    @property
    def some_keep_apart(self) -> bool:
        """True if some task may not share cards with certain others."""
        return bool(self._apart)

    def keeps_apart(self, row: int) -> bool:
        """Return True if a task may not share cards with certain others."""
        return row in self._apart

    @property
    def some_leave(self) -> bool:
        """True if the use of any card will change by tasks that are releasing or pipelined."""
        versions = self.now.version, self.soon.version
        # The whole array is compared, so only once per version; most sessions have no such tasks.
        if self._leaving is None or self._leaving[0] != versions:
            self._leaving = versions, bool((self.now.array != self.soon.array).any())
        return self._leaving[1]

    def fit(self, cls: int, node: int, in_use: I64, task: int = -1, further: int = 0) -> Fit | Unfit:
        """Return what another task of a class gets on a node, given the use of its cards (D, 5), after ``further``
        such tasks.

        ``task``: the task in question, which may not share cards with certain others.
        """
        found: Fit | Unfit = _NONE
        for _ in range(further + 1):
            found = self._fit(cls, node, in_use, task)
            if isinstance(found, Unfit):
                return found
            # Only hypothetical tasks are added up. The session's own use must not change by a question.
            if further:
                in_use = in_use.copy()
                self._add(found, node, in_use, 1)
        return found

    def at_once(self, row: int, node: int) -> Fit | Unfit:
        """Return what a task gets beside running, releasing and pipelined tasks."""
        both = as_both(self.now.array[node], self.soon.array[node])
        return self._fit(int(self._tables.tasks.cls[row]), node, both, row)

    def _fit(self, cls: int, node: int, in_use: I64, task: int) -> Fit | Unfit:
        """Return what a class gets of all kinds that it asks for."""
        found, score = [], 0.0
        for number, wanted in self.asks[cls]:
            family, here = self._families[number], self._of(node, number)
            if here is None or here.cards.problem:
                why = f": {here.cards.problem}" if here is not None else ""
                return unfit(f"node not initialized with device {family.name}{why}")
            used = in_use[here.first : here.end]
            placed = self._placed(number, wanted, here, used, self._excluded(number, wanted, here, node, task))
            if isinstance(placed, Unfit):
                return placed
            found.append((number, placed))
            score += family.score(placed, here.cards, used)
        return Fit(tuple(found), score)

    def _placed(self, number: int, wanted: Wanted, here: Here, used: I64, excluded: Bool) -> CardPlacement | Unfit:
        """Return what a request gets of one kind."""
        # Nodes of one type have cards that differ only in names. With equal use, they share one answer.
        question = number, wanted, here.kind, used.tobytes(), excluded.tobytes()
        found = self._found.get(question)
        if found is None:
            place = self._families[number].place
            found = self._found[question] = place(wanted, here.cards, used, excluded, self._policy)
        return found

    def _excluded(self, number: int, wanted: Wanted, here: Here, node: int, task: int) -> Bool:
        """Return the cards that a pod rejects, or must not share with the pods that use them. Shape (cards,)."""
        family = self._families[number]
        found = family.ids_excluded(wanted, here.cards)
        if found is None:
            found = np.zeros(len(here.cards.cards), dtype=bool)
        keys = self._apart.get(task)
        if keys and isinstance(family, Vgpus):
            # Rules are numbers and apply in mode hami-core only; PodGroups are texts and apply in every mode.
            of_rules = here.cards.mode == HAMI_CORE
            keys = frozenset(key for key in keys if of_rules or not isinstance(key, int))
            bits = self._held_by(keys, node, task) >> here.first
            found |= np.array([bool(bits >> i & 1) for i in range(len(found))], dtype=bool)
        return found

    def _held_by(self, keys: frozenset[Hashable], node: int, but: int) -> int:
        """Return the cards of a node that pods with one of these keys have or will have, as bits."""
        there = (self._on.array == node + 1) & (self._state.array != _NOWHERE)
        each = (i for i in there.nonzero()[0].tolist() if self._rows[i] != but and keys & self._keys[i])
        return reduce(or_, (int(self._cards.array[i]) for i in each), 0)

    # -- moves --------------------------------------------------------------------------------------------------------

    def placed(self, row: int, node: int) -> bool:
        """Record a task that was allocated, pipelined, or keeps its place. Return True if there are cards for it."""
        i = self._index.get(row)
        # A task without a request for cards fits everywhere as far as cards are concerned.
        if i is None:
            return True
        promised = self._tables.tasks.status[row] == TaskStatus.PIPELINED
        # The eviction of this task was taken back, so it keeps the cards it has.
        if self._state.array[i] == _LEAVING and self._on.array[i] == node + 1 and not promised:
            self._write(i, _THERE)
            return True
        cls = int(self._tables.tasks.cls[row])
        fit = self._fit(cls, node, self.soon.array[node], row) if promised else self.at_once(row, node)
        if isinstance(fit, Unfit):
            return False
        # A task that is placed anew first gives back what it had.
        self._write(i, _NOWHERE)
        self._is_at(i, node + 1, len(self._fits), self._bits(fit, node))
        self._fits.append(fit)
        self._write(i, _PROMISED if promised else _THERE)
        return True

    def left(self, row: int) -> None:
        """Record a task that is releasing or no longer on a node."""
        i = self._index.get(row)
        if i is not None:
            # A running task keeps its cards until it is gone; one that was only allocated in this session gives them
            # back at once.
            leaves = self._tables.tasks.status[row] == TaskStatus.RELEASING
            stays_there = leaves and self._state.array[i] in _IN_NOW
            self._write(i, _LEAVING if stays_there else _NOWHERE)
            if not stays_there:
                self._is_at(i, 0, 0, 0)

    def _is_at(self, i: int, node: int, got: int, cards: int) -> None:
        """Record where a task is; node numbers start from 1, and 0 means nowhere."""
        for column, value in ((self._on, node), (self._got, got), (self._cards, cards)):
            self.ssn.journal.put(column, i, value)

    def _write(self, i: int, state: int) -> None:
        """Move a task to a state and update both sums."""
        before, node = int(self._state.array[i]), int(self._on.array[i]) - 1
        if before == state:
            return
        fit = self._fits[int(self._got.array[i])]
        for column, states in ((self.now, _IN_NOW), (self.soon, _IN_SOON)):
            sign = (state in states) - (before in states)
            if sign:
                # The journal needs the old row to restore it, so the row is replaced and not changed in place.
                used = column.array[node].copy()
                self._add(fit, node, used, sign)
                self.ssn.journal.put(column, node, used)
        self.ssn.journal.put(self._state, i, state)

    def annotations(self, row: int, now: float) -> dict[str, str]:
        """Return the annotations for the cards that a task got, none if it asked for none."""
        i, found = self._index.get(row), dict[str, str]()
        if i is not None:
            node = int(self._on.array[i]) - 1
            for number, placed in self._fits[int(self._got.array[i])].placed:
                here = self._of(node, number)
                assert here is not None, "it was placed on these cards"
                name = self._tables.nodes.facts.names[node]
                found |= self._families[number].annotations(placed, here.cards, name, now)
        return found

    # -- cards --------------------------------------------------------------------------------------------------------

    def _of(self, node: int, family: int) -> Here | None:
        """Return the cards of one kind on a node."""
        return next((here for here in self._here[node] if here.family == family), None)

    def _parts(self, fit: Fit, node: int) -> Iterator[tuple[Here, Part]]:
        """Yield the parts of a fit with their cards."""
        for number, placed in fit.placed:
            here = self._of(node, number)
            if here is not None:
                yield from ((here, part) for part in placed.held)

    def _bits(self, fit: Fit, node: int) -> int:
        """Return the cards of a fit as bits."""
        return reduce(or_, (1 << here.first + part.card for here, part in self._parts(fit, node)), 0)

    def _add(self, fit: Fit, node: int, used: I64, sign: int) -> None:
        """Add a fit to the use of a node's cards, or subtract it."""
        for here, part in self._parts(fit, node):
            part.add_to(used[here.first : here.end], sign)


def _cards_of_all(nodes: Iterable[Node], families: Sequence[Family]) -> list[tuple[Here, ...]]:
    """Return the cards of all nodes."""
    kinds: dict[Hashable, int] = {}
    return [_cards_of(node, families, kinds) for node in nodes]


def _cards_of(node: Node, families: Sequence[Family], kinds: dict[Hashable, int]) -> tuple[Here, ...]:
    """Return the cards of a node, kind by kind."""
    found, first = list[Here](), 0
    for number, family in enumerate(families):
        cards = family.cards_of(node)
        if cards is None:
            continue
        # The node keeps its other devices. Only this kind cannot be used on it.
        if first + len(cards.cards) > _BITS:
            cards = Cards(problem=f"more than {_BITS} cards on one node")
        # Without names, so that the nodes of one type share answers.
        kind = kinds.setdefault((number, cards.cards, cards.mode), len(kinds))
        found.append(Here(number, first, cards, kind))
        first += len(cards.cards)
    return tuple(found)
