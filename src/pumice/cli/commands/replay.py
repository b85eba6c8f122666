"""``pumice replay``: cycles of a record, run again."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from pumice.cli.answers.recording import FOLDER, recorded_policy
from pumice.cli.errors import FAILED, InputError
from pumice.cli.output import console, print_json, say, takes_stdout, write_snapshot
from pumice.cli.policies import choose_policy, plugins_option
from pumice.reasons.words import counted

if TYPE_CHECKING:
    from pumice.answers.difference import Difference
    from pumice.framework.plugin.policy_file import Policy
    from pumice.runtime.record.replay import Place, PolicyOf, ReplayedCycle

SCHEMA = "pumice.replay/1"


@click.command()
@click.argument("folder", metavar="DIR", type=FOLDER)
@click.option("--cycle", "number", type=click.IntRange(1), metavar="N", help="Only this cycle.")
@click.option(
    "--at",
    "moment",
    type=float,
    metavar="SECONDS",
    help="Only the last cycle up to this time, in seconds since the epoch.",
)
@click.option("--job", metavar="JOB", help="Only the last cycle that decided about this job, or in which it waited.")
@click.option("--conf", type=click.Path(path_type=Path), help="Run that cycle under another policy too, and compare.")
@click.option(
    "--save", type=click.Path(path_type=Path, dir_okay=False), metavar="FILE", help="Write that cycle to a snapshot."
)
@plugins_option
@click.option("--json", "as_json", is_flag=True, help="One JSON document instead of text.")
@click.pass_context
def replay(
    ctx: click.Context,
    folder: Path,
    number: int | None,
    moment: float | None,
    job: str | None,
    conf: Path | None,
    save: Path | None,
    plugins_dir: str,
    as_json: bool,
) -> None:
    """Run the cycles of a record again, and compare their decisions with those that were made.

    DIR was written by --record of pumice run or pumice simulate. Exit codes: 0 all cycles decided the same, 1 one did
    not, or a file of the record is damaged (the rest is used, and a line says where it ends), 2 wrong input.

    \b
    Examples:
      pumice simulate examples/demo --record rec && pumice replay rec
      pumice replay rec --cycle 12 --conf another.conf
      pumice replay rec --job ml/bert --save cycle.pumice && pumice explain ml/bert cycle.pumice
    """
    from pumice.runtime.record.reading import RecordError

    wanted = [flag for flag, value in (("--cycle", number), ("--at", moment), ("--job", job)) if value is not None]
    if len(wanted) > 1:
        raise InputError(f"found {' and '.join(wanted)}, wanted one of them")
    if not wanted and (conf is not None or save is not None):
        raise InputError("--conf and --save are about one cycle: wanted --cycle, --at or --job")
    policy_of = recorded_policy(plugins_dir)
    try:
        if not wanted:
            _all(ctx, folder, policy_of, as_json=as_json)
            return
        other = None if conf is None else choose_policy(conf, (), strict=True, plugins_dir=plugins_dir).policy
        _one(ctx, _found(folder, policy_of, number, moment, job), other, save, as_json=as_json)
    except RecordError as error:
        raise InputError(str(error)) from None


def _all(ctx: click.Context, folder: Path, policy_of: PolicyOf, *, as_json: bool) -> None:
    from pumice.runtime.record.reading import End
    from pumice.runtime.record.replay import replay

    count, differ, ends = 0, list[int](), list[str]()
    for each in replay(folder, policy_of):
        if isinstance(each, End):
            ends.append(each.why)
            continue
        count += 1
        if not each.is_equal:
            differ.append(each.number)
    if as_json:
        print_json({"schema": SCHEMA, "cycles": count, "differ": differ, "ends": ends})
    elif not count:
        console().print("no cycle could be run again")
    elif differ:
        console().print(f"{counted(count, 'cycle')} run again: {len(differ):,} decided otherwise, first {differ[0]:,}")
    else:
        console().print(f"{counted(count, 'cycle')} run again: all decided the same")
    for why in ends:
        say(f"error: {why}")
    if differ or ends:
        ctx.exit(FAILED)


def _found(
    folder: Path, policy_of: PolicyOf, number: int | None, moment: float | None, job: str | None
) -> ReplayedCycle:
    """Return the cycle that is meant. Raises: InputError if there is none."""
    from pumice.runtime.record.replay import cycle_at, newest

    if job is not None:
        place = _last_of(folder, policy_of, job)
    elif number is not None:
        place = newest(folder, lambda cycle: cycle.number == number)
    else:
        place = newest(folder, lambda cycle: moment is not None and cycle.now <= moment)
    if place is None:
        what = f"about job {job!r}" if job is not None else f"{number:,}" if number is not None else f"by {moment}"
        raise InputError(f"{folder}: found no cycle {what} in the record")
    return cycle_at(folder, place, policy_of)


def _last_of(folder: Path, policy_of: PolicyOf, job: str) -> Place | None:
    """Return where the last cycle is that decided about a job or left it waiting."""
    from pumice.runtime.record.reading import End
    from pumice.runtime.record.replay import newest, replay
    from pumice.runtime.record.story import WAITS, change_after

    found: int | None = None
    for each in replay(folder, policy_of):
        at = None if isinstance(each, End) else change_after(each, job)
        if at is not None and (at.state == WAITS or at.bound or at.evicted):
            found = at.cycle
    return None if found is None else newest(folder, lambda cycle: cycle.number == found)


def _one(ctx: click.Context, found: ReplayedCycle, other: Policy | None, save: Path | None, *, as_json: bool) -> None:
    difference = None if other is None else _beside(found, other)
    is_piped = takes_stdout((save,), as_json=as_json)
    if as_json:
        print_json(_described(found, difference))
    elif not is_piped:
        _print(found, difference)
    if save is not None:
        from pumice.runtime.files.snapshot_file import Cycle, SnapshotError

        try:
            write_snapshot(save, Cycle(found.snapshot, found.now, found.conf.text, found.conf.lenient))
        except (SnapshotError, OSError) as error:
            raise InputError(f"--save {save}: {error}") from None
        if not is_piped:
            say(f"wrote {save}")
    if not found.is_equal:
        ctx.exit(FAILED)


def _beside(found: ReplayedCycle, other: Policy) -> Difference:
    """Run a cycle under another policy, and compare it with what it decided."""
    from pumice.answers.difference import difference_of
    from pumice.answers.world import Trial
    from pumice.cycle import run_cycle
    from pumice.runtime.loop import ListPlanner

    planner = ListPlanner()
    outcome = run_cycle(found.snapshot, other, found.now, planner)
    return difference_of(Trial(found.outcome, found.decisions), Trial(outcome, tuple(planner.taken)))


def _digests(found: ReplayedCycle, difference: Difference) -> tuple[str, str]:
    from pumice.runtime.digest import digest_of

    return digest_of(found.now, found.decisions), digest_of(found.now, difference.after.decisions)


def _reasons(found: ReplayedCycle) -> dict[str, int]:
    from pumice.answers.codes import code_of
    from pumice.reasons.blockers import blockers_of

    waiting = blockers_of(found.outcome).values()
    return dict(Counter(code_of(blockers[0]).value for blockers in waiting if blockers).most_common())


def _described(found: ReplayedCycle, difference: Difference | None) -> dict[str, Any]:
    from pumice.answers.plain import difference_described

    beside = None if difference is None else difference_described(difference, *_digests(found, difference))
    return {
        "schema": SCHEMA,
        "cycle": found.number,
        "now": found.now,
        "recorded": found.recorded,
        "digest": found.digest,
        "same": found.is_equal,
        "decisions": [list(each[:4]) for each in found.decisions],
        "waiting": _reasons(found),
        "beside": beside,
    }


def _print(found: ReplayedCycle, difference: Difference | None) -> None:
    from pumice.cli.answers.difference import print_difference
    from pumice.model.decisions import Bind

    out = console()
    bound = sum(isinstance(each, Bind) for each in found.decisions)
    same = "the same decisions" if found.is_equal else f"OTHER DECISIONS (digest {found.digest}, was {found.recorded})"
    out.print(f"cycle {found.number:,} at {found.now!r}: {same}")
    out.print(f"{bound:,} bound, {len(found.decisions) - bound:,} evicted")
    if waiting := _reasons(found):
        out.print(f"jobs that wait by reason: {', '.join(f'{count:,} {code}' for code, count in waiting.items())}")
    if difference is not None:
        out.print("\nunder the other policy:")
        print_difference(difference, *_digests(found, difference))
