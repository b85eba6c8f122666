"""``pumice fuzz``: small worlds by seed, in which laws are checked after every event."""

from __future__ import annotations

import json
from collections.abc import Callable, Generator
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from msgspec import Struct
from msgspec.structs import asdict

from pumice.cli.answers.world import readable
from pumice.cli.errors import FAILED, InputError
from pumice.cli.output import print_json
from pumice.cli.params import engine_option

if TYPE_CHECKING:
    from pumice.framework.plugin.registry import Registry
    from pumice.sim.fuzz.case import FuzzCase
    from pumice.sim.fuzz.play_result import PlayResult

FINDINGS_MAX = 20
#: The kind of a run with worlds of all kinds.
ANY = "any"
#: Tasks for each worker that are done before their findings are reported, in the order of seeds.
_TASKS = 4
#: Seeds of a task: what a process does once for all of them costs as much as a small world.
_SEEDS = 4
Worlds = Generator[tuple[str, "FuzzCase", "PlayResult"], None, None]


class DrawOptions(Struct, frozen=True):
    """The options from which worlds are drawn."""

    confs: tuple[str, ...]
    faults: str
    dialect: str
    kind: str


class Seeds(click.ParamType[range]):
    """Seeds ``A..B``, both included, or one number."""

    name = "A..B"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> range:
        first, dots, last = str(value).partition("..")
        if not (first.isascii() and first.isdecimal() and (last.isascii() and last.isdecimal() if dots else not last)):
            self.fail(
                f"found {str(value)[:40]!r}, wanted A..B with whole numbers from 0 on, such as 0..499", param, ctx
            )
        found = range(int(first), int(last if dots else first) + 1)
        if not found:
            self.fail(f"found {str(value)[:40]!r}, wanted A..B with A no larger than B", param, ctx)
        return found


@click.command()
@click.option("--seeds", type=Seeds(), default="0..99", show_default=True, help="Seeds; one world for each.")
@click.option(
    "--confs", "confs", metavar="PATH", multiple=True, help="Draw from these policy files instead of all policies."
)
@click.option(
    "--dialect",
    type=click.Choice(["volcano", "kai"]),
    default="volcano",
    show_default=True,
    help="Language of the policies and objects, without --confs. Worlds of --kind any have both.",
)
@click.option(
    "--kind",
    type=click.Choice(["crowded", "storm", "reserved", ANY]),
    default="crowded",
    show_default=True,
    help="What worlds are about: a full cluster and faults; gangs that fit nowhere before one that fits; reservations; "
    "any of these, in both languages.",
)
@click.option(
    "--faults", metavar="PLAN", default="", help="Faults, as for simulate; none for no faults.  [default: any]"
)
@click.option(
    "--save",
    type=click.Path(file_okay=False, path_type=Path),
    default="fuzz-findings",
    show_default=True,
    metavar="DIR",
    help="Folder for failing worlds, reduced.",
)
@click.option(
    "--replay",
    "replay",
    type=click.Path(path_type=Path),
    multiple=True,
    metavar="FILE",
    help="Run this saved world again, and no seeds; - is standard input.",
)
@engine_option
@click.option(
    "--workers", type=click.IntRange(1, 256), default=1, show_default=True, metavar="N", help="Number of processes."
)
@click.option("--json", "as_json", is_flag=True, help="One JSON document instead of text.")
@click.pass_context
def fuzz(
    ctx: click.Context,
    seeds: range,
    confs: tuple[str, ...],
    dialect: str,
    kind: str,
    faults: str,
    save: Path,
    replay: tuple[Path, ...],
    engine: str,
    workers: int,
    as_json: bool,
) -> None:
    """Search for small clusters in which an invariant is broken.

    Each seed makes a world: a small, crowded cluster with jobs, faults, and a policy drawn from all actions and
    plugins. It is simulated to its end. After every event, invariants ("laws") are checked: no node is overcommitted,
    gangs are bound whole, no pod is lost, no pod is evicted without a plan, evictions come to an end. Worlds of two
    other kinds have laws of their own: a tenant's gangs that fit nowhere delay a gang of another tenant by at most one
    cycle, and a job with reserved room starts no later than announced. A world that breaks a law is reduced and saved
    to a file, which --replay runs again. The output also counts the worlds in which pods were bound and evicted, for
    each kind and language. The exit code is 1 if a law was broken.

    \b
    Examples:
      pumice fuzz --seeds 0..499 --dialect kai
      pumice fuzz --seeds 0..999 --kind storm
      pumice fuzz --seeds 0..999 --kind any --json
      pumice fuzz --seeds 17 --confs volcano-scheduler.conf --faults refused=5%,restart=2m
      pumice fuzz --replay fuzz-findings/17.json
    """
    from pumice.cli.progress import counting
    from pumice.runtime.policy.languages import builtin_registry
    from pumice.sim.fuzz.world_counts import WorldCounts

    registry = builtin_registry()
    replay = tuple(map(Path, ctx.with_resource(readable([str(path) for path in replay]))))
    if replay:
        worlds = _replayed(replay, registry)
    else:
        drawn = DrawOptions(confs, faults, dialect, kind)
        _must_fit(drawn)
        worlds = _worlds(drawn, seeds, engine, workers, _maker(registry, drawn))
    count = len(replay) if replay else len(seeds)
    findings: dict[str, str] = {}
    counts = WorldCounts()
    with counting("worlds") as show, closing(worlds):
        for tried, (name, case, played) in enumerate(worlds, start=1):
            counts.add(case, played)
            show(tried, count, name)
            if played.problem:
                findings[name] = played.problem if replay else _save_reduced(case, played.problem, save, registry)
                click.echo(f"seed {name}: {findings[name]}", err=True)
            if len(findings) >= FINDINGS_MAX:
                break
    if as_json:
        print_json({**counts.to_json(), "findings": findings})
    else:
        click.echo(counts.to_text(f"{len(findings)} break a law" if findings else "no law broken"))
    ctx.exit(FAILED if findings else 0)


