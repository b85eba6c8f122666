"""The end of a session: plugins are told, what should be written is worked out, and everything becomes a value."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from pumice.columns.dtypes import AnyArray
from pumice.columns.snapshot import Snapshot
from pumice.framework.cycle.observer import Observer, nobody
from pumice.framework.cycle.outcome import Outcome
from pumice.framework.cycle.session import QUIET, Session
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
    writes, wakes_at, figures = NOTHING, None, ssn.quiet
    if figures is None:
        if ready:
            _tell(ssn, observe)
            writes = ssn.policy.dialect.closes(ssn)
        moments = _said(ssn, ssn.policy.waking, "wakes_at", MOMENT, lambda at: at)
        wakes_at = min((at for at in moments if at is not None), default=None)
        figures = _figures(ssn)
        if ssn.is_idle and writes == NOTHING and wakes_at is None and not ssn.trace.faults:
            ssn.memo.keep((QUIET, ssn.publishes), (ssn.tables.version,), figures)
    outcome = Outcome(ssn.uid, ssn.now, ssn.policy, ssn.tables, ssn.trace, writes, figures, wakes_at)
    ssn.close()
    return outcome


def _figures(ssn: Session) -> dict[str, AnyArray]:
    """What the plugins that are open publish."""
    if ssn.is_idle and not ssn.publishes:
        return {}
    given = _said(ssn, ssn.policy.publishing, "figures", Mapping, _arrays)
    return {name: array for each in given for name, array in each.items()}


def _arrays(figures: Mapping[str, Any]) -> dict[str, AnyArray]:
    return {name: np.asarray(value) for name, value in figures.items()}


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


def _said(ssn: Session, positions: Iterable[int], name: str, wanted: Any, read: Callable[[Any], Any]) -> list[Any]:
    """What the method of a name answers, as it is read, of the plugins at some positions that are open."""
    found, hooks = [], ssn.hooks
    for position in positions:
        instance = hooks.instance(position)
        if instance is not None:
            with ssn.turn("the end of the cycle"):
                call = _checked(getattr(instance, name), wanted, read)
                found.append(hooks.guard(ssn.policy.options[position].spec.name, name, call))
    return found


def _checked(method: Callable[[], Any], wanted: Any, read: Callable[[Any], Any]) -> Callable[[], Any]:
    """The method, which fails if it gives another type or if its answer cannot be read."""

    def checked() -> Any:
        answer = method()
        if not isinstance(answer, wanted):
            raise WrongAnswer(method, answer, getattr(wanted, "__name__", str(wanted)))
        return read(answer)

    checked.__wrapped__ = method  # type: ignore[attr-defined]  # whose fault it is
    return checked
