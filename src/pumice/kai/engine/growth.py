"""A set of potential victims that grows chunk by chunk, and stops where there could be room.

While every chunk is all of its job and on one node, those of other nodes stay where they are: then one pass over many
chunks finds the next position at which it is worth simulating. Other chunks are counted one by one.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator

import numpy as np

from pumice.columns.dtypes import Bool
from pumice.framework.cycle.session import Session
from pumice.kai.engine.bounds import Bound
from pumice.kai.engine.parts import Chunk
from pumice.kai.engine.victim_candidates import Candidates

#: Chunks that are looked at in the first pass, and how many times as many in each further one.
_FIRST, _MORE = 1, 16


class Growth:
    """Iterating gives the chunks at which it is worth simulating. ``ruled_out``: how many were passed over so far."""

    def __init__(self, ssn: Session, candidates: Candidates, recorded: Collection[int], bound: Bound) -> None:
        self._ssn, self._candidates, self._recorded, self._bound = ssn, candidates, recorded, bound
        self.ruled_out = 0
        self._at = 0  # how many of the known chunks are in, as long as they are simple
        self._is_out: Bool = np.zeros(0, dtype=bool)  # of the known chunks: it was recorded
        self._rows: dict[int, list[int]] = {}
        self._jobs_on: dict[int, dict[int, None]] = {}

    def with_node(self, node: int) -> list[int]:
        """All potential victims of jobs that have one on the node."""
        if self._jobs_on:
            return [row for job in self._jobs_on.get(node, ()) for row in self._rows[job]]
        if self._at == 1:
            return list(self._candidates.known[0].rows)
        nodes, _ = self._candidates.in_rows(self._at)
        there = (nodes == node) & ~self._is_out[: self._at]
        return [row for position in there.nonzero()[0].tolist() for row in self._candidates.known[position].rows]

    def __iter__(self) -> Iterator[Chunk]:
        at, window = 0, _FIRST
        while self._is_simple_so_far():
            end = self._candidates.reach(at + window)
            end = at + self._simple_ones(at, end)
            if end == at:
                break
            yield from self._worth_trying(at, end)
            at, window = end, window * _MORE
        if at < self._candidates.reach(at + 1):
            self._at = at
            yield from self._one_by_one(at)

    def _is_simple_so_far(self) -> bool:
        """Whether those that were recorded are jobs of one task: then the order of the others is the one without
        them."""
        jobs, job_of = self._ssn.tables.jobs, self._ssn.tables.tasks.job
        return bool((jobs.size[job_of[list(self._recorded)]] == 1).all())

    def _simple_ones(self, at: int, end: int) -> int:
        """How many of some known chunks come before the first that is not all of its job and on one node."""
        simple = self._candidates.simple[at:end]
        return simple.index(False) if False in simple else len(simple)

    def _worth_trying(self, at: int, end: int) -> Iterator[Chunk]:
        """Of the first chunks, those from ``at`` on that are worth it."""
        known = self._candidates.known
        if end == 1 and not self._recorded:
            if self._bound.reaches(known[0]):
                self._at, self._is_out = 1, np.zeros(1, dtype=bool)
                yield known[0]
            else:
                self.ruled_out += 1
            return
        nodes, held = self._candidates.in_rows(end)
        self._is_out = np.zeros(end, dtype=bool)
        if self._recorded:
            self._is_out[self._candidates.places(self._recorded, end)] = True
            held = np.where(self._is_out[:, None], 0.0, held)
        worth = self._bound.possible(nodes, held) & ~self._is_out
        for position in (worth[at:].nonzero()[0] + at).tolist():
            self.ruled_out += position - at
            at = self._at = position + 1
            yield known[position]
        self.ruled_out += end - at

    def _one_by_one(self, at: int) -> Iterator[Chunk]:
        """The chunks from ``at`` on, each counted by itself, with all that came before."""
        begun = {chunk.job for chunk in self._candidates.known[:at]}
        coming = self._candidates.chunks(self._recorded) if self._recorded else self._known_and_coming()
        for chunk in coming:
            allowed = self._bound.allows(chunk)
            self._take(chunk)
            if chunk.job in begun:
                begun.discard(chunk.job)
            elif allowed:
                yield chunk
            else:
                self.ruled_out += 1

    def _take(self, chunk: Chunk) -> None:
        self._rows.setdefault(chunk.job, []).extend(chunk.rows)
        for each in chunk.nodes:
            self._jobs_on.setdefault(each, {})[chunk.job] = None

    def _known_and_coming(self) -> Iterator[Chunk]:
        at = 0
        while at < self._candidates.reach(at + 1):
            yield self._candidates.known[at]
            at += 1
