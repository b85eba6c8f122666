"""How many worlds ``pumice fuzz`` ran, and in how many of them pods were bound and evicted, by kind and language."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from pumice.framework.plugin.policy_file import DEFAULT_DIALECT
from pumice.sim.fuzz.case import FuzzCase
from pumice.sim.fuzz.play_result import PlayResult


@dataclass(slots=True)
class _Count:
    """Numbers of worlds: all, those in which pods were bound, and those in which some were evicted."""

    worlds: int = 0
    placing: int = 0
    evicting: int = 0

    def add(self, played: PlayResult) -> None:
        self.worlds += 1
        self.placing += played.binds > 0
        self.evicting += played.evictions > 0

    def to_json(self) -> dict[str, Any]:
        return {"worlds": self.worlds, "placing": self.placing, "evicting": self.evicting}

    def to_text(self) -> str:
        share = self.evicting / max(self.worlds, 1)
        return f"in {self.placing} pods were bound, in {self.evicting} ({share:.0%}) some were evicted"


@dataclass(slots=True)
class WorldCounts:
    """Counts of all worlds, and of those of each kind and language. What evictions prove depends on these counts: a law
    about evictions holds in every world without one."""

    all: _Count = field(default_factory=_Count)
    by_kind: dict[str, _Count] = field(default_factory=dict)

    def add(self, case: FuzzCase, played: PlayResult) -> None:
        """Count a world."""
        name = f"{case.kind} {case.conf.get('dialect', DEFAULT_DIALECT)}"
        for each in (self.all, self.by_kind.setdefault(name, _Count())):
            each.add(played)

    def to_json(self) -> dict[str, Any]:
        """Return the counts as a JSON object."""
        kinds = {name: count.to_json() for name, count in sorted(self.by_kind.items())}
        return {**self.all.to_json(), "kinds": kinds}

    def to_text(self, broken: str) -> str:
        """Return a line about all worlds, and one about each kind if there are several. ``broken``: what of laws."""
        lines = [f"{self.all.worlds} worlds, {broken}; {self.all.to_text()}"]
        if len(self.by_kind) > 1:
            lines += [
                f"  {name}: {count.worlds} worlds; {count.to_text()}" for name, count in sorted(self.by_kind.items())
            ]
        return "\n".join(lines)
