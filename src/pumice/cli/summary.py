"""Print the summary of a simulation as tables."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

from pumice.cli.console import Column, Console, Table, columns
from pumice.cli.output import console
from pumice.model.plain_words import first_names
from pumice.reasons.words import counted, short_name, unit
from pumice.report.summary import FAIRNESS_OF, SLOWDOWN_BOUND_S, left_of, waiting_groups, waits_by_code
from pumice.report.units import amount, duration, percent
from pumice.runtime.printing import escaped
from pumice.sim.measures.window import ALWAYS

if TYPE_CHECKING:
    from pumice.report.spread import Spread
    from pumice.report.summary import QueueSummary, Summary
    from pumice.sim.scenes.inputs import Inputs

QUEUES_SHOWN = 40
JOBS_NAMED = 2
REASONS_SHOWN = 8

_STILL_WAITING = "were still waiting at the end; their waits are lower bounds"


def print_summary(summary: Summary, found: Inputs, conf: str) -> None:
    """Print the whole summary."""
    out = console()
    _heading(out, summary, found, conf)
    _utilisation(out, summary)
    _queues(out, summary)
    _fairness(out, summary)
    _waiting(out, summary)
    _problems(out, found)


def _heading(out: Console, summary: Summary, found: Inputs, conf: str) -> None:
    run, result = summary.run, summary.run.result
    ended = {
        "done": "to the end",
        "until": "until the time given",
        "interrupted": "until interrupted",
        "circles": "until its states repeated",
        "stuck": "until nothing more could happen",
    }
    never = sum(each.impossible is not None for each in run.stuck)
    rest = list(left_of(result))
    rest += [f"{never:,} of them can never run"] * bool(never) + [f"{len(result.to_come):,} to come"] * bool(
        result.to_come
    )
    table = Table("", "")
    table.add("input", ", ".join(found.sources))
    table.add("policy", escaped(conf))
    table.add("cluster", counted(len(found.nodes), "node"))
    table.add("jobs", ", ".join([f"{result.completed:,} of {result.jobs:,} done", *rest]))
    table.add("simulated", f"{duration(result.simulated_s)} {ended[result.ending.value]}, in {duration(run.wall_s)}")
    table.add("cycles", f"{result.cycles:,}; {result.binds:,} pods bound, {result.evictions:,} evicted")
    if summary.lost.evicted_again:
        table.add("evicted again", f"{counted(summary.lost.evicted_again, 'time')} for a job that had lost pods before")
    if summary.lost.restarts:
        hours = (f"{amount(value)} {unit(name).removesuffix('s')}-hours" for name, value in summary.lost.hours.items())
        table.add("lost", f"{counted(summary.lost.restarts, 'gang')} restarted: {', '.join(hours)} lost")
    if run.history.figures.window != ALWAYS:
        table.add("measured", _measured(summary))
    if run.faults:
        table.add("faults", ", ".join(f"{count:,} {kind}" for kind, count in run.faults.items()))
    table.add("digest", run.digest)
    out.print_table(table)


def _measured(summary: Summary) -> str:
    window = summary.window
    times = f"from {duration(window.from_s)} to {duration(window.to_s)} after the start"
    return f"{times}: {counted(window.jobs, 'job')} that arrived then"


def _utilisation(out: Console, summary: Summary) -> None:
    table = _table("resource", "capacity", "mean use", "while jobs waited", "peak")
    for each in summary.utilisation:
        table.add(
            escaped(short_name(each.resource)),
            f"{amount(each.capacity)} {each.unit}",
            percent(each.mean),
            percent(each.loaded),
            percent(each.peak),
        )
    if table.rows:
        _print(out, "Utilisation", table)


def _queues(out: Console, summary: Summary) -> None:
    shown = summary.queues[:QUEUES_SHOWN]
    if not shown:
        return
    spread = ("p50", "p90", "p99", "mean", "longest", "jobs", "not over")
    queues: list[tuple[str, QueueSummary | Summary]] = [(escaped(queue.name), queue) for queue in shown]
    if len(shown) > 1:
        queues.append(("all", summary))
    counts = _table("queue", "jobs", "done", "waiting", "share", "deserved")
    for queue in shown:
        counts.add(
            escaped(queue.name),
            f"{queue.jobs:,}",
            f"{queue.completed:,}",
            f"{queue.pending:,}",
            percent(queue.share),
            percent(queue.deserved),
        )
    waits, ends, slowdowns = (_table("queue", *spread) for _ in range(3))
    for name, each in queues:
        waits.add(name, *_cells(each.wait, duration))
        ends.add(name, *_cells(each.completion, duration))
        slowdowns.add(name, *_cells(each.slowdown, amount))
    _print(out, "Queues (share of the cluster, mean over time)", counts)
    _print(out, "Waiting time: from arrival until the gang runs", waits)
    _print(out, "Completion time: from arrival to the end", ends)
    if summary.slowdown is not None:
        _print(out, f"Slowdown: completion over run time, of at least {SLOWDOWN_BOUND_S:g} s", slowdowns)
    if summary.wait is not None and summary.wait.censored:
        one = summary.wait.censored == 1
        note = "was still waiting at the end; its wait is a lower bound" if one else _STILL_WAITING
        out.print(f"\n{counted(summary.wait.censored, 'job')} {note}. Percentiles are Kaplan-Meier estimates.")
    if len(summary.queues) > len(shown):
        out.print(f"and {len(summary.queues) - len(shown):,} more queues; --json lists all")


def _cells(spread: Spread | None, text: Callable[[float], str]) -> Iterable[str]:
    if spread is None:
        return ["–"] * 7
    percentiles = (spread.text(value, text) for value in (spread.p50, spread.p90, spread.p99))
    mean = f"≥ {text(spread.mean)}" if spread.censored else text(spread.mean)
    return [*percentiles, mean, text(spread.max), f"{spread.count:,}", f"{spread.censored:,}"]


def _fairness(out: Console, summary: Summary) -> None:
    fairness = summary.fairness
    if fairness.jain is None:
        return
    contended = "" if fairness.contended is None else f", {fairness.contended:.3f} while contended"
    part = f" ({percent(fairness.contended_share)} of the time)" if contended else ""
    out.print(f"\nFairness {fairness.jain:.3f}{contended}{part}. {FAIRNESS_OF}.")


def _waiting(out: Console, summary: Summary) -> None:
    reasons = waits_by_code(summary.run)
    if reasons:
        numbers = ("job-hours", "of all waiting")
        table = Table(*columns(("reason", *numbers, "meaning"), right=numbers))
        for each in reasons[:REASONS_SHOWN]:
            table.add(each["code"], f"{each['job_s'] / 3600:,.1f}", percent(each["share"]), each["meaning"])
        _print(out, "Why jobs waited", table)
    _gangs(out, summary)


def _gangs(out: Console, summary: Summary) -> None:
    groups = waiting_groups(summary.run.waiting)
    if not groups:
        return
    numbers = ("gangs", "pods", "longest")
    table = Table(*columns(("reason", "queue", *numbers, "which", "why the first of them waits"), right=numbers))
    for group in groups[:REASONS_SHOWN]:
        counts = (f"{len(group.jobs):,}", f"{group.pods:,}", duration(group.longest_s))
        which = escaped(first_names(group.jobs, JOBS_NAMED))
        table.add(group.code or "–", escaped(group.queue), *counts, which, escaped(group.why))
    left = sum(len(group.jobs) for group in groups[REASONS_SHOWN:])
    count = len(summary.run.waiting)
    _print(out, f"{counted(count, 'gang')} wait{'s' if count == 1 else ''} at the end", table)
    if left:
        out.print(f"and {left:,} more for other reasons; --json lists all")


def _problems(out: Console, found: Inputs) -> None:
    counts = Counter(problem.severity.value for problem in found.scene.problems if problem.severity.value != "note")
    if counts:
        named = ", ".join(f"{count:,} {name}{'s' if count > 1 else ''}" for name, count in counts.items())
        out.print(f"\nInput: {named}; see above.")


def _table(name: str, *numbers: str) -> Table:
    """Return a table with names at the left and numbers at the right."""
    return Table(name, *(Column(head, right=True) for head in numbers))


def _print(out: Console, title: str, table: Table) -> None:
    out.print(f"\n{title}", style="bold")
    out.print_table(table)
