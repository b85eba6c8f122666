"""Values of the model are read back as they were written and shared as they were; no text becomes anything else."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest

from pumice.model.node import Node, NodeImage, Taint
from pumice.model.pod import (
    Affinity,
    HostPort,
    LabelSelector,
    NodeSelectorTerm,
    Pod,
    PodAffinityTerm,
    PodCondition,
    PodSpec,
    PreferredNodeTerm,
    Requirement,
    Toleration,
    TopologySpreadConstraint,
)
from pumice.model.queue import NodeGroupAffinity, Queue, QueueUsage
from pumice.model.resources import Resource
from pumice.model.topology import HyperNode, HyperNodeMember
from pumice.model.workloads.podgroup import NetworkTopology, PodGroup, PodGroupCondition, PodGroupStatus, SubGroupPolicy
from pumice.runtime.files.model_values import ValuesError, decode_values, description_of, encode_values, name_of

AMOUNT = Resource(1500.0, 2.0**40, {"nvidia.com/gpu": 2000.0, "pods": 1.0}, 3)
SELECTOR = LabelSelector((Requirement("k", "In", ("a", "ü")), Requirement("e", "Exists")))
TERM = PodAffinityTerm("zone", SELECTOR, ("ns",), LabelSelector(), 5)
NODES = NodeSelectorTerm((Requirement("k", "Gt", ("3",)),), (Requirement("metadata.name", "In", ("n",)),))
SPEC = PodSpec(
    AMOUNT,
    Resource(scalars={}),
    0.1,
    1e300,
    (("disk", "ssd"),),
    Affinity((NODES,), (PreferredNodeTerm(3, NODES),), (TERM,), (TERM,), (TERM,), (TERM,)),
    (Toleration("k", "Exists", "", "NoExecute"),),
    (TopologySpreadConstraint(2, "zone", "DoNotSchedule", None, 2, "Ignore", "Honor"),),
    (HostPort(80, "UDP", "::1"),),
    ("image",),
    2,
    ("claim",),
    ("device",),
    -(2**31),
    "high",
    "Never",
    "Guaranteed",
    True,
)
POD = Pod(
    "ns",
    'quote " and \\',
    "uid",
    SPEC,
    1_800_000_000.25,
    {"l": "1"},
    {"a": "\n"},
    "other",
    "n",
    "Running",
    5.0,
    6.5,
    "m",
    ("gate",),
    (PodCondition("t", "False", "r", "m", 0.1),),
    ("Job", "j", "u"),
    "7",
)
GROUP = PodGroup(
    "ns",
    "g",
    "u",
    "q",
    3,
    {"worker": 2},
    AMOUNT,
    "high",
    NetworkTopology("soft", 2, "rack"),
    (SubGroupPolicy("s", NetworkTopology("hard"), 2, 1, SELECTOR, ("k",)), SubGroupPolicy("t")),
    1.0,
    {"l": "1"},
    {"a": "2"},
    PodGroupStatus("Inqueue", (PodGroupCondition("t", "True", "r", "m", "id", 3.0),), 1, 2, 3),
    "9",
)
NODE = Node(
    "n", AMOUNT, AMOUNT, AMOUNT, "u", 2.0, {"l": "1"}, {"a": "2"}, (Taint("k"),), True, (NodeImage(("i",), 2**40),), "1"
)
QUEUE = Queue(
    *("q", 2, AMOUNT, None, AMOUNT, False, -1, "root", "Closed", 1.0, {}, {}, AMOUNT),
    usage=QueueUsage(AMOUNT, AMOUNT, ("below",)),
    uid="u",
    resource_version="1",
    affinity=NodeGroupAffinity(("g",)),
    group_limits=(("g", (("cpu", 2.0),)),),
)
HYPERNODE = HyperNode("h", 1, (HyperNodeMember("Node", labels=SELECTOR), HyperNodeMember("HyperNode", "x")), "rack")
PLAIN = PodSpec(Resource())


def back(kind: Any, values: list[Any]) -> list[Any]:
    text = encode_values({"some": (kind, values)})
    return decode_values(text, {"some": (kind, len(values))})["some"]


@pytest.mark.parametrize(
    ("kind", "values"),
    [
        pytest.param(Pod, [POD, None, Pod("ns", "p", "u", PLAIN)], id="pods"),
        pytest.param(PodGroup, [None, GROUP, PodGroup("ns", "g", "u")], id="groups"),
        pytest.param(Node, [NODE, Node("m", Resource())], id="nodes"),
        pytest.param(Queue, [QUEUE, Queue("r"), None], id="queues"),
        pytest.param(HyperNode, [HYPERNODE, HyperNode("i", 2)], id="hypernodes"),
        pytest.param(PodSpec, [SPEC, None, PLAIN], id="specs"),
        pytest.param(NetworkTopology | None, [None, NetworkTopology(), None], id="optional"),
        pytest.param(Mapping[int, int], [{1: 2, -3: 4}, {}, None], id="numbers by number"),
        pytest.param(tuple[int, ...], [(1, 2), (), None], id="tuples"),
        pytest.param(tuple[tuple[int, float], ...], [((0, 0.1 + 0.2), (3, 1e-300)), ()], id="pairs"),
        pytest.param(str, ["a", "", None, "\u2028\U0001f600"], id="texts"),
        pytest.param(Pod, [], id="none at all"),
    ],
)
def test_what_is_written_is_read_back(kind: Any, values: list[Any]) -> None:
    found = back(kind, values)
    assert found == values
    assert [repr(value) for value in found] == [repr(value) for value in values]


def test_arrays_are_read_back_and_read_only() -> None:
    arrays = [np.array(rows, dtype=np.int64) for rows in ([3, 1], [], [2**40])]
    found = back(np.ndarray[Any, np.dtype[Any]], [arrays[0], None, *arrays[1:]])
    assert found[1] is None
    for array, wanted in zip([found[0], *found[2:]], arrays, strict=True):
        assert array.dtype == np.int64
        assert array.tolist() == wanted.tolist()
        assert not array.flags.writeable


def test_equal_values_are_written_once_and_shared_when_read() -> None:
    pods = [Pod("ns", f"p{i}", f"u{i}", PodSpec(AMOUNT), labels={"app": "a"}) for i in range(50)]
    text = encode_values({"pods": (Pod, pods), "specs": (PodSpec, [PodSpec(AMOUNT)])})
    assert text.count(b'"nvidia.com/gpu"') == 1
    assert text.count(b'"app"') == 1
    found = decode_values(text, {"pods": (Pod, 50), "specs": (PodSpec, 1)})
    assert len({id(pod.spec) for pod in found["pods"]} | {id(found["specs"][0])}) == 1
    assert len({id(pod.labels) for pod in found["pods"]}) == 1


def test_values_that_are_equal_and_of_different_types_are_kept_apart() -> None:
    """The empty tuple is one object in Python, and a value of several types here."""
    text = encode_values({"gates": (tuple[str, ...], [()]), "rows": (tuple[int, ...], [(1,), ()])})
    assert decode_values(text, {"gates": (tuple[str, ...], 1), "rows": (tuple[int, ...], 2)}) == {
        "gates": [()],
        "rows": [(1,), ()],
    }


def test_the_same_lists_are_the_same_text() -> None:
    assert encode_values({"p": (Pod, [POD])}) == encode_values({"p": (Pod, [POD])})


def test_the_copy_that_kubectl_keeps_of_an_object_is_left_out() -> None:
    """It has the environment of every container in it."""
    whole = {"kubectl.kubernetes.io/last-applied-configuration": '{"env": "hush"}', "a": "kept"}
    values = [Pod("ns", "p", "u", PLAIN, annotations=whole), Pod("ns", "q", "u", PLAIN, annotations=whole)]
    assert b"hush" not in encode_values({"pods": (Pod, values)})
    assert [pod.annotations for pod in back(Pod, values)] == [{"a": "kept"}] * 2


# -- texts that are none


def changed(kind: Any, values: list[Any], *, tables: Any = None, **parts: Any) -> bytes:
    """A text with some parts of the list replaced, or the tables of values."""
    text = json.loads(encode_values({"some": (kind, values)}))
    if parts:
        text["lists"]["some"] |= parts
    if tables is not None:
        text["values"] = tables
    return json.dumps(text).encode()


TWO = [Pod("ns", f"p{i}", "u", PLAIN) for i in range(2)]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        pytest.param(b"", "the text", id="nothing"),
        pytest.param(b"\xff\xfe", "the text", id="not UTF-8"),
        pytest.param(b"\x80\x04\x95cos\nsystem\n(S'true'\ntR.", "the text", id="a pickle"),
        pytest.param(b"[" * 100_000, "the text", id="nested"),
        pytest.param(b'{"values": ' + b"[" * 100_000, "the text", id="nested further in"),
        pytest.param(b'{"values": {}, "lists": {}}', "the lists are", id="no list"),
        pytest.param(b'{"values": {}, "lists": {}, "more": 1}', "the text", id="something else"),
        pytest.param(changed(Pod, TWO, rows=[0, 2]), "rows are not in order", id="a row that is not there"),
        pytest.param(changed(Pod, TWO, rows=[-1, 0]), "rows are not in order", id="a row below 0"),
        pytest.param(changed(Pod, TWO, rows=[1, 1]), "rows are not in order", id="a row twice"),
        pytest.param(changed(Pod, TWO, rows=[0]), "found 2 values, wanted 1", id="fewer rows"),
        pytest.param(changed(Pod, TWO, rows="0"), "rows", id="rows that are none"),
        pytest.param(changed(Pod, TWO, name=["a"]), "name: found 1 values, wanted 2", id="fewer names"),
        pytest.param(changed(Pod, TWO, name=["a", 2]), "name: Expected `str`", id="a number for a name"),
        pytest.param(changed(Pod, TWO, name=["a", None]), "name: Expected `str`", id="no name"),
        pytest.param(changed(Pod, TWO, spec=[0, 1]), "spec: an index is not below 1", id="a place that is not there"),
        pytest.param(changed(Pod, TWO, spec=[0, -1]), "spec: an index is not below 1", id="no spec"),
        pytest.param(changed(Pod, TWO, spec=[0, -2]), "spec: an index is not below 1", id="a place below none"),
        pytest.param(changed(Pod, TWO, owner=[0, 0]), "owner: an index is not below 0", id="a place of no table"),
        pytest.param(
            changed(Pod, TWO, bogus=[1, 2]),
            "the fields are active_deadline_s, annotations, bogus",
            id="a field too many",
        ),
        pytest.param(changed(Pod, TWO, tables={}), "an index is not below 0", id="no tables"),
        pytest.param(changed(Pod, TWO, tables={"PodSpec": 1}), "values of", id="a table that is none"),
    ],
)
def test_a_text_that_does_not_hold_the_values_is_refused(text: bytes, said: str) -> None:
    with pytest.raises(ValuesError, match=said):
        decode_values(text, {"some": (Pod, 2)})


@pytest.mark.parametrize("amount", [b'"many"', b"null", b"1e999", b"[]", b"true"])
def test_an_amount_that_is_no_number_is_refused(amount: bytes) -> None:
    text = encode_values({"some": (PodSpec, [PodSpec(Resource(1234.5))])})
    with pytest.raises(ValuesError, match=r"^values of PodSpec: "):
        decode_values(text.replace(b"1234.5", amount), {"some": (PodSpec, 1)})


@pytest.mark.parametrize(
    ("lengths", "numbers"),
    [([2], [1]), ([1, 1], [1, 2]), ([-2], []), ([2**62], [1]), ([-1], [1]), ([1], ["1"])],
    ids=["too few", "another count", "below none", "very long", "none with one", "texts"],
)
def test_arrays_whose_lengths_are_not_theirs_are_refused(lengths: list[int], numbers: list[Any]) -> None:
    kind = np.ndarray[Any, np.dtype[Any]]
    text = changed(kind, [np.array([1])], lengths=lengths, numbers=numbers)
    with pytest.raises(ValuesError, match="some"):
        decode_values(text, {"some": (kind, 1)})


def test_what_is_no_value_of_the_model_is_not_written() -> None:
    pod = Pod("ns", "p", "u", PLAIN, labels=object())  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="found a object, wanted a value of the model"):
        encode_values({"pods": (Pod, [pod])})


def test_the_description_of_a_type_says_what_it_is_made_of() -> None:
    assert name_of(tuple[Toleration, ...]) == "tuple[Toleration, ...]"
    assert description_of(Toleration) == "Toleration(key: str, operator: str, value: str, effect: str)"
    assert description_of(Mapping[str, NetworkTopology] | None) == (
        "Mapping[str, NetworkTopology(mode: str, highest_tier: int | None, highest_tier_name: str)] | None"
    )
    assert "Toleration(key: str" in description_of(Pod)