def _replayed(paths: tuple[Path, ...], registry: Registry) -> Worlds:
    from pumice.model.manifest import ManifestError

    for path, case in [(path, _read(path)) for path in paths]:
        try:
            yield str(path), case, _played(case, registry)
        except ManifestError as error:
            raise InputError(f"{path}: {error}") from None


def _worlds(drawn: DrawOptions, seeds: range, engine: str, workers: int, draws: Callable[[int], FuzzCase]) -> Worlds:
    """Yield worlds in the order of their seeds. Raises: InputError if there is no such engine."""
    from pumice.library.errors import InputError as Wrong
    from pumice.runtime.memory import old_objects_left_alone
    from pumice.runtime.policy.languages import builtin_registry
    from pumice.sim.fuzz.play_result import PlayResult
    from pumice.sweeps.engines import LOCAL, engine_of
    from pumice.sweeps.sharing import share_out

    registry = builtin_registry()
    if engine == LOCAL and workers == 1:
        with old_objects_left_alone():
            for seed in seeds:
                case = draws(seed)
                yield str(seed), case, _played(case, registry)
        return
    try:
        with engine_of(engine, workers) as found:
            for first in range(0, len(seeds), _SEEDS * _TASKS * found.workers):
                block = seeds[first : first + _SEEDS * _TASKS * found.workers]
                tasks = [(drawn, block[at : at + _SEEDS]) for at in range(0, len(block), _SEEDS)]
                with closing(share_out(tasks, found, _play_seeds)) as answers:
                    played = {done.index: done for done in answers}
                for i, (_, together) in enumerate(tasks):
                    results = played[i].value or [PlayResult(played[i].why)] * len(together)
                    for seed, result in zip(together, results, strict=True):
                        yield str(seed), draws(seed), result
    except Wrong as error:
        raise InputError(error.problems) from None


