"""The tree of each gang, read once a session, and which gangs follow KAI's rules.

The chunk to place next, the chunk to evict next, readiness and the walk of placement all follow the tree. Source: KAI
GetMinMembersToSatisfy, subgrouporder.
"""

from __future__ import annotations

from pumice.columns.counting import PENDING
from pumice.columns.tables import Tables
from pumice.framework.cycle.session import Session
from pumice.kai.engine.parts import active_count
from pumice.model.workloads.podgroup import PodGroup
from pumice.placing.gang_tree import Member, members_of


def by_kai_rules(group: PodGroup, dialect: str) -> bool:
    """Return True if a gang is placed by KAI's rules, without admission. ``dialect``: name of the policy's language."""
    # KAI's own PodGroups are, under every policy; Kubernetes' own follow the rules of the policy.
    return group.gang is not None and (group.native is None or dialect == "kai")


def members(ssn: Session, job: int) -> Member:
    """Return the tree of a job, computed once per session: no action adds or removes pods."""
    known: dict[int, Member] = ssn.shared(members, dict)
    found = known.get(job)
    if found is None:
        found = known[job] = members_of(ssn.tables, job)
    return found


def may_wait(tables: Tables, job: int) -> bool:
    """Return True if a job has enough ungated pods for its minimums. Source: KAI IsReadyForScheduling."""

    def there(sub: int) -> int:
        counts = tables.subs.counts[sub].tolist()
        alive: int = active_count(counts) + counts[PENDING]
        return alive - int((tables.tasks.gate[tables.subs.tasks[sub]] > 0).sum())

    return members_of(tables, job).is_satisfied(there)
