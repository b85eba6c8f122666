"""The end of a session: plugins are told, what should be written is worked out, and everything becomes a value."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import wraps
from typing import Any

import numpy as np

from pumice.framework import points
from pumice.framework.errors import WrongAnswer
from pumice.framework.outcome import Outcome
from pumice.framework.session import PUBLISHED, Session
from pumice.model.decisions import Writes


def close_session(ssn: Session, *, ready: bool = True) -> Outcome:
    """Tell the plugins, the last one first, and hand everything back. Not ``ready``: not all of them could be opened,
    so nothing is known that should be written."""
    ssn.story.action = "close"
    writes, figures, wakes_at = Writes(), ssn.published, None
    if figures is None:
        if ready:
            _tell(ssn)
            writes = ssn.policy.dialect.closes(ssn)
        figures = {name: np.asarray(value) for each in _said(ssn, "figures", Mapping) for name, value in each.items()}
        wakes_at = min((at for at in _said(ssn, "wakes_at", float | int | None) if at is not None), default=None)
        if ssn.is_idle and ready and writes == Writes() and wakes_at is None and not ssn.story.faults:
            ssn.memo.keep(PUBLISHED, (ssn.tables,), figures)
    outcome = Outcome(ssn.uid, ssn.now, ssn.policy, ssn.tables, ssn.story, writes, figures, wakes_at)
    ssn.close()
    return outcome


def _tell(ssn: Session) -> None:
    for hook in reversed(ssn.hooks.at(points.session_close)):
        with ssn.turn("the end of the cycle"):
            ssn.hooks.ask_one(hook)
    for name, plugin in reversed(ssn.hooks.opened):
        if hasattr(plugin, "on_session_close"):
            with ssn.turn("the end of the cycle"):
                ssn.hooks.guard(name, "on_session_close", plugin.on_session_close, ssn)


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

    @wraps(method)
    def checked() -> Any:
        answer = method()
        if not isinstance(answer, wanted):
            raise WrongAnswer(method, answer, getattr(wanted, "__name__", str(wanted)))
        return answer

    return checked
