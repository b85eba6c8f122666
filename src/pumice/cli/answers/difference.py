"""Print what a change would do."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from pumice.cli.console import Column, Table
from pumice.cli.output import console
from pumice.reasons.shown_names import ShownNames
from pumice.reasons.words import amount, counted, number
from pumice.runtime.printing import escaped

if TYPE_CHECKING:
    from pumice.answers.difference import Difference

_SHOWN_MAX = 20


def print_difference(found: Difference, before: str, after: str) -> None:
    """Print what differs, with the digests of both cycles."""
    out, shown = console(), _ShownInBoth(found).of
    if found.is_empty:
        out.print("nothing changes: both cycles decide the same")
    else:
        out.print(_summary(found))
    lines = Table(Column(wraps=False), Column(), gap=2)
    _jobs(lines, ("placed", "green"), found.placed, shown)
    _jobs(lines, ("not placed", "red"), found.not_placed, shown)
    _jobs(lines, ("displaced", "red"), found.displaced, shown)
    for what, style, pods in (("evicted", "red", found.evicted), ("spared", "green", found.spared)):
        for pod in pods[:_SHOWN_MAX]:
            lines.add((what, style), escaped(pod))
    for what, style, jobs in (("admitted", "green", found.admitted), ("not admitted", "red", found.not_admitted)):
        for job in jobs[:_SHOWN_MAX]:
            lines.add((what, style), escaped(shown(job)))
    for each in found.waits[:_SHOWN_MAX]:
        changed = f" (before: {each.before.value})" if each.before not in (None, each.code) else ""
        lines.add(("waits", "yellow"), escaped(f"{shown(each.job)}  {each.code.value}: {each.sentence}{changed}"))
    for share in found.shares:
        was, now = number(share.resource, share.before), amount(share.resource, share.after, of_memory=True)
        lines.add(("queue", "dim"), escaped(f"{share.queue}: {was} → {now}"))
    out.print_table(lines)
    if len(found.waits) > _SHOWN_MAX:
        out.print(f"and {counted(len(found.waits) - _SHOWN_MAX, 'more waiting job')}; --json lists all")
    out.print(f"\ndigest {before} → {after}", style="dim")


class _ShownInBoth:
    """What people call the jobs of both cycles."""

    def __init__(self, found: Difference) -> None:
        self._names = [ShownNames(trial.outcome.tables) for trial in (found.after, found.before)]

    def of(self, key: str) -> str:
        return next((name for names in self._names if (name := names.of(key)) != key), key)


def _summary(found: Difference) -> str:
    parts = [
        (len(found.placed), "job placed", "jobs placed"),
        (len(found.not_placed), "job no longer placed", "jobs no longer placed"),
        (sum(found.displaced.values()), "pod loses its node", "pods lose their nodes"),
        (len(found.evicted), "pod evicted", "pods evicted"),
        (len(found.spared), "pod spared", "pods spared"),
        (len(found.admitted), "job admitted", "jobs admitted"),
        (len(found.not_admitted), "job no longer admitted", "jobs no longer admitted"),
    ]
    texts = [f"{count:,} {one if count == 1 else many}" for count, one, many in parts if count]
    waiting = f"{counted(len(found.waits), 'job')} still wait{'s' if len(found.waits) == 1 else ''}"
    return ", ".join([*(texts or ["other nodes are chosen"]), waiting])


def _jobs(lines: Table, what: tuple[str, str], jobs: Mapping[str, int], shown: Callable[[str], str]) -> None:
    for key, count in list(jobs.items())[:_SHOWN_MAX]:
        lines.add(what, escaped(f"{shown(key)}  {counted(count, 'pod')}"))
