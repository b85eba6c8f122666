"""Share NPUs by memory templates, one kind per word of the configuration (HAMi Ascend).

Source: Volcano ascend/hami device.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

import numpy as np
from msgspec import Struct

from pumice.columns.dtypes import I64, Bool
from pumice.framework.plugin.filter_result import Code, Unfit
from pumice.model.devices import shared_devices as words
from pumice.model.devices.npus import listed_npus
from pumice.model.devices.shared_devices import DeviceAsk, Limits, Stage
from pumice.model.node import Node
from pumice.model.pod import Pod, is_true
from pumice.volcano.devices.cards import (
    CORES,
    MEMORY,
    NUM,
    Card,
    CardPlacement,
    Cards,
    Part,
    Wanted,
    at_peak,
    card_score,
    had_by_stage,
    unfit,
)
from pumice.volcano.devices.config import NpuKind
from pumice.volcano.devices.vgpu import decoded

CORE_ANNOTATION = "hami-vnpu-core"
#: Cores of a card in mode hami-core, where a core is a hundredth of the card.
_CORES_OF_A_CARD = 100
_WITH_NETWORK = "Ascend910"
_NETWORK_POINTS = 10.0


class NpuAsk(Struct, frozen=True):
    """The request of a container for each of ``count`` cards. ``memory`` in MiB, 0 for a whole card."""

    count: int
    memory: int
    cores: int = 0


class NpuWanted(NamedTuple):
    """The request of a pod, by container that has one. ``stages``: when these containers run. ``by_core``: in mode
    hami-core."""

    asks: tuple[NpuAsk, ...]
    stages: tuple[Stage, ...]
    by_core: bool = False
    ids: tuple[str, ...] = ()
    other_ids: tuple[str, ...] = ()


class Npus:
    """One kind, named by its word, such as ``Ascend310P``."""

    lock = f"{words.HAMI}mutex.lock"

    def __init__(self, kind: NpuKind) -> None:
        self.name, self.question, self._kind = kind.word, kind, kind
        self._register = f"{words.HAMI}node-register-{kind.word}"
        self._use = f"{words.HAMI}use-{kind.word}-uuid", f"{words.HAMI}no-use-{kind.word}-uuid"
        self._given = f"{words.HAMI}{kind.word}-devices-to-allocate"
        self._allocated = f"{words.HAMI}{kind.word}-devices-allocated"

    def cards_of(self, node: Node) -> Cards | None:
        """Return the cards that the device agent lists, if the kubelet offers any. In mode hami-core if the node
        supports it."""
        text = node.annotations.get(self._register)
        # The agent's annotation stays after its device plugin has stopped; the kubelet then offers no devices.
        if text is None or not node.allocatable.get(self._kind.resource) > 0:
            return None
        listed = listed_npus(text)
        if isinstance(listed, str):
            return Cards(problem=f"annotation {self._register}: {listed}")
        cards = tuple(
            Card(each.count, each.memory, self.name, each.healthy, each.cores, each.network) for each in listed
        )
        mode = words.HAMI_CORE if supports_core(node.annotations) else ""
        return Cards(cards, tuple(each.id for each in listed), mode)

    def asked(self, ask: DeviceAsk) -> Wanted | None:
        each = [(found, stage) for stage, limits in ask.stages for found in self._of_container(limits)]
        if not each:
            return None
        asks, stages = tuple(found for found, _ in each), tuple(stage for _, stage in each)
        ids, others = (ask.annotation(key) if not ask.too_long else None for key in self._use)
        return NpuWanted(
            asks, stages, ask.annotation(words.NPU_MODE_ANNOTATION) == words.HAMI_CORE, _ids(ids), _ids(others)
        )

    def _of_container(self, limits: Limits) -> Iterator[NpuAsk]:
        """Yield the request of a container, if it has one."""
        named, kind = dict(limits), self._kind
        if kind.resource not in named and kind.memory_resource not in named:
            return
        memory = named.get(kind.memory_resource, 0)
        yield NpuAsk(named.get(kind.resource, 1), memory, named.get(kind.core_resource, 0))

    def ids_excluded(self, wanted: Wanted, cards: Cards) -> Bool | None:
        """Return cards that are excluded by ``hami.io/use-<word>-uuid`` and ``hami.io/no-use-<word>-uuid``."""
        assert isinstance(wanted, NpuWanted)
        if not wanted.ids and not wanted.other_ids:
            return None
        return np.array(
            [each in wanted.other_ids or (bool(wanted.ids) and each not in wanted.ids) for each in cards.ids]
        )

    # -- what they get ------------------------------------------------------------------------------------------------

    def place(self, wanted: Wanted, cards: Cards, used: I64, excluded: Bool, policy: str) -> CardPlacement | Unfit:
        """Return the cards for each container; containers of a pod that run at the same time do not share
        a card."""
        assert isinstance(wanted, NpuWanted)
        if not cards.cards:
            return unfit("no ascend device available", Code.ERROR)
        scores = [card_score(policy, card.memory, used[i].tolist()) for i, card in enumerate(cards.cards)]
        order = sorted(range(len(scores)), key=lambda i: (-scores[i], i))
        found, taken = list[tuple[Part, ...]](), set[int]()
        for ask, stage in zip(wanted.asks, wanted.stages, strict=True):
            # Before looking at cards, because no node could satisfy such a request.
            if not may_split(self._kind, ask):
                return unfit("vNPU does not support partial memory allocation for multiple devices", Code.ERROR)
            # Containers of one pod are given different cards, since use is only recorded per pod.
            free = [i for i in order if not excluded[i] and i not in taken]
            parts = [part for i in free if (part := self._part(ask, wanted, cards, used[i].tolist(), i)) is not None]
            if len(parts) < ask.count:
                return unfit("no enough ascend device available")
            chosen = tuple(self._near(parts, cards)[: ask.count])
            found.append(chosen)
            if stage is not Stage.ONCE:
                taken.update(part.card for part in chosen)
        # Quirk of Volcano, kept on purpose: of each container, only the first card counts in the score.
        score = sum(scores[part.card] for each in found for part in each[:1])
        return CardPlacement(tuple(found), score, at_peak(found, wanted.stages))

    def _part(self, ask: NpuAsk, wanted: NpuWanted, cards: Cards, used: Sequence[int], at: int) -> Part | None:
        """Return the part of a card for a request, or None if it does not fit."""
        card = cards.cards[at]
        # Rounded up first: the card is split by templates, so a request uses all of its template.
        memory = self._kind.template_for(ask.memory or card.memory)[0]
        if not card.healthy or not fits(card, used, memory, ask.cores, by_core=wanted.by_core, mode=cards.mode):
            return None
        return Part(at, memory, ask.cores)

    def _near(self, parts: list[Part], cards: Cards) -> list[Part]:
        """Sort parts so that cards of the network with most candidates come first."""
        if not self._has_networks(cards):
            return parts
        count = Counter(cards.cards[part.card].tag for part in parts)
        # Networks with equally many candidates keep the order of their first cards, which is that of the policy.
        first = {tag: place for place, tag in enumerate(dict.fromkeys(cards.cards[part.card].tag for part in parts))}
        return sorted(parts, key=lambda part: (-count[tag := cards.cards[part.card].tag], first[tag]))

    def _has_networks(self, cards: Cards) -> bool:
        """Return True if all cards are in networks and the kind uses them."""
        # All or none: a card without a number may be in any network.
        return self.name.startswith(_WITH_NETWORK) and all(card.tag is not None for card in cards.cards)

    def score(self, placed: CardPlacement, cards: Cards, used: I64) -> float:
        """Return the score with a bonus for cards in one network."""
        parts = placed.parts
        if not parts or not self._has_networks(cards):
            return placed.score
        # A share and not a number, so that a pod with many cards is not worth more to a node.
        most = max(Counter(cards.cards[part.card].tag for part in parts).values())
        return placed.score + _NETWORK_POINTS * most / len(parts)

    # -- what is written on pods --------------------------------------------------------------------------------------

    def had(self, annotations: Mapping[str, str], pod: Pod, wanted: Wanted, cards: Cards) -> CardPlacement:
        assert isinstance(wanted, NpuWanted)
        # Bounded before it is split, since any user may write annotations.
        text = annotations.get(self._given, "")[: 1 << 17]
        return had_by_stage([given_npus(each, cards.ids) for each in text.split(";")], wanted.stages)

    def annotations(self, placed: CardPlacement, cards: Cards, node: str, now: float) -> dict[str, str]:
        listed = ";".join("".join(self._part_text(part, cards) for part in parts) for parts in placed.containers)
        sizes = ",".join(self._size(part, cards) for part in placed.parts)
        at = str(int(now))
        return {
            self._given: listed,
            self._allocated: listed,
            f"huawei.com/{self.name}": f"[{sizes}]",
            f"{words.HAMI}vgpu-node": node,
            f"{words.HAMI}vgpu-time": at,
            f"{words.HAMI}bind-phase": words.ALLOCATING,
            f"{words.HAMI}bind-time": at,
            "predicate-time": at,
        }

    def _part_text(self, part: Part, cards: Cards) -> str:
        """Return one card as it is written in annotations."""
        return f"{cards.ids[part.card]},{self.name},{part.memory},{part.cores}:"

    def _size(self, part: Part, cards: Cards) -> str:
        """Return one card with its template as JSON."""
        template = self._kind.template_for(part.memory)[1]
        # Escaped by hand, in the exact form that Volcano writes, without a space after commas and colons.
        name = cards.ids[part.card].replace("\\", "\\\\").replace('"', '\\"')
        return f'{{"UUID":"{name}","temp":"{template}"}}' if template else f'{{"UUID":"{name}"}}'


def fits(card: Card, used: Sequence[int], memory: int, cores: int, *, by_core: bool, mode: str) -> bool:
    """Return True if a card has enough left.

    ``by_core``: the pod is in mode hami-core, which needs a node in that ``mode``.
    """
    if by_core and mode != words.HAMI_CORE:
        return False
    total = _CORES_OF_A_CARD if by_core else card.cores
    left = used[NUM] < card.count and card.memory - used[MEMORY] >= memory and total - used[CORES] >= cores
    # A request for all cores needs an empty card, and a card whose cores are used up takes no pod without a request
    # for cores.
    alone = total == _CORES_OF_A_CARD and cores == _CORES_OF_A_CARD
    full = total != 0 and used[CORES] == total and not cores
    return memory > 0 and left and not (alone and used[NUM]) and not full


def may_split(kind: NpuKind, ask: NpuAsk) -> bool:
    """Return True unless a request takes parts of several cards, which NPUs do not support."""
    return ask.count <= 1 or not ask.memory or kind.template_for(ask.memory)[0] == kind.allocatable


def supports_core(annotations: Mapping[str, str]) -> bool:
    """Return True if a node's cards can be shared in mode hami-core."""
    return is_true(annotations.get(CORE_ANNOTATION))


def given_npus(text: str, ids: Sequence[str]) -> tuple[Part, ...]:
    """Return the cards that containers were given, of those on the node."""
    at = {name: i for i, name in enumerate(ids)}
    every = (each for container in text[: 1 << 17].split(";") for each in decoded(container))
    return tuple(Part(at[each.id], each.memory, each.cores) for each in every if each.id in at)


def _ids(text: str | None) -> tuple[str, ...]:
    """Return the names in a comma-separated list."""
    return tuple(filter(None, (each.strip() for each in (text or "").split(","))))
