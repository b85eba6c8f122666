"""Small simulations with everything a report shows, and their numbers."""

from __future__ import annotations

import base64
import json
import zlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from pumice.report.data import ReportData, report_data
from pumice.report.summary import Summary, summarise
from pumice.runtime.policy.conf import policy_of
from pumice.sim.run import simulate
from pumice.sim.scenes.inputs import Inputs, read_inputs
from pumice.sim.settings import SimSettings
from pumice.volcano.table import DEFAULT_CONF, volcano_registry

NODE = """
apiVersion: v1
kind: Node
metadata: {{name: {name}}}
status: {{allocatable: {{cpu: "{cpu}", memory: 8Gi, pods: 110}}}}
---"""
QUEUE = """
apiVersion: scheduling.volcano.sh/v1beta1
kind: Queue
metadata: {{name: {name}}}
spec: {{weight: {weight}}}
---"""
JOB = """
apiVersion: batch.volcano.sh/v1alpha1
kind: Job
metadata:
  name: {name}
  annotations: {{pumice.dev/arrival: "{at}s", pumice.dev/duration: "{seconds}s"}}
spec:
  schedulerName: volcano
  queue: {queue}
  minAvailable: {pods}
  tasks:
  - name: worker
    replicas: {pods}
    template: {{spec: {{containers: [{{name: main, resources: {{requests: {{cpu: "{cpu}"}}}}}}]}}}}
---"""


def node(name: str, cpu: int = 4) -> str:
    return NODE.format(name=name, cpu=cpu)


def queue(name: str, weight: int = 1) -> str:
    return QUEUE.format(name=name, weight=weight)


def job(name: str, pods: int = 1, *, queue: str = "a", cpu: int = 1, at: int = 0, seconds: int = 60) -> str:
    return JOB.format(name=name, pods=pods, queue=queue, cpu=cpu, at=at, seconds=seconds)


#: Two queues on eight cores: a job that runs from second 1 (admitted at 0, placed a cycle later) to 101, one that waits
#: for it and runs from 102 to 142, one that is too large for ever.
TWO_QUEUES: Sequence[str] = (
    node("n1"),
    node("n2"),
    queue("a"),
    queue("b", 3),
    job("first", 8, seconds=100),
    job("second", 4, queue="b", at=20, seconds=40),
    job("giant", 9, queue="b", at=30),
)
#: Nothing can run: every chart has nothing to show, or a flat line.
NOTHING_RUNS: Sequence[str] = (node("n1"), queue("a"), job("large", cpu=9))


def inputs(folder: Path, manifests: Sequence[str]) -> Inputs:
    """What is read of these manifests."""
    file = folder / "all.yaml"
    file.write_text("\n".join(manifests))
    return read_inputs([str(file)])


def summary_of(found: Inputs, until: float | None = None, period_s: float = 1.0) -> Summary:
    """Simulated under Volcano's default policy."""
    policy = policy_of(DEFAULT_CONF, volcano_registry())
    return summarise(simulate(found.scene, policy, SimSettings(until=until, period_s=period_s)))


def data_of(folder: Path, manifests: Sequence[str] = TWO_QUEUES, until: float | None = None) -> ReportData:
    found = inputs(folder, manifests)
    return report_data(summary_of(found, until), found, "default")


def unpacked(block: str) -> Any:
    """What a page's script reads of its data."""
    return json.loads(zlib.decompress(base64.b64decode(block), wbits=-zlib.MAX_WBITS))


def data_on(page: str) -> Any:
    """The data of a whole page."""
    return unpacked(page.partition('id="data">')[2].partition("<")[0])
