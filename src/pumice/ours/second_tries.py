"""The action allocate of ``dialect: pumice``: Volcano's, with second tries unless they are switched off."""

from __future__ import annotations

from pumice.framework.cycle.budget import SEARCH_STEPS_MAX
from pumice.framework.cycle.session import Session
from pumice.volcano.actions import allocate as volcano


def allocate(
    ssn: Session,
    *,
    predicateErrorCacheEnable: bool = True,
    promisedFirst: bool = True,
    maxSearchSteps: int = SEARCH_STEPS_MAX,
    secondTries: bool = True,
) -> None:
    """Place jobs as ``volcano.actions.allocate`` does. ``secondTries``: if a gang of different pods finds no place pod
    by pod, pack the largest first, then search."""
    volcano.allocate(
        ssn,
        predicateErrorCacheEnable=predicateErrorCacheEnable,
        promisedFirst=promisedFirst,
        maxSearchSteps=maxSearchSteps,
        secondTries=secondTries,
    )
