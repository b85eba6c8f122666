"""Print an explanation."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from msgspec import Struct

from pumice.answers.in_queue import AGE, NAME
from pumice.cli.console import Column, Table
from pumice.cli.output import console
from pumice.model.devices.gpu import GPU_RESOURCE
from pumice.model.resources import CPU
from pumice.reasons.words import amount, counted
from pumice.report.units import duration
from pumice.runtime.printing import escaped

if TYPE_CHECKING:
    from pumice.answers.all_waiting import Overview
    from pumice.answers.codes import Code
    from pumice.answers.explanation import Explanation, Part
    from pumice.answers.in_queue import Place
    from pumice.answers.waiting import Wait
    from pumice.answers.ways import Way


class Waited(Struct, frozen=True):
    """For how many seconds each reason held a job back. ``source``: of which cycles that is known, in words."""

    source: str
    seconds: Mapping[Code, float]


#: Commands of one way that are printed.
_COMMANDS_MAX = 4
_STYLES = {"starts": "green", "not now": "yellow", "never": "red", "held": "yellow", "unknown": "red"}


def print_explanation(
    found: Explanation,
    digest: str,
    shown: Callable[[str], str],
    *,
    ways: bool = True,
    waited: Waited | None = None,
) -> None:
    """Print the verdict, the reason, and ways out with their commands. ``shown``: returns what people call a job, by
    key. ``ways``: they were sought. ``waited``: for each reason, where that is known."""
    out = console()
    each = f" × {amount(found.each.resource, found.each.value)}" if found.each is not None else ""
    pods = f"{counted(found.pods, 'pod')}{each}, {found.waiting:,} waiting, minimum {found.minimum:,}"
    facts = f"queue {found.queue or '-'}, {pods}{_since(found)}{_by_reason(waited)}"
    out.print_parts((escaped(found.shown), "bold"), (f"  {escaped(facts)}", "dim"))
    starts = found.verdict == "starts"
    # A job that runs is answered like one that starts, for programs; people would be misled by that word.
    word = "runs" if starts and not found.waiting else found.verdict.value
    out.print_parts((word, _STYLES[found.verdict.value]), (f"  {_summary(found)}", ""))
    lines = Table(Column(wraps=False), Column(), gap=2)
    # What speaks for a start is no obstacle, so it has no line with a number and a code; the summary has it.
    for number, part in enumerate(() if starts else found.parts, 1):
        lines.add((f"{number} {part.code.value}", "red"), escaped(part.sentence + _held_by(part, shown)))
    for each in found.not_because:
        lines.add(("not because", "dim"), escaped(each))
    if found.place is not None and found.place.ahead:
        lines.add(("ahead", "dim"), escaped(_ahead(found.place, shown)))
    for letter, way in zip("abcdefgh", found.ways, strict=False):
        lines.add((f"way {letter}", "cyan"), escaped(_way(way, shown)))
        for command in way.commands[:_COMMANDS_MAX]:
            lines.add("", (escaped(command), "dim"))
        more = len(way.commands) - _COMMANDS_MAX
        if more > 0:
            lines.add("", (f"and {counted(more, 'more command')}: --json has all", "dim"))
    if found.wait is not None:
        lines.add((f"way {'abcdefgh'[len(found.ways)]}", "cyan"), escaped(_wait(found.wait, shown)))
    out.print_table(lines)
    if ways and found.trials and not found.ways and found.verdict.value in ("not now", "never", "held"):
        out.print("none of the changes that Pumice tries helps")
    out.print(f"\ndigest {digest}", style="dim")


def _since(found: Explanation) -> str:
    """Return how long a job has waited and its place in its queue, as far as they are known."""
    place = found.place
    waited = f", waiting {duration(found.waited_s)}" if found.waited_s else ""
    if place is None or place.count == 1:
        return waited
    return f"{waited}, number {place.number:,} of {place.count:,} in its queue"


def _by_reason(waited: Waited | None) -> str:
    """Return for how long each reason held a job back."""
    found = {} if waited is None else {code: float(round(each)) for code, each in waited.seconds.items()}
    parts = ", ".join(f"{duration(seconds)} {code.value}" for code, seconds in found.items() if seconds)
    return f"; {waited.source}: {parts}" if waited is not None and parts else ""


def _held_by(part: Part, shown: Callable[[str], str]) -> str:
    held = ", ".join(f"{shown(each.job)} {amount(each.resource, each.amount)}" for each in part.holders)
    return f"; held by {held}" if held else ""


def _ahead(place: Place, shown: Callable[[str], str]) -> str:
    order = {"": "", AGE: " (older)", NAME: " (by its name)"}.get(place.by, f" (by plugin {place.by})")
    more = place.number - 1 - len(place.ahead)
    return f"{', '.join(map(shown, place.ahead))}{f' and {more:,} more' if more else ''}{order}"


def _summary(found: Explanation) -> str:
    proof = f"{counted(found.trials, 'trial')}, {_proven(found)}{', ended at their bound' if found.is_cut else ''}"
    # Without trials there was nothing to prove.
    proven = f" ({proof})" if found.trials else ""
    count = len(found.parts)
    if found.verdict == "starts":
        return escaped(found.parts[0].sentence) if count else ""
    unchanged = "as things are: " if found.verdict == "never" else ""
    return f"{unchanged}{counted(count, 'thing')} {'is' if count == 1 else 'are'} in its way{proven}"


def _proven(found: Explanation) -> str:
    if found.is_smallest:
        return "smallest set"
    return "each is needed, a smaller set may exist" if found.is_checked else "not proven that each is needed"


def _wait(wait: Wait, shown: Callable[[str], str]) -> str:
    if wait.seconds is None:
        why = f"{wait.without_estimate:,} of {counted(wait.running, 'running job')} have no estimate"
        if wait.without_estimate == wait.running:
            why = "no estimate of running jobs"
        return f"wait: not known ({why if wait.without_estimate else 'other jobs take what running ones leave'})"
    more = len(wait.ends) - 1
    others = f" and {counted(more, 'other')} before it" if more else ""
    return (
        f"wait: about {duration(wait.seconds)}, until {shown(wait.ends[-1])}{others} {'have' if more else 'has'} ended"
    )


def _way(way: Way, shown: Callable[[str], str]) -> str:
    cost = []
    if way.cost.lowered:
        cost.append(f"{way.cost.lowered:.0%} of the minimum given up")
    if way.cost.lost:
        cost.append(f"{way.cost.lost:,.1f} hours of work lost")
    text = "; ".join(way.text)
    when = "then starts once evicted pods have left" if way.waits else "then starts at once"
    loses = f"; loses: {', '.join(map(shown, way.losers[:4]))}" if way.losers else ""
    return f"{text}: {when}{', ' + ', '.join(cost) if cost else ''}{loses}"


def _asked(gpus: float, cores: float) -> str:
    return amount(GPU_RESOURCE, 1000.0 * gpus) if gpus else amount(CPU, 1000.0 * cores)


def print_overview(found: Overview, digest: str, shown: Callable[[str], str]) -> None:
    """Print all jobs that wait by the code of what is nearest in their way. ``shown``: returns what people call a job,
    by key."""
    out = console()
    count = sum(len(group.jobs) for group in found.groups)
    out.print(f"{counted(count, 'job')} wait{'s' if count == 1 else ''}")
    lines = Table(
        Column(wraps=False), Column(right=True, wraps=False), Column(right=True, wraps=False), Column(), gap=2
    )
    for group in found.groups:
        asked = _asked(group.gpus, group.cores)
        example = f"{shown(group.jobs[0])}: {group.example}"
        lines.add((group.code.value, "red"), counted(len(group.jobs), "job"), asked, escaped(example))
    out.print_table(lines)
    if found.relief is not None:
        most = found.relief
        asked = _asked(most.gpus, most.cores)
        out.print(f"{escaped(most.text)}: {counted(most.jobs, 'more job')} would start, with {asked}")
    elif count:
        out.print(f"{counted(found.trials, 'change')} tried: none lets more of them start")
    if count:
        out.print("codes are those of the cycle; pumice explain JOB checks one", style="dim")
    out.print(f"\ndigest {digest}", style="dim")
