"""Begin a session in Volcano's language, before its plugins are opened."""

from __future__ import annotations

from pumice.framework.cycle.session import Session
from pumice.model.blockers import Unreadable
from pumice.volcano.topology.rules import in_label_domain, recover_hypernodes

#: What a PodGroup of Kubernetes' own may ask for that actions of another language cannot give here.
_LABEL_DOMAINS = (
    "spec.schedulingConstraints: found a topology, wanted none: not supported by a policy with actions of two languages"
)


def begin(ssn: Session) -> None:
    """Recover where jobs run, and hold back gangs that an action would place outside their domain."""
    recover_hypernodes(ssn)
    # Volcano's own ``allocate`` keeps domains of node labels, and its other actions leave such gangs alone.
    if any(action.home is not None and action.home.name == "kai" for action in ssn.policy.actions):
        _hold_back_label_domains(ssn)


def _hold_back_label_domains(ssn: Session) -> None:
    """Place no pods of PodGroups of Kubernetes' own with a topology."""
    jobs = ssn.tables.jobs
    for row in (jobs.alive & jobs.has_topology & (jobs.queue >= 0)).nonzero()[0].tolist():
        if in_label_domain(ssn.tables, row):
            # After the corrections above, which are kept: this one is taken back with the rest of the session.
            ssn.journal.put(jobs["quarantined"], row, True)
            key = jobs.groups[row].key
            ssn.trace.tell(key, Unreadable(f"PodGroup {key}", _LABEL_DOMAINS))
