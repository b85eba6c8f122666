"""Clusters from files: what is read, what is a problem, and that nothing is skipped without a word."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pumice.model.manifest import Decoder
from pumice.model.pod import Pod
from pumice.model.queue import Queue
from pumice.model.workloads.podgroup import PodGroup
from pumice.runtime.files import documents
from pumice.runtime.files.manifests import Manifests, Problem, Severity, load_manifests, validate_cluster

QUEUE = "apiVersion: scheduling.volcano.sh/v1beta1\nkind: Queue\nmetadata: {name: %s}\nspec: {weight: %d}\n"


def queue(name: str, weight: int = 1) -> str:
    return QUEUE % (name, weight)


@pytest.fixture
def load(tmp_path: Path) -> Any:
    """Writes files by name and loads their folder."""

    def write_and_load(**files: str | bytes) -> Manifests:
        for name, text in files.items():
            path = tmp_path / name.replace("__", "/").replace("_", ".")
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(text if isinstance(text, bytes) else text.encode())
        return load_manifests([tmp_path])

    return write_and_load


def names(found: Manifests) -> list[str]:
    return [value.name for value in found.objects]


def reports(found: Manifests, root: Path) -> list[str]:
    return [str(problem).replace(f"{root}/", "") for problem in found.problems]


def test_folders_are_read_in_order(load: Any) -> None:
    found = load(b_yaml=queue("b"), a_yml=f"{queue('a1')}---\n{queue('a2')}", sub__c_json='{"x": 1}', notes_txt="hello")
    assert names(found) == ["a1", "a2", "b"]
    assert len(found.problems) == 1  # the JSON that is no object of ours


def test_a_broken_document_does_not_take_the_others_with_it(load: Any, tmp_path: Path) -> None:
    text = f"# head\n{queue('a')}---\nkind: Queue\n  name: [\n---\n# nothing\n---\n{queue('b', -1)}---\n{queue('c')}"
    found = load(f_yaml=text)
    assert names(found) == ["a", "b", "c"]
    assert reports(found, tmp_path) == [
        "error: f.yaml document 2: is not valid YAML: line 8, column 7: mapping values are not allowed in this context",
        "error: f.yaml document 3: Queue b: spec.weight: found -1, wanted an integer from 0 to 65535; "
        "it accepts no jobs",
    ]


def test_lists_of_any_kind(load: Any, tmp_path: Path) -> None:
    item = {"metadata": {"name": "a"}, "spec": {}}
    other = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n"}}
    typed = {"apiVersion": "scheduling.volcano.sh/v1beta1", "kind": "QueueList", "items": [item, {"metadata": {}}]}
    found = load(
        a_json=json.dumps(typed),
        b_json=json.dumps({"apiVersion": "v1", "kind": "List", "items": [other, {"kind": "List", "items": None}]}),
        c_json=json.dumps({"apiVersion": "v1", "kind": "PodList", "items": "x"}),
    )
    assert names(found) == ["a", "n"]
    assert reports(found, tmp_path) == [
        "error: a.json document 1 item 2: Queue (no name): metadata.name: found nothing, wanted a name of 1 to 253 "
        "characters without spaces or /",
        "error: c.json document 1: items: found a text, wanted a list",
    ]


def test_lists_in_lists_have_an_end(load: Any) -> None:
    obj: Any = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n"}}
    for _ in range(20):
        obj = {"kind": "List", "apiVersion": "v1", "items": [obj]}
    found = load(a_json=json.dumps(obj))
    assert found.objects == ()
    assert "at most 8 nested lists" in found.problems[0].what


def test_unknown_kinds_are_reported_once_each(load: Any, tmp_path: Path) -> None:
    service = "apiVersion: v1\nkind: Service\nmetadata: {name: s%d}\n"
    found = load(a_yaml="---\n".join(service % i for i in range(3)), b_yaml=queue("q"))
    assert names(found) == ["q"]
    assert reports(found, tmp_path) == [
        "warning: a.yaml document 1 and 2 more: kind v1 Service is not supported (ignored)"
    ]


# -- copies


def versioned(name: str, weight: int, version: str) -> str:
    return queue(name, weight).replace("{name: q}", f'{{name: q, resourceVersion: "{version}"}}')


@pytest.mark.parametrize("flip", [False, True])
def test_which_copy_is_kept_does_not_depend_on_the_order(load: Any, tmp_path: Path, flip: bool) -> None:
    texts = [versioned("q", 2, "9"), versioned("q", 3, "10")]
    plain = [queue("p", 5), queue("p", 6)]
    if flip:
        texts.reverse()
        plain.reverse()
    found = load(a_yaml=texts[0], b_yaml=texts[1], c_yaml=plain[0], d_yaml=plain[1])
    assert [(value.name, value.weight) for value in found.objects] == [("q", 3), ("p", 6)]
    newest = "a.yaml" if flip else "b.yaml"
    assert reports(found, tmp_path)[0] == (
        "error: a.yaml document 1, b.yaml document 1: Queue q is defined 2 times with different contents; "
        f"using the one in {newest} document 1"
    )


def test_equal_copies_are_a_warning(load: Any, tmp_path: Path) -> None:
    found = load(a_yaml="---\n".join([queue("q")] * 5))
    assert reports(found, tmp_path) == [
        "warning: a.yaml document 1, a.yaml document 2, a.yaml document 3 and 2 more: Queue q is defined 5 times"
    ]


# -- files that are not what they seem


def test_what_is_no_file(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    found = load_manifests([tmp_path / "gone", tmp_path / "empty", "/dev/zero"])
    assert reports(found, tmp_path) == [
        "error: gone: is not there",
        "warning: empty: has no .yaml, .yml, .json files",
        "error: /dev/zero: is not a file or folder",
    ]


def test_what_is_no_text(load: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(documents, "FILE_BYTES_MAX", 1000)
    found = load(
        a_yaml=b"\xff\xfe",
        b_yaml=b"a: \x00",
        c_json="{",
        d_json='{"a": NaN}',
        e_json="[" * 900,
        f_json="1" * 999,
        g_yaml="#" * 1001,
        h_yaml="\ufeff" + queue("bom"),
    )
    assert names(found) == ["bom"]
    problems = reports(found, tmp_path)
    assert problems[0] == "error: a.yaml: is not UTF-8 text: byte 0 is 0xff"
    assert problems[1].startswith("error: b.yaml document 1: is not usable YAML: from line 1:")
    assert problems[2].startswith("error: c.json document 1: is not valid JSON: line 1, column 2:")
    assert problems[3] == "error: d.json document 1: is not usable JSON: NaN is not a JSON number"
    assert len(problems) == 7
    assert problems[6] == "error: g.yaml: found 1001 bytes, wanted at most 1000"


BOMBS = {
    "aliases": "a: &a [x, x, x, x, x, x, x, x, x, x]\n"
    + "".join(f"{b}: &{b} [{', '.join([f'*{a}'] * 10)}]\n" for a, b in zip("abcdefgh", "bcdefghi", strict=True)),
    "merges": "a: &a {k: v}\n"
    + "".join(f"{b}: &{b}\n  <<: [{', '.join([f'*{a}'] * 10)}]\n" for a, b in zip("abcdefgh", "bcdefghi", strict=True)),
    "itself": "a: &a [*a]\n",
    "deep flow": "a: " + "[" * 100_000,
    "deep block": "- " * 100_000 + "a",
    "deep closed": "[" * 5000 + "]" * 5000,
    "long integer": "a: " + "9" * 5000,
    "python": "a: !!python/object/apply:os.system [true]\n",
    "key": "? [a]\n: b\n",
    "twice": "kind: Queue\nkind: Pod\n",
    "alias": "a: *b\n",
    "tag": "a: !mine b\n",
}


@pytest.mark.parametrize("bomb", BOMBS)
def test_yaml_that_bites(load: Any, bomb: str) -> None:
    found = load(a_yaml=f"{BOMBS[bomb]}\n---\n{queue('q')}")
    assert names(found) == ["q"]
    assert len(found.problems) == 1
    assert "document 1" in found.problems[0].where
    assert len(found.problems[0].what) < 500


def test_yaml_as_kubernetes_reads_it(load: Any) -> None:
    text = """%YAML 1.1
