"""The end of a session: plugins are told, what should be written is worked out, and everything becomes a value."""

from __future__ import annotations

from typing import Any

import numpy as np

from pumice.columns.dtypes import AnyArray
from pumice.framework import points
from pumice.framework.outcome import Outcome
from pumice.framework.session import Session
from pumice.model.decisions import Writes


def close_session(ssn: Session, *, ready: bool = True) -> Outcome:
    """Tell the plugins, the last one first, and hand everything back. Not ``ready``: not all of them could be opened,
    so nothing is known that should be written."""
    ssn.story.action = "close"
    writes = Writes()
    if ready:
        _tell(ssn)
        writes = ssn.policy.dialect.closes(ssn)
    figures = {name: value for _, plugin in ssn.hooks.opened for name, value in _figures(ssn, plugin).items()}
    wakes = [at for _, plugin in ssn.hooks.opened if hasattr(plugin, "wakes_at") and (at := plugin.wakes_at()) is not None]
    outcome = Outcome(
        ssn.uid, ssn.now, ssn.policy, ssn.tables, ssn.story, writes, figures, min(wakes) if wakes else None
    )
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


def _figures(ssn: Session, plugin: Any) -> dict[str, AnyArray]:
    """What one plugin publishes, as it stands now."""
    if not hasattr(plugin, "figures"):
        return {}
    found: dict[str, AnyArray] = {name: np.asarray(value) for name, value in plugin.figures().items()}
    return found
