"""A cluster and the jobs that come to it, and what can be asked about both."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from pumice.library.columns.nodes import NODE_COLUMNS, node_rows
from pumice.library.columns.problems import PROBLEM_COLUMNS, problem_rows
from pumice.library.errors import InputError
from pumice.library.html import html_facts
from pumice.library.policies import PolicyLike, PolicySource, policy_of
from pumice.library.table import Table
from pumice.model.events import Object
from pumice.runtime.files.file_signs import is_archive
from pumice.runtime.problems.problem import Severity
from pumice.runtime.spans import SPAN_WANTED, span_seconds
from pumice.sim.measures.window import WindowError, window_of
from pumice.sim.scenes.inputs import Inputs, read_inputs
from pumice.sim.scenes.scene import Scene
from pumice.sim.settings import Observers, SimSettings
from pumice.sim.traces.recognise import split, with_columns
from pumice.sim.traces.trace import TraceError

if TYPE_CHECKING:
    from pumice.library.cycle import Cycle
    from pumice.library.explanation import Explanation, Waiting
    from pumice.library.run import Run
    from pumice.sim.world import Progress

_PROBLEMS_MAX = 20  # in one error
Span = float | str  # seconds, or a text such as "7d"


def load(*sources: str | Path, nodes: str | None = None, columns: str = "") -> Cluster:
    """Read a cluster and its jobs: manifests (files, folders, an export of kubectl), traces, or a snapshot of a cycle.

    A trace is recognised by its content, or by ``swf:``, ``philly-gavel:``, … before the path. ``nodes``: a cluster in
    place of the input's, such as ``125x4gpu``. ``columns``: of plain tables (``csv:``), such as
    ``queue=team,duration=run@min``; ``Cluster.notes`` says which columns were taken. What cannot be used is in
    ``Cluster.problems``, a warning says so, and the rest is used. Raises: InputError where nothing can be used, or a
    path does not exist.
    """
    try:
        found = read_cluster(with_columns([str(source) for source in sources], columns), nodes)
    except TraceError as error:
        raise InputError(str(error)) from None
    errors = [problem for problem in found.inputs.scene.problems if problem.severity is Severity.ERROR]
    if errors:
        more = f" and {len(errors) - 1} more, see .problems" if len(errors) > 1 else ""
        warnings.warn(f"{errors[0]}{more}; the rest is used", stacklevel=2)
    return found


def read_cluster(paths: Sequence[str], nodes: str | None = None) -> Cluster:
    """Return what ``load`` does, without a warning. Raises: InputError."""
    if not paths:
        raise InputError("load: found no path, wanted manifests, a trace, or a snapshot")
    gone = [path for path in paths if not Path(path).exists() and split(path) is None]
    if gone:
        raise InputError([f"{path}: no such file or folder" for path in gone])
    if any(is_archive(Path(path)) for path in paths):
        from pumice.library.snapshots import cluster_of_snapshot

        return cluster_of_snapshot(paths)
    try:
        inputs = read_inputs(paths, nodes)
    except TraceError as error:
        raise InputError(str(error)) from None
    scene = inputs.scene
    if not scene.objects and not scene.works:
        why = [f"{problem.where}: {problem.what}" for problem in scene.problems[:_PROBLEMS_MAX]]
        raise InputError([*why, f"{', '.join(paths[:3])}: found nothing usable, wanted manifests or a trace"])
    return Cluster(inputs, tuple(paths), nodes)


class Cluster:
    """A cluster and the jobs that come to it. Nothing that is asked about it changes it."""

    def __init__(
        self, inputs: Inputs, paths: tuple[str, ...], nodes: str | None = None, own_policy: PolicySource | None = None
    ) -> None:
        """``own_policy``: the policy that a snapshot contains."""
        self.inputs, self.paths, self.nodes_spec, self.own_policy = inputs, paths, nodes, own_policy

    @property
    def sources(self) -> tuple[str, ...]:
        """What was read, in order: paths of manifests, and traces with their format."""
        return self.inputs.sources

    @cached_property
    def nodes(self) -> Table:
        """The nodes with their allocatable amounts."""
        return Table("nodes", NODE_COLUMNS, lambda: node_rows(self.inputs.nodes))

    @cached_property
    def problems(self) -> Table:
        """What of the input could not be used as it is."""
        return Table("problems", PROBLEM_COLUMNS, lambda: problem_rows(self.inputs.scene.problems))

    @property
    def notes(self) -> tuple[str, ...]:
        """What was assumed while the input was read."""
        return self.inputs.scene.notes

    def policy(self, given: PolicyLike | None = None) -> PolicySource:
        """Return the policy under which this cluster is scheduled. Raises: PolicyError, InputError."""
        if given is None and self.own_policy is not None:
            return self.own_policy
        if given is None and self.inputs.is_kai and not self.inputs.confs:
            from pumice.kai.table import DEFAULT_CONF

            return policy_of(DEFAULT_CONF)
        return policy_of(given, self.inputs.confs)

    # -- one cycle -----------------------------------------------------------------------------------------------------

    def schedule(
        self, policy: PolicyLike | None = None, *, now: float | None = None, scheduler_names: Sequence[str] = ()
    ) -> Cycle:
        """Run one scheduling cycle on the cluster as it is: what is bound, what is evicted, and why jobs wait.

        ``policy``: see ``pumice.policy``; None takes the one in the input, else Volcano's default. ``now``: seconds
        since the epoch, by default the newest creationTimestamp. ``scheduler_names``: of the pods to be placed, by
        default that of the policy's language. Raises: PolicyError, InputError.
        """
        from pumice.library.cycle import Cycle
        from pumice.runtime.one_cycle import schedule_once

        chosen, moment = self.policy(policy), self.inputs.newest if now is None else now
        names = tuple(scheduler_names) or (chosen.policy.dialect.scheduler,)
        return Cycle(schedule_once(self.objects(moment, chosen), chosen.policy, moment, names), chosen.name)

    def explain(
        self, job: str, policy: PolicyLike | None = None, *, ways: bool = True, scheduler_names: Sequence[str] = ()
    ) -> Explanation:
        """Say why a job waits, checked by cycles on changed clusters, and what would help it.

        ``job``: ``namespace/name``, a name that only one job has, or one of its pods. ``ways`` False leaves out the
        search for what would help. Raises: LookupError for a job that does not exist, PolicyError, InputError.
        """
        from pumice.library.explanation import explanation_of

        return explanation_of(self, job, self.policy(policy), ways=ways, scheduler_names=scheduler_names)

    def waiting(self, policy: PolicyLike | None = None, *, scheduler_names: Sequence[str] = ()) -> Waiting:
        """Return all jobs that wait, by reason, and the change that would let most of them start."""
        from pumice.library.explanation import waiting_of

        return waiting_of(self, self.policy(policy), scheduler_names)

    def objects(self, now: float, policy: PolicyLike | None = None) -> list[Object]:
        """Return everything at once: what exists, and what jobs are made of. Jobs of traces are in the policy's
        language; a warning says what it cannot say. Raises: PolicyError, InputError."""
        from pumice.sim.workloads.language import objects_at

        found, left_out = objects_at(self.inputs.scene, now, self.policy(policy).policy.dialect)
        for problem in left_out:
            warnings.warn(problem.what, stacklevel=3)
        return found

    # -- over time -----------------------------------------------------------------------------------------------------

    def simulate(
        self,
        policy: PolicyLike | None = None,
        *,
        until: Span | None = None,
        nodes: str | None = None,
        period: Span = 1.0,
        warm_up: Span | None = None,
        cool_down: Span | None = None,
        shake: Span | None = None,
        seed: int = 0,
        events: bool = True,
        progress: Callable[[Progress], object] | None = None,
    ) -> Run:
        """Simulate the jobs on the cluster, under a policy. The same arguments give the same run, byte for byte.

        Times are seconds or texts such as ``"7d"``. ``until``: stop after this much simulated time. ``nodes``: a
        cluster in place of this one, such as ``"125x4gpu"``. ``period``: the shortest time between two cycles.
        ``warm_up``, ``cool_down``: leave out the beginning and the end of the time that figures are about. ``shake``:
        move each arrival at random by up to so much, with this ``seed``. ``events`` False keeps no events, so that
        ``Run.events`` and ``Run.pods`` do not exist, and uses less memory. ``progress``: called after each cycle.
        Raises: PolicyError, InputError.
        """
        from pumice.library.columns.events import EventRecord
        from pumice.library.run import Run
        from pumice.sim.run import simulate

        inputs = self.inputs if nodes is None else self._on(nodes)
        if not inputs.nodes:
            raise InputError('the input has no nodes; give some, such as nodes="16x4gpu"')
        settings = _settings(inputs, until, period, warm_up, cool_down, shake, seed)
        chosen = self.policy(policy)
        record = EventRecord() if events else None
        observers = Observers(progress, record.add if record else None, None, time.perf_counter)
        return Run(simulate(inputs.scene, chosen.policy, settings, observers), inputs, chosen.name, record)

    def _on(self, nodes: str) -> Inputs:
        """Return the inputs on another cluster. Raises: InputError."""
        return read_cluster(self.paths, nodes).inputs

    # -- to look at ----------------------------------------------------------------------------------------------------

    def _facts(self) -> dict[str, str]:
        scene: Scene = self.inputs.scene
        facts = {
            "sources": ", ".join(self.sources)[:80],
            "nodes": f"{len(self.inputs.nodes):,}",
            "jobs": f"{len(scene.works):,}",
        }
        facts |= {"problems": f"{len(scene.problems):,}"} if scene.problems else {}
        return facts | ({"notes": "; ".join(scene.notes)[:400]} if scene.notes else {})

    def __repr__(self) -> str:
        return f"<cluster: {'; '.join(f'{name} {value}' for name, value in self._facts().items())}>"

    def _repr_html_(self) -> str:
        return html_facts("cluster", self._facts())


def _settings(
    inputs: Inputs,
    until: Span | None,
    period: Span,
    warm_up: Span | None,
    cool_down: Span | None,
    shake: Span | None,
    seed: int,
) -> SimSettings:
    """Raises: InputError for what does not fit the input."""
    end = seconds_of("until", until)
    settings = SimSettings(
        start=inputs.newest,
        until=end,
        period_s=seconds_of("period", period) or 1.0,
        seed=seed,
        shake_s=seconds_of("shake", shake) or 0.0,
    )
    if warm_up is None and cool_down is None:
        return settings
    from msgspec.structs import replace

    try:
        window = window_of(
            inputs.scene.works,
            start=inputs.newest,
            until=end,
            warm_up_s=seconds_of("warm_up", warm_up),
            cool_down_s=seconds_of("cool_down", cool_down),
        )
    except WindowError as error:
        raise InputError(f"warm_up, cool_down: {error}") from None
    return replace(settings, window=window)


def seconds_of(name: str, span: Span | None) -> float | None:
    """Return a length of time in seconds, None for None. Raises: InputError that names the argument."""
    if span is None:
        return None
    try:
        return span_seconds(str(span))
    except ValueError:
        raise InputError(f"{name}: found {span!r:.40}, {SPAN_WANTED}") from None
