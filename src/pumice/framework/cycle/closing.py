"""Close a session: notify plugins, compute what should be written, and return everything as a value."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from types import UnionType
from typing import Protocol, TypeVar, cast

import numpy as np
from msgspec.structs import replace

from pumice.columns.dtypes import AnyArray
from pumice.columns.snapshot import Snapshot
from pumice.framework.cycle.observer import Observer, unobserved
from pumice.framework.cycle.outcome import Outcome
from pumice.framework.cycle.session import QUIET, Session
from pumice.framework.memo import Memo
from pumice.framework.plugin import combine, points
from pumice.framework.plugin.errors import WrongAnswer
from pumice.framework.plugin.policy_file import Policy
from pumice.model.decisions import Decision, PodGroupUpdate, Refusal, Writes

#: What a session writes if nothing has changed.
NOTHING = Writes()
#: Types that ``wakes_at`` of a plugin may return.
MOMENT = float | int | None
V = TypeVar("V")


class _ClosesSession(Protocol):
    """A plugin of Volcano's life cycle that is notified of the end."""

    def on_session_close(self, ssn: Session) -> None: ...


def close_session(ssn: Session, *, ready: bool = True, observe: Observer = unobserved) -> Outcome:
    """Notify the plugins, the last one first, and return the outcome.

    ``ready`` False: not all plugins could be opened, so it is not known what should be written. ``observe`` is called
    before each plugin, and at the end.
    """
    ssn.trace.action = "close"
    writes, wakes_at, figures = NOTHING, None, ssn.quiet
    if figures is None:
        if ready:
            # Plugins first, as in Volcano (framework.go, CloseSession): what they note when a session closes belongs to
            # the conditions that are computed after it.
            _tell(ssn, observe)
            writes = _with_faults(ssn, ssn.policy.dialect.closes(ssn))
        # Also in a session that is not ready: plugins that are open may still have to be asked again later.
        moments = _said(ssn, ssn.policy.waking, "wakes_at", MOMENT, _moment)
        # The earliest is enough, since the cycle that it starts asks every plugin again.
        wakes_at = min((at for at in moments if at is not None), default=None)
        figures = _figures(ssn)
        # Only then does an equal session publish the same: nothing was written, nothing is due, and no plugin failed.
        if ssn.is_idle and writes == NOTHING and wakes_at is None and not ssn.trace.faults:
            ssn.memo.keep((QUIET, ssn.publishes), (ssn.tables.version,), figures)
    outcome = Outcome(ssn.uid, ssn.now, ssn.policy, ssn.tables, ssn.trace, writes, figures, wakes_at)
    # Last, because it clears the session. The outcome has what it needs by value.
    ssn.close()
    return outcome


def _with_faults(ssn: Session, writes: Writes) -> Writes:
    """Return the writes with the faults of plugins that were asked about PodGroups of Kubernetes' own."""
    faults = {fault.subject: fault.text for fault in ssn.trace.faults}
    if not faults:
        return writes
    updates = {update.job: update for update in writes.groups}
    for row in ssn.live_jobs.tolist():
        group = ssn.tables.jobs.groups[row]
        if group.native is not None and group.key in faults:
            # The language may see no change: the group waits as before, for another reason.
            update = updates.get(group.key, PodGroupUpdate(group.key, group.status))
            updates[group.key] = replace(update, error=faults[group.key])
    return replace(writes, groups=tuple(updates[key] for key in sorted(updates)))


def _figures(ssn: Session) -> dict[str, AnyArray]:
    """Return what open plugins publish."""
    # If no job waits, the numbers are only computed if they are wanted.
    if ssn.is_idle and not ssn.publishes:
        return {}
    given = _said(ssn, ssn.policy.publishing, "figures", Mapping, _arrays)
    return {name: array for each in given for name, array in each.items()}


def _arrays(figures: object) -> dict[str, AnyArray]:
    """Return the numbers as arrays."""
    return {name: np.asarray(value) for name, value in cast(Mapping[str, object], figures).items()}


def _moment(at: object) -> float | None:
    """Return a moment as it is."""
    return cast(float | None, at)


def looking(snapshot: Snapshot, policy: Policy, now: float) -> Session:
    """Return a read-only session that is not opened yet, for questions about what plugins would say."""
    # A memo of its own that keeps nothing, so that questions between cycles change nothing that a cycle remembers.
    return Session(snapshot, policy, now, _ReadOnlyPlanner(), Memo(keeps=False))


class _ReadOnlyPlanner:
    """The planner of a read-only session."""

    def submit(self, decisions: Sequence[Decision]) -> Mapping[int, Refusal]:
        raise AssertionError("a read-only session tried to submit a decision")


def _tell(ssn: Session, observe: Observer) -> None:
    """Notify plugins of the end."""
    hooks = ssn.hooks
    # In reverse order, so that a plugin that rests on an earlier one closes while that is still open.
    for each in hooks.known("notified at the end", (points.session_close,), lambda at: at(points.session_close)[::-1]):
        hook = hooks.bound(each)
        observe(f"close {hook.plugin}")
        with ssn.fault_scope("the end of the cycle"):
            hooks.ask_alone(hook, combine.notify)
    for position in reversed(ssn.policy.notified_at_end):
        # A plugin that was never asked was never opened, and has nothing to close.
        plugin = hooks.instance(position)
        if plugin is not None:
            name = ssn.policy.options[position].spec.name
            observe(f"close {name}")
            with ssn.fault_scope("the end of the cycle"):
                hooks.guard(name, "on_session_close", cast(_ClosesSession, plugin).on_session_close, ssn)
    observe("closed")


def _said(
    ssn: Session, positions: Iterable[int], name: str, wanted: type | UnionType, read: Callable[[object], V]
) -> list[V]:
    """Return what the method of each open plugin at some positions answers, converted by ``read``."""
    found, hooks = [], ssn.hooks
    for position in positions:
        instance = hooks.instance(position)
        if instance is not None:
            # A fault scope for each plugin, so that one that raises loses its own answer only.
            with ssn.fault_scope("the end of the cycle"):
                call = _checked(getattr(instance, name), wanted, read)
                found.append(hooks.guard(ssn.policy.options[position].spec.name, name, call))
    return found


def _checked(method: Callable[[], object], wanted: type | UnionType, read: Callable[[object], V]) -> Callable[[], V]:
    """Return the method with a check: it raises if the answer has a wrong type or cannot be converted."""

    def checked() -> V:
        # Checked here and not where it is used, so that the fault can name the plugin.
        answer = method()
        if not isinstance(answer, wanted):
            # Since Python 3.14 a union has a name too, which does not say of what.
            raise WrongAnswer(method, answer, wanted.__name__ if isinstance(wanted, type) else str(wanted))
        return read(answer)

    # So that a fault names the plugin's method and line, and not this wrapper.
    checked.__wrapped__ = method  # type: ignore[attr-defined]  # whose fault it is
    return checked
