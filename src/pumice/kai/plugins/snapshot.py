"""snapshot: the cycle that would run now, as a file, at ``/get-snapshot`` of a scheduler that runs.

Source: KAI snapshot.
"""

from __future__ import annotations

from pumice.api import Session, plugin


@plugin("snapshot", page="/get-snapshot")
def snapshot(ssn: Session) -> None:
    """Decides nothing."""
