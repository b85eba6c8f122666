"""gangpreempt: evict jobs of lower priority in the same queue so that a whole gang fits in one domain. Source: Volcano
gangpreempt action.
"""

from __future__ import annotations

from pumice.framework.cycle.budget import SEARCH_STEPS_MAX
from pumice.framework.cycle.session import Session
from pumice.volcano.eviction.context import EvictionKind
from pumice.volcano.eviction.gangs.evict import DOMAINS_DEFAULT, evict_for_gangs, limits_of

REASON = "gangpreempt"


def gangpreempt(
    ssn: Session,
    *,
    maxDomains: int = DOMAINS_DEFAULT,
    allowWholeBundle: bool = True,
    onlyInNeed: bool = False,
    promisedKept: bool = True,
    allMustAgree: bool = False,
    maxSearchSteps: int = SEARCH_STEPS_MAX,
) -> None:
    """Place each starving job as a whole in a trial, and evict only if the trial succeeds.

    ``maxDomains``: number of domains to try per job; values below 1 mean 8. ``allowWholeBundle``: jobs may lose tasks
    below their minimum. ``onlyInNeed``: evict nothing for a gang that fits without; Volcano has no such option and
    evicts in any case. ``promisedKept``: try domains first in which victims were evicted for the gang before
    (decision 0016). ``allMustAgree``: count the votes of all plugins about victims; Volcano drops some
    (decision 0017). ``maxSearchSteps``: counted steps in a cycle, shared out over queues and namespaces; 0 for no
    limit. A step is a task in a plan that is tried, or some pods that are looked at.
    """
    # The same search as gangreclaim's: the two differ in whose tasks are candidates and in how bundles are sorted,
    # which the kind says.
    limits = limits_of(
        maxDomains,
        whole=allowWholeBundle,
        only_in_need=onlyInNeed,
        promised_kept=promisedKept,
        all_must_agree=allMustAgree,
    )
    evict_for_gangs(ssn, EvictionKind.GANG_PREEMPT, REASON, limits, maxSearchSteps)
