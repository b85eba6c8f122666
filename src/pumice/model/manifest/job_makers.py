"""Decode CronJobs, JobFlows and JobTemplates. Their controllers validate the spec."""

from __future__ import annotations

from pumice.model.manifest.pods import namespace_of
from pumice.model.manifest.reading.fields import Obj, instant, name, table, text_map
from pumice.model.workloads.job_makers import JobMaker


def read_job_maker(obj: Obj, kind: str) -> JobMaker:
    """Return the object with its identity. Raises: FieldError."""
    metadata = table(obj, "metadata", "")
    # Read only to check them: a controller reads annotations without expecting errors.
    text_map(metadata, "annotations", "metadata")
    table(obj, "spec", "")
    creation = instant(metadata, "creationTimestamp", "metadata") or 0.0
    return JobMaker(kind, namespace_of(metadata), name(metadata, "name", "metadata"), obj, creation)
