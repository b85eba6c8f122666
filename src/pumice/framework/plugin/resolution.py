"""Which hooks of a policy answer at which point. That is equal in all sessions whose plugins leave the same points
unused, so it is computed once."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping
from operator import attrgetter
from typing import Any, NamedTuple, Protocol, TypeVar, cast

from pumice.columns.column import AnyColumn
from pumice.framework.cycle.world import World
from pumice.framework.memo import Ground, ground
from pumice.framework.plugin.errors import HookFunction
from pumice.framework.plugin.point import (
    JOBS,
    NOW,
    PODS,
    QUEUES,
    ROWS,
    Adapter,
    AnyForms,
    Question,
    as_it_is,
)
from pumice.framework.plugin.point import Reads as Words
from pumice.framework.plugin.policy_file import Policy

V = TypeVar("V")


class Wire(NamedTuple):
    """A hook without its instance: the plugin at ``position`` in the policy has it as ``attribute``, or is the hook
    itself (empty attribute). ``for_equals``: its answer about one job or task holds for equal ones.
    ``for_equal_tasks``: it holds for equal tasks of one job, and for equal jobs with equal values in the columns of
    jobs that it reads by name."""

    position: int
    plugin: str
    point: Question
    form: str
    reads: Words | None
    several: str | None
    attribute: str
    for_equals: bool
    for_equal_tasks: bool

    def call_of(self, instance: object) -> HookFunction:
        """Return the function to call."""
        return cast(HookFunction, getattr(instance, self.attribute) if self.attribute else instance)

    def asked(self, question: Question | AnyForms) -> Call:
        """Return what to call for a question, which may be asked in another form than the hook's."""
        if isinstance(question, Question):
            return Call(self.position, self.attribute, None)
        # The hook's own method, in place of an adapter that would ask it class by class.
        if question.of_several and self.several:
            return Call(self.position, self.several, None)
        # The commonest adapter changes nothing, and each call through it would cost one more frame.
        adapter = question.forms[self.form]
        return Call(self.position, self.attribute, None if adapter is as_it_is else adapter)


class Call(NamedTuple):
    """What is called for a question: the plugin at ``position`` in the policy has it as ``attribute``, or is it itself
    (empty attribute). ``adapter``: None if the call needs none."""

    position: int
    attribute: str
    adapter: Adapter | None


class Reads(Protocol):
    """What a hook says about what it reads, bound to an instance or not."""

    @property
    def plugin(self) -> str: ...
    @property
    def reads(self) -> Words | None: ...


class Reading:
    """What some hooks read besides the rows that they are asked about: every column of ``plugins``, and ``words`` of
    ``reads=`` and names of columns."""

    __slots__ = ("_named", "plugins", "words")

    def __init__(self, plugins: frozenset[str], words: frozenset[str]) -> None:
        self.plugins, self.words = plugins, words
        self._named: dict[tuple[str, ...], list[str]] = {}

    @classmethod
    def of(cls, hooks: Iterable[Reads], *, rows: bool = False, pods: bool = True) -> Reading:
        """Return what some hooks read. ``rows``: with the plugin's columns on the axis of the rows that are asked
        about, and so with all columns of the plugin. ``pods`` False: without pods, if these are checked in another
        way."""
        hooks = list(hooks)
        # A hook that does not say what it reads may read any column of its plugin, but not those of others: these are
        # private.
        plugins = frozenset(hook.plugin for hook in hooks if hook.reads is None or (rows and ROWS in hook.reads))
        words = frozenset(word for hook in hooks for word in hook.reads or ())
        return cls(plugins, words if pods else words - {PODS})

    def covers(self, column: str) -> bool:
        """Return True if a column of a plugin is read."""
        return column.partition(".")[0] in self.plugins or column in self.words

    def columns(self, world: World) -> list[AnyColumn]:
        """Return the columns that are read."""
        # By the names of columns that exist, because plugins create their columns when they are opened.
        there = tuple(world.columns)
        # Kept by the names of columns that exist, because plugins create columns as they open, and few sets of names
        # occur.
        named = self._named.get(there)
        if named is None:
            named = self._named[there] = list(filter(self.covers, there))
        found = [world.columns[name] for name in named]
        for word, axis, table in _WHOLE_TABLES:
            if word in self.words:
                found += (*table(world.tables).columns.values(), *world.columns_on(axis))
        # The clock as a ground ends every answer at the next cycle. That is meant: a hook that reads it must be asked
        # again.
        if NOW in self.words:
            found.append(world.now)
        return found

    def rests_on(self, world: World) -> Ground:
        """Return what answers rest on besides those rows."""
        return ground(*self.columns(world))


