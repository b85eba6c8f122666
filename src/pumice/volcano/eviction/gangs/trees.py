"""What the tree of a CompositePodGroup lacks of its minimum. Any of its groups may make it up. Source: KEP-6012."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np

from pumice.columns.dtypes import F64
from pumice.framework.cycle.session import Session
from pumice.placing.gang_tree import Member, is_tree, members_of
from pumice.volcano.gangs.readiness import sub_missing, sub_pipelined


def tree_of(ssn: Session, job: int) -> Member | None:
    """Return the tree of a job, None for other jobs."""
    return members_of(ssn.tables, job) if is_tree(ssn.tables, job) else None


def is_met(ssn: Session, member: Member) -> bool:
    """Return True if a group has its minimum, with tasks that were promised a place."""
    if member.is_set:
        return sum(is_met(ssn, each) for each in member.inside) >= member.least
    return member.sub >= 0 and (sub_missing(ssn, member.sub) == 0 or sub_pipelined(ssn, member.sub))


def may_be_met(ssn: Session, member: Member, fits: Callable[[int], bool]) -> bool:
    """Return True if a group has its minimum, or may get it. ``fits``: whether the waiting tasks of a sub-job fit,
    each sub-job by itself."""
    if member.is_set:
        return sum(may_be_met(ssn, each, fits) for each in member.inside) >= member.least
    return is_met(ssn, member) or fits(member.sub)


def least_need(ssn: Session, root: Member, amounts: Mapping[int, F64]) -> F64:
    """Return a lower bound of what a tree lacks, by the ``amounts`` (R,) that the waiting tasks of each sub-job
    request; of a tree that has its minimum, of what one more of its groups lacks. Shape (R,)."""
    if is_met(ssn, root):
        found: F64 = np.min(list(amounts.values()), axis=0)
        return found
    return _lacks(ssn, root, amounts)


def _lacks(ssn: Session, member: Member, amounts: Mapping[int, F64]) -> F64:
    """Return what a group lacks at least, infinite if it cannot have its minimum. Shape (R,)."""
    if is_met(ssn, member):
        return np.zeros(len(next(iter(amounts.values()))))
    if not member.is_set:
        return amounts.get(member.sub, np.full(len(next(iter(amounts.values()))), np.inf))
    # Each resource by itself: the groups that need least of one need not be those that need least of another.
    found: F64 = np.sort([_lacks(ssn, each, amounts) for each in member.inside], axis=0)[: member.least].sum(axis=0)
    return found
