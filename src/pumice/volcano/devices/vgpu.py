"""Share GPUs by parts of their memory and cores (vGPU), in the modes hami-core and mig.

Source: Volcano vGPU device.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import NamedTuple

import numpy as np
from msgspec import Struct

from pumice.columns.dtypes import I64, Bool
from pumice.framework.plugin.filter_result import Unfit
from pumice.model.devices import shared_devices as words
from pumice.model.devices.shared_devices import DeviceAsk, Limits, Stage
from pumice.model.node import Node
from pumice.model.pod import GROUP_NAME_ANNOTATION, Pod, is_true
from pumice.volcano.devices import mig
from pumice.volcano.devices.cards import (
    AMOUNT_MAX,
    BINPACK,
    CARDS_MAX,
    CORES,
    GROUP,
    INSTANCES,
    MEMORY,
    NUM,
    SPREAD,
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
from pumice.volcano.devices.config import DeviceConfig

HAMI_CORE, MIG = "hami-core", "mig"
_VENDOR = "NVIDIA"
# In percent, as Volcano counts the cores of a card.
_WHOLE_CARD = 100
# Volcano reads the older key first.
_GROUP_ANNOTATIONS = (GROUP_NAME_ANNOTATION, "scheduling.volcano.sh/group-name")
# A shorter entry is invalid: without its mode it is unknown how the card may be shared.
_FIELDS = 6


class CardAsk(Struct, frozen=True):
    """The request of a container for each of ``count`` cards. ``memory`` 0: ``percentage`` of the card's memory."""

    count: int
    memory: int
    percentage: int
    cores: int

    def memory_of(self, card: Card) -> int:
        """Return the requested memory on a card."""
        # The percentage is of this card: cards of one node may differ in size.
        return self.memory or card.memory * self.percentage // 100


class VgpuWanted(NamedTuple):
    """The request of a pod, by container that has one, and which cards it accepts. ``stages``: when these containers
    run. ``problem``: why no card would do."""

    asks: tuple[CardAsk, ...]
    stages: tuple[Stage, ...]
    mode: str | None = None
    types: tuple[str, ...] | None = None
    other_types: tuple[str, ...] | None = None
    ids: tuple[str, ...] = ()
    other_ids: tuple[str, ...] = ()
    problem: str = ""

    @property
    def id_annotation(self) -> str:
        """The annotation that names or excludes cards, "" if there is none."""
        if self.ids:
            return words.USE_ID_ANNOTATION
        return words.NO_USE_ID_ANNOTATION if self.other_ids else ""


