"""ConfigMaps over time: whatever the order of events, pods lack those that do not exist at the end."""

from __future__ import annotations

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from pumice.model.config_map import ConfigMap
from pumice.model.events import Gone, Seen
from pumice.model.pod import Pod, PodSpec
from pumice.model.resources import EMPTY
from pumice.state.config_maps import ConfigMapNames, with_config_maps

NAMES, SPACES = ("a", "b", "c"), ("m", "n")
PODS = st.builds(
    lambda space, name, needs: Pod(space, name, f"{space}/{name}", PodSpec(EMPTY), config_maps=tuple(sorted(needs))),
    st.sampled_from(SPACES),
    st.sampled_from(NAMES),
    st.sets(st.sampled_from(NAMES)),
)
MAPS = st.builds(ConfigMap, st.sampled_from(SPACES), st.sampled_from(NAMES))
KEYS = st.sampled_from([f"{space}/{name}" for space in SPACES for name in NAMES])
EVENTS = st.one_of(st.one_of(PODS, MAPS).map(Seen), st.builds(Gone, st.sampled_from((Pod, ConfigMap)), KEYS))


@settings(max_examples=300, deadline=None)
@given(st.lists(EVENTS, max_size=25))
def test_the_order_of_events_makes_no_difference(events: list[Seen | Gone]) -> None:
    names, found, last = ConfigMapNames(), dict[Any, Any](), dict[Any, Any]()
    for event in events:
        for each in names.pass_on(event):
            _apply(found, each)
        _apply(last, event)
    assert found == {(type(each), each.key): each for each in with_config_maps(last.values())}


def _apply(held: dict[Any, Any], event: Seen | Gone) -> None:
    if isinstance(event, Seen):
        held[type(event.obj), event.obj.key] = event.obj  # type: ignore[union-attr]
    else:
        held.pop((event.kind, event.key), None)


def lacks(pod: Pod, *others: ConfigMap) -> tuple[str, ...]:
    (found,) = with_config_maps((pod, *others))
    return tuple(found.spec.missing_config_maps)


def test_a_pod_lacks_what_does_not_exist_in_its_namespace() -> None:
    pod = Pod("n", "p", "u", PodSpec(EMPTY), config_maps=("a", "b"))
    assert lacks(pod, ConfigMap("n", "a"), ConfigMap("m", "b")) == ("b",)


def test_nothing_is_looked_for_in_a_namespace_without_config_maps() -> None:
    pod = Pod("n", "p", "u", PodSpec(EMPTY), config_maps=("a", "b"))
    assert lacks(pod) == lacks(pod, ConfigMap("m", "x")) == ()
