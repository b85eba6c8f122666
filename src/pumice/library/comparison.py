"""Two policies in the same universes, with the differences and their intervals."""

from __future__ import annotations

from functools import cached_property
from typing import Any

from pumice.library.cluster import Cluster, Span, load, read_cluster, seconds_of
from pumice.library.column import count, number, text
from pumice.library.columns.figures import COMPARISON_COLUMNS, comparison_rows
from pumice.library.errors import InputError
from pumice.library.policies import PolicyLike
from pumice.library.run import Run
from pumice.library.table import Table
from pumice.report.comparison import Comparison as Compared
from pumice.report.comparison import outcome_of

SHAKE = "60s"
UNIVERSE_COLUMNS = (
    count("seed", "", "seed of the universe"),
    text("figure", "name, as in figures"),
    number("a", "see unit of the figure", "under policy A; missing where the run cannot say it"),
    number("b", "see unit of the figure", "under policy B"),
)


class Comparison:
    """Two policies, A and B, in the same universes."""

    def __init__(self, compared: Compared) -> None:
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
        return self.figures._repr_html_()


def compare(
    a: PolicyLike,
    b: PolicyLike | None,
    cluster: Cluster | str,
    *,
    repeats: int = 5,
    seed: int = 0,
    shake: Span | None = None,
    until: Span | None = None,
    nodes: str | None = None,
    period: Span = 1.0,
    warm_up: Span | None = None,
    cool_down: Span | None = None,
) -> Comparison:
    """Simulate a cluster under the policies ``a`` and ``b`` in the same universes, and return the differences.

    A universe is the input with each arrival moved by up to ``shake`` (60 s; nothing for one universe), with seeds from
    ``seed`` on. The universes are run one after the other in this process; ``pumice compare`` uses all cores.
    Raises: PolicyError, InputError.
    """
    if not 1 <= repeats <= 1000:
        raise InputError(f"repeats: found {repeats}, wanted 1 to 1000")
    found = cluster if isinstance(cluster, Cluster) else load(cluster)
    found = found if nodes is None else read_cluster(found.paths, nodes)
    policies = [found.policy(each) for each in (a, b)]
    moved = shake if shake is not None else SHAKE if repeats > 1 else None

    def run(side: int, repeat: int) -> Run:
        return found.simulate(
            policies[side],
            until=until,
            period=period,
            warm_up=warm_up,
            cool_down=cool_down,
            shake=moved,
            seed=seed + repeat,
            events=False,
        )

    # Only what is compared is kept of a run, so memory does not grow with their number.
    pairs = [
        (outcome_of(run(0, repeat).summary, seed + repeat), outcome_of(run(1, repeat).summary, seed + repeat))
        for repeat in range(repeats)
    ]
    shaken = seconds_of("shake", moved) or 0.0
    names = (policies[0].name, policies[1].name)
    return Comparison(Compared(names, found.sources, len(found.inputs.nodes), shaken, tuple(pairs)))
