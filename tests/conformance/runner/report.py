"""The outcome of a conformance run: for machines, and for people."""

from __future__ import annotations

from collections import Counter
from typing import Any

from msgspec import Struct

from tests.conformance.runner.result import CaseResult, Status

_SHOWN_MAX = 30


class Report(Struct, frozen=True):
    """Every case, in the order it was run."""

    cases: tuple[CaseResult, ...]

    def count(self, status: Status) -> int:
        return sum(1 for case in self.cases if case.status is status)

    @property
    def ok(self) -> bool:
        """Whether nothing failed: the exit code is 0."""
        return not self.count(Status.FAILED)

    def to_json(self) -> dict[str, Any]:
        """The shape that ``conformance/README.md`` prescribes."""
        counts = {status.value: self.count(status) for status in Status}
        cases = [{"file": c.file, "name": c.name, "status": c.status.value, "reason": c.reason} for c in self.cases]
        return {**counts, "cases": cases}

    def text(self, failures_max: int = _SHOWN_MAX) -> str:
        """A table by folder, then what failed and why, then what is missing."""
        return "\n".join([*self._folders(), *self._failures(failures_max), *self._missing(), *self._accepted()])

    def _folders(self) -> list[str]:
        by_folder: dict[str, Counter[Status]] = {}
        for case in self.cases:
            by_folder.setdefault(case.file.rpartition("/")[0] or ".", Counter())[case.status] += 1
        width = max([*(len(folder) for folder in by_folder), len("folder")])
        head = " ".join(f"{status.value:>8}" for status in Status)
        lines = [f"{'folder':<{width}} {head}"]
        rows = [*sorted(by_folder.items()), ("all", Counter(case.status for case in self.cases))]
        for folder, counts in rows:
            lines.append(f"{folder:<{width}} " + " ".join(f"{counts[s] or '·':>8}" for s in Status))
        return lines

    def _failures(self, shown_max: int) -> list[str]:
        failed = [case for case in self.cases if case.status is Status.FAILED]
        if not failed:
            return []
        lines = ["", f"failed ({len(failed)}):"]
        for case in failed[:shown_max]:
            lines += [f"  {case.file}", f"    {case.name}", f"    {case.reason}"]
        more = len(failed) - shown_max
        return lines + ([f"  and {more} more"] if more > 0 else [])

    def _missing(self) -> list[str]:
        reasons = Counter(case.reason for case in self.cases if case.status is Status.NOT_YET)
        if not reasons:
            return []
        return ["", "not yet:", *(f"{count:6} {reason}" for reason, count in reasons.most_common())]

    def _accepted(self) -> list[str]:
        accepted = [case for case in self.cases if case.status is Status.ACCEPTED]
        if not accepted:
            return []
        return ["", "accepted:", *(f"  {case.file}: {case.reason}" for case in accepted)]
