"""Place the tree of a CompositePodGroup, or search victims for it, with other groups than the first ones, where these
find no room.

KAI places the first ``minSubGroup`` members of a set, in order, or nothing. Any groups may make up Kubernetes'
``minGroupCount``. Source: KEP-6012.
"""

from __future__ import annotations

from collections.abc import Iterator

from pumice.framework.cycle.session import Session
from pumice.framework.cycle.statement import Statement
from pumice.kai.engine.chunks import chunk_of
from pumice.kai.engine.parts import Part
from pumice.kai.engine.placement.place_part import NoPlacement, placer
from pumice.placing.gang_tree import is_tree


def place_other_groups(ssn: Session, stmt: Statement, part: Part, against: NoPlacement) -> bool:
    """Place a part of the tree without the groups that found no room. Return False, with nothing changed, if no other
    groups make up the minimum. Every try passes over one more group at least. ``against``: why the part itself is not
    placed."""
    placing, passed_over = placer(ssn), set[int]()
    if not is_tree(ssn.tables, part.job):
        return False
    while against.subs and not passed_over.issuperset(against.subs):
        passed_over.update(against.subs)
        other = chunk_of(ssn, part.job, without=passed_over)
        if other is None:
            return False
        tried = placing.place(stmt, other)
        if tried is None:
            return True
        against = tried
    return False


def other_parts(ssn: Session, part: Part) -> Iterator[Part]:
    """Yield parts of the tree with other groups than those of a part, none for other jobs: without one of its groups,
    and then without more and more of the first. They are at most twice as many as the groups."""
    if not is_tree(ssn.tables, part.job):
        return
    subs = list(part.tasks)
    seen = {frozenset(part.rows)}
    for without in [{sub} for sub in subs] + [set(subs[:end]) for end in range(2, len(subs) + 1)]:
        other = chunk_of(ssn, part.job, without=without)
        if other is not None and frozenset(other.rows) not in seen:
            seen.add(frozenset(other.rows))
            yield other
