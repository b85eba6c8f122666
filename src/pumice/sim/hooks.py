"""What is called when something happens in a simulated cluster: by measures, laws, faults and controllers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from pumice.model.decisions import Bind, Decision, Refusal
from pumice.model.node import Node
from pumice.model.workloads.podgroup import PodGroup
from pumice.sim.equal_pods import EqualPods

PodHook = Callable[[EqualPods], None]
Objection = Callable[[Decision], str | None]
#: Decisions that were carried out one after the other, and for each None or why it was refused.
Answered = Callable[[Sequence[Decision], Sequence[Refusal | None]], None]


@dataclass(slots=True)
class Hooks:
    """Functions to call when something happens to equal pods (given with their present state), or a PodGroup is
    written."""

    created: list[PodHook] = field(default_factory=list)
    bound: list[PodHook] = field(default_factory=list)  # holds room on its node from now on
    started: list[PodHook] = field(default_factory=list)
    finished: list[PodHook] = field(default_factory=list)
    left: list[PodHook] = field(default_factory=list)  # holds no room any more: finished or removed
    removed: list[PodHook] = field(default_factory=list)
    group_written: list[Callable[[PodGroup], None]] = field(default_factory=list)
    node_changed: list[Callable[[Node | None, Node | None], None]] = field(default_factory=list)  # before, after
    answered: list[Answered] = field(default_factory=list)
    send_refused: list[Callable[[Bind], None]] = field(default_factory=list)  # of binds that had waited
