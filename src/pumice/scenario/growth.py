"""A set of potential victims that grows chunk by chunk, and stops where there could be room.

While every chunk is all of its job and on one node, those of other nodes stay where they are: then one pass over many
chunks finds the next position at which it is worth simulating. Other chunks are counted one by one.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator

import numpy as np

from pumice.columns.dtypes import AnyArray
from pumice.framework.session import Session
from pumice.scenario.bounds import Bound
from pumice.scenario.candidates import Candidates
from pumice.scenario.parts import Chunk

#: Chunks that are looked at in one pass, at first; then eight times as many.
_WINDOW = 32


class Growth:
    """Iterating gives the chunks at which it is worth simulating."""

    def __init__(self, ssn: Session, candidates: Candidates, recorded: Collection[int], bound: Bound) -> None:
        self._ssn, self._candidates, self._recorded, self._bound = ssn, candidates, recorded, bound
        self._rows: dict[int, list[int]] = {}
        self._jobs_on: dict[int, dict[int, None]] = {}

    def with_node(self, node: int) -> list[int]:
        """All potential victims of jobs that have one on the node."""
        return [row for job in self._jobs_on[node] for row in self._rows[job]]

    def _take(self, chunk: Chunk) -> None:
        self._rows.setdefault(chunk.job, []).extend(chunk.rows)
        for each in chunk.nodes:
            self._jobs_on.setdefault(each, {})[chunk.job] = None

    def __iter__(self) -> Iterator[Chunk]:
        at, window = 0, _WINDOW
        while self._is_simple_so_far():
            end = self._candidates.reach(at + window)
            end = at + self._simple_ones(at, end)
            if end == at:
                break
            yield from self._worth_trying(at, end)
            at, window = end, window * 8
        if at < self._candidates.reach(at + 1):
            yield from self._one_by_one(at)

    def _is_simple_so_far(self) -> bool:
        """Whether those that were recorded are whole jobs on one node each: then the order of the others is the one
        without them."""
        jobs, job_of = self._ssn.tables.jobs, self._ssn.tables.tasks.job
        return all(jobs.size[job_of[row]] == 1 for row in self._recorded)

    def _simple_ones(self, at: int, end: int) -> int:
        """How many of some known chunks come before the first that is not all of its job and on one node."""
        simple = self._candidates.simple[at:end]
        return simple.index(False) if False in simple else len(simple)

    def _worth_trying(self, at: int, end: int) -> Iterator[Chunk]:
        """Of the chunks from the first one on, those from ``at`` that are worth it."""
        known = [chunk for chunk in self._candidates.known[:end] if chunk.rows[0] not in self._recorded]
        taken = len(known) - sum(chunk.rows[0] not in self._recorded for chunk in self._candidates.known[at:end])
        if not known:
            return
        tables = self._ssn.tables
        node = np.array([chunk.nodes[0] for chunk in known])
        lengths = [len(chunk.rows) for chunk in known]
        rows: AnyArray = np.array([row for chunk in known for row in chunk.rows])
        held = tables.classes.req[tables.tasks.cls[rows]]
        if len(rows) > len(known):
            held = np.add.reduceat(held, np.concatenate(([0], np.cumsum(lengths)[:-1])), axis=0)
        for position in (self._bound.possible(node, held)[taken:]).nonzero()[0].tolist():
            for chunk in known[taken : taken + position + 1]:
                if chunk.job not in self._rows:
                    self._take(chunk)
            yield known[taken + position]
        for chunk in known[taken:]:
            if chunk.job not in self._rows:
                self._take(chunk)

    def _one_by_one(self, at: int) -> Iterator[Chunk]:
        """The chunks from ``at`` on, each counted by itself."""
        begun = set(self._rows)
        for chunk in self._candidates.chunks(self._recorded) if self._recorded else self._known_and_coming():
            allowed = self._bound.allows(chunk)
            if chunk.job in begun:
                begun.discard(chunk.job)
                continue
            self._take(chunk)
            if allowed:
                yield chunk

    def _known_and_coming(self) -> Iterator[Chunk]:
        at = 0
        while at < self._candidates.reach(at + 1):
            yield self._candidates.known[at]
            at += 1
