"""A world by seed: objects, a policy and faults, as a value that can be saved, reduced and run again."""

from __future__ import annotations

import traceback
from collections.abc import Callable, Mapping, Sequence
from enum import StrEnum
from math import inf
from typing import Any, Self

from msgspec import Struct

from pumice.framework.plugin.policy_file import DEFAULT_DIALECT, Policy, read_policy
from pumice.framework.plugin.registry import Registry
from pumice.model.manifest import Decoder
from pumice.model.manifest.reading.fields import choice, maybe_whole, shown, table, tables, wrong
from pumice.model.quantity import INT64_MAX
from pumice.sim.faults import FaultPlan
from pumice.sim.fuzz.clusters import Raw, draw_objects
from pumice.sim.fuzz.confs import Conf, draw_conf
from pumice.sim.fuzz.dice import Dice
from pumice.sim.fuzz.kai_clusters import draw_kai_conf, draw_kai_objects
from pumice.sim.fuzz.play_result import PlayResult
from pumice.sim.fuzz.reserved import draw_reserved_objects, draw_reserving_conf
from pumice.sim.fuzz.sizes import LAST_ARRIVAL_S, TINY, Size, draw_size
from pumice.sim.fuzz.storms import draw_storm, play_storm
from pumice.sim.laws.safety import LawBroken
from pumice.sim.run import simulate
from pumice.sim.scenes.manifests import scene_of
from pumice.sim.scenes.scene import Scene
from pumice.sim.settings import SimSettings
from pumice.sim.world import Ending

QUIET_AFTER_S = LAST_ARRIVAL_S + 200.0
#: Seconds after which a world ends. Policies that wait for an hour would wake forever if a job waits in vain.
UNTIL_S = QUIET_AFTER_S + 1000.0
#: Deciding cycles in a row in which no job arrives or ends. More means that evictions never end.
CIRCLES_MAX = 200
#: One world of so many asks in every cycle why jobs wait. No law is about it, and it costs a tenth of a world.
_ASKS_WHY_EVERY = 10
_MIXES = 1  # a separate generator, so that a world of a mixed run is that of its seed in a run of its kind
#: Seconds in which a tiny world has faults. Each fault costs several cycles.
_TINY_QUIET_AFTER_S = 150.0
#: Possible faults, with their rates.
_FAULTS: dict[str, Sequence[float]] = {
    "refused_share": (0.1, 0.3),
    "evict_refused_share": (0.1, 0.5),
    "late_share": (0.2, 0.5),
    "node_gone_every_s": (100.0, 200.0),
    "pod_deleted_every_s": (60.0, 100.0),
    "pod_killed_every_s": (60.0, 100.0),
    "redelivered_every_s": (40.0, 100.0),
    "restart_every_s": (60.0, 150.0),
    "api_gone_every_s": (100.0, 200.0),
    "queued_max_s": (3.0, 20.0),
    "node_cordoned_every_s": (50.0, 100.0),
}


class Kind(StrEnum):
    """What worlds are about. Each kind has a generator, and laws that it was made for."""

    CROWDED = "crowded"  # a full cluster, any policy, faults
    STORM = "storm"  # gangs that fit nowhere before one of another tenant
    RESERVED = "reserved"  # room is reserved, and estimates hold


#: Kinds of a mixed run with their languages, each as often as it is listed. Storms evict most often.
_MIXED = (
    *((Kind.CROWDED, "volcano"), (Kind.CROWDED, "kai")) * 6,
    *((Kind.STORM, "volcano"), (Kind.STORM, "kai")) * 4,
    (Kind.RESERVED, "volcano"),
)


class FuzzCase(Struct, frozen=True):
    """A world. ``faults``: fields of a ``FaultPlan``, none for a world without faults."""

    seed: int
    conf: Conf
    objects: tuple[Raw, ...]
    faults: Mapping[str, float]
    kind: Kind = Kind.CROWDED

    def to_json(self) -> dict[str, Any]:
        found = {"seed": self.seed, "conf": self.conf, "faults": dict(self.faults), "objects": list(self.objects)}
        return found | {"kind": str(self.kind)}

    @classmethod
    def from_json(cls, found: object) -> Self:
        """Return the case in a JSON document. Raises: ValueError if it has none."""
        if not isinstance(found, dict):
            raise ValueError(f"found {shown(found)}, wanted an object")
        seed, faults = maybe_whole(found, "seed", "", 0, INT64_MAX), table(found, "faults", "")
        if seed is None:
            raise wrong(found, "seed", "", "an integer from 0")
        known = set(FaultPlan.__struct_fields__)
        if unknown := faults.keys() - known:
            raise ValueError(f"faults: found {sorted(unknown)}, wanted of {sorted(known)}")
        for name, value in faults.items():
            # Python's JSON has infinite numbers, and one that is not a number.
            if not isinstance(value, int | float) or not 0 <= value < inf:
                raise wrong(faults, name, "faults", "a number from 0 on")
        kind = Kind(choice(found, "kind", "", tuple(Kind), Kind.CROWDED))
        return cls(seed, table(found, "conf", ""), tuple(tables(found, "objects", "")), faults, kind)


