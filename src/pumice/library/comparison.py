"""Two policies in the same universes, with the differences and their intervals."""

from __future__ import annotations

from functools import cached_property
from typing import Any

from msgspec.structs import replace

from pumice.library.cluster import Cluster, Span, load, read_cluster, seconds_of
from pumice.library.column import count, number, text
from pumice.library.columns.figures import COMPARISON_COLUMNS, comparison_rows
from pumice.library.errors import InputError
from pumice.library.html import html_facts
from pumice.library.policies import PolicyLike
from pumice.library.table import Table
from pumice.report.comparison import NoSuchFigure, PairedRuns, RunOutcome, outcome_of, primary_of
from pumice.runtime.memory import old_objects_left_alone
from pumice.sim.workloads.blocks import BlockError, Blocks

SHAKE, REPEATS = "60s", 5
UNIVERSE_COLUMNS = (
    count("seed", "", "seed of the universe"),
    text("figure", "name, as in figures"),
    number("a", "see unit of the figure", "under policy A; missing where the run cannot say it"),
    number("b", "see unit of the figure", "under policy B"),
)


class Comparison:
    """Two policies, A and B, in the same universes."""

    def __init__(self, compared: PairedRuns) -> None:
        self.compared = compared

    @property
    def same(self) -> bool:
        """True if both policies took the same decisions in every universe."""
        return self.compared.same

    @cached_property
    def figures(self) -> Table:
        """A row for each figure: both means, the difference B - A, and its 95 % interval."""
        return Table("figures", COMPARISON_COLUMNS, lambda: comparison_rows(self.compared.rows))

    @cached_property
    def universes(self) -> Table:
        """A row for each universe and figure."""
        rows = [
            (a.seed, figure.name, value, b.values.get(figure))
            for a, b in self.compared.pairs
            for figure, value in a.values.items()
        ]
        return Table("universes", UNIVERSE_COLUMNS, lambda: rows)

    def to_dict(self) -> dict[str, Any]:
        """Return the comparison as ``pumice compare --json`` prints it."""
        return self.compared.to_json()

    def __repr__(self) -> str:
        a, b = self.compared.confs
        return f"comparison of A {a} and B {b} in {len(self.compared.pairs)} universes\n{self.figures!r}"

    def _repr_html_(self) -> str:
        a, b = self.compared.confs
        facts = {"A": a, "B": b, "universes": f"{len(self.compared.pairs):,}"}
        return html_facts("comparison", facts) + self.figures._repr_html_()


def compare(
    a: PolicyLike,
    b: PolicyLike | None,
    cluster: Cluster | str,
    *,
    repeats: int | None = None,
    seed: int = 0,
    shake: Span | None = None,
    blocks: Span | None = None,
    primary: str = "wait.mean",
    until: Span | None = None,
    nodes: str | None = None,
    period: Span = 1.0,
    warm_up: Span | None = None,
    cool_down: Span | None = None,
) -> Comparison:
    """Simulate a cluster under the policies ``a`` and ``b`` in the same universes, and return the differences.

    A universe is the input with each arrival moved by up to ``shake`` (60 s; nothing for one universe), with seeds from
    ``seed`` on, ``repeats`` of them (5). ``blocks``: universes are blocks of the input of this length, such as "7d", in
    place of that. ``primary``: the figure on which the comparison is decided, "none": all are equal. The universes are
    run one after the other in this process; ``pumice compare`` uses all cores. Raises: PolicyError, InputError.
    """
    if repeats is not None and not 1 <= repeats <= 1000:
        raise InputError(f"repeats: found {repeats}, wanted 1 to 1000")
    if blocks is not None and repeats is not None:
        raise InputError("compare: found blocks and repeats, wanted one of them: each block is one universe")
    found = cluster if isinstance(cluster, Cluster) else load(cluster)
    found = found if nodes is None else read_cluster(found.paths, nodes)
    policies = [found.policy(each) for each in (a, b)]
    cut = _Universes(found, repeats or REPEATS, seconds_of("blocks", blocks) or 0.0)
    moved = shake if shake is not None or blocks is not None or repeats == 1 else SHAKE

    def run(side: int, repeat: int) -> RunOutcome:
        made = cut[repeat].simulate(
            policies[side],
            until=until,
            period=period,
            warm_up=warm_up,
            cool_down=cool_down,
            shake=moved,
            seed=seed + repeat,
            events=False,
        )
        return outcome_of(made.summary, seed + repeat)

    # Only what is compared is kept of a run, so memory does not grow with their number. A notebook holds many objects,
    # which are examined once, not once a run.
    with old_objects_left_alone():
        pairs = tuple((run(0, repeat), run(1, repeat)) for repeat in range(len(cut)))
    try:
        chosen = primary_of(primary, pairs[0][0])
    except NoSuchFigure as error:
        raise InputError(f"primary: {error}") from None
    names, shaken = (policies[0].name, policies[1].name), seconds_of("shake", moved) or 0.0
    nodes_count = len(found.inputs.nodes)
    return Comparison(PairedRuns(names, found.sources, nodes_count, shaken, pairs, chosen, cut.block_s))


class _Universes:
    """The clusters that are simulated: one several times, or its blocks of ``block_s`` seconds each, if that is not 0.
    Raises: InputError."""

    def __init__(self, found: Cluster, repeats: int, block_s: float) -> None:
        self._found, self._repeats, self.block_s = found, repeats, block_s
        try:
            self._blocks = Blocks(found.inputs.scene, block_s) if block_s else None
        except BlockError as error:
            raise InputError(f"blocks: {error}") from None

    def __len__(self) -> int:
        return self._repeats if self._blocks is None else len(self._blocks)

    def __getitem__(self, number: int) -> Cluster:
        if self._blocks is None:
            return self._found
        inputs = replace(self._found.inputs, scene=self._blocks[number])
        return Cluster(inputs, self._found.paths, self._found.nodes_spec, self._found.own_policy)
