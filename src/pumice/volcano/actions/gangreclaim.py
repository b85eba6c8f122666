"""gangreclaim: whole gangs take room from jobs of other queues, in one domain. Source: Volcano
gangreclaim (spec 03 §6)."""

from __future__ import annotations

from pumice.framework.cycle.session import Session
from pumice.volcano.eviction.context import EvictionKind
from pumice.volcano.eviction.gang_eviction import DOMAINS_DEFAULT, evict_for_gangs, limits_of

REASON = "gangreclaim"


def gangreclaim(
    ssn: Session,
    *,
    maxDomains: int = DOMAINS_DEFAULT,
    allowWholeBundle: bool = True,
    onlyInNeed: bool = False,
    promisedKept: bool = True,
    allMustAgree: bool = False,
) -> None:
    """Each starving job is placed as a whole, in a trial, before anybody is evicted for it.

    ``maxDomains``: how many domains are tried for a job; below 1 counts as 8. ``allowWholeBundle``: jobs may lose more
    than they can spare. ``onlyInNeed``: nobody is evicted for a gang that has room without; Volcano does not have this,
    and evicts somebody in any case. ``promisedKept``: domains in which others were evicted for the gang before are
    tried first (decision 0017). ``allMustAgree``: no plugin's vote about victims is lost, as some are in Volcano
    (decision 0018).
    """
    limits = limits_of(
        maxDomains,
        whole=allowWholeBundle,
        only_in_need=onlyInNeed,
        promised_kept=promisedKept,
        all_must_agree=allMustAgree,
    )
    evict_for_gangs(ssn, EvictionKind.GANG_RECLAIM, REASON, limits)
