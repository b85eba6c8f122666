"""The end of a session: plugins are told, what should be written is worked out, and everything becomes a value."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any

import numpy as np

from pumice.columns.dtypes import AnyArray
from pumice.columns.snapshot import Snapshot
from pumice.framework import points
from pumice.framework.errors import WrongAnswer
from pumice.framework.memo import Memo
from pumice.framework.observer import Observer, nobody
from pumice.framework.outcome import Outcome
from pumice.framework.policy import Policy
from pumice.framework.session import PUBLISHED, Figures, Session
from pumice.model.decisions import Decision, Refusal, Writes


def close_session(ssn: Session, *, ready: bool = True, observe: Observer = nobody) -> Outcome:
    """Tell the plugins, the last one first, and hand everything back. Not ``ready``: not all of them could be opened,
    so nothing is known that should be written. ``observe`` is told before each plugin, and when that is over."""
    ssn.story.action = "close"
    writes, figures, wakes_at = Writes(), ssn.published, None
    if figures is None:
        if ready:
            _tell(ssn, observe)
            writes = ssn.policy.dialect.closes(ssn)
        figures = _figures_later(ssn) if ssn.is_idle else _figures(ssn)
        wakes_at = min((at for at in _said(ssn, "wakes_at", float | int | None) if at is not None), default=None)
        if ssn.is_idle and ready and writes == Writes() and wakes_at is None and not ssn.story.faults:
            ssn.memo.keep(PUBLISHED, (ssn.tables.version,), figures)
    outcome = Outcome(ssn.uid, ssn.now, ssn.policy, ssn.tables, ssn.story, writes, figures, wakes_at)
    ssn.close()
    return outcome


def _figures(ssn: Session) -> Figures:
    return {name: np.asarray(value) for each in _said(ssn, "figures", Mapping) for name, value in each.items()}


class _Later(Mapping[str, AnyArray]):
    """Figures that are found out when somebody asks."""

    def __init__(self, find: Callable[[], Figures]) -> None:
        self._find = find

    @cached_property
    def _found(self) -> Figures:
        return self._find()

    def __getitem__(self, name: str) -> AnyArray:
        return self._found[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._found)

    def __len__(self) -> int:
        return len(self._found)


def _figures_later(ssn: Session) -> Figures:
    """What plugins publish of a session in which nothing waits: those that are open, and the others too. The session
    has moved nothing, so these can be opened for it whenever somebody asks, which in many cycles is nobody. One that
    fails then publishes nothing."""
    snapshot, policy, now, known = ssn.snapshot, ssn.policy, ssn.now, _figures(ssn)
    others = [position for position in policy.publishing if position not in policy.heard_when_idle]

    def find() -> Figures:
        later = looking(snapshot, policy, now)
        for position in others:
            with later.turn("figures"):
                later.hooks.open(later, (position,))
        found = {**known, **_figures(later)}
        later.close()
        return found

    return _Later(find)


def looking(snapshot: Snapshot, policy: Policy, now: float) -> Session:
    """A session that decides nothing, not opened yet: to ask what plugins would say."""
    return Session(snapshot, policy, now, _Nobody(), Memo(keeps=False))


class _Nobody:
    """The planner of a session that decides nothing."""

    def submit(self, decisions: Sequence[Decision]) -> Mapping[int, Refusal]:
        raise AssertionError("nothing is decided by who only looks")


def _tell(ssn: Session, observe: Observer) -> None:
    for hook in reversed(ssn.hooks.at(points.session_close)):
        observe(f"close {hook.plugin}")
        with ssn.turn("the end of the cycle"):
            ssn.hooks.ask_one(hook)
    for name, plugin in reversed(ssn.hooks.opened):
        if hasattr(plugin, "on_session_close"):
            observe(f"close {name}")
            with ssn.turn("the end of the cycle"):
                ssn.hooks.guard(name, "on_session_close", plugin.on_session_close, ssn)
    observe("closed")


def _said(ssn: Session, name: str, wanted: Any) -> list[Any]:
    """What the method of a name says of each plugin that has one, as it stands now."""
    found = []
    for plugin, instance in ssn.hooks.opened:
        if hasattr(instance, name):
            with ssn.turn("the end of the cycle"):
                found.append(ssn.hooks.guard(plugin, name, _checked(getattr(instance, name), wanted)))
    return found


def _checked(method: Callable[[], Any], wanted: Any) -> Callable[[], Any]:
    """The method, whose answer must be of a type. Raises: WrongAnswer."""

    def checked() -> Any:
        answer = method()
        if not isinstance(answer, wanted):
            raise WrongAnswer(method, answer, getattr(wanted, "__name__", str(wanted)))
        return answer

    checked.__wrapped__ = method  # type: ignore[attr-defined]  # whose fault it is
    return checked
