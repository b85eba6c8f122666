"""Filters and scores that look at other pods: one of each per session, shared by plugins.

Their modules are imported when the first pod has such terms. Most clusters have none, and the imports would slow down
the start of every command.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pumice.framework.cycle.session import Session
from pumice.placing.filters.pods import pod_index

if TYPE_CHECKING:
    from pumice.placing.filters.interpod import InterPodFilter
    from pumice.placing.filters.ports import PortFilter
    from pumice.placing.filters.preferred_terms import InterPodScore
    from pumice.placing.filters.spread import SpreadFilter


def port_filter(ssn: Session) -> PortFilter:
    """Return the filter of host ports."""
    from pumice.placing.filters.ports import PortFilter

    return ssn.shared(PortFilter, lambda: PortFilter(pod_index(ssn)))


def inter_pod_filter(ssn: Session) -> InterPodFilter:
    """Return the filter of required affinity and anti-affinity between pods."""
    from pumice.placing.filters.interpod import InterPodFilter

    return ssn.shared(InterPodFilter, lambda: InterPodFilter(pod_index(ssn)))


def spread_filter(ssn: Session) -> SpreadFilter:
    """Return the filter of topology spread constraints."""
    from pumice.placing.filters.spread import SpreadFilter

    return ssn.shared(SpreadFilter, lambda: SpreadFilter(pod_index(ssn)))


def inter_pod_score(ssn: Session) -> InterPodScore:
    """Return the score of preferred affinity and anti-affinity between pods."""
    from pumice.placing.filters.preferred_terms import InterPodScore

    return ssn.shared(InterPodScore, lambda: InterPodScore(pod_index(ssn)))
