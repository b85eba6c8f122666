"""snapshot: serve the input of the next cycle as a file at ``/get-snapshot`` of a running scheduler.

Source: KAI snapshot plugin.
"""

from __future__ import annotations

from pumice.api import Session, plugin


@plugin("snapshot", page="/get-snapshot")
def snapshot(ssn: Session) -> None:
    """Do nothing: the plugin has a page and no hooks."""
