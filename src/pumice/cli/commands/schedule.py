"""``pumice schedule``: run one cycle on manifests or a snapshot, and show what it decides and why other pods wait."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from click.core import ParameterSource
from msgspec import Struct

from pumice.cli.answers.starts import predictions_of, print_starts, starts_described, starts_options
from pumice.cli.answers.world import policy_of_cycle, readable, saved_cycle
from pumice.cli.errors import FAILED, nothing_usable
from pumice.cli.output import described, fail_for, print_json, say, tell_problems
from pumice.cli.params import require_there
from pumice.cli.policies import CONF_HELP, LENIENT_HELP, PolicyChoice, choose_policy, plugins_option

if TYPE_CHECKING:
    from pumice.answers.world import World
    from pumice.model.events import Object
    from pumice.runtime.one_cycle import Answer
    from pumice.runtime.problems.problem import Problem
    from pumice.sim.scenes.inputs import Inputs


class _Options(Struct, frozen=True):
    """``now``: None takes the time of the input. ``names``: scheduler names, None if none was given."""

    conf: Path | None
    strict: bool
    plugins_dir: str
    now: float | None
    names: tuple[str, ...] | None


class _Result(Struct, frozen=True):
    """The answer, the objects it is about, its policy, and what of the input could not be used. ``world``: returns the
    whole input, for questions about it."""

    answer: Answer
    world: Callable[[], World]
    objects: Sequence[Object]
    chosen: PolicyChoice
    problems: Sequence[Problem] = ()


@click.command()
@click.argument("manifests", metavar="MANIFESTS…|SNAPSHOT|-", nargs=-1, required=True)
@click.option("--conf", type=click.Path(path_type=Path), help=f"{CONF_HELP} A snapshot contains a policy.")
@plugins_option
@click.option(
    "--now",
    type=float,
    metavar="SECONDS",
    help="Time of the cycle, seconds since the epoch. Default: the newest creationTimestamp, or the snapshot's.",
)
@click.option(
    "--scheduler-name",
    multiple=True,
    help="Scheduler name of the pods. Can be repeated. Default: volcano, or kai-scheduler under dialect: kai.",
)
@click.option("--job", multiple=True, metavar="NAME", help="Print only this job (--json has all). Can be repeated.")
@click.option("--queue", multiple=True, metavar="NAME", help="Print only jobs of this queue. Can be repeated.")
@starts_options
@click.option("--json", "as_json", is_flag=True, help="One JSON document instead of text.")
@click.option("--strict-conf/--lenient-conf", "strict", default=True, help=LENIENT_HELP)
@click.pass_context
def schedule(
    ctx: click.Context,
    manifests: tuple[str, ...],
    conf: Path | None,
    plugins_dir: str,
    now: float | None,
    scheduler_name: tuple[str, ...],
    job: tuple[str, ...],
    queue: tuple[str, ...],
    starts: bool,
    within: float,
    samples: int,
    seed: int,
    as_json: bool,
    strict: bool,
) -> None:
    """Run one scheduling cycle on MANIFESTS (files or folders, - for standard input) as they are, or on a
    SNAPSHOT.

    Shows which pods are bound to which nodes, which have a reserved node that other pods are leaving (pipelined), which
    are evicted, and why the others wait. Volcano Jobs are expanded into their PodGroup and pods. No cluster is read or
    changed. Unusable input and plugins that fail are named, the rest is scheduled, and the exit code is 1.

    A SNAPSHOT is a file written by simulate --save-cycle or dumped by a running scheduler: the input of a cycle with
    its policy and time. The decisions are those of that cycle, byte for byte.

    \b
    Examples:
      pumice schedule cluster/ jobs.yaml
      kubectl get nodes,queues,podgroups,pods -A -o json > all.json && pumice schedule all.json
      kubectl get nodes,queues,podgroups,pods -A -o json | pumice schedule - --queue prod
      pumice schedule manifests/ --json | jq .unscheduled
      pumice schedule cycle.pumice --starts --within 2d
      pumice schedule cycle.pumice --conf another.conf
    """
    from pumice.runtime.files.file_signs import is_archive

    said = ctx.get_parameter_source("scheduler_name") is not ParameterSource.DEFAULT
    options = _Options(conf, strict, plugins_dir, now, scheduler_name if said else None)
    with readable(manifests) as paths:
        require_there(paths)
        is_saved = any(is_archive(Path(path)) for path in paths)
        asked = _on_snapshot(paths, options) if is_saved else _on_manifests(paths, options)
    ahead = predictions_of(asked.world(), within, samples, seed) if starts else None
    if as_json:
        beside = {"left_out_actions": list(asked.chosen.left_out), "problems": described(asked.problems)}
        beside["shown"] = _shown_names(asked.objects)
        beside |= {} if ahead is None else {"starts": starts_described(ahead)}
        print_json(_described(asked.answer) | beside)
    else:
        from pumice.cli.answer import print_answer

        print_answer(asked.answer, asked.objects, asked.chosen.label, jobs=job, queues=queue)
        if ahead is not None:
            print_starts(ahead)
    if asked.answer.outcome.faults:  # any job may have been skipped for it
        ctx.exit(FAILED)
    fail_for(ctx, asked.problems)


def _on_manifests(paths: Sequence[str], options: _Options) -> _Result:
    """Raises: InputError, PolicyError."""
    from pumice.answers.world import World
    from pumice.runtime.one_cycle import schedule_once
    from pumice.sim.scenes.inputs import read_inputs
    from pumice.sim.workloads.language import objects_at

    found = read_inputs(paths)
    chosen = choose_policy(
        options.conf, found.confs, strict=options.strict, plugins_dir=options.plugins_dir, is_kai=found.is_kai
    )
    moment = found.newest if options.now is None else options.now
    objects, left_out = objects_at(found.scene, moment, chosen.policy.dialect)
    problems = (*found.scene.problems, *_idle(found), *left_out)
    tell_problems(problems)
    if not found.scene.objects and not found.scene.works:
        raise nothing_usable(paths)
    names = options.names or (chosen.policy.dialect.scheduler,)
    answer = schedule_once(objects, chosen.policy, moment, names)
    return _Result(answer, lambda: World(objects, chosen.policy, moment, names), objects, chosen, problems)


def _on_snapshot(paths: Sequence[str], options: _Options) -> _Result:
    """Raises: InputError, PolicyError, OSError."""
    from pumice import __version__
    from pumice.answers.world import World
    from pumice.runtime.files.known_objects import all_objects_in, objects_in, scheduler_names_in
    from pumice.runtime.one_cycle import decide

    path, cycle = paths[0], saved_cycle(paths)
    if cycle.version != __version__:
        say(f"note: {path} was written by Pumice {cycle.version}, and may have decided differently from {__version__}")
    if options.names is not None:
        say("note: --scheduler-name has no effect: a snapshot contains the scheduler names")
    chosen = policy_of_cycle(cycle, path, options.conf, options.plugins_dir, strict=options.strict)
    moment = cycle.now if options.now is None else options.now
    objects = objects_in(cycle.snapshot, moment)

    def world() -> World:
        everything, names = all_objects_in(cycle.snapshot, moment), scheduler_names_in(cycle.snapshot)
        return World(everything, chosen.policy, moment, names, cycle.snapshot.notes)

    return _Result(decide(cycle.snapshot, chosen.policy, moment, objects), world, objects, chosen)


def _idle(found: Inputs) -> Iterator[Problem]:
    """Yield notes about objects that create Jobs only over time."""
    from pumice.model.workloads.job_makers import JOB_TEMPLATE
    from pumice.runtime.problems.problem import Problem, Severity

    for maker in found.scene.makers:
        if maker.kind != JOB_TEMPLATE:
            what = "creates no Jobs in a single cycle; see pumice simulate"
            yield Problem(f"{maker.kind} {maker.key}", what, Severity.NOTE)


def _shown_names(objects: Iterable[Object]) -> dict[str, str]:
    """Return the names for users of jobs that were made for pods without a PodGroup, by key."""
    from pumice.model.pod import Pod
    from pumice.model.workloads.bare_pods import shown_name

    pods = (obj for obj in objects if isinstance(obj, Pod) and obj.group_key)
    shown = {pod.group_key: shown_name(pod.group_key, (pod,)) for pod in pods}
    return {key: name for key, name in sorted(shown.items()) if key != name}


def _described(answer: Answer) -> dict[str, Any]:
    """Return the document of ``pumice schedule --json``, but for the problems."""
    return {
        "digest": answer.digest,
        "binds": answer.binds,
        "devices": answer.devices,
        "pipelined": dict(sorted(answer.pipelined.items())),
        "evicts": [evict.pod for evict in answer.evicts],
        "podgroups": {
            key: {
                "phase": status.phase,
                "conditions": [
                    {"type": c.type, "status": c.status, "reason": c.reason, "message": c.message}
                    for c in status.conditions
                ],
            }
            for key, status in sorted(answer.statuses.items())
        },
        "plugin_faults": [fault._asdict() for fault in answer.outcome.faults],
        "unscheduled": dict(sorted(answer.unscheduled.items())),
        "hints": dict(sorted(answer.hints.items())),
        "blockers": {key: [each.plain for each in found] for key, found in sorted(answer.blockers.items())},
    }
