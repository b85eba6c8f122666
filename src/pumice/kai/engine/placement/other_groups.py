"""Place the tree of a CompositePodGroup with other groups than the first ones, where these find no room.

KAI places the first ``minSubGroup`` members of a set, in order, or nothing. Any groups may make up Kubernetes'
``minGroupCount``. Source: KEP-6012.
"""

from __future__ import annotations

from pumice.framework.cycle.session import Session
from pumice.framework.cycle.statement import Statement
from pumice.kai.engine.chunks import chunk_of
from pumice.kai.engine.parts import Part
from pumice.kai.engine.placement.place_part import placer
from pumice.placing.gang_tree import is_tree


def place_other_groups(ssn: Session, stmt: Statement, part: Part) -> bool:
    """Place a part of the tree without the groups that found no room, after the part itself was tried. Return False,
    with nothing changed, if no other groups make up the minimum. Every try passes over one more group at least."""
    placing, passed_over = placer(ssn), set[int]()
    if not is_tree(ssn.tables, part.job):
        return False
    why = placing.why
    while placing.failed and not passed_over.issuperset(placing.failed):
        passed_over.update(placing.failed)
        other = chunk_of(ssn, part.job, without=passed_over)
        if other is None:
            break
        if placing.place(stmt, other):
            return True
    # The reason against the tree is that against its first groups.
    placing.why = why
    return False
