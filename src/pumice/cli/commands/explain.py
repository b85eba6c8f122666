"""``pumice explain``: why a job waits, checked by trials, and what would help it; or all that wait, by reason."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from pumice.cli.answers.recording import FOLDER, recorded_policy
from pumice.cli.answers.served import ask, server_option
from pumice.cli.answers.starts import as_seen, predictions_of, print_starts, starts_described, starts_options
from pumice.cli.answers.world import Question, WorldOptions, conf_option, namespaces_option, read_world, world_options
from pumice.cli.errors import InputError
from pumice.cli.output import fail_for, print_json, say

if TYPE_CHECKING:
    from pumice.answers.world import World
    from pumice.cli.answers.explanation import Waited
    from pumice.sim.starts.predicted import Predictions


@click.command()
@click.argument("words", metavar="[JOB] FILES…|SNAPSHOT|-", nargs=-1)
@click.option("--all", "everyone", is_flag=True, help="All jobs that wait, by reason, and the change that helps most.")
@conf_option
@world_options
@click.option("--no-ways", is_flag=True, help="Only the reason, without a search for ways out.")
@starts_options
@click.option("--record", type=FOLDER, metavar="DIR", help="Also how long each reason held it, from a record.")
@namespaces_option
@server_option
@click.option("--json", "as_json", is_flag=True, help="One JSON document instead of text.")
@click.pass_context
def explain(
    ctx: click.Context,
    words: tuple[str, ...],
    everyone: bool,
    conf: Path | None,
    plugins_dir: str,
    now: float | None,
    scheduler_name: tuple[str, ...],
    no_ways: bool,
    starts: bool,
    within: float,
    samples: int,
    seed: int,
    record: Path | None,
    seen: frozenset[str] | None,
    server: str,
    as_json: bool,
    strict: bool,
) -> None:
    """Say why JOB waits in a cluster given by FILES (manifests, as pumice schedule reads them), a SNAPSHOT, or standard
    input (-), and what would help it.

    The first word is starts, not now, never (not even without all other jobs), held (by a gate or a closed queue) or
    unknown. Of a reason cycles were run: the job starts without all of its obstacles and does not without some of them.
    It is called a smallest set only if no fewer other obstacles do. Each way out was run too, and is as small as
    possible.

    \b
    Examples:
      pumice explain ml/bert cluster/ jobs.yaml
      kubectl get nodes,queues,podgroups,pods -A -o json | pumice explain ml/bert -
      pumice explain ml/bert cycle.pumice --json | jq .ways_out
      pumice explain --all cluster/
      pumice explain ml/bert cycle.pumice --starts --within 2d
      pumice explain ml/bert cycle.pumice --record /var/lib/pumice/record
      pumice explain ml/bert --server http://127.0.0.1:8080 --starts
    """
    if record is not None and (server or everyone or seen is not None):
        raise InputError("--record: wanted one JOB and files, without --server, --all and --for-namespaces")
    if server:
        ahead_of = [("starts", "1"), ("within", f"{within:.3f}s"), ("samples", str(samples)), ("seed", str(seed))]
        about = [("ways", "0" if no_ways else "1"), *(ahead_of if starts else [])]
        ctx.exit(_explain_from(server, words, about, everyone=everyone, as_json=as_json))
    if len(words) < (1 if everyone else 2):
        raise InputError("wanted JOB and files, or --all and files")
    if seen is not None and everyone:
        raise InputError("--for-namespaces: wanted one JOB, without --all, which names jobs of all")
    options = WorldOptions(conf, strict, plugins_dir, now, scheduler_name)
    asked = read_world(words if everyone else words[1:], options)
    ahead = partial(predictions_of, asked.world, within, samples, seed) if starts else None
    if everyone:
        _explain_all(asked, ahead, as_json=as_json)
    else:
        waited = partial(_waited_by_code, record, plugins_dir, asked.world)
        _explain_one(asked, words[0], ahead, seen, waited, ways=not no_ways, as_json=as_json)
    fail_for(ctx, asked.problems)


def _explain_from(
    server: str, words: tuple[str, ...], about: list[tuple[str, str]], *, everyone: bool, as_json: bool
) -> int:
    """Print the answer of a scheduler that runs, and return its exit code. Raises: InputError."""
    if len(words) != (0 if everyone else 1):
        raise InputError("with --server: wanted JOB and no files, or --all alone")
    form = "json" if as_json else "text"
    which = ("all", "1") if everyone else ("job", words[0])
    text, code = ask(server, "/explain", [which, *about, ("format", form)])
    click.echo(text, nl=False)
    return code


def _explain_one(
    asked: Question,
    job: str,
    ahead: Callable[[], Predictions] | None,
    seen: frozenset[str] | None,
    waited: Callable[[str], Waited | None],
    *,
    ways: bool,
    as_json: bool,
) -> None:
    """Raises: InputError for a job that is not there."""
    from pumice.answers.explanation import NoSuchJob, explain, find_job
    from pumice.answers.plain import described
    from pumice.answers.seen import as_seen as explanation_as_seen
    from pumice.answers.seen import hidden_of
    from pumice.answers.world import REASON_TRIALS_MAX, Trials
    from pumice.cli.answers.explanation import print_explanation
    from pumice.runtime.digest import digest_of

    try:
        key = find_job(asked.world, job, seen)
    except NoSuchJob as error:
        raise InputError(str(error)) from None
    trials = Trials(asked.world, REASON_TRIALS_MAX)
    hidden = hidden_of(asked.world, seen)
    found = explanation_as_seen(explain(asked.world, key, ways=ways, trials=trials), hidden)
    digest = digest_of(asked.world.now, trials.base.decisions)
    start = None if ahead is None else as_seen(ahead(), hidden)
    by_code = waited(key)
    if as_json:
        more: dict[str, Any] = {} if start is None else {"start": starts_described(start, key)}
        more |= {} if by_code is None else {"waited_by_code_s": dict(by_code.seconds)}
        print_json(described(found, digest) | more)
    else:
        print_explanation(found, digest, asked.world.shown, ways=ways, waited=by_code)
        if start is not None:
            print_starts(start, key)


def _waited_by_code(record: Path | None, plugins_dir: str, world: World, job: str) -> Waited | None:
    """Return for how many seconds each reason held a job back: from the recorded cycles, or from what a scheduler that
    runs has seen; None where neither says so. Raises: InputError."""
    from pumice.cli.answers.explanation import Waited
    from pumice.runtime.job_looks import waited_in

    if record is None:
        seen = waited_in(world.notes, job)
        return Waited("seen by the scheduler", seen) if seen else None
    from pumice.runtime.record.reading import End, RecordError
    from pumice.runtime.record.replay import replay
    from pumice.runtime.record.story import JobNames, story, waited_by_code

    names = JobNames(job)
    try:
        found = list(story(names.watch(replay(record, recorded_policy(plugins_dir))), job))
    except RecordError as error:
        raise InputError(str(error)) from None
    for end in (each for each in found if isinstance(each, End)):
        say(f"note: {end.why}")
    by_code = waited_by_code([each for each in found if not isinstance(each, End)], names.until)
    return Waited("of the cycles recorded", by_code)


def _explain_all(asked: Question, ahead: Callable[[], Predictions] | None, *, as_json: bool) -> None:
    from pumice.answers.all_waiting import TRIALS_MAX, overview
    from pumice.answers.plain import overview_described
    from pumice.answers.world import Trials
    from pumice.cli.answers.explanation import print_overview
    from pumice.runtime.digest import digest_of

    trials = Trials(asked.world, TRIALS_MAX)
    found, digest = overview(trials), digest_of(asked.world.now, trials.base.decisions)
    if as_json:
        print_json(overview_described(found, digest) | ({} if ahead is None else {"starts": starts_described(ahead())}))
    else:
        print_overview(found, digest, asked.world.shown)
        if ahead is not None:
            print_starts(ahead())
