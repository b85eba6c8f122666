"""Commands as users run them: in this process, with files of their own."""

from __future__ import annotations

import json
from typing import Any

from click.testing import CliRunner
from msgspec import Struct

from pumice.cli.main import main

GOOD = """
apiVersion: v1
kind: Node
metadata: {name: n1}
status: {allocatable: {cpu: "4", memory: 8Gi, pods: 110}}
---
apiVersion: scheduling.volcano.sh/v1beta1
kind: Queue
metadata: {name: team-a}
spec: {weight: 1}
---
apiVersion: scheduling.volcano.sh/v1beta1
kind: PodGroup
metadata: {name: good, namespace: ns}
spec: {minMember: 1, queue: team-a}
---
apiVersion: v1
kind: Pod
metadata: {name: good-0, namespace: ns, annotations: {scheduling.k8s.io/group-name: good}}
spec: {schedulerName: volcano, containers: [{name: main, resources: {requests: {cpu: "1"}}}]}
status: {phase: Pending}
"""


class Result(Struct, frozen=True):
    """What a command printed, and its exit code."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)

    def lines(self, kind: str) -> list[str]:
        """What was said of one kind: error, warning, note."""
        return [line.removeprefix(f"{kind}: ") for line in self.err.splitlines() if line.startswith(f"{kind}: ")]


def run(*arguments: object, stdin: str | None = None) -> Result:
    """Run ``pumice …``. No input may ever show a traceback, or be called our fault."""
    result = CliRunner().invoke(main, [str(argument) for argument in arguments], input=stdin, prog_name="pumice")
    assert isinstance(result.exception, SystemExit | None), result.exception
    for sign in ("Traceback", "internal error: "):
        assert sign not in result.output
    return Result(result.exit_code, result.stdout, result.stderr)
