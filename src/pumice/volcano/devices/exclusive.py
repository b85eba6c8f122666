"""Keep pods from sharing a card: pods of one PodGroup that asks for it, and pods that match one rule.

Source: Volcano vGPU device, ``volcano.sh/vgpu-podgroup-policy`` and ``deviceshare.GPUExclusiveRules``.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence

from pumice.model.devices import shared_devices as words
from pumice.model.pod import Pod
from pumice.volcano.devices.config import DeviceConfigError
from pumice.volcano.devices.vgpu import group_of

#: Labels that a pod must have to match, all of them.
Rule = tuple[tuple[str, str], ...]
# Each rule is compared with each pod that asks for cards.
_RULES_MAX, _LABELS_MAX = 64, 64


class Rules:
    """Which pods may not share a card."""

    def __init__(self, rules: Sequence[Rule] = ()) -> None:
        self._rules = tuple(rules)

    def keys_of(self, pod: Pod) -> frozenset[Hashable]:
        """Return the keys of a pod: its PodGroup, and the numbers of rules it matches. Pods with a common key may have
        to stay apart."""
        return frozenset((group_of(pod), *matching(pod.labels, self._rules))) - {""}

    def apart(self, pod: Pod) -> frozenset[Hashable]:
        """Return those keys of a pod that no pod on its cards may have."""
        found: set[Hashable] = set(matching(pod.labels, self._rules))
        # Only the pod that is placed decides: one without the annotation may join pods that have it.
        if pod.annotations.get(words.SPREAD_ANNOTATION) == words.SPREAD:
            found.add(group_of(pod))
        return frozenset(found - {""})


def matching(labels: Mapping[str, str], rules: Sequence[Rule]) -> list[int]:
    """Return the numbers of the rules that labels match."""
    return [i for i, rule in enumerate(rules) if all(labels.get(key) == value for key, value in rule)]


def read_rules(given: object) -> tuple[Rule, ...]:
    """Read a decoded list of mappings from label to value. Mappings without labels are ignored.

    Raises: DeviceConfigError.
    """
    if given is None:
        return ()
    if not isinstance(given, list) or len(given) > _RULES_MAX:
        raise DeviceConfigError(f"found {given!r:.80}, wanted a list of at most {_RULES_MAX} mappings")
    return tuple(rule for i, each in enumerate(given) if (rule := _rule(each, i)))


def _rule(given: object, i: int) -> Rule:
    """Read one rule."""
    if not isinstance(given, Mapping) or len(given) > _LABELS_MAX:
        raise DeviceConfigError(f"[{i}]: found {given!r:.80}, wanted a mapping from label to value")
    if not all(isinstance(key, str) and isinstance(value, str) for key, value in given.items()):
        raise DeviceConfigError(f"[{i}]: found {given!r:.80}, wanted texts for labels and values")
    # Sorted, so that equal rules are equal values, and answers can be kept for them.
    return tuple(sorted(given.items()))
