"""Grow a set of potential victims chunk by chunk, and stop where the job might fit.

While every chunk is a whole job on one node, victims on other nodes do not matter, and one pass over arrays finds the
next position worth simulating. Other chunks are counted one by one.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator

import numpy as np

from pumice.columns.dtypes import Bool
from pumice.framework.cycle.session import Session
from pumice.kai.engine.parts import Chunk
from pumice.kai.engine.victims.bounds import Bound
from pumice.kai.engine.victims.candidates import Candidates

#: Chunks in the first pass, and the factor by which further passes grow. Usually the first chunk suffices.
_FIRST, _MORE = 1, 16


class Growth:
    """Iterate over the chunks at which a simulation is worthwhile. ``ruled_out``: number of chunks skipped so far."""

    def __init__(self, ssn: Session, candidates: Candidates, recorded: Collection[int], bound: Bound) -> None:
        self._ssn, self._candidates, self._recorded, self._bound = ssn, candidates, recorded, bound
        self.ruled_out = 0
        self._at = 0  # number of known chunks in the set, while all of them are simple
        self._is_out: Bool = np.zeros(0, dtype=bool)  # per known chunk: it is a recorded victim
        self._rows: dict[int, list[int]] = {}
        self._jobs_on: dict[int, dict[int, None]] = {}

    def with_node(self, node: int) -> list[int]:
        """Return all potential victims of jobs that have a potential victim on the node."""
        if self._jobs_on:
            return [row for job in self._jobs_on.get(node, ()) for row in self._rows[job]]
        if self._at == 1:
            return list(self._candidates.known[0].rows)
        nodes, _ = self._candidates.in_rows(self._at)
        there = (nodes == node) & ~self._is_out[: self._at]
        return [row for position in there.nonzero()[0].tolist() for row in self._candidates.known[position].rows]

    def rows(self) -> list[int]:
        """Return all potential victims."""
        if self._jobs_on:
            return [row for rows in self._rows.values() for row in rows]
        return [
            row
            for chunk, is_out in zip(self._candidates.known[: self._at], self._is_out, strict=False)
            if not is_out
            for row in chunk.rows
        ]

    def __iter__(self) -> Iterator[Chunk]:
        """Iterate over the chunks, in eviction order."""
        at, window = 0, _FIRST
        while self._is_simple_so_far():
            end = self._candidates.reach(at + window)
            end = at + self._simple_ones(at, end)
            if end == at:
                break
            # A growing window reads few candidates for an easy job and needs few passes for a hard one.
            yield from self._worth_trying(at, end)
            at, window = end, window * _MORE
        if at < self._candidates.reach(at + 1):
            self._at = at
            # From here on, a chunk may depend on victims on several nodes, which arrays by node cannot express.
            yield from self._one_by_one(at)

    def _is_simple_so_far(self) -> bool:
        """Return True if all recorded victims are jobs with one task."""
        jobs, job_of = self._ssn.tables.jobs, self._ssn.tables.tasks.job
        # Otherwise the tasks left of a recorded job change its position in the eviction order.
        return bool((jobs.size[job_of[list(self._recorded)]] == 1).all())

    def _simple_ones(self, at: int, end: int) -> int:
        """Return how many known chunks precede the first one that is not a whole job on one node."""
        simple = self._candidates.simple[at:end]
        return simple.index(False) if False in simple else len(simple)

    def _worth_trying(self, at: int, end: int) -> Iterator[Chunk]:
        """Yield the chunks between two positions at which the job might fit."""
        known = self._candidates.known
        if end == 1 and not self._recorded:
            # The first chunk alone is the usual case and needs no arrays.
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
            # Recorded victims are evicted already, so their chunks free nothing more.
            held = np.where(self._is_out[:, None], 0.0, held)
        worth = self._bound.possible(nodes, held) & ~self._is_out
        for position in (worth[at:].nonzero()[0] + at).tolist():
            # Counted as if each had been looked at by itself, so that the figure does not depend on windows.
            self.ruled_out += position - at
            at = self._at = position + 1
            yield known[position]
        self.ruled_out += end - at

    def _one_by_one(self, at: int) -> Iterator[Chunk]:
        """Yield the chunks from a position on at which the job might fit, counted one at a time."""
        begun = {chunk.job for chunk in self._candidates.known[:at]}
        coming = self._candidates.chunks(self._recorded) if self._recorded else self._known_and_coming()
        for chunk in coming:
            allowed = self._bound.allows(chunk)
            self._take(chunk)
            # With recorded victims, the iteration starts anew; chunks that were yielded before are only added.
            if chunk.job in begun:
                begun.discard(chunk.job)
            elif allowed:
                yield chunk
            else:
                self.ruled_out += 1

    def _take(self, chunk: Chunk) -> None:
        """Add a chunk to the set."""
        self._rows.setdefault(chunk.job, []).extend(chunk.rows)
        for each in chunk.nodes:
            self._jobs_on.setdefault(each, {})[chunk.job] = None

    def _known_and_coming(self) -> Iterator[Chunk]:
        """Yield all chunks, those that are cached first."""
        at = 0
        while at < self._candidates.reach(at + 1):
            yield self._candidates.known[at]
            at += 1
