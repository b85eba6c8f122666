"""Share GPUs by memory, or assign whole GPUs by number. Source: Volcano gpushare device."""

from __future__ import annotations

from collections.abc import Mapping

from pumice.columns.dtypes import I64, Bool
from pumice.framework.plugin.filter_result import Unfit
from pumice.model.devices import shared_devices as words
from pumice.model.devices.shared_devices import DeviceAsk
from pumice.model.node import Node
from pumice.model.pod import Pod
from pumice.volcano.devices.cards import (
    AMOUNT_MAX,
    CARDS_MAX,
    MEMORY,
    NUM,
    Card,
    CardPlacement,
    Cards,
    Part,
    Wanted,
    unfit,
)
from pumice.volcano.devices.vgpu import whole


class SharedGpus:
    """The kind ``GpuShare``: pods ask for memory of one card, or, with ``by_number``, for empty cards."""

    name = question = "GpuShare"
    # Volcano's name for the lock, which must be the same in every scheduler that binds pods to the node.
    lock = "gpu"

    def __init__(self, *, by_number: bool) -> None:
        self._by_number = by_number

    def cards_of(self, node: Node) -> Cards | None:
        """Return the cards of a node: equal cards by its capacity, less those that an annotation lists as unhealthy."""
        scalars = node.capacity.scalars or {}
        if words.GPU_MEMORY not in scalars or words.GPU_NUMBER not in scalars:
            return None
        memory, count = int(scalars[words.GPU_MEMORY]) // 1000, int(scalars[words.GPU_NUMBER]) // 1000
        if not 1 <= count <= CARDS_MAX or memory > AMOUNT_MAX:
            return Cards(problem=f"{words.GPU_NUMBER}: found {count} cards, wanted 1 to {CARDS_MAX}")
        listed = node.annotations.get(words.UNHEALTHY_IDS_ANNOTATION, "")
        # Cut before it is split, because an annotation may be very long.
        ill = {whole(each.strip()) for each in listed[: words.ANNOTATION_CHARACTERS_MAX].split(",")}
        # Volcano knows only the total of a node, and takes all cards to be equal.
        cards = tuple(Card(count, memory // count, healthy=i not in ill) for i in range(count))
        return Cards(cards, tuple(map(str, range(count))))

    def asked(self, ask: DeviceAsk) -> Wanted | None:
        # The larger of init containers and the sum of the others, since they do not run at the same time.
        return ask.most(words.GPU_NUMBER if self._by_number else words.GPU_MEMORY) or None

    def ids_excluded(self, wanted: Wanted, cards: Cards) -> Bool | None:
        return None

    def place(self, wanted: Wanted, cards: Cards, used: I64, excluded: Bool, policy: str) -> CardPlacement | Unfit:
        """Return the first card with enough memory left, or the first empty cards."""
        assert isinstance(wanted, int)
        open_to = [i for i, card in enumerate(cards.cards) if card.healthy and not excluded[i]]
        if self._by_number:
            empty = [i for i in open_to if not used[i, NUM]]
            if len(empty) < wanted:
                return unfit("GpuNumber no enough gpu number")
            return CardPlacement((tuple(Part(i, 0) for i in empty[:wanted]),))
        roomy = (i for i in open_to if cards.cards[i].memory - used[i, MEMORY] >= wanted)
        first = next(roomy, None)
        return unfit("GpuShare no enough gpu memory") if first is None else CardPlacement(((Part(first, wanted),),))

    def score(self, placed: CardPlacement, cards: Cards, used: I64) -> float:
        # Volcano scores nothing for this kind, so that the policy of cards has no effect among nodes.
        return 0.0

    def had(self, annotations: Mapping[str, str], pod: Pod, wanted: Wanted, cards: Cards) -> CardPlacement:
        assert isinstance(wanted, int)
        memory = 0 if self._by_number else wanted
        found = (i for i in gpu_index(annotations) if i < len(cards.cards))
        return CardPlacement((tuple(Part(i, memory) for i in dict.fromkeys(found)),))

    def annotations(self, placed: CardPlacement, cards: Cards, node: str, now: float) -> dict[str, str]:
        return {
            words.GPU_INDEX_ANNOTATION: ",".join(str(part.card) for part in placed.parts),
            # In nanoseconds: the device plugin serves the pod with the oldest time first.
            words.PREDICATE_TIME_ANNOTATION: str(int(now * 1e9)),
        }


def gpu_index(annotations: Mapping[str, str]) -> list[int]:
    """Return the cards in a pod's annotation ``volcano.sh/gpu-index``, such as ``0,1``; none if any entry is
    invalid."""
    text = annotations.get(words.GPU_INDEX_ANNOTATION, "")
    found = [whole(each) for each in text[: words.ANNOTATION_CHARACTERS_MAX].split(",")]
    return [each for each in found if each is not None] if None not in found else []
