"""Which actions and plugins there are, by dialect. Literal tables of names; nothing registers itself."""

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
    """``only_for_waiting``: it moves nothing where no job waits."""

    name: str
    run: Callable[..., None]
    arguments: Mapping[str, Argument]
    only_for_waiting: bool = False


def action_spec(name: str, run: Callable[..., None], *, only_for_waiting: bool = False) -> ActionSpec:
    """An action is a function ``(ssn, *, argument=default)``."""
    keywords = [p for p in inspect.signature(run).parameters.values() if p.kind is inspect.Parameter.KEYWORD_ONLY]
    return ActionSpec(
        name, run, {p.name: Argument(p.name, spelled(p.annotation), p.default) for p in keywords}, only_for_waiting
    )


def actions_at(places: Mapping[str, str], also_when_idle: tuple[str, ...] = ()) -> Mapping[str, ActionSpec]:
    """Actions by name, each imported when a policy names it. ``also_when_idle``: those that may move something where no
    job waits."""
    return OnDemand(places, lambda name, run: action_spec(name, run, only_for_waiting=name not in also_when_idle))


def plugins_at(
    places: Mapping[str, str], equal_answers: Mapping[str, tuple[str, ...]] | None = None
) -> Mapping[str, PluginSpec]:
    """Plugins by name, each imported when a policy names it. ``equal_answers``: of some plugins, the methods that
    answer equally for equal jobs and their tasks."""

    def spec(name: str, target: Callable[..., Any]) -> PluginSpec:
        return replace(plugin_specs((target,))[name], equal_answers=frozenset((equal_answers or {}).get(name, ())))

    return OnDemand(places, spec)


def plugin_specs(targets: Iterable[Callable[..., Any]]) -> dict[str, PluginSpec]:
    """What ``@plugin`` noted of each function or class, by the plugin's name."""
    specs: list[PluginSpec] = [getattr(target, PLUGIN_ATTRIBUTE) for target in targets]
    return {spec.name: spec for spec in specs}


def _over(more: Mapping[str, V], known: Mapping[str, V]) -> Mapping[str, V]:
    """Both, ``more`` first; values of neither are looked at. Nobody writes to what is declared a Mapping."""
    return ChainMap(cast(MutableMapping[str, V], more), cast(MutableMapping[str, V], known))


Switches = Mapping[str, bool]  # stem -> on


class Dialect(Struct, frozen=True):
    """A policy language: its words, and what the core does not know because languages differ in it.

    ``name`` is what a conf file calls it, ``default_actions`` are run where a conf names none (empty: it must),
    and ``default_tiers`` apply where it has no ``tiers``, written as in a conf file. ``builds_on``: the name of the
    dialect whose plugins have plain names in this one too. ``scheduler`` is what pods call the scheduler of the
    dialect's home, ``default_queue`` the queue of those who name none there.
    ``missing`` maps names that the dialect's home knows, but this version does
    not have, to a sentence that says so. ``features``: switches that gate no point but are an argument of the plugins
    that have one of that name (in lower case), with their defaults. ``conflict`` says what is wrong with the plugins of
    one tier together, empty for nothing. ``sections``: further keys of a conf file, each with what is wrong with it.

    ``nothing_waits``: whether a session on these tables would move nothing, as long as its actions only work for jobs
    that wait. ``opens`` is called before the plugins of a session are opened, ``closes`` when they have been told that
    it ends, for what should be written; ``notices`` gives each waiting pod's reason for an outcome, ``nominations``
    those of them that nominate a pod to a node, and costs no more than these.
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
    default_tiers: tuple[Mapping[str, Any], ...] = ()
    builds_on: str = ""
    scheduler: str = ""
    default_queue: str = "default"
    sections: Mapping[str, Callable[[Mapping[str, Any]], Iterator[str]]] = {}

    @property
    def switches(self) -> Switches:
        """Every switch of a conf file with its default, by stem (``JobOrder`` for ``enableJobOrder``)."""
        return {point.switch: point.default_on for point in self.points.values() if point.switch} | dict(self.features)


#: The prefix of plugins that are Pumice's own and belong to no dialect.
OURS = "ours"


class Registry:
    """Look-ups by dialect and name. ``other/name`` reaches into another dialect. ``ours`` are plugins that neither
    reference has: ``ours/name`` names one, and so does a plain name that the dialect does not have."""

    def __init__(self, dialects: Mapping[str, Dialect], ours: Mapping[str, PluginSpec] | None = None) -> None:
        self.dialects, self.ours = dialects, ours or {}

    def with_plugins(self, dialect: str, targets: Iterable[Callable[..., Any]]) -> Registry:
        """The same registry with more plugins in one dialect."""
        own = self.dialects[dialect]
        extended = replace(own, plugins=_over(plugin_specs(targets), own.plugins))
        return Registry(_over({dialect: extended}, self.dialects), self.ours)

    def _home(self, dialect: str, name: str) -> tuple[Dialect, str]:
        other, slash, rest = name.partition("/")
        if slash and other in self.dialects:
            return self.dialects[other], rest
        return self.dialects[dialect], name

    def home(self, dialect: str, name: str) -> Dialect:
        """The dialect that a name is of."""
        return self._home(dialect, name)[0]

    def action(self, dialect: str, name: str) -> ActionSpec | None:
        home, plain = self._home(dialect, name)
        return home.actions.get(plain)

    def plugin(self, dialect: str, name: str) -> PluginSpec | None:
        home, plain = self._home(dialect, name)
        prefix, _, rest = name.partition("/")
        base = self.dialects[home.builds_on].plugins if home.builds_on else {}
        return home.plugins.get(plain) or base.get(plain) or self.ours.get(rest if prefix == OURS else plain)

    def why_missing(self, dialect: str, name: str) -> str | None:
        """The sentence for a name that exists in the dialect but not yet here."""
        home, plain = self._home(dialect, name)
        return home.missing.get(plain)

    def actions(self, dialect: str) -> list[str]:
        return sorted(self.dialects[dialect].actions)

    def plugins(self, dialect: str) -> list[str]:
        own = self.dialects[dialect]
        base = self.dialects[own.builds_on].plugins if own.builds_on else {}
        return sorted({*own.plugins, *base, *self.ours})