#: Words of ``reads=`` that mean every row of a table, with its axis and the table.
_WHOLE_TABLES = (
    (PODS, "task", attrgetter("tasks")),
    (QUEUES, "queue", attrgetter("queues")),
    (JOBS, "job", attrgetter("jobs")),
)


#: Forms of hooks that are given a class and no single task.
_ABOUT_CLASSES = frozenset({"class", "class_node", "of_tasks"})


class Unused(NamedTuple):
    """Points at which an instance does not answer, and single methods that it does not use."""

    points: tuple[Question, ...] = ()
    hooks: tuple[str, ...] = ()

    @classmethod
    def of(cls, instance: object) -> Unused | None:
        """Return what an instance leaves unused, or None if it uses all that it has."""
        points, hooks = getattr(instance, "unused_points", ()), getattr(instance, "unused_hooks", ())
        # None and not an empty value: most plugins use all that they have, and their policy then has one wiring for all
        # sessions.
        return cls(tuple(points), tuple(hooks)) if points or hooks else None


# Without instances, so that it can be kept across sessions: which hooks a policy has depends on its text and on
# ``unused`` only.
class Wiring:
    """The hooks of a policy by point and tier. ``unused``: what instances leave unused, by position."""

    __slots__ = ("_calls", "_known", "_policy", "_tiers", "_unused")

    def __init__(self, policy: Policy, unused: Mapping[int, Unused]) -> None:
        self._policy, self._unused = policy, unused
        self._tiers: dict[Question, list[list[Wire]]] = {}
        self._calls: dict[Question | AnyForms, list[list[Call]]] = {}
        self._known: dict[Hashable, Any] = {}

    def of(self, position: int, point: Question) -> list[Wire]:
        """Return the hooks of one plugin at a point."""
        unused = self._unused.get(position, Unused())
        # Before the spec is read, because an instance knows better than its class where it has nothing to say.
        if point in unused.points:
            return []
        spec = self._policy.options[position].spec
        found = []
        for form, reads, several, attribute in spec.hooks_at(point):
            # A hook that is given a class cannot tell its tasks apart. Of one that is given a job or a task only a
            # table says so.
            equal = form in _ABOUT_CLASSES or attribute in spec.equal_answers
            but_for = equal or attribute in spec.equal_but_for_columns
            if attribute not in unused.hooks:
                found.append(Wire(position, spec.name, point, form, reads, several, attribute, equal, but_for))
        return found

    def tiers(self, point: Question) -> list[list[Wire]]:
        """Return the hooks at a point by tier, without empty tiers."""
        found = self._tiers.get(point)
        if found is None:
            on = self._policy.plugins_at(point)
            tiers = ([wire for position in plugins for wire in self.of(position, point)] for plugins in on)
            found = self._tiers[point] = [tier for tier in tiers if tier]
        return found

    def calls(self, question: Question | AnyForms) -> list[list[Call]]:
        """Return what is called for a question, by tier."""
        found = self._calls.get(question)
        if found is None:
            points = (question,) if isinstance(question, Question) else question.points
            tiers = (tier for point in points for tier in self.tiers(point))
            forms = None if isinstance(question, Question) else question.forms
            found = [[wire.asked(question) for wire in tier if forms is None or wire.form in forms] for tier in tiers]
            self._calls[question] = found
        return found

    def at(self, *points: Question) -> list[Wire]:
        """Return all hooks at some points."""
        return [wire for point in points for tier in self.tiers(point) for wire in tier]

    def known(self, question: Hashable, find: Callable[[Callable[..., list[Wire]]], V]) -> V:
        """Return what ``find`` computes from ``at``, computed once."""
        found: V | None = self._known.get(question)
        if found is None:
            found = self._known[question] = find(self.at)
        return found