class Vgpus:
    """The kind ``hamivgpu``."""

    # The configuration is no part of the question, since the cards of a node do not depend on it.
    name = question = "hamivgpu"
    lock = "hamivgpu"

    def __init__(self, config: DeviceConfig) -> None:
        self._config = config

    # -- what nodes have ----------------------------------------------------------------------------------------------

    def cards_of(self, node: Node) -> Cards | None:
        """Return the cards in the node's annotation, ``uuid,count,memory,type,health,mode:`` each, if the kubelet
        offers the resources."""
        text = node.annotations.get(words.REGISTER_ANNOTATION)
        offered = (words.VGPU_NUMBER, words.VGPU_CORES, words.VGPU_MEMORY)
        # The agent's annotation stays after its device plugin has stopped; the kubelet then offers no devices.
        if text is None or not all(node.allocatable.get(name) > 0 for name in offered):
            return None
        return listed_cards(text)

    # -- what pods ask ------------------------------------------------------------------------------------------------

    def asked(self, ask: DeviceAsk) -> Wanted | None:
        return vgpu_wanted(ask)

    def ids_excluded(self, wanted: Wanted, cards: Cards) -> Bool | None:
        """Return cards that are excluded by ``volcano.sh/vgpu-use-gpuuuid`` and ``volcano.sh/vgpu-nouse-gpuuuid``."""
        assert isinstance(wanted, VgpuWanted)
        if not wanted.id_annotation:
            return None
        return np.array([not may_use_id(wanted, each) for each in cards.ids], dtype=bool)

    # -- what they get ------------------------------------------------------------------------------------------------

    def place(self, wanted: Wanted, cards: Cards, used: I64, excluded: Bool, policy: str) -> CardPlacement | Unfit:
        assert isinstance(wanted, VgpuWanted)
        if wanted.problem:
            return _refused(wanted.problem)
        if wanted.mode is not None and wanted.mode != cards.mode:
            return _refused(
                f"pod required sharing mode {wanted.mode[:40]} is not the same as the node mode {cards.mode}"
            )
        # Copied, since the parts of one container count for the next one.
        used, found, score = used.copy(), list[tuple[Part, ...]](), 0.0
        for ask, stage in zip(wanted.asks, wanted.stages, strict=True):
            # A reason of its own, as in Volcano: the node could never take this pod.
            if ask.count > len(cards.cards):
                return _refused("no enough gpu cards")
            # What an init container uses is free again for those that start later.
            room = used.copy() if stage is Stage.ONCE else used
            parts = self._of_container(ask, wanted, cards, room, excluded, policy)
            if len(parts) < ask.count:
                why = f", {wanted.id_annotation} allows no other" if wanted.id_annotation and excluded.any() else ""
                return _refused(f"not enough gpu fitted on this node{why}")
            # Scored by the use after the placement, as in Volcano. So spread never scores: the card holds this pod by
            # then.
            score += sum(card_score(policy, cards.cards[p.card].memory, room[p.card].tolist()) for p in parts)
            found.append(tuple(parts))
        return CardPlacement(tuple(found), score, at_peak(found, wanted.stages))

    def _of_container(
        self, ask: CardAsk, wanted: VgpuWanted, cards: Cards, used: I64, excluded: Bool, policy: str
    ) -> list[Part]:
        """Return as many parts as asked for, or as there are, and add them to ``used``."""
        found: list[Part] = []
        # Anew for each container, because the parts of the container before change the order.
        for card in in_order(used, policy):
            if len(found) == ask.count:
                break
            part = None if excluded[card] else self._part(ask, wanted, cards, used[card].tolist(), card)
            if part is not None:
                part.add_to(used)
                found.append(part)
        return found

    def _part(self, ask: CardAsk, wanted: VgpuWanted, cards: Cards, used: list[int], at: int) -> Part | None:
        """Return the part of a card for a request, or None if it does not fit."""
        card = cards.cards[at]
        # A percentage depends on the card, so the amount is only known here.
        memory = ask.memory_of(card)
        fits = card.healthy and used[NUM] < card.count and card.memory - used[MEMORY] >= memory
        # A request for all cores needs an empty card, and a card whose cores are used up takes no pod without a
        # request for cores.
        fits = fits and used[CORES] + ask.cores <= _WHOLE_CARD and not (ask.cores == _WHOLE_CARD and used[NUM])
        fits = fits and not (used[CORES] == _WHOLE_CARD and not ask.cores)
        if not fits or not is_type_wanted(wanted, card.type):
            return None
        if cards.mode != MIG:
            return Part(at, memory, ask.cores)
        factor = self._config.memory_factor
        instance = mig.find(self._config.geometries_of(card.type), used[GROUP], used[INSTANCES], memory * factor)
        # The card has enough memory in total, but no free instance that is large enough.
        if instance is None:
            return None
        return Part(at, instance.memory // factor, ask.cores, instance.group, instance.place)

    def score(self, placed: CardPlacement, cards: Cards, used: I64) -> float:
        return placed.score

    # -- what is written on pods --------------------------------------------------------------------------------------

    def had(self, annotations: Mapping[str, str], pod: Pod, wanted: Wanted, cards: Cards) -> CardPlacement:
        assert isinstance(wanted, VgpuWanted)
        text = annotations.get(words.ASSIGNED_IDS_ANNOTATION, "")[: words.ANNOTATION_CHARACTERS_MAX * CARDS_MAX]
        at = {each: i for i, each in enumerate(cards.ids)}
        found = []
        for container in text.split(";"):
            parts = [self._had(each, at, cards) for each in decoded(container)]
            found.append(tuple(part for part in parts if part is not None))
        return had_by_stage(found, wanted.stages)

    def _had(self, given: ContainerCard, at: Mapping[str, int], cards: Cards) -> Part | None:
        """Return the part that an annotation describes, or None if the node does not have the card."""
        card = at.get(given.id.partition("[")[0])
        if card is None:
            return None
        place = mig.place_in(given.id)
        if place is None:
            return Part(card, given.memory, given.cores)
        geometries = self._config.geometries_of(cards.cards[card].type)
        number = next((i for i, each in enumerate(geometries, 1) if each.group == place[0]), 0)
        memory = geometries[number - 1].memory_at(place[1]) if number else 0
        if not memory:
            # The configuration no longer has this group, so the memory is unknown.
            return Part(card, 0, given.cores)
        return Part(card, memory // self._config.memory_factor, given.cores, number, place[1])

    def annotations(self, placed: CardPlacement, cards: Cards, node: str, now: float) -> dict[str, str]:
        listed = ";".join("".join(self._part_text(part, cards) for part in parts) for parts in placed.containers)
        at = str(int(now))
        return {
            words.ASSIGNED_NODE_ANNOTATION: node,
            words.ASSIGNED_TIME_ANNOTATION: at,
            # Written twice: the device plugin uses up the second one container by container, and the first remains as a
            # record.
            words.ASSIGNED_IDS_ANNOTATION: listed,
            words.TO_ALLOCATE_ANNOTATION: listed,
            words.BIND_PHASE_ANNOTATION: words.ALLOCATING,
            words.BIND_TIME_ANNOTATION: at,
        }

    def _part_text(self, part: Part, cards: Cards) -> str:
        """Return one part as it is written in annotations."""
        name = cards.ids[part.card]
        if part.group:
            geometries = self._config.geometries_of(cards.cards[part.card].type)
            name = mig.name_of(name, geometries[part.group - 1], part.instance)
        return f"{name},{_VENDOR},{part.memory},{part.cores}:"


def _refused(reason: str) -> Unfit:
    """Return why vGPUs of a node do not fit, in Volcano's words."""
    return unfit(f"hami-vgpuDeviceSharing error: {reason}")


def in_order(used: I64, policy: str) -> list[int]:
    """Return the order in which cards are tried: the fullest first for binpack, those with fewest pods for spread,
    else the last one."""
    cards = range(len(used))
    if policy == BINPACK:
        return sorted(cards, key=lambda card: (-int(used[card, MEMORY]), card))
    if policy == SPREAD:
        return sorted(cards, key=lambda card: (int(used[card, NUM]), card))
    return list(reversed(cards))


# -- cards of nodes


@lru_cache(maxsize=65_536)
def listed_cards(text: str) -> Cards:
    """Read the cards in a node's annotation. One invalid entry makes all of them unusable."""
    found, ids, mode = [], [], HAMI_CORE
    entries = [entry for entry in text.split(":") if entry.strip()]
    if not entries or len(entries) > CARDS_MAX:
        return Cards(problem=_problem(f"{len(entries)} cards", f"1 to {CARDS_MAX}"))
    for entry in entries:
        fields = [each.strip() for each in entry.split(",")]
        if len(fields) < _FIELDS or not fields[0]:
            return Cards(problem=_problem(f'"{_shown(entry)}"', "uuid,count,memory,type,health,mode"))
        count, memory = whole(fields[1]), whole(fields[2])
        if count is None or memory is None:
            return Cards(problem=_problem(f'"{_shown(entry)}"', "whole numbers for count and memory"))
        found.append(Card(count, memory, fields[3], is_true(fields[4])))
        ids.append(fields[0])
        # The mode of the last card counts for the node, as in Volcano.
        mode = MIG if fields[5] == MIG else HAMI_CORE
    # Use is recorded by name, so two cards with one name could not be distinguished.
    if len(set(ids)) < len(ids):
        return Cards(problem=_problem("one card twice", "each uuid once"))
    return Cards(tuple(found), tuple(ids), mode)


def _problem(found: str, wanted: str) -> str:
    """Return the problem with an annotation."""
    return f"annotation {words.REGISTER_ANNOTATION}: found {found}, wanted {wanted}"


def _shown(text: str) -> str:
    """Return the beginning of a text for an error message."""
    shown = text[:40]
    return shown if shown.isprintable() else ascii(shown)


def whole(text: str) -> int | None:
    """Read a bounded whole number that is not negative, or return None."""
    if not (text.isascii() and text.isdecimal() and len(text) <= 13):
        return None
    value = int(text)
    return value if value <= AMOUNT_MAX else None


# -- what pods ask and got


@lru_cache(maxsize=4096)
def vgpu_wanted(ask: DeviceAsk) -> VgpuWanted | None:
    """Return the request of a pod for vGPUs, or None."""
    each = [(found, stage) for stage, limits in ask.stages for found in _card_ask(limits)]
    if not each:
        return None
    asks, stages = tuple(found for found, _ in each), tuple(stage for _, stage in each)
    # Refused and not cut: half a list of names would allow cards that the pod excludes.
    if ask.too_long:
        return VgpuWanted(
            asks, stages, problem=f"annotation {ask.too_long} is longer than {words.ANNOTATION_CHARACTERS_MAX}"
        )
    return VgpuWanted(
        asks,
        stages,
        ask.annotation(words.MODE_ANNOTATION),
        _types(ask.annotation(words.USE_TYPE_ANNOTATION)),
        _types(ask.annotation(words.NO_USE_TYPE_ANNOTATION)),
        _ids(ask.annotation(words.USE_ID_ANNOTATION)),
        _ids(ask.annotation(words.NO_USE_ID_ANNOTATION)),
    )


def _card_ask(limits: Limits) -> Iterator[CardAsk]:
    """Yield the request of a container, if it has one."""
    named = dict(limits)
    if words.VGPU_NUMBER not in named and words.VGPU_MEMORY not in named:
        return
    # Defaults of Volcano: one card if only memory is given, and all memory of the card if it is not given.
    memory = named.get(words.VGPU_MEMORY, 0)
    yield CardAsk(
        named.get(words.VGPU_NUMBER, 1),
        memory,
        named.get(words.VGPU_PERCENTAGE, 0 if memory else 100),
        named.get(words.VGPU_CORES, 0),
    )


def _types(text: str | None) -> tuple[str, ...] | None:
    """Return the types in a comma-separated list, in upper case."""
    # Parts of types are compared in upper case, because nodes write them as their driver does.
    return None if text is None else tuple(text.upper().split(","))


def _ids(text: str | None) -> tuple[str, ...]:
    """Return the names in a comma-separated list."""
    return tuple(filter(None, (each.strip() for each in (text or "").split(","))))


def is_type_wanted(wanted: VgpuWanted, card_type: str) -> bool:
    """Return True if a pod accepts a card of this type; parts of the name are compared in any case."""
    # Other vendors' cards may be listed by the same agent.
    if _VENDOR not in card_type:
        return False
    upper = card_type.upper()
    if wanted.types is not None:
        return any(each in upper for each in wanted.types)
    return wanted.other_types is None or not any(each in upper for each in wanted.other_types)


def may_use_id(wanted: VgpuWanted, card: str) -> bool:
    """Return True if a pod accepts a card by its name. A card without a name is accepted only if the pod names none."""
    if not wanted.id_annotation:
        return True
    return bool(card) and card not in wanted.other_ids and (not wanted.ids or card in wanted.ids)


class ContainerCard(NamedTuple):
    """A card or an instance that a container was given."""

    id: str
    type: str
    memory: int
    cores: int


def decoded(container: str) -> list[ContainerCard]:
    """Read what one container was given, ``uuid,type,memory,cores:`` each. Invalid entries are skipped."""
    found = []
    for entry in container.split(":"):
        fields = entry.split(",")
        # Skipped and not refused: a pod that runs keeps what can be read of its annotation.
        if len(fields) < 4:
            continue
        memory, cores = whole(fields[2]), whole(fields[3])
        if memory is not None and cores is not None:
            found.append(ContainerCard(fields[0], fields[1], memory, cores))
    return found


def group_of(pod: Pod) -> str:
    """Return ``namespace/podgroup`` of a pod by its annotations, or ""."""
    named = next((pod.annotations[key] for key in _GROUP_ANNOTATIONS if pod.annotations.get(key)), "")
    return f"{pod.namespace}/{named}" if named else ""
