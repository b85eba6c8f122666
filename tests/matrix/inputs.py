"""Inputs of each kind with the same three jobs: one starts, one starts after it, and one never fits."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from msgspec import Struct

from tests.matrix.kit import KAI, NODE, VOLCANO, batch_job, kai_gang, pod, pod_spec, volcano_gang, volcano_job

Raw = dict[str, Any]
ROOT = Path(__file__).resolve().parents[2]

#: Policies by name. ``pumice`` has what only Pumice's own language has.
CONFS = {
    "volcano": 'actions: "enqueue, allocate, backfill"\ntiers:\n- plugins: [{name: priority}, {name: gang}]\n'
    "- plugins: [{name: drf}, {name: predicates}, {name: proportion}, {name: nodeorder}]\n",
    "kai": "dialect: kai\n",
    "pumice": 'dialect: pumice\nactions: "enqueue, allocate, backfill"\ntiers:\n'
    "- plugins: [{name: reserve, arguments: {after: 0s}}, {name: shortest}, {name: gang}]\n"
    "- plugins: [{name: predicates}, {name: proportion}, {name: nodeorder}]\n",
}
#: By name: pods, cores of each, and seconds. The node has 8 cores.
JOBS = {"first": (2, 3, 60), "later": (2, 3, 30), "giant": (3, 7, 30)}

Make = Callable[[str, int, int, Raw], list[Raw]]


class JobsInput(Struct, frozen=True):
    """Objects of one kind. ``language``: the one that places them. ``make``: the objects of a job, by its name, its
    pods, the cores of each, and its annotations. ``is_gang`` False: each pod may start by itself."""

    language: str
    make: Make
    is_gang: bool = True


def native(scheduler: str) -> Make:
    def make(name: str, pods: int, cores: int, spans: Raw) -> list[Raw]:
        metadata = {"name": name, "namespace": "ml", "annotations": spans}
        spec = {"schedulingPolicy": {"gang": {"minCount": pods}}}
        group = {"apiVersion": "scheduling.k8s.io/v1beta1", "kind": "PodGroup", "metadata": metadata, "spec": spec}
        of_pod = {**pod_spec(scheduler, cores), "schedulingGroup": {"podGroupName": name}}
        return [group, *({**pod(f"{name}-{i}", scheduler), "spec": of_pod} for i in range(pods))]

    return make


def workload(scheduler: str) -> Make:
    def make(name: str, pods: int, cores: int, spans: Raw) -> list[Raw]:
        metadata = {"name": name, "namespace": "ml", "annotations": spans}
        spec = {"podGroups": [{"name": "w", "policy": {"gang": {"minCount": pods}}}]}
        whole = {"apiVersion": "scheduling.k8s.io/v1alpha1", "kind": "Workload", "metadata": metadata, "spec": spec}
        of_pod = {**pod_spec(scheduler, cores), "workloadRef": {"name": name, "podGroup": "w"}}
        return [whole, *({**pod(f"{name}-{i}", scheduler), "spec": of_pod} for i in range(pods))]

    return make


def annotated(make: Callable[[str, int, int], list[Raw]]) -> Make:
    """Give the first object of a job, which is its Job or PodGroup, the annotations."""

    def made(name: str, pods: int, cores: int, spans: Raw) -> list[Raw]:
        first, *rest = make(name, pods, cores)
        return [{**first, "metadata": {**first["metadata"], "annotations": spans}}, *rest]

    return made


def batch(scheduler: str) -> Make:
    return lambda name, pods, cores, spans: [batch_job(name, pods, scheduler, cores, **spans)]


def bare(scheduler: str) -> Make:
    return lambda name, pods, cores, spans: [pod(f"{name}-{i}", scheduler, cores, **spans) for i in range(pods)]


JOBS_INPUTS = {
    "volcano-job": JobsInput("volcano", annotated(volcano_job)),
    "volcano-gang": JobsInput("volcano", annotated(volcano_gang)),
    "batch-job": JobsInput("volcano", batch("volcano"), is_gang=False),
    "pods": JobsInput("volcano", bare("volcano"), is_gang=False),
    "native-gang": JobsInput("volcano", native("volcano")),
    "workload": JobsInput("volcano", workload("volcano")),
    "kai-gang": JobsInput("kai", annotated(kai_gang)),
    "kai-batch-job": JobsInput("kai", batch("kai-scheduler"), is_gang=False),
    "kai-pods": JobsInput("kai", bare("kai-scheduler"), is_gang=False),
    "kai-native-gang": JobsInput("kai", native("kai-scheduler")),
    "kai-workload": JobsInput("kai", workload("kai-scheduler")),
}


def written_input(folder: Path, form: JobsInput, running: str = "") -> Path:
    """Write the three jobs of a form with a node and queues, and return the file. ``running``: the job whose pods run
    already."""
    jobs = [
        _on_node(each) if name == running and each["kind"] == "Pod" else each
        for name, (pods, cores, seconds) in JOBS.items()
        for each in form.make(name, pods, cores, _spans(seconds))
    ]
    queues = KAI if form.language == "kai" else VOLCANO
    (folder / "all.json").write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": [NODE, *queues, *jobs]}))
    return folder / "all.json"


def _on_node(made: Raw) -> Raw:
    return {**made, "spec": {**made["spec"], "nodeName": NODE["metadata"]["name"]}, "status": {"phase": "Running"}}


def _spans(seconds: int) -> Raw:
    return {"pumice.dev/duration": f"{seconds}s", "pumice.dev/estimate": f"{seconds}s"}


class TraceInput(Struct, frozen=True):
    """A trace in the examples, or the ``text`` of one. ``options``: those that it needs."""

    path: str
    text: str = ""
    options: tuple[str, ...] = ()

    def written(self, folder: Path) -> str:
        if not self.text:
            kind, _, path = self.path.rpartition(":")
            return f"{kind}:{ROOT / path}" if kind else str(ROOT / path)
        (folder / self.path).write_text(self.text)
        return str(folder / self.path)


def _swf() -> Iterator[str]:
    yield "; MaxNodes: 4"
    for number, cores, seconds in ((1, 3, 60), (2, 3, 30), (3, 1, 30)):
        fields = [number, 0, -1, seconds, cores, -1, -1, cores, seconds, -1, 1, 1, 1, -1, 1, 1, -1, -1]
        yield " ".join(map(str, fields))


_EXAMPLES = "examples/traces"
TRACES = {
    "csv": TraceInput(
        "jobs.csv",
        "job,submit_s,run_s,pods,cpus\nfirst,0,60,2,3\nlater,0,30,2,3\ngiant,0,30,3,7\n",
        ("--nodes", "1:cpu=8,memory=64Gi"),
    ),
    "swf": TraceInput("jobs.swf", "\n".join(_swf()) + "\n"),
    "philly": TraceInput(f"{_EXAMPLES}/philly"),
    "helios": TraceInput(f"{_EXAMPLES}/helios"),
    "pai-2020": TraceInput(f"{_EXAMPLES}/pai-2020"),
    "alibaba-spot-2026": TraceInput(f"{_EXAMPLES}/alibaba-spot-2026"),
    "alibaba-dlrm-2025": TraceInput(
        f"{_EXAMPLES}/alibaba-dlrm-2025", options=("--nodes", "8:cpu=64,memory=512Gi,gpu=8")
    ),
    "google-2019": TraceInput(
        f"google-2019:{_EXAMPLES}/google-2019/instance_events.json", options=("--nodes", "4:cpu=64,memory=256Gi")
    ),
    "azure-packing": TraceInput(
        f"{_EXAMPLES}/azure-packing/packing.sqlite", options=("--nodes", "8:cpu=64,memory=512Gi")
    ),
}
