"""One simulation of a sweep, named by the digest of all that decides its result, and the row that it comes to."""

from __future__ import annotations

import hashlib
from functools import lru_cache
from typing import Any

import msgspec
from msgspec import Struct

from pumice import __version__
from pumice.library.cluster import Cluster, read_cluster
from pumice.library.policies import policy
from pumice.report.comparison import figures_of

#: Raised when a row of the same inputs would differ for another reason than a new version of Pumice.
_FORMAT = 1
Value = int | float | bool | str


class Settings(Struct, frozen=True):
    """How to simulate, for all universes of a sweep; seconds, None for none."""

    until: float | None = None
    period: float = 1.0
    warm_up: float | None = None
    cool_down: float | None = None
    shake: float | None = None


class Universe(Struct, frozen=True):
    """One simulation. ``policy``: how the user calls it, ``text``: what is in it, with ``arguments`` in place.

    ``contents``: digest of the files in ``inputs`` and ``plugins_dir``.
    """

    inputs: tuple[str, ...]
    policy: str
    text: str
    arguments: tuple[tuple[str, Value], ...]
    nodes: str
    seed: int
    settings: Settings
    contents: str
    plugins_dir: str = ""

    @property
    def digest(self) -> str:
        """The name of the universe. Paths and names are no part of it: equal contents give equal decisions."""
        decides = (_FORMAT, __version__, self.text, self.nodes, self.seed, self.settings, self.contents)
        return hashlib.sha256(msgspec.json.encode(decides)).hexdigest()[:32]

    def __str__(self) -> str:
        size = f", nodes {self.nodes}" if self.nodes else ""
        arguments = "".join(f", {name}={value}" for name, value in self.arguments)
        return f"{self.policy}{arguments}{size}, seed {self.seed}"


class UniverseResult(Struct, frozen=True):
    """What a universe came to. ``digest``: of its decisions. ``figures``: by name; None for what cannot be known.

    The last field is written last, so a row that was cut off is never read as a whole one.
    """

    universe: str
    digest: str
    ending: str
    figures: dict[str, float | None]
    complete: bool


def run_universe(universe: Universe) -> bytes:
    """Simulate a universe and return its row as JSON: equal bytes on every machine. Called in workers."""
    cluster = _loaded(universe.inputs, universe.nodes or None, universe.contents)
    chosen = policy(as_text(universe.text), plugins_dir=universe.plugins_dir or None, name=universe.policy)
    settings: dict[str, Any] = {name: getattr(universe.settings, name) for name in Settings.__struct_fields__}
    run = cluster.simulate(chosen, seed=universe.seed, events=False, **settings)
    values = {figure.name: value for figure, value in figures_of(run.summary).items()}
    return msgspec.json.encode(UniverseResult(universe.digest, run.digest, run.ending, values, True))


@lru_cache(maxsize=1)
def _loaded(inputs: tuple[str, ...], nodes: str | None, contents: str) -> Cluster:
    """Return the cluster, read again only if another one is wanted. ``contents`` is part of the key alone."""
    return read_cluster(inputs, nodes)


def as_text(text: str) -> str:
    """Return a policy's text so that it is not taken for a path."""
    return text if "\n" in text.strip() else f"{text}\n#\n"
