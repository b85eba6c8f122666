"""What a cycle tried and what stood against it: one entry a step, plain values, read by explanations and reports."""

from __future__ import annotations

from typing import NamedTuple

from pumice.columns.dtypes import AnyArray


class Entry(NamedTuple):
    """``action`` did ``what`` with ``subject`` (a job, a queue, a task); ``detail`` says why or where."""

    action: str
    subject: str
    what: str
    detail: str = ""


class JobsEntry(NamedTuple):
    """The same entry for many jobs, by row."""

    action: str
    jobs: AnyArray
    what: str
    detail: str = ""


class GroupEvent(NamedTuple):
    """A message that the users of a pod group should see."""

    job: str
    type: str  # Normal | Warning
    reason: str
    message: str
