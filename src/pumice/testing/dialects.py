"""What a plugin is checked among, by the policy language that it is of."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from random import Random
from typing import Any

from msgspec import Struct

from pumice.model.events import Object
from pumice.testing.clusters import Alter
from pumice.testing.kai_clusters import NEAR, in_words_of_kai


class Surroundings(Struct, frozen=True):
    """``beside``: plugins that are there too, some of them in each cluster. ``actions``: of which one is drawn.
    ``says``: what objects of a small cluster say in this language; ``more``: objects that each cluster has."""

    beside: Sequence[str]
    actions: Sequence[str]
    says: Alter | None = None
    more: tuple[Object, ...] = ()

    def alter(self, also: Alter | None) -> Alter | None:
        """Both one after the other."""
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
