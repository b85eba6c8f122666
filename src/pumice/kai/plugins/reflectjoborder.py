"""reflectjoborder: in which order jobs would have their turn, at ``/get-job-order`` of a scheduler that runs.

Source: KAI reflectjoborder.
"""

from __future__ import annotations

from pumice.api import Session, plugin


@plugin("reflectjoborder", page="/get-job-order")
def reflectjoborder(ssn: Session) -> None:
    """Decides nothing."""