def _play_seeds(task: tuple[DrawOptions, range]) -> list[PlayResult]:
    """Play the worlds of seeds, in a worker."""
    from pumice.runtime.memory import old_objects_left_alone
    from pumice.runtime.policy.languages import builtin_registry

    drawn, seeds = task
    registry = builtin_registry()
    draws = _maker(registry, drawn)
    with old_objects_left_alone():
        return [_played(draws(seed), registry) for seed in seeds]


def _must_fit(drawn: DrawOptions) -> None:
    """Raise InputError if options cannot be used together."""
    if drawn.kind != "crowded" and (drawn.confs or drawn.faults):
        raise InputError(f"--kind {drawn.kind}: found --confs or --faults, which are for crowded worlds only")
    if drawn.kind == ANY and drawn.dialect == "kai":
        raise InputError("--kind any: found --dialect kai, wanted none: a run of all kinds is in both languages")
    if drawn.kind == "reserved" and drawn.dialect == "kai":
        raise InputError("--kind reserved: found --dialect kai, wanted volcano: no action of KAI asks ours/reserve")


def _maker(registry: Registry, drawn: DrawOptions) -> Callable[[int], FuzzCase]:
    """Return what draws the world of a seed. Raises: InputError saying what is wrong with policies and faults."""
    from pumice.cli.faults import parse_faults
    from pumice.runtime.policy.conf import loaded_from_file
    from pumice.sim.fuzz.case import QUIET_AFTER_S, Kind, draw, draw_mixed

    if drawn.kind == ANY:
        return lambda seed: draw_mixed(seed, registry)
    given, faults = [dict(loaded_from_file(Path(path), registry).document) for path in drawn.confs], drawn.faults
    plan: dict[str, float] | None = None
    if faults:
        wrong = parse_faults(faults, QUIET_AFTER_S) if faults != "none" else None
        plan = {} if wrong is None else asdict(wrong)
        plan.pop("quiet_after_s", None)
    dialect, kind = drawn.dialect, Kind(drawn.kind)
    return lambda seed: draw(seed, registry, given, plan, dialect=dialect, kind=kind)


def _read(path: Path) -> FuzzCase:
    from pumice.framework.plugin.errors import in_short
    from pumice.runtime.problems.problem import not_utf8
    from pumice.sim.fuzz.case import FuzzCase

    try:
        return FuzzCase.from_json(json.loads(path.read_text(encoding="utf-8")))
    except OSError as error:
        raise InputError(f"{path}: cannot be read: {error.strerror or error}") from None
    except UnicodeDecodeError as error:
        raise InputError(f"{path}: {not_utf8(error)}; wanted a world saved by fuzz") from None
    except json.JSONDecodeError as error:
        where = f"line {error.lineno}, column {error.colno}"
        raise InputError(f"{path}: is not valid JSON: {where}: {error.msg}; wanted a world saved by fuzz") from None
    except ValueError as error:
        raise InputError(f"{path}: found no world saved by fuzz: {in_short(error)}") from None


def _played(case: FuzzCase, registry: Registry) -> PlayResult:
    from pumice.framework.plugin.errors import PolicyError
    from pumice.sim.fuzz.case import play
    from pumice.sim.fuzz.play_result import PlayResult

    try:
        return play(case, registry)
    except PolicyError as error:
        return PlayResult(f"conf: {error}")


def _save_reduced(case: FuzzCase, problem: str, save: Path, registry: Registry) -> str:
    """Reduce a case and write it to a file. Return the law that it breaks, and the path."""
    from pumice.sim.fuzz.shrink import shrunk

    small = shrunk(case, lambda each: _played(each, registry).problem)
    save.mkdir(parents=True, exist_ok=True)
    path = save / f"{case.seed}.json"
    path.write_text(
        json.dumps(small.to_json() | {"problem": _played(small, registry).problem}, indent=1) + "\n", encoding="utf-8"
    )
    return f"{problem}\n  {path}"
