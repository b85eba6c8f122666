"""Describe cards of a node and their use: what all kinds of shared devices have in common.

The use of D cards is an array (D, 5) of whole numbers. Each kind is a ``Family``, which knows the cards of a node, the
request of a pod, the cards that a pod would get, and the annotations for that.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from typing import NamedTuple, Protocol

import numpy as np
from msgspec import Struct

from pumice.columns.dtypes import I64, Bool
from pumice.framework.plugin.filter_result import Code, Unfit
from pumice.model.devices.shared_devices import DeviceAsk, Stage
from pumice.model.node import Node
from pumice.model.pod import Pod

#: Columns of the use of a card: containers, memory, cores. For a card that is split into instances also the number of
#: the group that it is split by (from 1, 0 for none, -1 for two that conflict), and a bit for each instance in use.
NUM, MEMORY, CORES, GROUP, INSTANCES = range(5)
COLUMNS = 5
#: Largest number of cards of one node. An annotation with more is taken for an error.
CARDS_MAX = 32
#: Largest amount of a card, such as memory.
#: Sums of so many such amounts fit into 64 bits.
AMOUNT_MAX = 1 << 40
BINPACK, SPREAD = "binpack", "spread"
_POINTS = 100.0


class Card(Struct, frozen=True):
    """A card without its name. ``count``: how many containers may share it. ``tag``: a number of the kind's own, such
    as its network."""

    count: int
    memory: int
    type: str = ""
    healthy: bool = True
    cores: int = 100
    tag: int | None = None


class Cards(Struct, frozen=True):
    """The cards of a node, in order. ``ids``: their names. ``mode``: how they are shared. ``problem``: why the node's
    description is invalid; there are no cards then."""

    cards: tuple[Card, ...] = ()
    ids: tuple[str, ...] = ()
    mode: str = ""
    problem: str = ""


class Part(Struct, frozen=True):
    """What a container has of a card; ``card`` is its index on the node. ``count``: how many containers."""

    card: int
    memory: int
    cores: int = 0
    group: int = 0
    instance: int = 0
    count: int = 1

    def add_to(self, used: I64, sign: int = 1) -> None:
        """Add the part to the use of cards (D, 5), or subtract it."""
        used[self.card, NUM] += sign * self.count
        used[self.card, MEMORY] += sign * self.memory
        used[self.card, CORES] += sign * self.cores
        if self.group:
            bit, bits = 1 << self.instance, int(used[self.card, INSTANCES])
            used[self.card, INSTANCES] = bits | bit if sign > 0 else bits & ~bit
            # A card with no instance in use may be split by another group.
            used[self.card, GROUP] = self.group if used[self.card, INSTANCES] else 0


class CardPlacement(NamedTuple):
    """The parts that a pod gets, by container, and the score of that: higher is better. ``peak``: what it holds at most
    at one time, None if that is all parts together."""

    containers: tuple[tuple[Part, ...], ...]
    score: float = 0.0
    peak: tuple[Part, ...] | None = None

    @property
    def parts(self) -> tuple[Part, ...]:
        """The parts of all containers."""
        return tuple(part for container in self.containers for part in container)

    @property
    def held(self) -> tuple[Part, ...]:
        """The parts that count as used on the node."""
        return self.parts if self.peak is None else self.peak


#: The request of a pod class for a kind of devices, in that kind's form. Equal requests get equal answers.
Wanted = object


class Family(Protocol):
    """A kind of shared device."""

    @property
    def name(self) -> str:
        """Volcano's name of the kind."""
        ...

    @property
    def lock(self) -> str:
        """Node annotation that is set while a pod is being given some of its cards."""
        ...

    @property
    def question(self) -> Hashable:
        """A value for all that ``cards_of`` depends on besides the node."""
        ...

    def cards_of(self, node: Node) -> Cards | None:
        """Return the cards of a node, or None if the node does not mention this kind."""
        ...

    def asked(self, ask: DeviceAsk) -> Wanted | None:
        """Return the request of a pod, or None if it has none."""
        ...

    def ids_excluded(self, wanted: Wanted, cards: Cards) -> Bool | None:
        """Return the cards that a pod rejects by name (D,), or None."""
        ...

    def place(self, wanted: Wanted, cards: Cards, used: I64, excluded: Bool, policy: str) -> CardPlacement | Unfit:
        """Return what a pod would get of these cards, given their use and the cards that are excluded. Names of cards
        have no effect."""
        ...

    def score(self, placed: CardPlacement, cards: Cards, used: I64) -> float:
        """Return the score of the cards for the pod, based on ``CardPlacement``."""
        ...

    def had(self, annotations: Mapping[str, str], pod: Pod, wanted: Wanted, cards: Cards) -> CardPlacement:
        """Return what a pod has according to its annotations, without entries that are invalid or name no card of the
        node."""
        ...

    def annotations(self, placed: CardPlacement, cards: Cards, node: str, now: float) -> dict[str, str]:
        """Return the annotations for what a pod got."""
        ...


