"""Begin a session in Volcano's language, before its plugins are opened."""

from __future__ import annotations

from pumice.framework.cycle.session import Session
from pumice.model.blockers import Unreadable
from pumice.volcano.topology.rules import recover_hypernodes

#: What a PodGroup of Kubernetes' own may ask for that this language cannot give.
_LABEL_DOMAINS = "spec.schedulingConstraints: found a topology, wanted none: not yet supported in this policy language"


def begin(ssn: Session) -> None:
    """Recover where jobs run, and hold back gangs that must stay in one domain of a node label."""
    recover_hypernodes(ssn)
    _hold_back_label_domains(ssn)


def _hold_back_label_domains(ssn: Session) -> None:
    """Place no pods of PodGroups of Kubernetes' own with a topology.

    Volcano knows domains as HyperNodes only. Pods that were placed without the constraint could never be put right.
    """
    jobs = ssn.tables.jobs
    for row in (jobs.alive & jobs.has_topology & (jobs.queue >= 0)).nonzero()[0].tolist():
        group = jobs.groups[row]
        if group.native is not None:
            # After the corrections above, which are kept: this one is taken back with the rest of the session.
            ssn.journal.put(jobs["quarantined"], row, True)
            ssn.trace.tell(group.key, Unreadable(f"PodGroup {group.key}", _LABEL_DOMAINS))
