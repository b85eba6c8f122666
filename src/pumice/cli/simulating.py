"""Options of commands that simulate, and one run under them."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from msgspec import Struct
from msgspec.structs import replace

from pumice.cli.errors import InputError, as_given, nothing_usable
from pumice.cli.params import SPAN

if TYPE_CHECKING:
    from pumice.framework.plugin.policy_file import Policy
    from pumice.runtime.record.recorder import Recorder
    from pumice.sim.faults import FaultPlan
    from pumice.sim.measures.window import Window
    from pumice.sim.run import Run
    from pumice.sim.scenes.inputs import Inputs
    from pumice.sim.settings import SimSettings
    from pumice.sim.shell import Began
    from pumice.sim.world import Progress

#: After the last arrival, faults go on for so long where no end is given.
_FAULTS_AFTER_LAST_S = 3600.0

_OPTIONS = (
    click.option(
        "--nodes",
        metavar="SPEC",
        help="Cluster to use in place of the input's: 125x4gpu or 16:cpu=32,memory=256Gi,gpu=4; separate groups with ;",
    ),
    click.option(
        "--columns",
        default="",
        metavar="FIELD=COLUMN,…",
        help="Columns of plain tables (csv:FILE), such as queue=team,duration=run@min; others are guessed.",
    ),
    click.option("--until", type=SPAN, metavar="T", help="Stop after this much simulated time: 90s, 12h, 7d."),
    click.option(
        "--period",
        type=SPAN,
        default="1s",
        show_default=True,
        metavar="T",
        help="Schedule period: the shortest time between two cycles.",
    ),
    click.option("--warm-up", type=SPAN, metavar="T", help="Measure from T after the start."),
    click.option(
        "--cool-down", type=SPAN, metavar="T", help="Measure until T before the last arrival (or before --until)."
    ),
    click.option("--shake", type=SPAN, metavar="T", help="Move each arrival at random by up to T, earlier or later."),
    click.option(
        "--faults",
        metavar="PLAN",
        help="Faults, such as refused=2%,node-gone=6h,restart=1d; the guide lists all.",
    ),
    click.option(
        "--seed",
        type=click.IntRange(0, 2**63 - 1),
        default=0,
        metavar="N",
        help="Seed of --faults and --shake. Nothing else is random.",
    ),
)


class Flags(Struct, frozen=True):
    """How to simulate under any policy, as on the command line. Times in seconds."""

    nodes: str | None
    columns: str
    until: float | None
    period: float
    warm_up: float | None
    cool_down: float | None
    shake: float | None
    faults: str | None
    seed: int


def simulation_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options, which are passed on as ``flags``."""

    @wraps(command)
    def gathered(**given: Any) -> Any:
        flags = Flags(**{name: given.pop(name) for name in Flags.__struct_fields__})
        return command(flags=flags, **given)

    found: Any = gathered
    for option in reversed(_OPTIONS):
        found = option(found)
    return found  # type: ignore[no-any-return]  # click's decorators are not typed so


def read_scene(inputs: tuple[str, ...], flags: Flags) -> Inputs:
    """Return what the paths name. Raises: InputError for an invalid ``--nodes`` or ``--columns``."""
    from pumice.runtime.files.file_signs import is_archive
    from pumice.sim.scenes.inputs import read_inputs
    from pumice.sim.traces.recognise import with_columns
    from pumice.sim.traces.trace import TraceError

    if snapshots := [path for path in inputs if is_archive(Path(path))]:
        raise InputError(
            f"{snapshots[0]}: found a snapshot of one cycle, wanted manifests or a trace; see pumice schedule"
        )
    try:
        found = read_inputs(with_columns(inputs, flags.columns), flags.nodes)
    except TraceError as error:
        raise InputError(str(error)) from None
    return replace(found, sources=tuple(map(as_given, found.sources)))


def require_nodes(found: Inputs, inputs: Sequence[str]) -> None:
    """Raise InputError if the input has no nodes."""
    if found.nodes:
        return
    if not found.scene.objects and not found.scene.works:
        raise nothing_usable(inputs)
    raise InputError("the input has no nodes; use --nodes, such as --nodes 16x4gpu")


def settings_of(found: Inputs, flags: Flags) -> SimSettings:
    """Return the settings that the flags mean for this input. Raises: InputError for flags that do not fit it."""
    from pumice.sim.settings import SimSettings

    return SimSettings(
        start=found.newest,
        until=flags.until,
        period_s=flags.period,
        window=_window(found, flags),
        seed=flags.seed,
        shake_s=flags.shake or 0.0,
        faults=_faults(found, flags),
    )


def run_once(
    found: Inputs,
    policy: Policy,
    flags: Flags,
    *,
    progress: Callable[[Progress], object] | None = None,
    event: Callable[[Mapping[str, object]], object] | None = None,
    began: Began | None = None,
    recorder: Recorder | None = None,
) -> Run:
    """Run one simulation. Raises: InputError for flags that do not fit the input."""
    from pumice.sim.run import simulate
    from pumice.sim.settings import Observers

    observers = Observers(progress, event, began, time.perf_counter, recorder)
    return simulate(found.scene, policy, settings_of(found, flags), observers)


def _window(found: Inputs, flags: Flags) -> Window:
    from pumice.sim.measures.window import ALWAYS, WindowError, window_of

    if flags.warm_up is None and flags.cool_down is None:
        return ALWAYS
    try:
        return window_of(
            found.scene.works,
            start=found.newest,
            until=flags.until,
            warm_up_s=flags.warm_up,
            cool_down_s=flags.cool_down,
        )
    except WindowError as error:
        raise InputError(f"--warm-up, --cool-down: {error}") from None


def _faults(found: Inputs, flags: Flags) -> FaultPlan | None:
    if flags.faults is None:
        return None
    from pumice.cli.faults import parse_faults

    last = max((work.arrival_s for work in found.scene.works), default=0.0)
    return parse_faults(flags.faults, last + _FAULTS_AFTER_LAST_S if flags.until is None else flags.until)
