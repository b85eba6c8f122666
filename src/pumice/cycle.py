"""One scheduling cycle. This is the first file to read.

    snapshot -> session -> actions -> statements -> decisions

A cycle is a function: it reads no clock, draws no random numbers, and has effects only through the planner (and, under
a policy that names external programs, through ``outside``). ``(snapshot, policy, now)``, saved to a file, reproduces a
defect: running it again gives the same decisions to the byte.
"""

from __future__ import annotations

from pumice.columns.snapshot import Snapshot
from pumice.framework.cycle.closing import close_session
from pumice.framework.cycle.observer import Observer, unobserved
from pumice.framework.cycle.outcome import Outcome
from pumice.framework.cycle.ports import NO_PROGRAMS, Outside
from pumice.framework.cycle.session import Session
from pumice.framework.cycle.statement import Planner
from pumice.framework.cycle.trace import WHOLE_CYCLE, rest_of_action
from pumice.framework.memo import Memo
from pumice.framework.plugin.errors import PluginFault
from pumice.framework.plugin.policy_file import Policy


def run_cycle(
    snapshot: Snapshot,
    policy: Policy,
    now: float,
    planner: Planner,
    observe: Observer = unobserved,
    memo: Memo | None = None,
    outside: Outside = NO_PROGRAMS,
    *,
    publishes: bool = False,
) -> Outcome:
    """Decide what to bind and evict, and what should be reported to users.

    ``now``: seconds since the epoch. ``observe``: called with the name of each phase as it begins, so that the caller
    can time it: ``open``, each action, ``close``, and ``open gang`` and ``close gang`` for a plugin that opens or is
    notified of the end. ``memo``: what earlier cycles of the same caller computed; it saves work and changes nothing.
    ``outside``: answers plugins that ask programs other than the scheduler. ``publishes``: the outcome has the figures
    of plugins even if no job waits, for which plugins are opened.

    If a plugin fails, the job that it was asked about is skipped, or the action if it was asked about no job. If it
    cannot be opened, nothing is decided. The ``faults`` of the outcome say so.
    """
    # Phases are announced and not timed here: a cycle that read a clock would not give the same decisions when it is
    # run again from a saved snapshot.
    observe("open")
    ssn = Session(snapshot, policy, now, planner, memo or Memo(), outside, publishes=publishes)
    ready = True
    try:
        ssn.open(observe)
    except PluginFault as fault:
        # The plugin that failed may be the one that would refuse a placement (a quota, a filter). A decision without it
        # could be wrong, while no decision is only late, so no action runs.
        ready = False
        ssn.trace.blame(WHOLE_CYCLE, fault)
    # In the order of the conf, as in Volcano (scheduler.go, runOnce): each action sees what those before it placed and
    # evicted. So preempt only looks at jobs that allocate left waiting.
    for action in policy.actions if ready else ():
        observe(action.name)
        ssn.trace.action = action.name
        # The outermost block: a fault that happens outside the block of a job ends this action only, and its writes are
        # undone.
        with ssn.fault_scope(rest_of_action(action.name)):
            action.run(ssn, **action.arguments)
    observe("close")
    # Also after a failed opening, because the outcome names the fault, and plugins that are open may still have to be
    # asked again at a later time.
    return close_session(ssn, ready=ready, observe=observe)
