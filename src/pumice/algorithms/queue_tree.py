"""Fair shares in a tree of queues with quotas, limits and over-quota weights. Arrays in, arrays out.

Amounts are in the units of which whole ones are divided: milli-cores, bytes and devices. Unlimited is inf.
Source: KAI ``proportion`` plugin (division of over-quota resources), checked against recorded results.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from pumice.algorithms.groups import distinct

F64 = npt.NDArray[np.float64]
I64 = npt.NDArray[np.int64]
Bool = npt.NDArray[np.bool_]
Rows = npt.NDArray[np.integer]


def fair_share(
    total: F64,
    levels: Sequence[Rows],
    parent: Rows,
    priority: F64,
    quota: F64,
    limit: F64,
    request: F64,
    weight: F64,
    usage: F64,
    k: float,
    rank: Rows,
) -> F64:
    """Return the fair share of each queue: its quota, as far as it requests that, and a part by weight of the rest.

    Roots divide ``total`` (R,), the children of a queue divide its share. ``levels`` has the rows by depth, roots
    first;
    ``parent`` (Q,) is -1 for roots. Of the rest, queues of higher ``priority`` (Q,) take before lower ones. ``quota``,
    ``limit``, ``request`` and ``weight`` are (Q, R). ``usage`` (Q, R) is the part of the capacity that a queue used in
    the past; it lowers the share, ``k`` times. ``rank`` (Q,) decides between equal queues, smallest first.
    Returns (Q, R).
    """
    # More than this a queue could not use, and what it is given too much would be missing elsewhere.
    wanted = np.minimum(limit, request)
    due = np.zeros_like(wanted)
    # From the roots down, for the shares of parents are what their children divide.
    for rows in levels:
        if len(rows):
            above, group = np.unique(parent[rows], return_inverse=True)
            purse = np.where(above[:, None] >= 0, due[above], total)
            # An unlimited quota is all that the parent has.
            own = np.minimum(np.where(np.isinf(quota[rows]), purse[group], quota[rows]), wanted[rows])
            share = _Division(group, purse, own, wanted[rows], priority[rows], weight[rows], usage[rows], max(k, 0.0))
            due[rows] = share.divided(rank[rows])
    return due


class _Division:
    """The division among siblings, for all queues (n, R) of one level and their G groups of siblings at once.

    Each resource is divided by itself.
    """

    def __init__(
        self,
        group: I64,
        purse: F64,
        due: F64,
        wanted: F64,
        priority: F64,
        weight: F64,
        usage: F64,
        k: float,
    ) -> None:
        self.group, self.due, self.wanted, self.priority = group, due, wanted, priority
        self.weight, self.usage, self.k = weight, usage, k
        # It may be negative: quotas are granted even if their sum is more than the parent has.
        self.left = purse - _summed(group, due, len(purse))
        self.lost = np.zeros_like(due)  # the part of each that was cut off by rounding down

    def divided(self, rank: Rows) -> F64:
        """Return the shares (n, R)."""
        for priority in distinct(self.priority)[::-1].tolist():
            if (self.left > 0).any():
                self._divide((self.priority == priority).nonzero()[0])
        self._hand_out(rank)
        return self.due

    def _divide(self, rows: I64) -> None:
        """Divide what is left by weight among queues of one priority."""
        # In rounds: a queue that requests less than its part leaves the difference to the others in the next round.
        # Each round but the last satisfies at least one queue.
        group, weight = self.group[rows], self.weight[rows]
        more = self.left > 0
        for _ in range(len(rows) + 1):
            lacks = self.wanted[rows] - self.due[rows]
            asks = (lacks > 0) & more[group]
            if not asks.any():
                return
            part = self._parts(group, np.where(asks, weight, 0.0), self.usage[rows]) * self.left[group]
            asks &= (weight != 0) & ~np.isnan(part)
            part = np.where(asks, part, 0.0)
            # Whole units only, as in KAI: what rounding down leaves over is handed out at the end (``_hand_out``).
            satisfied = asks & (lacks <= part)
            given = np.where(satisfied, lacks, np.floor(part))
            lost = self.lost[rows]
            rest = part - given
            self.lost[rows] = np.where(satisfied, 0.0, np.where(asks & (rest > 0), rest, lost))
            self.due[rows] += given
            self.left -= _summed(group, given, len(self.left))
            more &= _summed(group, (asks & (lacks < part)).astype(np.float64), len(self.left)) > 0
            more &= self.left > 0

    def _parts(self, group: I64, weight: F64, usage: F64) -> F64:
        """Return the part of what is left that each queue gets, nan if no sibling has a weight. Shape (n, R)."""
        with np.errstate(divide="ignore", invalid="ignore"):
            normal = weight / _summed(group, weight, len(self.left))[group]
            adjusted = np.where(weight != 0, np.maximum(0.0, normal + self.k * (normal - usage)), 0.0)
            parts: F64 = adjusted / _summed(group, adjusted, len(self.left))[group]
        return parts

    def _hand_out(self, rank: Rows) -> None:
        """Hand out what rounding left over, at most one unit to each queue.

        Higher priorities come first, then the queues that lost most by rounding, then ``rank``.
        """
        for resource in range(self.due.shape[1]):
            lost = self.lost[:, resource]
            rows = np.lexsort((rank, -lost, -self.priority, self.group))
            rows = rows[lost[rows] > 0]
            group = self.group[rows]
            # The position within the group: rows are sorted by group, so the first of a group is found by search.
            place = np.arange(len(rows)) - np.searchsorted(group, group)
            self.due[rows, resource] += np.clip(self.left[group, resource] - place, 0.0, 1.0)


def _summed(group: I64, amounts: F64, count: int) -> F64:
    """Return the sums of the rows of each group. Shapes (n, R) -> (count, R)."""
    columns = [np.bincount(group, column, count) for column in amounts.T]
    return np.stack(columns, axis=1) if columns else np.zeros((count, 0))


def allocatable_share(quota: F64, limit: F64, fair: F64) -> F64:
    """Return what each queue may hold before other queues may reclaim from it. Shape (Q, R)."""
    return np.where(np.isinf(quota), limit, np.minimum(limit, np.maximum(quota, fair)))