def draw_mixed(seed: int, registry: Registry) -> FuzzCase:
    """Return the case of a seed, of any kind and in any language that has it."""
    kind, dialect = Dice(seed, _MIXES).one(_MIXED)
    return draw(seed, registry, dialect=dialect, kind=kind)


def draw(
    seed: int,
    registry: Registry,
    confs: Sequence[Conf] = (),
    faults: Mapping[str, float] | None = None,
    *,
    dialect: str = DEFAULT_DIALECT,
    kind: Kind = Kind.CROWDED,
    size: Size | None = None,
) -> FuzzCase:
    """Return the case of a seed. ``confs``: policies to draw from, instead of any in a ``dialect``. ``faults``: the
    faults, instead of any. ``size``: the size, instead of any. These are for crowded worlds."""
    dice = Dice(seed)
    if kind is Kind.STORM:
        policy, made = draw_storm(dice, dialect)
        return FuzzCase(seed, policy, tuple(made), {}, kind)
    if kind is Kind.RESERVED:
        return FuzzCase(seed, draw_reserving_conf(dice), tuple(draw_reserved_objects(dice)), {}, kind)
    size = size or draw_size(dice)
    conf = dice.one(confs) if confs else None
    if (dialect if conf is None else conf.get("dialect")) == "kai":
        kai_objects, drawn = draw_kai_objects(dice, size), draw_kai_conf(dice, registry)
        return FuzzCase(seed, conf or drawn, tuple(kai_objects), _faults(dice, size) if faults is None else faults)
    tree = dice.chance(0.25) if conf is None else _has_tree(conf)
    groups = dice.chance(0.3)
    if conf is None:
        conf = draw_conf(dice, registry, tree=tree, groups=groups)
    actions = [name.strip() for name in str(conf.get("actions", "")).split(",")]
    objects = draw_objects(dice, size, actions, tree=tree, groups=groups)
    return FuzzCase(seed, conf, tuple(objects), _faults(dice, size) if faults is None else faults)


def _faults(dice: Dice, size: Size) -> dict[str, float]:
    """Return faults: some of many in most worlds, one or two of them in three of ten tiny worlds."""
    if size is not TINY:
        some = dice.chance(0.7)
        return {name: dice.one(often) for name, often in _FAULTS.items() if dice.chance(0.25)} if some else {}
    if not dice.chance(0.3):
        return {}
    names = dice.shuffled(list(_FAULTS))[: dice.number(1, 2)]
    return {"quiet_after_s": _TINY_QUIET_AFTER_S, **{name: dice.one(_FAULTS[name]) for name in names}}


def _has_tree(conf: Conf) -> bool:
    tiers = conf.get("tiers") or []
    return any(entry.get("enableHierarchy") for tier in tiers for entry in tier.get("plugins") or [])


def play(case: FuzzCase, registry: Registry) -> PlayResult:
    """Run a world from beginning to end.

    Raises: PolicyError for an invalid policy, ManifestError for an invalid object.
    """
    policy = read_policy(case.conf, registry)
    decoder = Decoder()
    decoded = [decoder.decode(raw) for raw in case.objects]
    if case.kind is Kind.STORM:
        return _or_fault(lambda: play_storm(decoded, policy))
    return _or_fault(lambda: _simulated(case, scene_of(decoded), policy))


def _or_fault(world: Callable[[], PlayResult]) -> PlayResult:
    """Return the result of a world, or the fault of the program that ends it."""
    try:
        return world()
    except LawBroken as broken:
        return PlayResult(str(broken))
    except Exception as error:  # whatever it is, it is a finding
        place = traceback.extract_tb(error.__traceback__)[-1]
        return PlayResult(f"{type(error).__name__}: {error} ({place.name}, line {place.lineno})")


def _simulated(case: FuzzCase, scene: Scene, policy: Policy) -> PlayResult:
    """Simulate a world to its end. Raises: LawBroken."""
    plan = FaultPlan(**{"quiet_after_s": QUIET_AFTER_S, **case.faults}) if case.faults else None
    settings = SimSettings(
        until=UNTIL_S,
        seed=case.seed,
        faults=plan,
        check_laws=True,
        circles_max=CIRCLES_MAX,
        try_alone=False,  # no law is about it, and it costs more than the world
        asks_why=case.seed % _ASKS_WHY_EVERY == 0,
        estimates_hold=case.kind is Kind.RESERVED,
    )
    ran = simulate(scene, policy, settings)
    if ran.result.ending is Ending.CIRCLES:
        return PlayResult(f"S8: {CIRCLES_MAX} cycles in a row decided something, and no job came or ended")
    return PlayResult("", ran.result.binds, ran.result.evictions)
