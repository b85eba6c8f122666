"""A session on the cluster of a case that stays open, so that one can look at it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from msgspec import Struct

from pumice.columns.snapshot import Snapshot
from pumice.framework.cycle.closing import close_session
from pumice.framework.cycle.outcome import Outcome
from pumice.framework.cycle.session import Session
from pumice.framework.memo import Memo
from pumice.framework.plugin.policy_file import Policy
from pumice.model.decisions import Bind, Decision, Evict, Refusal


@dataclass(slots=True)
class Recorder:
    """Takes every decision and keeps it."""

    taken: list[Decision] = field(default_factory=list)

    def submit(self, decisions: Sequence[Decision]) -> Mapping[int, Refusal]:
        self.taken += decisions
        return {}

    @property
    def binds(self) -> dict[str, str]:
        """Pod -> node. Raises: AssertionError when a pod was bound twice."""
        found: dict[str, str] = {}
        for decision in self.taken:
            if isinstance(decision, Bind):
                assert decision.pod not in found, f"{decision.pod} was bound twice"
                found[decision.pod] = decision.node
        return found

    @property
    def evicts(self) -> list[Evict]:
        return [decision for decision in self.taken if isinstance(decision, Evict)]


class Opened(Struct, frozen=True):
    """A session and the decisions it has made so far."""

    ssn: Session
    recorder: Recorder

    def run(self, actions: list[str]) -> None:
        """Run steps of the policy, in this order."""
        steps = {step.name: step for step in self.ssn.policy.actions}
        for name in actions:
            self.ssn.trace.action = name
            steps[name].run(self.ssn, **steps[name].arguments)

    def close(self) -> Outcome:
        return close_session(self.ssn)


def open_session(snapshot: Snapshot, policy: Policy, now: float) -> Opened:
    """A session as the cycle opens it."""
    recorder = Recorder()
    ssn = Session(snapshot, policy, now, recorder, Memo())
    ssn.open()
    return Opened(ssn, recorder)
