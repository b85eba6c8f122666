"""How a plugin breaks its contract."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

_SHOWN_MAX = 400


class Breach(Exception):
    """A plugin broke a rule. ``rule``: one word. ``where``: the hook as ``Class.method at point`` (or an argument).
    ``facts``: what was seen, by label. ``advice``: what to write."""

    def __init__(
        self, rule: str, plugin: str, where: str, problem: str, facts: Iterable[tuple[str, Any]], advice: str
    ) -> None:
        self.rule, self.plugin, self.where, self.problem, self.advice = rule, plugin, where, problem, advice
        self.facts = tuple((label, shown(value)) for label, value in facts)
        super().__init__(self.text)

    @property
    def same(self) -> tuple[str, str, str]:
        """Equal for breaches of one rule by one hook."""
        return self.rule, self.plugin, self.where

    @property
    def text(self) -> str:
        width = max((len(label) for label, _ in self.facts), default=0)
        lines = [f"  {label:{width}}  {value}" for label, value in self.facts]
        return "\n".join([f"plugin {self.plugin}, {self.where}: {self.problem}", *lines, self.advice])


def shown(value: Any) -> str:
    """Return a value on one line."""
    text = " ".join((value if isinstance(value, str) else repr(value)).split())
    return text if len(text) <= _SHOWN_MAX else text[:_SHOWN_MAX] + "…"
