"""What surrounds a plugin while it is checked, for each policy language."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from random import Random
from typing import Any

from msgspec import Struct

from pumice.model.events import Object
from pumice.testing.clusters import Alter
from pumice.testing.kai_clusters import NEAR, in_words_of_kai


class Surroundings(Struct, frozen=True):
    """``beside``: plugins of which some are in each cluster. ``actions``: texts, one of which is drawn. ``says``: turns
    an object of a small cluster into one as this language writes it. ``more``: objects that each cluster has."""

    beside: Sequence[str]
    actions: Sequence[str]
    says: Alter | None = None
    more: tuple[Object, ...] = ()

    def alter(self, also: Alter | None) -> Alter | None:
        """Return a function that applies ``says`` and then ``also``, or the one that is there, or None."""
        says = self.says
        if says is None or also is None:
            return says or also

        def both(obj: Any, dice: Random) -> Object:
            return also(says(obj, dice), dice)

        return both


_VOLCANO = Surroundings(
    ("priority", "gang", "drf", "predicates", "proportion", "nodeorder"),
    ("enqueue, allocate, backfill", "enqueue, allocate, backfill", "allocate"),
)
SURROUNDINGS: Mapping[str, Surroundings] = {
    "volcano": _VOLCANO,
    "pumice": _VOLCANO,
    "kai": Surroundings(
        ("priority", "elastic", "predicates", "proportion", "nodeavailability", "nodeplacement", "topology"),
        ("allocate", "allocate, reclaim, preempt", "allocate, consolidation, reclaim, preempt, stalegangeviction"),
        in_words_of_kai,
        (NEAR,),
    ),
}
