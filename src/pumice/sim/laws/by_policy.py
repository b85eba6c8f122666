"""Which laws hold under a policy. Some are enforced by plugins that a policy may leave out."""

from __future__ import annotations

from pumice.framework.plugin.policy_file import PluginOption, Policy
from pumice.placing.small_gangs import has_second_tries
from pumice.sim.controller import Controller
from pumice.sim.laws.evictions import VOTES, EvictionLaws
from pumice.sim.laws.reservations import ReservationLaws
from pumice.sim.laws.safety import Laws
from pumice.sim.measures.history import History
from pumice.sim.shell import Shell
from pumice.volcano.topology.rules import keeps_within_hypernodes


def laws_of(shell: Shell, controller: Controller, history: History, *, estimates_hold: bool = False) -> Laws:
    """Return the laws that hold under the shell's policy, to be checked on its cluster from now on. ``estimates_hold``:
    every job ends by its estimate."""
    policy = shell.loop.policy
    plugins = {option.spec.name for option in policy.options}
    gang = next((option for option in policy.options if option.spec.name == "gang"), None)
    return Laws(
        shell.cluster,
        controller,
        usage=history.usage,
        known=shell.known,
        scheduler_names=(policy.dialect.scheduler,),
        topology=keeps_within_hypernodes(policy),
        queue_limits=bool(plugins & {"proportion", "capacity"}),
        partial_gangs_first=gang is not None and _finishes_partial_gangs(gang),
        one_condition=gang is not None and bool(gang.arguments.get("oneCondition", True)),
        evictions=EvictionLaws(
            shell.cluster, shell.promised, keeps_gangs=_keeps_gangs(policy), idle_first=_idle_first(policy)
        ),
        reservations=(
            ReservationLaws(controller, shell.last_outcome, packs_unlike=has_second_tries(policy))
            if estimates_hold
            else None
        ),
    )


def _finishes_partial_gangs(gang: PluginOption) -> bool:
    """Return True if partially bound gangs go first. ``halvesFirst`` is the former name of the argument."""
    return all(gang.arguments.get(name, True) is True for name in ("finishPartialGangs", "halvesFirst"))


def _idle_first(policy: Policy) -> bool:
    """Return True if idle room is given to every job that it suits before any pod is evicted: in KAI's language, unless
    a number of jobs to look at is set."""
    return policy.dialect.name == "kai" and not policy.sections.get("queueDepthPerAction")


def _keeps_gangs(policy: Policy) -> bool:
    """Return True if the gang plugin is asked about every eviction for a task.

    That is so if each tier contains it, because a tier that names no victim leaves the decision to the next. Source:
    Volcano's votes (Session.Preemptable and Session.Reclaimable). A gang of KAI may be below its minimum until its
    grace period is over.
    """
    return policy.dialect.name != "kai" and all(
        any(policy.options[i].spec.name == "gang" for i in tier) for point in VOTES for tier in policy.plugins_at(point)
    )
