"""``pumice whatif``: what a change to a cluster would do, tried before it is made."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from pumice.cli.answers.served import ask, server_option
from pumice.cli.answers.world import Question, WorldOptions, read_world, readable, world_options
from pumice.cli.errors import FAILED, InputError
from pumice.cli.output import print_json, say, tell_problems
from pumice.cli.params import SPAN
from pumice.cli.policies import choose_policy

if TYPE_CHECKING:
    from pumice.answers.world import Draft


@click.command()
@click.argument("files", metavar="FILES…|SNAPSHOT|-", nargs=-1)
@click.option(
    "--add-nodes",
    multiple=True,
    metavar="COUNTxNODE",
    help="Add nodes: copies of one (4xNODE), or of a size (4x8gpu,64cpu).",
)
@click.option(
    "--drain", multiple=True, metavar="NODE|KEY=VALUE", help="Cordon nodes; the pods that run there wait again."
)
@click.option("--set", "assigned", multiple=True, metavar="OBJECT.FIELD=VALUE", help="Change a queue, job or node.")
@click.option("--remove", multiple=True, metavar="OBJECT", help="Remove job/NAME, node/NAME, queue/NAME or pod/NAME.")
@click.option("--apply", "applied", multiple=True, metavar="FILE", help="Add or change the objects of a manifest.")
@click.option("--conf", type=click.Path(path_type=Path), help="Policy file of the changed cluster.")
@click.option("--from-conf", type=click.Path(path_type=Path), help="Policy file of the cluster as it is.")
@click.option(
    "--expect", metavar="DIGEST", help="Exit with 0 if the decisions after the change have this digest, else 1."
)
@click.option(
    "--until",
    type=SPAN,
    metavar="T",
    help="Simulate this time, such as 6h, and show which jobs start or end at another time, by their estimates.",
)
@server_option
@world_options
@click.option("--json", "as_json", is_flag=True, help="One JSON document instead of text.")
@click.pass_context
def whatif(
    ctx: click.Context,
    files: tuple[str, ...],
    add_nodes: tuple[str, ...],
    drain: tuple[str, ...],
    assigned: tuple[str, ...],
    remove: tuple[str, ...],
    applied: tuple[str, ...],
    conf: Path | None,
    from_conf: Path | None,
    expect: str | None,
    until: float | None,
    server: str,
    plugins_dir: str,
    now: float | None,
    scheduler_name: tuple[str, ...],
    as_json: bool,
    strict: bool,
) -> None:
    """Run one cycle on a cluster as it is and one with changes, and show what differs: jobs that are placed, pods that
    are evicted, what still waits and why, and what queues hold.

    The cluster is given by FILES (manifests, as pumice schedule reads them), a SNAPSHOT, or standard input (-). All
    changes are made together, in the order apply, add-nodes, set, drain, remove. Exit codes: 0 nothing changes,
    1 something does, 2 wrong input.

    \b
    Examples:
      pumice whatif cluster/ --add-nodes 4x8gpu
      pumice whatif cluster/ --set queue/vision.capability.nvidia.com/gpu=120 --set job/ml/a.minMember=6
      pumice whatif cycle.pumice --drain rack=r3 --remove job/ml/eval
      pumice whatif cycle.pumice --conf another.conf --json
      pumice whatif cycle.pumice --add-nodes 4x8gpu --until 6h
      pumice whatif --server http://127.0.0.1:8080 --drain rack=r3
    """
    if server:
        others = files or applied or conf or from_conf or now is not None or scheduler_name
        changes = {"add-nodes": add_nodes, "drain": drain, "set": assigned, "remove": remove}
        ctx.exit(_ask(server, changes, expect, until, others=bool(others), as_json=as_json))
    asked = read_world(files, WorldOptions(from_conf, strict, plugins_dir, now, scheduler_name))
    if not (add_nodes or drain or assigned or remove or applied or conf):
        raise InputError("wanted a change: --add-nodes, --drain, --set, --remove, --apply or --conf")
    from pumice.answers.world import Draft

    draft = Draft(asked.world)
    applied = ctx.with_resource(readable(applied))
    _change(draft, applied, add_nodes, assigned, drain, remove)
    if conf is not None:
        draft.policy = choose_policy(conf, (), strict=strict, plugins_dir=plugins_dir).policy
        _note_language(asked, draft)
    ctx.exit(_print(draft, expect, until, as_json=as_json))


def _print(draft: Draft, expect: str | None, until: float | None, *, as_json: bool) -> int:
    """Print what the changes do, and return the exit code."""
    from pumice.answers.difference import compare
    from pumice.answers.plain import difference_described
    from pumice.cli.answers.difference import print_difference
    from pumice.cli.answers.forecast import forecasts_described, forecasts_of, print_forecasts
    from pumice.runtime.digest import digest_of

    found = compare(draft.world, draft)
    digests = tuple(digest_of(draft.world.now, each.decisions) for each in (found.before, found.after))
    ahead = None if until is None else forecasts_of(draft, until)
    if as_json:
        ahead_described = {} if ahead is None else {"ahead": forecasts_described(ahead)}
        print_json(difference_described(found, *digests) | ahead_described)
    else:
        print_difference(found, *digests)
        if ahead is not None:
            print_forecasts(ahead)
    if expect is None:
        return 0 if found.is_empty and (ahead is None or not ahead.differing) else FAILED
    if digests[1] != expect:
        say(f"the digest after the change is {digests[1]}, expected {expect}")
        return FAILED
    return 0


def _ask(
    server: str,
    changes: Mapping[str, Sequence[str]],
    expect: str | None,
    until: float | None,
    *,
    others: bool,
    as_json: bool,
) -> int:
    """Print the answer of a scheduler that runs, and return its exit code. ``others``: words were given that only a
    cluster of files can be asked about. Raises: InputError."""
    if others:
        raise InputError("with --server: wanted --expect, --until and changes other than --apply and --conf; no files")
    form = [("format", "json" if as_json else "text"), *([] if expect is None else [("expect", expect)])]
    form += [] if until is None else [("until", f"{until:.3f}s")]
    given = [(name, text) for name, texts in changes.items() for text in texts]
    text, code = ask(server, "/whatif", [*given, *form])
    click.echo(text, nl=False)
    return code


def _change(
    draft: Draft,
    applied: Sequence[str],
    add_nodes: Sequence[str],
    assigned: Sequence[str],
    drain: Sequence[str],
    remove: Sequence[str],
) -> None:
    """Make all changes, in this order. Raises: InputError for the first that cannot be made."""
    from pumice.answers import edits

    for path in applied:
        _apply(draft, path)
    changes: Sequence[tuple[str, Sequence[str], Callable[[Draft, str], None]]] = (
        ("--add-nodes", add_nodes, edits.add_nodes),
        ("--set", assigned, edits.assign),
        ("--drain", drain, edits.drain),
        ("--remove", remove, edits.remove),
    )
    for flag, texts, change in changes:
        for text in texts:
            try:
                change(draft, text)
            except edits.ChangeError as error:
                raise InputError(f"{flag} {text}: {error}") from None


def _apply(draft: Draft, path: str) -> None:
    """Read manifests as a change. Raises: InputError."""
    from pumice.answers import edits
    from pumice.cli.params import require_there
    from pumice.runtime.problems.problem import Severity
    from pumice.sim.scenes.inputs import read_inputs
    from pumice.sim.workloads.language import objects_at

    require_there((path,))
    found = read_inputs((path,), beside=draft.native_gangs(), cluster=draft.objects())
    wrong = [problem for problem in found.scene.problems if problem.severity is Severity.ERROR]
    tell_problems(problem for problem in found.scene.problems if problem not in wrong)
    if wrong:
        raise InputError(f"{problem.where}: {problem.what}" for problem in wrong)
    objects, left_out = objects_at(found.scene, draft.world.now, draft.policy.dialect)
    tell_problems(left_out)
    edits.put(draft, objects, instead_of=draft.native_gangs())


def _note_language(asked: Question, draft: Draft) -> None:
    was, now = asked.world.policy.dialect, draft.policy.dialect
    if was.scheduler != now.scheduler:
        say(f"note: the policy is of dialect {now.name}; the pods looked at are still those of {was.scheduler}")
