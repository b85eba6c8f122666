"""Objects from which controllers make Jobs, not interpreted: the controllers read them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from msgspec import Struct

CRON_JOB, JOB_FLOW, JOB_TEMPLATE = "CronJob", "JobFlow", "JobTemplate"


# The raw object: the scheduler never looks inside, and a controller needs fields that no value here has.
class JobMaker(Struct, frozen=True):
    """A CronJob, JobFlow or JobTemplate of Volcano. ``obj``: the decoded object; it must not be modified."""

    kind: str
    namespace: str
    name: str
    obj: Mapping[str, Any]
    creation: float = 0.0

    @property
    def key(self) -> str:
        """``namespace/name``."""
        return f"{self.namespace}/{self.name}"
