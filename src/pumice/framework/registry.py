"""Which actions and plugins there are, by dialect. A literal table filled once at start; nothing registers itself."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from pumice.framework.plugin import PLUGIN_ATTRIBUTE, Argument, PluginSpec


@dataclass(frozen=True, slots=True)
class ActionSpec:
    """``only_for_waiting``: it moves nothing where no job waits."""

    name: str
    run: Callable[..., None]
    arguments: Mapping[str, Argument]
    only_for_waiting: bool = False


def action_spec(name: str, run: Callable[..., None], *, only_for_waiting: bool = False) -> ActionSpec:
    """An action is a function ``(ssn, *, argument=default)``."""
    keywords = [p for p in inspect.signature(run).parameters.values() if p.kind is inspect.Parameter.KEYWORD_ONLY]
    return ActionSpec(
        name, run, {p.name: Argument(p.name, str(p.annotation), p.default) for p in keywords}, only_for_waiting
    )


@dataclass
class Dialect:
    """``missing`` maps names that the dialect's home knows, but this version does not have, to a sentence that says
    so."""

    actions: dict[str, ActionSpec] = field(default_factory=dict)
    plugins: dict[str, PluginSpec] = field(default_factory=dict)
    missing: dict[str, str] = field(default_factory=dict)


class Registry:
    """Look-ups by dialect and name; ``other/name`` reaches into another dialect."""

    def __init__(self, dialects: Mapping[str, Dialect]) -> None:
        self.dialects = dict(dialects)

    def with_plugins(self, dialect: str, targets: Iterable[Callable[..., Any]]) -> Registry:
        """The same registry with more plugins in one dialect."""
        own = self.dialects[dialect]
        specs: dict[str, PluginSpec] = {}
        for target in targets:
            spec: PluginSpec = getattr(target, PLUGIN_ATTRIBUTE)
            specs[spec.name] = spec
        return Registry({**self.dialects, dialect: Dialect(own.actions, own.plugins | specs, own.missing)})

    def _home(self, dialect: str, name: str) -> tuple[Dialect, str]:
        other, slash, rest = name.partition("/")
        if slash and other in self.dialects:
            return self.dialects[other], rest
        return self.dialects[dialect], name

    def action(self, dialect: str, name: str) -> ActionSpec | None:
        home, plain = self._home(dialect, name)
        return home.actions.get(plain)

    def plugin(self, dialect: str, name: str) -> PluginSpec | None:
        home, plain = self._home(dialect, name)
        return home.plugins.get(plain)

    def why_missing(self, dialect: str, name: str) -> str | None:
        """The sentence for a name that exists in the dialect but not yet here."""
        home, plain = self._home(dialect, name)
        return home.missing.get(plain)

    def actions(self, dialect: str) -> list[str]:
        return sorted(self.dialects[dialect].actions)

    def plugins(self, dialect: str) -> list[str]:
        return sorted(self.dialects[dialect].plugins)
