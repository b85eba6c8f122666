"""Fill in what the admission of Kubernetes would fill in of a pod's PriorityClass."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from msgspec.structs import replace

from pumice.model.pod import PodSpec
from pumice.model.queue import PriorityClass


class Priorities:
    """PriorityClasses by name. ``values``: their priorities."""

    __slots__ = ("_by_name", "_default", "values")

    def __init__(self, classes: Iterable[PriorityClass] = ()) -> None:
        self._by_name: Mapping[str, PriorityClass] = {each.name: each for each in classes}
        # Of several defaults the API server takes that with the smallest value; names decide between equal ones.
        defaults = [each for each in self._by_name.values() if each.global_default]
        self._default = min(defaults, key=lambda each: (each.value, each.name), default=None)
        self.values: Mapping[str, int] = {name: each.value for name, each in self._by_name.items()}

    def admitted(self, spec: PodSpec) -> PodSpec:
        """Return the spec with the priority and the preemption policy of the class that it names, or of the global
        default if it names none and has no priority, unless it has its own. A spec that needs neither is returned
        itself."""
        # An unknown class changes nothing. An API server would have refused the pod, and a file keeps it.
        found = self._by_name.get(spec.priority_class_name)
        if not spec.priority_class_name and spec.priority is None:
            found = self._default
        if found is None:
            return spec
        priority = found.value if spec.priority is None else spec.priority
        policy = spec.preemption_policy or found.preemption_policy
        # The spec itself stays the interned one, which equal pods share.
        if (priority, policy) == (spec.priority, spec.preemption_policy):
            return spec
        return replace(spec, priority=priority, preemption_policy=policy)


NO_PRIORITIES = Priorities()
