"""Check a plugin against its contract, on small clusters by seed.

from pumice.testing.check import check_plugin

def test_rack_pack() -> None:
    check_plugin(RackPack)
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from pumice.framework.plugin.plugin import PLUGIN_ATTRIBUTE
from pumice.framework.plugin.policy_file import Policy, read_policy
from pumice.framework.plugin.registry import Registry
from pumice.runtime.policy.languages import builtin_registry
from pumice.runtime.policy.user_plugins import with_plugins_of
from pumice.testing.checks.arguments import check_arguments
from pumice.testing.checks.breach import Breach
from pumice.testing.checks.shrink import shrunk, sketch
from pumice.testing.checks.walk import Start, Walk
from pumice.testing.clusters import Alter, Size, small_cluster
from pumice.testing.dialects import SURROUNDINGS, Surroundings

#: Plugins of Volcano of which each cluster has some.
BESIDE = SURROUNDINGS["volcano"].beside
SEEDS = range(40)
STEPS = 6
SIZE = Size()


@dataclass(slots=True)
class Checked:
    """What was checked: ``examples``, clusters by plugin; ``asked``, questions by hook."""

    examples: Counter[str] = field(default_factory=Counter)
    asked: Counter[str] = field(default_factory=Counter)


def check_plugin(
    *plugins: str | Callable[..., Any],
    arguments: Mapping[str, Any] | None = None,
    switches: Mapping[str, bool] | None = None,
    dialect: str = "volcano",
    beside: Sequence[str] | None = None,
    folder: str | Path | None = None,
    alter: Alter | None = None,
    seeds: Iterable[int] = SEEDS,
    steps: int = STEPS,
    size: Size = SIZE,
    values: bool = True,
    file_every: int = 3,
) -> Checked:
    """Check a plugin, or several together on the same clusters.

    Each seed is a cluster with ``steps`` changes, one after the other. After each, the hooks are asked all questions,
    and

    * an answer changes only if something in ``reads=`` of the hook has changed: the clock, pods, queues, jobs;
    * a question has no effect, and after any rollback or refusal every answer and every byte is as before;
    * rows are answered one by one as together, in any order, and as they will be with more tasks there;
    * whole cycles decide and report equally with and without a memo, and after the snapshot was saved and read (at one
      step of ``file_every``), and decide nothing by the clock before ``wakes_at()``;
    * an argument of a wrong type is one PolicyError, and the plugin works with every other value.

    ``plugins``: functions or classes under ``@plugin``, or names, of built-in plugins or of ``folder``'s. ``arguments``
    and ``switches``: as in a policy file. ``dialect``: volcano or kai, the language of the plugins and of the clusters.
    ``beside``: names of plugins of which each cluster has some, by default common ones. ``alter(object, dice)``: gives
    nodes, queues, groups and pods what the plugin reads: labels, annotations; it is also asked for another value when
    something should change. ``values``: try arguments with every value that a policy file may contain. Deterministic.
    Raises: AssertionError with the hook, what happened, the answers before and after, what to write, the seed, and the
    smallest cluster found that shows it.
    """
    around = SURROUNDINGS[dialect]
    registry = _registry(plugins, folder, dialect)
    among = tuple(around.beside if beside is None else beside)
    setting = _Setting(registry, _names(plugins), among, around.alter(alter), steps, size, dialect, around)
    arguments, switches = _of_one(plugins, arguments), _of_one(plugins, switches)
    setting = replace(setting, arguments=arguments, switches=switches, file_every=file_every)
    checked = Checked()
    for name in setting.plugins if values else ():
        _check_arguments(setting, name)
    for seed in seeds:
        _check_seed(setting, seed, checked)
    if not checked.asked:
        raise AssertionError(
            f"nothing was asked of {', '.join(setting.plugins)}: no hook at a point that is asked here"
        )
    return checked


def _registry(plugins: Sequence[str | Callable[..., Any]], folder: str | Path | None, dialect: str) -> Registry:
    registry = builtin_registry().with_plugins(dialect, [each for each in plugins if not isinstance(each, str)])
    return registry if folder is None else with_plugins_of(Path(folder), registry, dialect)


def _names(plugins: Sequence[str | Callable[..., Any]]) -> tuple[str, ...]:
    return tuple(each if isinstance(each, str) else getattr(each, PLUGIN_ATTRIBUTE).name for each in plugins)


def _of_one(plugins: Sequence[Any], given: Mapping[str, Any] | None) -> Mapping[str, Any]:
    if given and len(plugins) != 1:
        raise ValueError("arguments and switches are one plugin's: check it alone")
    return given or {}


class _Setting(Struct, frozen=True):
    """What is checked, and with which surroundings."""

    registry: Registry
    plugins: tuple[str, ...]
    beside: tuple[str, ...]
    alter: Alter | None
    steps: int
    size: Size
    dialect: str
    around: Surroundings
    arguments: Mapping[str, Any] = {}
    switches: Mapping[str, Any] = {}
    file_every: int = 3

    def policy(self, names: Sequence[str], dice: Random, arguments: Mapping[str, Any] | None = None) -> Policy:
        """Return a policy with these plugins in two tiers, in some order. Raises: PolicyError."""
        mixed = dice.sample(list(names), len(names))
        cut = dice.randint(0, len(mixed))
        tiers = [
            {"plugins": [self._entry(name, arguments) for name in some]} for some in (mixed[:cut], mixed[cut:]) if some
        ]
        actions = dice.choice(self.around.actions)
        return read_policy({"dialect": self.dialect, "actions": actions, "tiers": tiers}, self.registry)

    def _entry(self, name: str, arguments: Mapping[str, Any] | None) -> dict[str, Any]:
        if name not in self.plugins:
            return {"name": name}
        return {"name": name, **self.switches, "arguments": {**self.arguments, **(arguments or {})}}

    def walk(self, seed: str, some: Sequence[str], dice: Random, arguments: Mapping[str, Any] | None = None) -> Walk:
        """Return a walk under a policy with some of the plugins and some others. Raises: PolicyError."""
        beside = [name for name in self.beside if name not in self.plugins and dice.random() < _BESIDE]
        policy = self.policy([*some, *beside], dice, arguments)
        objects = (*small_cluster(dice, self.size, self.alter), *self.around.more)
        # Hooks have the name of their plugin, and a policy may name the language too: ``ours/reserve``.
        plain = tuple(name.rpartition("/")[2] for name in some)
        return Walk(Start(seed, policy, plain, objects, file_every=self.file_every), self.alter)


_TOGETHER = 0.92
_BESIDE = 0.5


def _check_seed(setting: _Setting, seed: int, checked: Checked) -> None:
    dice = Random(seed)
    some = [name for name in setting.plugins if len(setting.plugins) == 1 or dice.random() < _TOGETHER]
    if not some:
        return
    walk = setting.walk(str(seed), some, dice)
    try:
        walk.run(setting.steps)
    except Breach as breach:
        raise AssertionError(_report(walk, breach, setting, seed)) from None
    checked.asked.update(walk.tally.asked)
    checked.examples.update(dict.fromkeys(some, walk.tally.steps))


def _report(walk: Walk, breach: Breach, setting: _Setting, seed: int) -> str:
    """Return what is wrong, how to see it again, and a cluster that shows it."""
    found, start, changes = shrunk(walk, breach, setting.alter)
    names = ", ".join(f'"{name}"' for name in setting.plugins)
    policy = "; ".join(" ".join(option.spec.name for option in tier) for tier in start.policy.tiers if tier)
    happened = "".join(f"\n  then {change.text}" for change in changes)
    return (
        f"{found.text}\n\nAgain: check_plugin({names}, seeds=[{seed}])\nSeen under {policy} at {start.now:g} s in\n"
        f"{sketch(start.objects)}{happened}"
    )


def _check_arguments(setting: _Setting, name: str) -> None:
    only = replace(setting, plugins=(name,))
    spec = setting.registry.plugin(setting.dialect, name)
    assert spec is not None, name
    tried: list[int] = []

    def read(arguments: Mapping[str, Any]) -> None:
        only.policy([name], Random(0), arguments)

    def live(arguments: Mapping[str, Any]) -> None:
        tried.append(len(tried))
        only.walk(f"arguments {len(tried)}", [name], Random(len(tried)), arguments).glance()

    try:
        check_arguments(spec, read, live)
    except Breach as breach:
        raise AssertionError(breach.text) from None