NOTHING = CardPlacement(())


def unfit(reason: str, code: Code = Code.UNSCHEDULABLE) -> Unfit:
    """Return why a pod does not fit."""
    return Unfit(reason, code)


def as_both(now: I64, soon: I64) -> I64:
    """Return the larger of two uses of cards, for a placement that must fit beside both. Shape (D, 5)."""
    found: I64 = np.maximum(now, soon)
    # A maximum of bit sets would lose instances that only one of both has.
    found[:, INSTANCES] = now[:, INSTANCES] | soon[:, INSTANCES]
    at_odds = (now[:, GROUP] != soon[:, GROUP]) & (now[:, GROUP] != 0) & (soon[:, GROUP] != 0)
    found[at_odds, GROUP] = -1
    return found


def at_peak(containers: Sequence[tuple[Part, ...]], stages: Sequence[Stage]) -> tuple[Part, ...] | None:
    """Return what containers hold at most at one time of each card, or None if all of them run together."""
    if Stage.ONCE not in stages:
        return None
    staying, peak = dict[int, I64](), dict[int, I64]()
    instances: dict[tuple[int, int, int], None] = {}
    for parts, stage in zip(containers, stages, strict=True):
        # An init container ends before the next one starts, so it raises the peak and leaves nothing behind.
        room = staying if stage is not Stage.ONCE else {card: amounts.copy() for card, amounts in staying.items()}
        for part in parts:
            amounts = np.array([part.count, part.memory, part.cores], dtype=np.int64)
            room[part.card] = room.get(part.card, np.zeros(3, dtype=np.int64)) + amounts
            peak[part.card] = np.maximum(peak.get(part.card, room[part.card]), room[part.card])
            if part.group:
                instances[part.card, part.group, part.instance] = None
    found = [Part(card, memory, cores, count=count) for card, (count, memory, cores) in _listed(peak)]
    # Instances are named by bits of the card, which do not add up: each is listed, with no amount of its own.
    return (*found, *(Part(card, 0, 0, group, place, count=0) for card, group, place in instances))


def had_by_stage(containers: Sequence[tuple[Part, ...]], stages: Sequence[Stage]) -> CardPlacement:
    """Return what a pod has, given what its annotation lists by container.

    If the annotation does not list exactly the containers that ask for cards, it is not known which of them are init
    containers, and all of them count together.
    """
    found = tuple(parts for parts in containers if parts)
    return CardPlacement(found, peak=at_peak(found, stages) if len(found) == len(stages) else None)


def _listed(amounts: Mapping[int, I64]) -> list[tuple[int, list[int]]]:
    return [(card, each.tolist()) for card, each in sorted(amounts.items())]


def card_score(policy: str, memory: int, used: Sequence[int]) -> float:
    """Return the score of a card, 0 to 100, given its use (5,): high if full for binpack, high if idle for spread."""
    if memory <= 0:
        return 0.0
    if policy == BINPACK:
        return _POINTS * used[MEMORY] / memory
    return _POINTS if policy == SPREAD and used[NUM] == 0 else 0.0
