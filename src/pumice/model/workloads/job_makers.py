"""Objects of which controllers make Jobs, as they were written: what they mean the controllers read."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from msgspec import Struct

CRON_JOB, JOB_FLOW, JOB_TEMPLATE = "CronJob", "JobFlow", "JobTemplate"


class JobMaker(Struct, frozen=True):
    """A CronJob, JobFlow or JobTemplate of Volcano's. ``obj`` is the decoded object, and not to be written on."""

    kind: str
    namespace: str
    name: str
    obj: Mapping[str, Any]
    creation: float = 0.0

    @property
    def key(self) -> str:
        """``namespace/name``"""
        return f"{self.namespace}/{self.name}"
