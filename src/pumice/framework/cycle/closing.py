"""The end of a session: plugins are told, what should be written is worked out, and everything becomes a value."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from pumice.columns.snapshot import Snapshot
from pumice.framework.cycle.figures import Figures, Given
from pumice.framework.cycle.observer import Observer, nobody
from pumice.framework.cycle.outcome import Outcome
from pumice.framework.cycle.session import PUBLISHED, Session
from pumice.framework.memo import Memo
from pumice.framework.plugin import points
from pumice.framework.plugin.errors import WrongAnswer
from pumice.framework.plugin.policy_file import Policy
from pumice.model.decisions import Decision, Refusal, Writes

#: What a session writes that finds nothing to write.
NOTHING = Writes()
#: The type of when a plugin wakes.
MOMENT = float | int | None


def close_session(ssn: Session, *, ready: bool = True, observe: Observer = nobody) -> Outcome:
    """Tell the plugins, the last one first, and hand everything back. Not ``ready``: not all of them could be opened,
    so nothing is known that should be written. ``observe`` is told before each plugin, and when that is over."""
    ssn.trace.action = "close"
    writes, wakes_at = NOTHING, None
    if ssn.published is None:
        if ready:
            _tell(ssn, observe)
            writes = ssn.policy.dialect.closes(ssn)
        moments = _said(ssn, ssn.policy.waking, "wakes_at", MOMENT)
        wakes_at = min((at for at in moments if at is not None), default=None)
    outcome = Outcome(
        ssn.uid, ssn.now, ssn.policy, ssn.tables, ssn.trace, writes, _figures(ssn, writes, wakes_at), wakes_at
    )
    ssn.close()
    return outcome


def _figures(ssn: Session, writes: Writes, wakes_at: float | None) -> Figures:
    """What plugins publish. A session in which nothing waits has moved nothing, so they can be opened for it whenever
    somebody asks, which in many cycles is nobody; what was found then holds for as long as there is nothing to do."""
    if not ssn.is_idle:
        given = _given(ssn)
        return Figures(lambda: given)
    snapshot, policy, now, found = ssn.snapshot, ssn.policy, ssn.now, ssn.published
    if found is None:
        found = {}
        if writes == NOTHING and wakes_at is None and not ssn.trace.faults:
            ssn.memo.keep(PUBLISHED, (ssn.tables.version,), found)

    def find() -> Given:
        later = looking(snapshot, policy, now)
        for position in policy.publishing:
            with later.turn("figures"):
                later.hooks.open(later, (position,))
        given = _given(later)
        later.close()
        return given

    return Figures(find, found)


def _given(ssn: Session) -> Given:
    given: dict[str, Any] = {}
    for each in _said(ssn, ssn.policy.publishing, "figures", Mapping):
        given.update(each)
    return given


def looking(snapshot: Snapshot, policy: Policy, now: float) -> Session:
    """A session that decides nothing, not opened yet: to ask what plugins would say."""
    return Session(snapshot, policy, now, _Nobody(), Memo(keeps=False))


class _Nobody:
    """The planner of a session that decides nothing."""

    def submit(self, decisions: Sequence[Decision]) -> Mapping[int, Refusal]:
        raise AssertionError("nothing is decided by who only looks")


def _tell(ssn: Session, observe: Observer) -> None:
    hooks = ssn.hooks
    for each in hooks.known("told of the end", (points.session_close,), lambda at: at(points.session_close)[::-1]):
        hook = hooks.bound(each)
        observe(f"close {hook.plugin}")
        with ssn.turn("the end of the cycle"):
            hooks.ask_one(hook)
    for position in reversed(ssn.policy.told_of_the_end):
        plugin = hooks.instance(position)
        if plugin is not None:
            name = ssn.policy.options[position].spec.name
            observe(f"close {name}")
            with ssn.turn("the end of the cycle"):
                hooks.guard(name, "on_session_close", plugin.on_session_close, ssn)
    observe("closed")


def _said(ssn: Session, positions: Iterable[int], name: str, wanted: Any) -> list[Any]:
    """What the method of a name says of the plugins at some positions, those that are open, as it stands now."""
    found, hooks = [], ssn.hooks
    for position in positions:
        instance = hooks.instance(position)
        if instance is not None:
            plugin, method = ssn.policy.options[position].spec.name, getattr(instance, name)
            with ssn.turn("the end of the cycle"):
                answer = hooks.guard(plugin, name, method)
                if not isinstance(answer, wanted):
                    hooks.guard(plugin, name, _refused(method, answer, wanted))
                found.append(answer)
    return found


def _refused(method: Callable[[], Any], answer: Any, wanted: Any) -> Callable[[], Any]:
    """The method as one that has no such answer."""

    def refused() -> Any:
        raise WrongAnswer(method, answer, getattr(wanted, "__name__", str(wanted)))

    refused.__wrapped__ = method  # type: ignore[attr-defined]  # whose fault it is
    return refused
