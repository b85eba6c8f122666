"""Starts that a scheduler predicts: one writer, a bounded rate, and what became of them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest
from msgspec.structs import replace

from pumice.kube.api.client import Client
from pumice.kube.api.errors import KubeError
from pumice.kube.informers.informer_cache import InformerCache
from pumice.kube.scheduler import predicting
from pumice.kube.scheduler.predicting import PredictedStarts
from pumice.kube.writers.start_annotations import RECORD, START, UNKNOWN
from pumice.model.events import Gone, Seen
from pumice.model.pod import Pod
from pumice.model.workloads.podgroup import PodGroup
from pumice.ours.start_scores import record_in
from pumice.testing.build import podgroup, pods

HOUR = 3600.0


class Recording(Client):
    """A client that applies patches of PodGroups to a cache. ``refuses``: keys of which it refuses each."""

    def __init__(self, cache: InformerCache) -> None:
        self.cache, self.patches, self.refuses = cache, list[tuple[str, dict[str, Any]]](), set[str]()

    async def patch(self, path: str, body: Any, **_: Any) -> dict[str, Any]:
        key = "ns/" + path.rpartition("/")[2]
        if key in self.refuses:
            raise KubeError("no")
        group = self.cache.groups[key]
        assert body["metadata"]["uid"] == group.uid
        merged = {**group.annotations, **body["metadata"]["annotations"]}
        self.cache.apply(
            [Seen(replace(group, annotations={k: text for k, text in merged.items() if text is not None}))]
        )
        self.patches.append((key, body["metadata"]["annotations"]))
        return {}


class Running:
    """A cluster as a scheduler knows it, with predictions as a test wants them: seconds until jobs start, by name."""

    def __init__(self, *names: str) -> None:
        self.cache, self.now = InformerCache(lambda: None), 1_000_000.0
        self.client = Recording(self.cache)
        self.waits: dict[str, float | str] = dict.fromkeys(names, HOUR)
        for name in names:
            self.cache.apply([Seen(podgroup(name, 2)), *map(Seen, pods(name, 2))])
        self.predicted = PredictedStarts(self.asked, self.client, lambda: self.cache, 60.0, lambda: self.now)

    async def asked(self) -> Mapping[str, Any]:
        jobs = {
            f"ns/{name}": {"simulated_s": [wait] * 5, "why_not": ""}
            if isinstance(wait, float)
            else {"simulated_s": [], "why_not": wait}
            for name, wait in self.waits.items()
        }
        return {"at": self.now, "until_s": 7 * 24 * HOUR, "jobs": jobs}

    def start(self, name: str, at: float) -> None:
        del self.waits[name]
        started = [replace(pod, node_name="n", phase="Running", start_time=at) for pod in pods(name, 2)]
        self.cache.apply(map(Seen, started))

    def annotations(self, name: str) -> Mapping[str, str]:
        return self.cache.groups[f"ns/{name}"].annotations


async def test_starts_are_written_once_and_removed_when_the_job_has_started() -> None:
    found = Running("a", "b")
    await found.predicted.renew()
    assert found.annotations("a")[START] == "1970-01-12T14:46:40Z" and len(found.client.patches) == 2
    found.now += 60.0
    await found.predicted.renew()
    assert len(found.client.patches) == 2, "written again although it has hardly moved"
    found.start("a", found.now)
    await found.predicted.renew()
    assert found.annotations("a") == {} and START in found.annotations("b") and len(found.client.patches) == 3


async def test_why_nothing_can_be_said_is_written() -> None:
    found = Running("a")
    found.waits["a"] = "no simulation ended within 1 steps"
    await found.predicted.renew()
    assert found.annotations("a") == {UNKNOWN: "no simulation ended within 1 steps"}
    assert found.predicted.notes()["starts.known"] == 0


async def test_writes_are_bounded_and_the_rest_is_written_next_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(predicting, "WRITES_MAX", 2)
    found = Running("a", "b", "c")
    await found.predicted.renew()
    assert [key for key, _ in found.client.patches] == ["ns/a", "ns/b"]
    # All have moved by much, but the one without annotations comes first.
    found.waits = dict.fromkeys(found.waits, 9 * HOUR)
    await found.predicted.renew()
    assert [key for key, _ in found.client.patches[2:]] == ["ns/c", "ns/a"]


async def test_a_refused_write_is_not_repeated_at_once_and_counts_for_nothing() -> None:
    found = Running("a")
    found.client.refuses = {"ns/a"}
    await found.predicted.renew()
    found.client.refuses = set()
    await found.predicted.renew()
    assert found.client.patches == []
    found.start("a", found.now)
    await found.predicted.renew()
    assert found.predicted.notes()["starts.known"] == 0


async def test_what_became_of_predictions_is_counted_and_written_beside_the_next() -> None:
    found = Running("a", "b", "c", "d")
    found.waits["d"] = "not yet"
    await found.predicted.renew()
    found.start("a", found.now + HOUR)
    found.start("b", found.now + 9 * HOUR)
    # One that is deleted never starts, and one of the same name is another job.
    found.cache.apply([Gone(PodGroup, "ns/c"), *(Gone(Pod, pod.key) for pod in pods("c", 2))])
    del found.waits["c"]
    found.cache.apply([Seen(replace(podgroup("c", 2), uid="another"))])
    found.waits["d"] = HOUR
    await found.predicted.renew()
    assert found.annotations("d")[RECORD] == "of 2 earlier predictions 1 within 80 %, 1 within 95 %"
    record = record_in(found.predicted.notes())
    assert record is not None and (record.known, record.within_80) == (2, 1)


async def test_without_an_answer_nothing_is_written() -> None:
    found = Running("a")

    async def fails() -> Mapping[str, Any]:
        raise ValueError("found no answer within 30 s")

    predicted = PredictedStarts(fails, found.client, lambda: found.cache, 60.0)
    await predicted.renew()
    assert found.client.patches == []
