"""Which hooks of a policy answer at which point: the same in every session in which its plugins leave the same points
unused, and so found out once."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping
from operator import attrgetter
from typing import Any, NamedTuple, Protocol, TypeVar

from pumice.columns.column import Column
from pumice.framework.cycle.world import World
from pumice.framework.memo import Ground, ground
from pumice.framework.plugin.point import JOBS, NOW, PODS, QUEUES, ROWS, Asked, Question, as_it_is
from pumice.framework.plugin.point import Reads as Words
from pumice.framework.plugin.policy_file import Policy

V = TypeVar("V")


class Wire(NamedTuple):
    """A hook without the instance whose it is: the plugin at a ``position`` of the policy has it as ``attribute``, or
    is it itself (no attribute). ``for_equals``: its answer about one job or task holds for equal ones."""

    position: int
    plugin: str
    point: Question
    form: str
    reads: Words | None
    several: str | None
    attribute: str
    for_equals: bool

    def call_of(self, instance: Any) -> Any:
        """The function to call."""
        return getattr(instance, self.attribute) if self.attribute else instance

    def asked(self, question: Question | Asked[Any, Any]) -> Call:
        """What to call for a question, which may be put in the form that whoever asks has."""
        if isinstance(question, Question):
            return Call(self.position, self.attribute, None)
        if question.of_several and self.several:
            return Call(self.position, self.several, None)
        adapter = question.forms[self.form]
        return Call(self.position, self.attribute, None if adapter is as_it_is else adapter)


class Call(NamedTuple):
    """What is called where a question is put to a plugin: what the one at a ``position`` of the policy has as
    ``attribute``, or it itself (no attribute), through an ``adapter`` (None: as it is)."""

    position: int
    attribute: str
    adapter: Callable[[Callable[..., Any]], Callable[..., Any]] | None


class Reads(Protocol):
    """What a hook says of what it reads, bound or not."""

    @property
    def plugin(self) -> str: ...
    @property
    def reads(self) -> Words | None: ...


class Reading:
    """What some hooks read beside the rows that they are asked about: every column of ``plugins``, and what they name,
    ``words`` of ``reads=`` and columns."""

    __slots__ = ("_named", "plugins", "words")

    def __init__(self, plugins: frozenset[str], words: frozenset[str]) -> None:
        self.plugins, self.words = plugins, words
        self._named: dict[tuple[str, ...], list[str]] = {}

    @classmethod
    def of(cls, hooks: Iterable[Reads], *, rows: bool = False, pods: bool = True) -> Reading:
        """That of some hooks. ``rows``: with the plugin's columns on the axis of the rows that they are asked about,
        and so with all that it has. Without ``pods`` where these are heeded otherwise."""
        hooks = list(hooks)
        plugins = frozenset(hook.plugin for hook in hooks if hook.reads is None or (rows and ROWS in hook.reads))
        words = frozenset(word for hook in hooks for word in hook.reads or ())
        return cls(plugins, words if pods else words - {PODS})

    def covers(self, column: str) -> bool:
        """Whether a column of a plugin's is read."""
        return column.partition(".")[0] in self.plugins or column in self.words

    def columns(self, world: World) -> list[Column[Any]]:
        """The columns that are read."""
        there = tuple(world.columns)
        named = self._named.get(there)
        if named is None:
            named = self._named[there] = list(filter(self.covers, there))
        found = [world.columns[name] for name in named]
        for word, axis, table in _WHOLE_TABLES:
            if word in self.words:
                found += (*table(world.tables).columns.values(), *world.columns_on(axis))
        if NOW in self.words:
            found.append(world.now)
        return found

    def rests_on(self, world: World) -> Ground:
        """What answers rest on beside those rows."""
        return ground(*self.columns(world))


#: Words of ``reads=`` that stand for every row of a table, its axis, and the table.
_WHOLE_TABLES = (
    (PODS, "task", attrgetter("tasks")),
    (QUEUES, "queue", attrgetter("queues")),
    (JOBS, "job", attrgetter("jobs")),
)


#: Forms of hooks that are given a class and no single task.
_ABOUT_CLASSES = frozenset({"class", "class_node", "of_tasks"})


class Unused(NamedTuple):
    """Points that an instance does not answer at, and single methods that it does not answer with."""

    points: tuple[Question, ...] = ()
    hooks: tuple[str, ...] = ()

    @classmethod
    def of(cls, instance: object) -> Unused | None:
        """What an instance leaves unused; None where it uses all that it has."""
        points, hooks = getattr(instance, "unused_points", ()), getattr(instance, "unused_hooks", ())
        return cls(tuple(points), tuple(hooks)) if points or hooks else None


class Wiring:
    """``unused``: by position, what an instance leaves unused."""

    __slots__ = ("_calls", "_known", "_policy", "_tiers", "_unused")

    def __init__(self, policy: Policy, unused: Mapping[int, Unused]) -> None:
        self._policy, self._unused = policy, unused
        self._tiers: dict[Question, list[list[Wire]]] = {}
        self._calls: dict[Question | Asked[Any, Any], list[list[Call]]] = {}
        self._known: dict[Hashable, Any] = {}

    def of(self, position: int, point: Question) -> list[Wire]:
        """Hooks at a point of one plugin."""
        unused = self._unused.get(position, Unused())
        if point in unused.points:
            return []
        spec = self._policy.options[position].spec
        return [
            Wire(
                position,
                spec.name,
                point,
                form,
                reads,
                several,
                attribute,
                form in _ABOUT_CLASSES or attribute in spec.equal_answers,
            )
            for form, reads, several, attribute in spec.hooks_at(point)
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

    def calls(self, question: Question | Asked[Any, Any]) -> list[list[Call]]:
        """What is called where a question is put, by tier."""
        found = self._calls.get(question)
        if found is None:
            points = (question,) if isinstance(question, Question) else question.points
            tiers = (tier for point in points for tier in self.tiers(point))
            forms = None if isinstance(question, Question) else question.forms
            found = [[wire.asked(question) for wire in tier if forms is None or wire.form in forms] for tier in tiers]
            self._calls[question] = found
        return found

    def at(self, *points: Question) -> list[Wire]:
        """Every hook at some points."""
        return [wire for point in points for tier in self.tiers(point) for wire in tier]

    def known(self, question: Hashable, find: Callable[[Any], V]) -> V:
        """What ``find`` makes of ``at``, once."""
        found: V | None = self._known.get(question)
        if found is None:
            found = self._known[question] = find(self.at)
        return found
