"""reflectjoborder: serve the order of jobs at ``/get-job-order`` of a running scheduler.

Source: KAI reflectjoborder plugin.
"""

from __future__ import annotations

from pumice.api import Session, plugin


@plugin("reflectjoborder", page="/get-job-order")
def reflectjoborder(ssn: Session) -> None:
    """Do nothing: the plugin has a page and no hooks."""
