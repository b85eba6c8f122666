"""Cards of a node and what is in use of each: what every kind of shared device has in common.

What is in use of D cards is an array (D, 5) of whole numbers. A kind is a ``Family``: it says which cards a node has,
what a pod asks, which cards it would get, and how that is written down on the pod.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from typing import NamedTuple, Protocol

import numpy as np
from msgspec import Struct

from pumice.columns.dtypes import I64, Bool
from pumice.framework.plugin.filter_result import Code, Unfit
from pumice.model.devices.shared_devices import DeviceAsk
from pumice.model.node import Node
from pumice.model.pod import Pod

#: What is in use of a card: by how many containers, memory, cores; of a card that is cut into instances, the number of
#: the group that it is cut by (from 1, 0 for none, -1 for two at odds) and a bit for each instance.
NUM, MEMORY, CORES, GROUP, INSTANCES = range(5)
COLUMNS = 5
#: Cards of a node that are looked at: a node that names more is not believed.
CARDS_MAX = 32
#: Memory, and what else a node says of a card.
AMOUNT_MAX = 1 << 40
BINPACK, SPREAD = "binpack", "spread"
_POINTS = 100.0


class Card(Struct, frozen=True):
    """What one card has, its name apart. ``count``: how many containers may share it; ``tag``: of a kind's own, such as
    the network that it is in."""

    count: int
    memory: int
    type: str = ""
    healthy: bool = True
    cores: int = 100
    tag: int | None = None


class Cards(Struct, frozen=True):
    """The cards of a node, in order. ``ids``: their names. ``mode``: how they are shared. ``problem``: why what the
    node says of them cannot be used; there are none then."""

    cards: tuple[Card, ...] = ()
    ids: tuple[str, ...] = ()
    mode: str = ""
    problem: str = ""


class Part(Struct, frozen=True):
    """What a container has of a card, by its place among the cards of the node."""

    card: int
    memory: int
    cores: int = 0
    group: int = 0
    instance: int = 0

    def add_to(self, used: I64, sign: int = 1) -> None:
        """Count it in what is in use (D, 5), or count it no more."""
        used[self.card, NUM] += sign
        used[self.card, MEMORY] += sign * self.memory
        used[self.card, CORES] += sign * self.cores
        if self.group:
            bit, bits = 1 << self.instance, int(used[self.card, INSTANCES])
            used[self.card, INSTANCES] = bits | bit if sign > 0 else bits & ~bit
            used[self.card, GROUP] = self.group if used[self.card, INSTANCES] else 0


class Placed(NamedTuple):
    """The parts that a pod gets, container by container, and how good that is: larger is better."""

    containers: tuple[tuple[Part, ...], ...]
    score: float = 0.0

    @property
    def parts(self) -> tuple[Part, ...]:
        return tuple(part for container in self.containers for part in container)


#: What a pod of one class asks of a kind, already read: two that are equal get the same.
Wanted = object


class Family(Protocol):
    """A kind of shared device."""

    @property
    def name(self) -> str:
        """Volcano's name of it."""
        ...

    @property
    def lock(self) -> str:
        """The annotation of a node that says that somebody is being given some of it."""
        ...

    @property
    def question(self) -> Hashable:
        """What stands for all that ``cards_of`` rests on beside the node."""
        ...

    def cards_of(self, node: Node) -> Cards | None:
        """What a node has; None where it says nothing of it."""
        ...

    def asked(self, ask: DeviceAsk) -> Wanted | None:
        """What a pod asks; None for nothing."""
        ...

    def ids_barred(self, wanted: Wanted, cards: Cards) -> Bool | None:
        """Cards that a pod does not want by their names (D,); None for none."""
        ...

    def place(self, wanted: Wanted, cards: Cards, used: I64, barred: Bool, policy: str) -> Placed | Unfit:
        """What a pod would get of cards of which so much is in use and which are not barred for it. Names of cards
        decide nothing here."""
        ...

    def score(self, placed: Placed, cards: Cards, used: I64) -> float:
        """How good the cards are for it beside what ``Placed`` says."""
        ...

    def had(self, annotations: Mapping[str, str], pod: Pod, wanted: Wanted, cards: Cards) -> Placed:
        """What a pod has by its annotations; what cannot be read, or names no card of the node, is left out."""
        ...

    def said(self, placed: Placed, cards: Cards, node: str, now: float) -> dict[str, str]:
        """The annotations that say what it got."""
        ...


NOTHING = Placed(())


def unfit(reason: str, code: Code = Code.UNSCHEDULABLE) -> Unfit:
    """Why a pod does not fit."""
    return Unfit(reason, code)


def as_both(now: I64, soon: I64) -> I64:
    """What is in use where something must fit beside those that are there now and beside those that will be. (D, 5)."""
    found: I64 = np.maximum(now, soon)
    found[:, INSTANCES] = now[:, INSTANCES] | soon[:, INSTANCES]
    at_odds = (now[:, GROUP] != soon[:, GROUP]) & (now[:, GROUP] != 0) & (soon[:, GROUP] != 0)
    found[at_odds, GROUP] = -1
    return found


def card_score(policy: str, memory: int, used: Sequence[int]) -> float:
    """How good a card is with so much in use of it (5,): packed full for binpack, idle for spread; 0 to 100."""
    if memory <= 0:
        return 0.0
    if policy == BINPACK:
        return _POINTS * used[MEMORY] / memory
    return _POINTS if policy == SPREAD and used[NUM] == 0 else 0.0
