"""A real Prometheus on loopback, which receives series with times of their own, so that no test waits for a scrape."""

from __future__ import annotations

import json
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from msgspec import Struct

from tests.kube.server import NoAssets, free_port

BUILD = Path(__file__).resolve().parents[2] / "scripts" / "build-prometheus"
_STARTS_S, _START_TRIES = 60.0, 3
RULES = Path(__file__).resolve().parents[2] / "deploy" / "prometheus" / "pumice-rules.yaml"
_CONFIG = f"""
otlp: {{translation_strategy: NoTranslation}}
storage: {{tsdb: {{out_of_order_time_window: 1d}}}}
rule_files: ["{RULES}"]
"""


def find_prometheus() -> Path:
    """The binary; built once where it is not there. Raises: NoAssets."""
    found = subprocess.run([sys.executable, BUILD], stdout=subprocess.PIPE, text=True, check=False)
    if found.returncode:
        raise NoAssets(f"{BUILD.name} failed with {found.returncode}: see above")
    return Path(found.stdout.splitlines()[-1]) / "prometheus"


class Series(Struct, frozen=True):
    """``values``: from oldest to newest, ``step_s`` apart, the last one now."""

    name: str
    values: Sequence[float]
    labels: dict[str, str] = {}
    step_s: int = 30

    def metric(self, now: int) -> dict[str, object]:
        """As OpenTelemetry writes it."""
        attributes = [{"key": key, "value": {"stringValue": value}} for key, value in self.labels.items()]
        first = now - self.step_s * (len(self.values) - 1)
        points = [
            {"timeUnixNano": str((first + i * self.step_s) * 10**9), "asDouble": value, "attributes": attributes}
            for i, value in enumerate(self.values)
        ]
        return {"name": self.name, "gauge": {"dataPoints": points}}


class Prometheus:
    """One process below a folder."""

    def __init__(self, binary: Path, folder: Path) -> None:
        self._binary, self._folder = binary, folder
        self._process: subprocess.Popen[bytes] | None = None
        self.url = ""

    def start(self) -> None:
        """Raises: RuntimeError."""
        config = self._folder / "prometheus.yml"
        config.write_text(_CONFIG)
        for attempt in range(_START_TRIES):  # another process may take a free port before it does
            address = f"127.0.0.1:{free_port()}"
            self.url = f"http://{address}"
            flags = (
                f"--config.file={config}",
                f"--storage.tsdb.path={self._folder / 'data'}",
                f"--web.listen-address={address}",
                "--web.enable-otlp-receiver",
                "--log.level=warn",
            )
            with (self._folder / "prometheus.log").open("ab") as log:
                self._process = subprocess.Popen(
                    [self._binary, *flags], stdout=log, stderr=log, stdin=subprocess.DEVNULL, start_new_session=True
                )
            if self._comes_up(self._process):
                return
            self.stop()
            if attempt == _START_TRIES - 1:
                said = (self._folder / "prometheus.log").read_text(errors="replace")[-1500:]
                raise RuntimeError(f"Prometheus does not come up: {said}")

    def _comes_up(self, process: subprocess.Popen[bytes]) -> bool:
        deadline = time.monotonic() + _STARTS_S
        while time.monotonic() < deadline and process.poll() is None:
            try:
                with urllib.request.urlopen(f"{self.url}/-/ready", timeout=2) as answer:
                    if answer.status == 200:
                        return True
            except OSError:
                try:
                    process.wait(0.05)
                except subprocess.TimeoutExpired:
                    continue
        return False

    def stop(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.wait()

    def take(self, instance: str, series: Sequence[Series], now: int) -> None:
        """Let it know what an ``instance`` measured until ``now``."""
        resource = {"attributes": [{"key": "service.instance.id", "value": {"stringValue": instance}}]}
        metrics = [each.metric(now) for each in series]
        body = {"resourceMetrics": [{"resource": resource, "scopeMetrics": [{"scope": {}, "metrics": metrics}]}]}
        request = urllib.request.Request(
            f"{self.url}/api/v1/otlp/v1/metrics", json.dumps(body).encode(), {"Content-Type": "application/json"}
        )
        with urllib.request.urlopen(request, timeout=10) as answer:
            assert answer.status == 200


@contextmanager
def running_prometheus(binary: Path, folder: Path) -> Iterator[Prometheus]:
    prometheus = Prometheus(binary, folder)
    prometheus.start()
    try:
        yield prometheus
    finally:
        prometheus.stop()
