"""What ``explain`` and ``whatif`` ask about: a cluster from files, a snapshot or standard input, with its policy."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from msgspec import Struct

from pumice.cli.errors import InputError, name_as_stdin, nothing_usable
from pumice.cli.output import say, tell_problems
from pumice.cli.params import STDIN, require_there, stdin_bytes
from pumice.cli.policies import CONF_HELP, LENIENT_HELP, PolicyChoice, choose_policy, plugins_option, saved_policy

if TYPE_CHECKING:
    from pumice.answers.world import World
    from pumice.runtime.files.snapshot_file import Cycle
    from pumice.runtime.problems.problem import Problem
    from pumice.sim.scenes.inputs import Inputs


#: An archive begins like any ZIP file, which is what distinguishes it from manifests.
_ZIP = b"PK"


class WorldOptions(Struct, frozen=True):
    """``now``: None takes the time of the input. ``names``: scheduler names, empty if none was given."""

    conf: Path | None
    strict: bool
    plugins_dir: str
    now: float | None
    names: tuple[str, ...]


class Question(Struct, frozen=True):
    """A world, its policy with where it comes from, and what of the input could not be used."""

    world: World
    chosen: PolicyChoice
    problems: tuple[Problem, ...] = ()


def world_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options that choose the world of a question, except for the files."""
    for option in (
        click.option("--strict-conf/--lenient-conf", "strict", default=True, help=LENIENT_HELP),
        click.option(
            "--scheduler-name",
            multiple=True,
            help="Scheduler name of the pods. Can be repeated. Default: volcano, or kai-scheduler under dialect: kai.",
        ),
        click.option(
            "--now",
            type=float,
            metavar="SECONDS",
            help="Time of the cycle, seconds since the epoch. Default: the newest creationTimestamp.",
        ),
        plugins_option,
    ):
        command = option(command)
    return command


def _namespaces(ctx: click.Context, param: click.Parameter, text: str | None) -> frozenset[str] | None:
    return None if text is None else frozenset(filter(None, text.split(",")))


#: What users of a server are shown by: it gives the namespaces that they may see.
namespaces_option = click.option(
    "--for-namespaces",
    "seen",
    default=None,
    callback=_namespaces,
    metavar="NS,NS",
    help="Name only jobs of these namespaces. Default: of all.",
)


@contextmanager
def readable(paths: Sequence[str]) -> Iterator[tuple[str, ...]]:
    """Yield paths to read, with a file in the place of ``-`` that has what standard input says: manifests, a snapshot
    or a trace, of a format that may be named (``swf:-``). Raises: InputError."""
    formats = [_format_of_stdin(each) for each in paths]
    named = [each for each in formats if each is not None]
    if not named:
        yield tuple(paths)
        return
    if len(named) > 1:
        raise InputError("standard input (-) can be read once")
    with tempfile.TemporaryDirectory() as folder:
        written = _written(stdin_bytes(), Path(folder) / "stdin", is_named=bool(named[0]))
        name_as_stdin(written)
        found = zip(paths, formats, strict=True)
        yield tuple(each if before is None else f"{before}{written}" for each, before in found)


def _format_of_stdin(path: str) -> str | None:
    """Return what is before ``-`` in a path: "" or a format such as ``swf:``. None: it names something else."""
    if path == STDIN:
        return ""
    if not path.endswith(f":{STDIN}"):
        return None
    from pumice.sim.traces.recognise import split

    named = split(path)
    return f"{named[0]}:" if named is not None and str(named[1]) == STDIN else None


def _written(content: bytes, path: Path, *, is_named: bool) -> Path:
    """Write a file and return its path, with an ending by which its readers recognise it. ``is_named``: its format is
    known."""
    from pumice.sim.traces.recognise import recognise
    from pumice.sim.traces.trace import TraceError

    path.write_bytes(content)
    if is_named:
        return path
    if content.startswith(_ZIP):
        return path.rename(path.with_suffix(".pumice"))
    with suppress(TraceError):  # named again where the input is read
        if recognise(path) is None:
            return path.rename(path.with_suffix(".yaml"))
    return path


def read_world(paths: Sequence[str], options: WorldOptions) -> Question:
    """Return what the paths name. Raises: InputError, PolicyError, OSError."""
    from pumice.runtime.files.file_signs import is_archive

    if not paths:
        raise InputError("wanted files, a snapshot or - for standard input")
    with readable(paths) as there:
        require_there(there)
        if any(is_archive(Path(path)) for path in there):
            return _of_snapshot(there, options)
        return _of_manifests(there, options)


def _of_manifests(paths: Sequence[str], options: WorldOptions) -> Question:
    from pumice.answers.world import World
    from pumice.sim.scenes.inputs import read_inputs
    from pumice.sim.workloads.language import objects_at

    found: Inputs = read_inputs(paths)
    chosen = choose_policy(
        options.conf, found.confs, strict=options.strict, plugins_dir=options.plugins_dir, is_kai=found.is_kai
    )
    tell_problems(found.scene.problems)
    if not found.scene.objects and not found.scene.works:
        raise nothing_usable(paths)
    moment = found.newest if options.now is None else options.now
    objects, left_out = objects_at(found.scene, moment, chosen.policy.dialect)
    tell_problems(left_out)
    names = options.names or (chosen.policy.dialect.scheduler,)
    return Question(World(objects, chosen.policy, moment, names), chosen, (*found.scene.problems, *left_out))


def saved_cycle(paths: Sequence[str]) -> Cycle:
    """Return the cycle of one snapshot. Raises: InputError, OSError."""
    from pumice.library import snapshots
    from pumice.library.errors import InputError as Refused

    try:
        return snapshots.saved_cycle(paths)
    except Refused as error:
        raise InputError(str(error)) from None


def policy_of_cycle(cycle: Cycle, path: str, conf: Path | None, plugins_dir: str, *, strict: bool) -> PolicyChoice:
    """Return the policy of ``conf``, or the one that a snapshot contains. Raises: InputError, PolicyError."""
    if conf is not None:
        return choose_policy(conf, (), strict=strict, plugins_dir=plugins_dir)
    return saved_policy(cycle.conf, f"{path}: policy", strict=strict and not cycle.lenient, plugins_dir=plugins_dir)


def _of_snapshot(paths: Sequence[str], options: WorldOptions) -> Question:
    from pumice.answers.world import World
    from pumice.runtime.files.known_objects import all_objects_in, scheduler_names_in

    cycle = saved_cycle(paths)
    chosen = policy_of_cycle(cycle, paths[0], options.conf, options.plugins_dir, strict=options.strict)
    moment = cycle.now if options.now is None else options.now
    objects = all_objects_in(cycle.snapshot, moment)
    names = scheduler_names_in(cycle.snapshot) or (chosen.policy.dialect.scheduler,)
    if cycle.snapshot.shard is not None:
        say("note: the snapshot is of one shard; its nodes are used without that")
    return Question(World(objects, chosen.policy, moment, names, cycle.snapshot.notes), chosen)


def conf_option(command: Callable[..., Any]) -> Callable[..., Any]:
    return click.option("--conf", type=click.Path(path_type=Path), help=f"{CONF_HELP} A snapshot contains a policy.")(
        command
    )
