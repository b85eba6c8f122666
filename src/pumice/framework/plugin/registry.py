"""Actions and plugins by dialect: literal tables of names. Nothing registers itself."""

from __future__ import annotations

import inspect
from collections import ChainMap
from collections.abc import Callable, Iterable, Iterator, Mapping, MutableMapping
from typing import Any, TypeVar, cast

from msgspec import Struct, field
from msgspec.structs import replace

from pumice.columns.ledger import Accounting
from pumice.columns.tables import Tables
from pumice.framework.plugin.on_demand import OnDemand
from pumice.framework.plugin.plugin import PLUGIN_ATTRIBUTE, Argument, PluginSpec
from pumice.framework.plugin.point import Question, spelled
from pumice.model.decisions import PodNotice, Writes

V = TypeVar("V")


class ActionSpec(Struct, frozen=True):
    """An action. ``only_for_waiting``: it moves nothing if no job waits."""

    name: str
    run: Callable[..., None]
    arguments: Mapping[str, Argument]
    only_for_waiting: bool = False


def action_spec(name: str, run: Callable[..., None], *, only_for_waiting: bool = False) -> ActionSpec:
    """Return an action for a function ``(ssn, *, argument=default)``."""
    # The signature is the only list of arguments: a conf file, its checks and the documentation cannot disagree with
    # it.
    keywords = [p for p in inspect.signature(run).parameters.values() if p.kind is inspect.Parameter.KEYWORD_ONLY]
    return ActionSpec(
        name, run, {p.name: Argument(p.name, spelled(p.annotation), p.default) for p in keywords}, only_for_waiting
    )


def actions_at(places: Mapping[str, str], also_when_idle: tuple[str, ...] = ()) -> Mapping[str, ActionSpec]:
    """Return actions by name, each imported when a policy names it. ``also_when_idle``: those that may move something
    although no job waits."""
    return OnDemand(places, lambda name, run: action_spec(name, run, only_for_waiting=name not in also_when_idle))


def plugins_at(
    places: Mapping[str, str],
    equal_answers: Mapping[str, tuple[str, ...]] | None = None,
    equal_but_for_columns: Mapping[str, tuple[str, ...]] | None = None,
) -> Mapping[str, PluginSpec]:
    """Return plugins by name, each imported when a policy names it. ``equal_answers``: for some plugins, the methods
    that answer equally for equal jobs and their tasks. ``equal_but_for_columns``: those that do so if the jobs also
    have equal values in the columns of jobs that the method reads by name."""

    def spec(name: str, target: Callable[..., object]) -> PluginSpec:
        equal, but_for = ((table or {}).get(name, ()) for table in (equal_answers, equal_but_for_columns))
        found = plugin_specs((target,))[name]
        return replace(found, equal_answers=frozenset(equal), equal_but_for_columns=frozenset(but_for))

    return OnDemand(places, spec)


def plugin_specs(targets: Iterable[Callable[..., object]]) -> dict[str, PluginSpec]:
    """Return what ``@plugin`` left on each function or class, by the plugin's name."""
    specs: list[PluginSpec] = [getattr(target, PLUGIN_ATTRIBUTE) for target in targets]
    return {spec.name: spec for spec in specs}


def tables_over(more: Mapping[str, V], known: Mapping[str, V]) -> Mapping[str, V]:
    """Return both tables as one, ``more`` before ``known``, without reading a value of either."""
    # A ChainMap wants mutable maps, but nothing writes to what is declared as Mapping. Merging would import each value.
    return ChainMap(cast(MutableMapping[str, V], more), cast(MutableMapping[str, V], known))


Switches = Mapping[str, bool]  # stem -> on


