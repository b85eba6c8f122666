"""Which hooks of a policy answer at which point: the same in every session in which its plugins leave the same points
unused, and so found out once."""

from __future__ import annotations

from collections.abc import Mapping
from operator import attrgetter
from typing import Any, NamedTuple

from pumice.framework.memo import Ground, ground
from pumice.framework.point import JOBS, NOW, PODS, QUEUES, ROWS, Question, Reads
from pumice.framework.policy import Policy
from pumice.framework.world import World


class Wire(NamedTuple):
    """A hook without the instance whose it is: the plugin at a ``position`` of the policy has it as ``attribute``, or
    is it itself (no attribute)."""

    position: int
    plugin: str
    point: Question
    form: str
    reads: Reads | None
    concerns: str | None
    several: str | None
    attribute: str

    def call_of(self, instance: Any) -> Any:
        """The function to call."""
        return getattr(instance, self.attribute) if self.attribute else instance


class Reading(NamedTuple):
    """What some hooks read: every column of ``plugins``, and what they name: ``words`` of ``reads=`` and columns."""

    plugins: frozenset[str]
    words: frozenset[str]

    def covers(self, column: str) -> bool:
        """Whether a column of a plugin's is read."""
        return column.partition(".")[0] in self.plugins or column in self.words

    def rests_on(self, world: World) -> Ground:
        """What answers rest on beside the rows that hooks are asked about."""
        found = [column.version for name, column in world.columns.items() if self.covers(name)]
        for word, axis, table in _WHOLE_TABLES:
            if word in self.words:
                found += ground(*table(world.tables).decisive, *world.columns_on(axis))
        if NOW in self.words:
            found.append(world.now.version)
        return tuple(found)


#: Words of ``reads=`` that stand for every row of a table, its axis, and the table.
_WHOLE_TABLES = (
    (PODS, "task", attrgetter("tasks")),
    (QUEUES, "queue", attrgetter("queues")),
    (JOBS, "job", attrgetter("jobs")),
)


class Unused(NamedTuple):
    """Points that an instance does not answer at, and single methods that it does not answer with."""

    points: tuple[Question, ...] = ()
    hooks: tuple[str, ...] = ()

    @classmethod
    def of(cls, instance: object) -> Unused | None:
        """What an instance leaves unused; None where it uses all that it has."""
        found = cls(tuple(getattr(instance, "unused_points", ())), tuple(getattr(instance, "unused_hooks", ())))
        return found if found.points or found.hooks else None


class Wiring:
    """``unused``: by position, what an instance leaves unused."""

    __slots__ = ("_forms", "_policy", "_reading", "_tiers", "_unused")

    def __init__(self, policy: Policy, unused: Mapping[int, Unused]) -> None:
        self._policy, self._unused = policy, unused
        self._tiers: dict[Question, list[list[Wire]]] = {}
        self._forms: dict[tuple[Question, ...], frozenset[str]] = {}
        self._reading: dict[tuple[Question, ...], Reading] = {}

    def of(self, position: int, point: Question) -> list[Wire]:
        """Hooks at a point of one plugin."""
        unused = self._unused.get(position, Unused())
        if point in unused.points:
            return []
        spec = self._policy.options[position].spec
        return [
            Wire(position, spec.name, point, form, reads, concerns, several, attribute)
            for form, reads, concerns, several, attribute in spec.hooks_at(point)
            if attribute not in unused.hooks
        ]

    def tiers(self, point: Question) -> list[list[Wire]]:
        """Hooks at a point by tier, without empty ones."""
        found = self._tiers.get(point)
        if found is None:
            on = self._policy.plugins_at(point)
            tiers = ([wire for position in plugins for wire in self.of(position, point)] for plugins in on)
            found = self._tiers[point] = [tier for tier in tiers if tier]
        return found

    def forms(self, points: tuple[Question, ...]) -> frozenset[str]:
        """The forms that the hooks at some points are written in."""
        found = self._forms.get(points)
        if found is None:
            found = self._forms[points] = frozenset(wire.form for wire in self._at(points))
        return found

    def reading(self, points: tuple[Question, ...]) -> Reading:
        """What the hooks at some points read."""
        found = self._reading.get(points)
        if found is None:
            wires = self._at(points)
            found = self._reading[points] = Reading(
                frozenset(wire.plugin for wire in wires if wire.reads is None or ROWS in wire.reads),
                frozenset(word for wire in wires for word in wire.reads or ()),
            )
        return found

    def _at(self, points: tuple[Question, ...]) -> list[Wire]:
        return [wire for point in points for tier in self.tiers(point) for wire in tier]
