"""What a note says that the source test does besides running actions."""

from __future__ import annotations

import re
from collections.abc import Callable

from pumice.framework.cycle.session import Session
from tests.conformance.runner.case import Case
from tests.conformance.runner.differences import Differences
from tests.conformance.runner.expected import job_of
from tests.conformance.runner.result import NotYet

_NOMINATED = re.compile(
    r"Before the action the source test sets NominatedHyperNode of the default sub-job of (\S+) to \"(\S+)\" "
    r"and expects it empty afterwards\.?"
)
After = Callable[[Differences], None]


def prepare(case: Case, ssn: Session) -> After:
    """Do what the note says comes first; the answer checks what it says must hold afterwards.

    Raises: NotYet for a note about something done before the action that is not understood.
    """
    note = " ".join(str(case.raw.get("note", "")).split())
    found = _NOMINATED.fullmatch(note)
    if found:
        return _nominate(ssn, found[1], found[2])
    if note.startswith("Before"):
        raise NotYet(f"note: {note}")
    return lambda differences: None


def _nominate(ssn: Session, job: str, hypernode: str) -> After:
    (sub,) = job_of(ssn, job).sub_jobs
    ssn.journal.put(ssn.tables.subs["nominated"], sub, ssn.tables.tree.row_of[hypernode])

    def check(found: Differences) -> None:
        row = int(ssn.tables.subs.nominated[sub])
        found.value(f"nominated hypernode of {job}", "", ssn.tables.tree.names[row] if row >= 0 else "")

    return check