class Dialect(Struct, frozen=True):
    """A policy language: its words, and what the core does not know because languages differ in it.

    ``name``: how a conf file calls it. ``default_actions``: run if a conf names none (empty: it must name some).
    ``default_tiers``: used if it has no ``tiers``, written as in a conf file. ``builds_on``: name of the dialect whose
    plugins have plain names in this one too. ``scheduler``: how pods call the scheduler of the reference.
    ``default_queue``: queue of pods that name none there. ``missing``: names that the reference has and this version
    does not, each with a sentence that says so. ``features``: switches that belong to no point but are an argument of
    plugins with one of that name (in lower case), with their defaults. ``conflict``: returns what is wrong with the
    plugins of one tier together, empty for nothing. ``sections``: further keys of a conf file, each with a function
    that returns what is wrong with it.

    ``nothing_waits``: returns True if a session on these tables would move nothing, as long as its actions only work
    for waiting jobs. ``opens``: called before plugins of a session are opened. ``closes``: called after they have been
    notified of the end; returns what should be written. ``notices``: yields the reason of each waiting pod for an
    outcome. ``nominations``: yields those of them that nominate a pod to a node, at no greater cost.
    """

    actions: Mapping[str, ActionSpec] = {}
    plugins: Mapping[str, PluginSpec] = {}
    missing: Mapping[str, str] = {}
    points: Mapping[str, Question] = {}
    features: Switches = {}
    conflict: Callable[[Mapping[str, Switches]], str] = lambda plugins: ""
    accounting: Accounting = field(default_factory=Accounting)
    nothing_waits: Callable[[Tables], bool] = lambda tables: False
    opens: Callable[[Any], None] = lambda ssn: None
    closes: Callable[[Any], Writes] = lambda ssn: Writes()
    notices: Callable[[Any], Iterator[PodNotice]] = lambda outcome: iter(())
    nominations: Callable[[Any], Iterator[PodNotice]] = lambda outcome: iter(())
    name: str = ""
    default_actions: tuple[str, ...] = ()
    default_tiers: tuple[Mapping[str, object], ...] = ()
    builds_on: str = ""
    scheduler: str = ""
    default_queue: str = "default"
    sections: Mapping[str, Callable[[Mapping[str, object]], Iterator[str]]] = {}

    @property
    def switches(self) -> Switches:
        """Every switch of a conf file with its default, by stem (``JobOrder`` for ``enableJobOrder``)."""
        return {point.switch: point.default_on for point in self.points.values() if point.switch} | dict(self.features)


#: The prefix of Pumice's own plugins, which belong to no dialect.
OURS = "ours"


class Registry:
    """Actions and plugins by dialect and name. ``other/name`` is a name of another dialect. ``ours``: plugins that
    neither reference has; ``ours/name`` names one, and so does a plain name that the dialect does not have."""

    def __init__(self, dialects: Mapping[str, Dialect], ours: Mapping[str, PluginSpec] | None = None) -> None:
        self.dialects, self.ours = dialects, ours or {}

    def with_plugins(self, dialect: str, targets: Iterable[Callable[..., object]]) -> Registry:
        """Return a registry with more plugins in one dialect."""
        own = self.dialects[dialect]
        # A user's plugin may replace a built-in one of its name. A registry is a value: the one without it is still in
        # use.
        extended = replace(own, plugins=tables_over(plugin_specs(targets), own.plugins))
        return Registry(tables_over({dialect: extended}, self.dialects), self.ours)

    def with_plugins_for_all(self, targets: Iterable[Callable[..., object]]) -> Registry:
        """Return a registry with more plugins that every dialect finds by a plain name, unless it has one of that
        name."""
        return Registry(self.dialects, tables_over(plugin_specs(targets), self.ours))

    def _home(self, dialect: str, name: str) -> tuple[Dialect, str]:
        """Return the dialect to which a name belongs, and the name without a prefix."""
        other, slash, rest = name.partition("/")
        # Other prefixes are left in the name, as in ``ours/name``.
        if slash and other in self.dialects:
            return self.dialects[other], rest
        return self.dialects[dialect], name

    def home(self, dialect: str, name: str) -> Dialect:
        """Return the dialect to which a name belongs."""
        return self._home(dialect, name)[0]

    def action(self, dialect: str, name: str) -> ActionSpec | None:
        """Return an action, or None if the dialect has none of that name."""
        home, plain = self._home(dialect, name)
        return home.actions.get(plain)

    def plugin(self, dialect: str, name: str) -> PluginSpec | None:
        """Return a plugin, or None if neither the dialect, nor the one that it builds on, nor Pumice has one of that
        name."""
        home, plain = self._home(dialect, name)
        prefix, _, rest = name.partition("/")
        base = self.dialects[home.builds_on].plugins if home.builds_on else {}
        # The dialect's own plugin goes before one of Pumice's with that name, so that a file of the reference keeps its
        # meaning.
        return home.plugins.get(plain) or base.get(plain) or self.ours.get(rest if prefix == OURS else plain)

    def why_missing(self, dialect: str, name: str) -> str | None:
        """Return the sentence for a name that the dialect has in its reference but not here, or None."""
        home, plain = self._home(dialect, name)
        return home.missing.get(plain)

    def actions(self, dialect: str) -> list[str]:
        """Return the names of the dialect's actions, sorted."""
        return sorted(self.dialects[dialect].actions)

    def plugins(self, dialect: str) -> list[str]:
        """Return the names of all plugins that have plain names in a dialect, sorted."""
        own = self.dialects[dialect]
        base = self.dialects[own.builds_on].plugins if own.builds_on else {}
        # Sorted, since suggestions and error texts list them, and the order of a set differs between processes.
        return sorted({*own.plugins, *base, *self.ours})