---
apiVersion: v1
kind: Pod
metadata:
  name: x
  creationTimestamp: 2024-01-01T00:00:00Z
  labels: &labels {a: 12:30:00, b: '7'}
  annotations:
    <<: *labels
    text: |
      ----
       ---
spec: {priority: 0x10, containers: [{resources: {requests: {cpu: 1.5, memory: 1e3}}}]}
...
"""
    found = load(a_yaml=text)
    assert found.problems == ()
    (pod,) = found.objects
    assert isinstance(pod, Pod)
    assert pod.creation == 1704067200.0
    assert pod.labels == {"a": "12:30:00", "b": "7"}
    assert pod.annotations == {"a": "12:30:00", "b": "7", "text": "----\n ---\n"}
    assert (pod.spec.request.milli_cpu, pod.spec.request.memory, pod.spec.priority) == (1500.0, 1000.0, 16)


def test_json_inside_yaml_and_several_documents_without_markers(load: Any) -> None:
    found = load(
        a_yaml='{"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n"}}\n---\n'
        + f"{queue('a')}...\n{queue('b')}"
    )
    assert names(found) == ["n", "a", "b"]


@given(st.binary(max_size=200) | st.text("a:-[]{}&*#!|>'\"\n %,?<=.", max_size=80).map(str.encode))
@settings(max_examples=400, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_any_bytes_give_objects_or_problems(tmp_path: Path, text: bytes) -> None:
    path = tmp_path / "f.yaml"
    path.write_bytes(text)
    found = load_manifests([path])
    assert found.objects == ()
    for problem in found.problems:
        assert problem.where and problem.what


# -- what the objects say about each other


def decode(*raws: dict[str, Any]) -> tuple[Any, ...]:
    decoder = Decoder()
    return tuple(decoder.decode(raw) for raw in raws)


def raw(kind: str, name: str, spec: dict[str, Any] | None = None, **metadata: Any) -> dict[str, Any]:
    api = {
        "Pod": "v1",
        "Node": "v1",
        "HyperNode": "topology.volcano.sh/v1alpha1",
        "PriorityClass": "scheduling.k8s.io/v1",
        "Job": "batch.volcano.sh/v1alpha1",
    }
    version = api.get(kind, "scheduling.volcano.sh/v1beta1")
    return {"apiVersion": version, "kind": kind, "metadata": {"name": name, **metadata}, "spec": spec or {}, "value": 1}


def problems_of(*raws: dict[str, Any]) -> list[str]:
    return [str(problem) for problem in validate_cluster(decode(*raws))[1]]


def pod(name: str, group: str = "", **metadata: Any) -> dict[str, Any]:
    annotations = {"scheduling.k8s.io/group-name": group} if group else {}
    return raw("Pod", name, annotations=annotations, **metadata)


def test_a_sound_cluster_has_no_problems() -> None:
    node = raw("Node", "n") | {"status": {"allocatable": {"cpu": "1"}}}
    group = raw("PodGroup", "g", {"queue": "q", "minMember": 1, "priorityClassName": "p"})
    hyper = raw("HyperNode", "h", {"tier": 1, "members": [{"type": "Node", "selector": {"exactMatch": {"name": "n"}}}]})
    queues = raw("Queue", "root"), raw("Queue", "q", {"parent": "root"})
    objects = (*queues, raw("PriorityClass", "p"), node, hyper, group, pod("x", "g"))
    assert problems_of(*objects) == []
    assert validate_cluster(decode(*objects))[0] == decode(*objects)


def test_the_default_queue_is_added_where_it_is_wanted() -> None:
    objects, problems = validate_cluster(decode(raw("PodGroup", "g")))
    assert objects[-1] == Queue("default")
    assert problems == (
        Problem("Queue default", "does not exist and was added with weight 1, as Volcano does", Severity.NOTE),
    )
    assert len(validate_cluster(decode(raw("PodGroup", "g"), raw("Queue", "default", {"weight": 3})))[0]) == 2
    assert validate_cluster(decode(raw("Queue", "q")))[1] == ()


def test_the_root_queue_is_added_where_queues_have_a_parent() -> None:
    """Without it nothing would be placed under ``capacity`` with hierarchy (volcano#4817)."""
    objects, problems = validate_cluster(decode(raw("Queue", "q", {"parent": "root"})))
    assert objects[-1] == Queue("root", reclaimable=False)
    assert [str(each) for each in problems] == [
        "note: Queue root: does not exist and was added with weight 1, as Volcano does"
    ]


def test_memory_of_less_than_a_kilobyte_is_a_wrong_suffix() -> None:
    """73728m is 74 bytes."""
    tasks = [
        {"name": name, "template": {"spec": {"containers": [{"resources": {"requests": {"memory": memory}}}]}}}
        for name, memory in (("a", "73728m"), ("b", "1Ki"), ("c", "0"))
    ]
    assert problems_of(raw("Queue", "q"), raw("Job", "j", {"queue": "q", "tasks": tasks})) == [
        "warning: Job default/j: requests 74 bytes of memory; the suffix m means thousandths, Mi megabytes"
    ]


def test_references_that_lead_nowhere() -> None:
    group = raw("PodGroup", "gang-a", {"queue": "trainnig", "priorityClassName": "hihg"})
    pods = [pod(f"p{i}", "gang-b") for i in range(5)]
    bound = raw("Pod", "b", {"nodeName": "node-2"})
    node = raw("Node", "node-1") | {"status": {"allocatable": {"cpu": "1"}}}
    assert problems_of(raw("Queue", "training"), raw("PriorityClass", "high"), node, group, bound, *pods) == [
        "error: Pod default/p0, default/p1, default/p2 and 2 more: PodGroup default/gang-b does not exist; "
        "did you mean default/gang-a?",
        "warning: Pod default/b: has no PodGroup and is not scheduled",
        "warning: Pod default/b: Node node-2 does not exist; did you mean node-1?",
        "error: PodGroup default/gang-a: Queue trainnig does not exist; did you mean training?",
        "warning: PodGroup default/gang-a: PriorityClass hihg does not exist, so the default is used; "
        "did you mean high?",
    ]


def test_pods_of_a_job_have_its_podgroup() -> None:
    job = raw("Job", "j", {"queue": "q", "tasks": [{"name": "t", "template": {}}]}, uid="u")
    assert problems_of(raw("Queue", "q"), job, pod("x", "j-u")) == []
    assert problems_of(raw("Queue", "r"), job) == ["error: Job default/j: Queue q does not exist"]


def test_circles_are_named_in_order() -> None:
    queues = [raw("Queue", name, {"parent": parent}) for name, parent in ("ba", "cb", "ac", "dd", "ea", "xz")]
    assert problems_of(raw("Queue", "root"), *queues) == [
        "error: Queue x: parent z does not exist",
        "error: Queue a: parents form a cycle: a -> c -> b -> a",
        "error: Queue d: parents form a cycle: d -> d",
    ]

    def hypernode(name: str, tier: int, *below: str) -> dict[str, Any]:
        members = [{"type": "HyperNode", "selector": {"exactMatch": {"name": each}}} for each in below]
        return raw("HyperNode", name, {"tier": tier, "members": members})

    assert problems_of(hypernode("a", 3, "b"), hypernode("b", 2, "c"), hypernode("c", 1, "a")) == [
        "error: HyperNode a: members form a cycle: a -> b -> c -> a",
        "warning: HyperNode c: is of tier 1, its member a of tier 3, which is not lower",
    ]
    assert problems_of(hypernode("a", 2, "c"), hypernode("b", 2, "c", "z"), hypernode("c", 1)) == [
        "error: HyperNode: HyperNode c already has a parent a, and cannot set another parent b",
        "warning: HyperNode b: member HyperNode z does not exist",
    ]


def test_hypernodes_that_hold_less_than_they_say() -> None:
    members = [
        {"type": "Node", "selector": {"exactMatch": {"name": "gone"}}},
        {"type": "Node", "selector": {"regexMatch": {"pattern": "("}}},
        {"type": "HyperNode", "selector": {"regexMatch": {"pattern": "a"}}},
    ]
    objects = [raw("HyperNode", "a", {"tier": 1, "members": members, "tierName": "t"})]
    objects.append(raw("HyperNode", "b", {"tier": 2, "tierName": "t"}))
    assert problems_of(*objects) == [
        "warning: HyperNode tierName t: is used for several tiers: 1, 2",
        "warning: HyperNode a: pattern '(' matches nothing: missing ): (",
        "warning: HyperNode a: a member of type HyperNode needs exactMatch; this member is ignored",
        "warning: HyperNode a: members that are not nodes: gone",
    ]


def test_numbers_and_identities() -> None:
    group = raw("PodGroup", "g", {"queue": "q", "minMember": 3})
    pods = [pod("x", "g", uid="1"), pod("y", "g", uid="1")]
    assert problems_of(raw("Queue", "q"), raw("Node", "n"), group, *pods) == [
        "error: Pod default/x, default/y: have the same uid 1",
        "warning: PodGroup default/g: minMember is 3, but it has 2 pods",
        "warning: Node n: allocatable is zero: no pod can run there",
    ]


def test_many_lost_pods_do_not_take_long() -> None:
    pods = [pod(f"p{i}", f"gang-{i}") for i in range(3000)]
    groups = [raw("PodGroup", f"group-{i}", {"queue": "q"}) for i in range(3000)]
    objects, problems = validate_cluster(decode(raw("Queue", "q"), *pods, *groups))
    assert len(problems) == 3000
    assert sum(isinstance(value, PodGroup) for value in objects) == 3000


RANGE = (
    "apiVersion: v1\nkind: LimitRange\nmetadata: {name: sizes}\n"
    "spec: {limits: [{type: Container, defaultRequest: {cpu: %s}}]}\n"
)
POD = "apiVersion: v1\nkind: Pod\nmetadata: {name: p}\nspec: {containers: [{name: c}]}\n"


def test_defaults_of_a_later_file_are_filled_in(load: Any) -> None:
    found = load(a_yaml=POD, b_yaml=RANGE % "3")
    assert [pod.spec.request.milli_cpu for pod in found.objects] == [3000]
    assert found.problems == ()


def test_a_wrong_limit_range_is_a_problem_and_fills_in_nothing(load: Any, tmp_path: Path) -> None:
    found = load(a_yaml=POD, b_yaml=RANGE % "many")
    assert [pod.spec.request.milli_cpu for pod in found.objects] == [0]
    assert len(found.problems) == 1
    assert "LimitRange sizes: spec.limits[0].defaultRequest.cpu" in reports(found, tmp_path)[0]
