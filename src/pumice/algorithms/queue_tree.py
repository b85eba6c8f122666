"""Shares in a tree of queues with quotas, limits and over-quota weights. Arrays in, arrays out.

Amounts are in the units in which shares are handed out, whole ones first: KAI divides milli-cores, bytes and devices.
Unlimited is inf. Source: KAI proportion (division of over-quota resources); every rule is held to measured vectors.
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
    """What each queue is due: its quota as far as it asks for it, and by weight of what others leave.

    Roots share ``total`` (R,), the children of a queue share what it is due. ``levels``: rows by depth, roots first;
    ``parent`` (Q,) a row, -1 none. Higher ``priority`` (Q,) takes of what is left before lower. (Q, R): ``quota``,
    ``limit``, ``request``, ``weight`` and ``usage``, the part of the capacity that a queue had in the past, which
    counts against it ``k`` times. ``rank`` (Q,): who goes first where all else is equal, smallest first.
    Returns (Q, R).
    """
    wanted = np.minimum(limit, request)
    due = np.zeros_like(wanted)
    for rows in levels:
        if len(rows):
            above, group = np.unique(parent[rows], return_inverse=True)
            purse = np.where(above[:, None] >= 0, due[above], total)
            own = np.minimum(np.where(np.isinf(quota[rows]), purse[group], quota[rows]), wanted[rows])
            share = _Division(group, purse, own, wanted[rows], priority[rows], weight[rows], usage[rows], max(k, 0.0))
            due[rows] = share.divided(rank[rows])
    return due


class _Division:
    """Queues of one level that share with their siblings, each resource by itself: (n, R), with (G, R) for the groups
    of siblings."""

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
        self.left = purse - _summed(group, due, len(purse))
        self.lost = np.zeros_like(due)  # what rounding down took of each

    def divided(self, rank: Rows) -> F64:
        """What each is due in the end."""
        for priority in distinct(self.priority)[::-1].tolist():
            if (self.left > 0).any():
                self._divide((self.priority == priority).nonzero()[0])
        self._hand_out(rank)
        return self.due

    def _divide(self, rows: I64) -> None:
        """Round after round by weight, as long as somebody asked for less than its part."""
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
            sated = asks & (lacks <= part)
            given = np.where(sated, lacks, np.floor(part))
            lost = self.lost[rows]
            rest = part - given
            self.lost[rows] = np.where(sated, 0.0, np.where(asks & (rest > 0), rest, lost))
            self.due[rows] += given
            self.left -= _summed(group, given, len(self.left))
            more &= _summed(group, (asks & (lacks < part)).astype(np.float64), len(self.left)) > 0
            more &= self.left > 0

    def _parts(self, group: I64, weight: F64, usage: F64) -> F64:
        """The part of what is left that is each one's, nan where nobody has a weight. Shape (n, R)."""
        with np.errstate(divide="ignore", invalid="ignore"):
            normal = weight / _summed(group, weight, len(self.left))[group]
            adjusted = np.where(weight != 0, np.maximum(0.0, normal + self.k * (normal - usage)), 0.0)
            parts: F64 = adjusted / _summed(group, adjusted, len(self.left))[group]
        return parts

    def _hand_out(self, rank: Rows) -> None:
        """What rounding left over, at most one each: first to whom it took most, of the highest priority."""
        for resource in range(self.due.shape[1]):
            lost = self.lost[:, resource]
            rows = np.lexsort((rank, -lost, -self.priority, self.group))
            rows = rows[lost[rows] > 0]
            group = self.group[rows]
            place = np.arange(len(rows)) - np.searchsorted(group, group)
            self.due[rows, resource] += np.clip(self.left[group, resource] - place, 0.0, 1.0)


def _summed(group: I64, amounts: F64, count: int) -> F64:
    """Sums of the rows of each group. Shapes (n, R) -> (count, R)."""
    columns = [np.bincount(group, column, count) for column in amounts.T]
    return np.stack(columns, axis=1) if columns else np.zeros((count, 0))


def allocatable_share(quota: F64, limit: F64, fair: F64) -> F64:
    """What a queue may hold before others may take from it. Shape (Q, R)."""
    return np.where(np.isinf(quota), limit, np.minimum(limit, np.maximum(quota, fair)))


def used_share(used: F64, age_s: F64, capacity: F64, half_life_s: float | None) -> F64:
    """The part of the capacity that each queue had over a window, in which older samples may count less.

    Shapes: samples ``used`` (S, Q, R) and ``capacity`` (S, R), their ages (S,). Returns (Q, R), 0 where there was no
    capacity.
    """
    counts = np.ones_like(age_s) if half_life_s is None else np.exp2(-age_s / half_life_s)
    had, there = np.tensordot(counts, used, 1), np.tensordot(counts, capacity, 1)
    found: F64 = np.divide(had, there, out=np.zeros_like(had), where=there > 0)
    return found
