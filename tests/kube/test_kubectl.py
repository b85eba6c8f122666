"""An unmodified kubectl against ``pumice serve``: what the guide shows, and what people type next."""

from __future__ import annotations

import json
import os
import re
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.kube.server import find_assets
from tests.unit.apiserver.commands import PUMICE, Served, serving_command

PATIENCE_S = 60
ROOT = Path(__file__).resolve().parents[2]
GUIDE = (ROOT / "docs" / "guide" / "embedded-server.md").read_text()
POD = """
apiVersion: v1
kind: Pod
metadata: {name: NAME, labels: {app: it}, annotations: {pumice.dev/duration: DURATION}}
spec:
  schedulerName: volcano
  containers: [{name: main, image: "busybox:1", resources: {requests: {cpu: "1"}}}]
"""
GROUP = """
apiVersion: scheduling.volcano.sh/v1beta1
kind: PodGroup
metadata: {name: gang}
spec: {minMember: MEMBERS, queue: default}
"""
BINDING = '{"apiVersion":"v1","kind":"Binding","metadata":{"name":"%s"},"target":{"kind":"Node","name":"node-00001"}}'


def manifest(name: str, duration: str = "1h") -> str:
    return POD.replace("NAME", name).replace("DURATION", duration)


class Kubectl:
    """One user at one server: a home of his own, so that nothing is cached over tests."""

    def __init__(self, program: Path, served: Served, home: Path) -> None:
        home.mkdir(exist_ok=True)
        self._command = [str(program), "--kubeconfig", str(served.kubeconfig)]
        self._environment = {**os.environ, "HOME": str(home), "KUBECONFIG": ""}

    def __call__(self, *args: str, stdin: str = "", fails: bool = False) -> str:
        """What it printed. ``stdin``: its standard input. With ``fails`` what it complained of."""
        done = subprocess.run(
            [*self._command, *args],
            input=stdin,
            env=self._environment,
            capture_output=True,
            text=True,
            timeout=PATIENCE_S,
            check=False,
        )
        assert bool(done.returncode) is fails, f"kubectl {args}: {done.stdout}{done.stderr}"
        assert "warning: error" not in done.stderr, done.stderr
        return done.stderr if fails else done.stdout

    @contextmanager
    def going_on(self, *args: str) -> Iterator[subprocess.Popen[str]]:
        """One that does not end by itself. It is ended with the block, also by a failed assertion."""
        command = [*self._command, *args]
        with subprocess.Popen(command, env=self._environment, stdout=subprocess.PIPE, text=True) as started:
            try:
                yield started
            finally:
                started.terminate()

    def bind(self, name: str) -> None:
        path = f"/api/v1/namespaces/default/pods/{name}/binding"
        self("create", "--raw", path, "-f", "-", stdin=BINDING % name)


@pytest.fixture(scope="session")
def program(assets: Path) -> Path:
    """The kubectl that is built beside the API server."""
    return find_assets("kubectl") / "kubectl"


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with serving_command(tmp_path_factory.mktemp("served"), "--nodes", "4x2gpu") as started:
        yield started


@pytest.fixture
def kubectl(program: Path, served: Served, tmp_path: Path) -> Iterator[Kubectl]:
    user = Kubectl(program, served, tmp_path / "home")
    yield user
    # Jobs first, because their controller creates their pods again.
    user("delete", "jobs.batch", "--all", "--cascade=background")
    user("delete", "pods,podgroups,queues", "--all", "--wait=false")


def test_what_is_there(kubectl: Kubectl) -> None:
    assert "Server Version: v1.36" in kubectl("version")
    lines = kubectl("get", "nodes").splitlines()
    assert lines[0].split() == ["NAME", "STATUS", "ROLES", "AGE", "VERSION"]
    assert len(lines) == 5
    assert "nvidia.com/gpu:  2" in kubectl("describe", "node", "node-00000")
    kinds = kubectl("api-resources", "-o", "name").split()
    assert {"pods", "podgroups.scheduling.volcano.sh", "jobs.batch.volcano.sh", "jobs.batch"} <= set(kinds)
    assert "yes" in kubectl("auth", "can-i", "create", "pods")


def test_applied_changed_and_applied_again(kubectl: Kubectl) -> None:
    gang = GROUP.replace("MEMBERS", "2")
    assert "created" in kubectl("apply", "-f", "-", stdin=gang)
    assert "unchanged" in kubectl("apply", "-f", "-", stdin=gang)
    assert "configured" in kubectl("apply", "-f", "-", stdin=gang.replace("2,", "3,"))
    assert kubectl("get", "pg", "gang", "-o", "jsonpath={.spec.minMember}") == "3"
    assert "created" in kubectl("apply", "-f", "-", stdin=manifest("a"))
    assert "configured" in kubectl("apply", "-f", "-", stdin=manifest("a").replace("busybox:1", "busybox:2"))
    assert kubectl("get", "pod", "a", "-o", "jsonpath={.spec.containers[*].image}") == "busybox:2"
    table = kubectl("get", "podgroups").splitlines()
    assert table[0].split() == ["NAME", "STATUS", "MINMEMBER", "RUNNINGS", "AGE"]


def test_what_people_type_next(kubectl: Kubectl) -> None:
    """A list in one document, who one is, and what ``kubectl create`` writes in protobuf."""
    maps = [f"{{apiVersion: v1, kind: ConfigMap, metadata: {{name: {name}}}}}" for name in "ab"]
    listed = f"{{apiVersion: v1, kind: List, items: [{', '.join(maps)}]}}"
    assert kubectl("apply", "-f", "-", stdin=listed).count("created") == 2
    assert kubectl("apply", "-f", "-", stdin=listed).count("unchanged") == 2
    assert "system:masters" in kubectl("auth", "whoami")
    kubectl("create", "deployment", "d", "--image=i:1", "--port=80")
    assert kubectl("get", "deployment", "d", "-o", "jsonpath={..containers[*].ports[*].containerPort}") == "80"
    kubectl("scale", "deployment", "d", "--replicas=3")
    assert kubectl("get", "deployment", "d", "-o", "jsonpath={.spec.replicas}") == "3"
    kubectl("create", "job", "j", "--image=i:1", "--", "sleep", "9")
    assert kubectl("get", "jobs.batch", "j", "-o", "jsonpath={..containers[*].command}") == '["sleep","9"]'
    kubectl("create", "role", "r", "--verb=get", "--resource=pods")
    kubectl("create", "rolebinding", "b", "--role=r", "--user=me")
    kubectl("create", "service", "clusterip", "s", "--tcp=80:8080")
    assert kubectl("get", "service", "s", "-o", "jsonpath={.spec.ports[*].targetPort}") == "8080"
    spec = "{weight: 3, deserved: {cpu: 4}}"
    queue = f"{{apiVersion: scheduling.volcano.sh/v1beta1, kind: Queue, metadata: {{name: q}}, spec: {spec}}}"
    kubectl("apply", "-f", "-", stdin=queue)
    head, row = kubectl("get", "queue", "q").splitlines()
    assert head.split() == ["NAME", "WEIGHT", "STATE", "ALLOCATED", "DESERVED", "AGE"]
    assert row.split()[:3] == ["q", "3", '{"cpu":4}']


def test_applied_by_the_server(kubectl: Kubectl) -> None:
    queue = "{apiVersion: scheduling.volcano.sh/v1beta1, kind: Queue, metadata: {name: team}, spec: {weight: %d}}"
    apply = ("apply", "--server-side", "-f", "-")
    assert "serverside-applied" in kubectl(*apply, stdin=queue % 1)
    assert "serverside-applied" in kubectl(*apply, stdin=queue % 2)
    refused = kubectl(*apply, "--field-manager=other", stdin=queue % 3, fails=True)
    assert 'conflict with "kubectl"' in refused and ".spec.weight" in refused
    kubectl(*apply, "--field-manager=other", "--force-conflicts", stdin=queue % 3)
    assert kubectl("get", "queue", "team", "-o", "jsonpath={.spec.weight}") == "3"


def test_what_is_wrong_is_reported(kubectl: Kubectl) -> None:
    gang = GROUP.replace("MEMBERS", "2")
    unknown = kubectl("create", "-f", "-", stdin=gang.replace("minMember", "minMembers"), fails=True)
    assert 'unknown field "spec.minMembers"' in unknown
    assert "spec.minMember" in kubectl("create", "-f", "-", stdin=gang.replace("2,", "-2,"), fails=True)
    assert "NotFound" in kubectl("get", "pod", "nobody", fails=True)
    kubectl("create", "-f", "-", stdin=gang)
    assert "AlreadyExists" in kubectl("create", "-f", "-", stdin=gang, fails=True)


def test_explained(kubectl: Kubectl) -> None:
    assert "minMember\t<integer>" in kubectl("explain", "podgroup.spec")
    assert "How many pods make the gang." in kubectl("explain", "podgroup.spec.minMember")
    assert "requests\t<map[string]string>" in kubectl("explain", "pod.spec.containers.resources")
    assert "The higher, the more important." in kubectl("explain", "priorityclass.value")


def test_a_life_is_watched(kubectl: Kubectl) -> None:
    columns = "custom-columns=:metadata.name,:status.phase"
    with kubectl.going_on("get", "pods", "--watch", "--output-watch-events", "--no-headers") as watch:
        assert watch.stdout is not None
        kubectl("create", "-f", "-", stdin=manifest("a", "1s"))
        assert watch.stdout.readline().split()[:4] == ["ADDED", "a", "0/1", "Pending"]
        kubectl.bind("a")
        kubectl("wait", "--for=jsonpath={.status.phase}=Succeeded", "pod/a", "--timeout=60s")
        kubectl("delete", "pod", "a")
        words = []
        while not words or words[-1][0] != "DELETED":
            words.append(watch.stdout.readline().split())
    seen = [word[3] for word in words if word[0] == "MODIFIED"]
    assert [state for i, state in enumerate(seen) if state not in seen[:i]] == [
        "ContainerCreating",
        "Running",
        "Completed",
    ]
    assert kubectl("get", "pods", "-o", columns, "--no-headers") == ""


def test_described_with_its_events(kubectl: Kubectl) -> None:
    kubectl("create", "-f", "-", stdin=manifest("a"))
    kubectl.bind("a")
    kubectl("wait", "--for=condition=Ready", "pod/a", "--timeout=60s")
    uid = kubectl("get", "pod", "a", "-o", "jsonpath={.metadata.uid}")
    event = {
        "apiVersion": "events.k8s.io/v1",
        "kind": "Event",
        "metadata": {"name": "a.1", "namespace": "default"},
        "regarding": {"kind": "Pod", "name": "a", "namespace": "default", "uid": uid},
        "reason": "Scheduled",
        "action": "Binding",
        "type": "Normal",
        "note": "put on a node",
        "reportingController": "it",
        "reportingInstance": "it-0",
        "eventTime": "2026-01-01T00:00:00.000000Z",
    }
    kubectl("create", "-f", "-", stdin=json.dumps(event))
    text = kubectl("describe", "pod", "a")
    assert "Node:" in text and "node-00001" in text
    assert "put on a node" in text
    assert "put on a node" in kubectl("get", "events")


def test_labels_selectors_and_pages(kubectl: Kubectl) -> None:
    kubectl("create", "-f", "-", stdin="\n---\n".join(manifest(f"p{i}") for i in range(5)))
    kubectl("label", "pod", "p1", "p2", "team=x")
    kubectl("annotate", "pod", "p1", "note=n")
    assert kubectl("get", "pods", "-l", "team in (x),app", "-o", "name").split() == ["pod/p1", "pod/p2"]
    assert len(kubectl("get", "pods", "--chunk-size=2", "-o", "name").split()) == 5
    kubectl.bind("p3")
    on_node = kubectl("get", "pods", "--field-selector", "spec.nodeName=node-00001", "-o", "name")
    assert on_node.split() == ["pod/p3"]
    kubectl("patch", "pod", "p1", "--type=json", "-p", '[{"op":"remove","path":"/metadata/labels/team"}]')
    assert kubectl("get", "pods", "-l", "team=x", "-o", "name").split() == ["pod/p2"]


def test_nodes_are_cordoned_and_drained(kubectl: Kubectl) -> None:
    kubectl("create", "-f", "-", stdin=manifest("a"))
    kubectl.bind("a")
    kubectl("drain", "node-00001", "--force", "--timeout=60s")
    assert "NotFound" in kubectl("get", "pod", "a", fails=True)
    assert "SchedulingDisabled" in kubectl("get", "node", "node-00001")
    kubectl("uncordon", "node-00001")
    kubectl("taint", "node", "node-00001", "k=v:NoSchedule")
    kubectl("taint", "node", "node-00001", "k-")
    assert "Taints:             <none>" in kubectl("describe", "node", "node-00001")


def test_a_namespace_and_all_that_is_in_it(kubectl: Kubectl) -> None:
    kubectl("create", "namespace", "team")
    kubectl("-n", "team", "create", "configmap", "c", "--from-literal=a=b")
    kubectl("-n", "team", "create", "quota", "q", "--hard=pods=3")
    kubectl("-n", "team", "create", "-f", "-", stdin=manifest("a"))
    assert kubectl("-n", "team", "get", "pods,configmaps,quota", "-o", "name").split() == [
        "pod/a",
        "configmap/c",
        "resourcequota/q",
    ]
    kubectl("delete", "namespace", "team", "--timeout=60s")
    assert "team" not in kubectl("get", "namespaces")


def test_a_kind_of_ones_own(kubectl: Kubectl, tmp_path: Path) -> None:
    schema = {"type": "object", "properties": {"spec": {"type": "object", "properties": {"size": {"type": "integer"}}}}}
    version = {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}
    names = {"plural": "things", "singular": "thing", "kind": "Thing"}
    definition = {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "things.example.com"},
        "spec": {"group": "example.com", "scope": "Namespaced", "names": names, "versions": [version]},
    }
    kubectl("apply", "-f", "-", stdin=json.dumps(definition))
    kubectl("wait", "--for=condition=Established", "crd/things.example.com", "--timeout=60s")
    kubectl("apply", "-f", "-", stdin="{apiVersion: example.com/v1, kind: Thing, metadata: {name: t}, spec: {size: 1}}")
    assert "size\t<integer>" in kubectl("explain", "thing.spec")
    kubectl("delete", "crd", "things.example.com")
    assert kubectl("get", "things", fails=True)


def test_our_own_definitions_are_applied_over_themselves(kubectl: Kubectl) -> None:
    crds = ROOT / "deploy" / "crds"
    reports = kubectl("apply", "--server-side", "-f", str(crds))
    assert reports.count("serverside-applied") == len(list(crds.glob("*.yaml")))


def test_from_nothing_to_a_gang(program: Path, tmp_path: Path) -> None:
    """The session that the guide shows, down to what kubectl prints; ages and the uid are of the day."""
    (shown,) = re.findall(r"(?<=    \$ kubectl apply).*?(?=\n\n\w)", GUIDE, re.DOTALL)
    with serving_command(tmp_path, "--nodes", "8x4gpu", "--schedule") as served:
        user = Kubectl(program, served, tmp_path / "home")
        said = "$ kubectl apply -f examples/gang.yaml\n" + user("apply", "-f", str(ROOT / "examples" / "gang.yaml"))
        user("wait", "--for=jsonpath={.status.state.phase}=Running", "vcjob/gang", "--timeout=60s")
        user("wait", "--for=jsonpath={.status.phase}=Running", "podgroup", "--all", "--timeout=60s")
        said += "$ kubectl get vcjob,podgroup,pods\n" + user("get", "vcjob,podgroup,pods")
        assert user("get", "events").count("Successfully assigned default/gang-worker-") == 4
    assert _plain(said) == _plain("$ kubectl apply" + shown)


def _plain(session: str) -> list[list[str]]:
    """Words, line by line, without what differs from day to day."""
    text = re.sub(r"gang(-[0-9a-f]{4,12}){5}", "gang-UID", session)
    return [re.sub(r"\b\d+s$", "AGE", line.strip()).split() for line in text.splitlines() if line.strip()]


def test_a_scheduler_beside(program: Path, tmp_path: Path) -> None:
    """``pumice run`` in a process of its own. The manifest is the guide's."""
    (pair,) = re.findall(r"^```yaml\n(.*?)^```", GUIDE, re.MULTILINE | re.DOTALL)
    quiet = ("--enable-metrics=false", "--enable-healthz=false")
    with serving_command(tmp_path, "--nodes", "8x4gpu") as served:
        command = [*PUMICE, "run", "--kubeconfig", str(served.kubeconfig), *quiet]
        user = Kubectl(program, served, tmp_path / "home")
        with subprocess.Popen(command, stderr=subprocess.DEVNULL) as scheduler:
            try:
                user("apply", "-f", "-", stdin=pair)
                user("wait", "--for=condition=Ready", "pod", "--all", "--timeout=60s")
                user("wait", "--for=jsonpath={.status.phase}=Running", "podgroup/pair", "--timeout=60s")
                assert user("get", "events").count("Successfully assigned default/pair-") == 2
            finally:
                scheduler.kill()


def test_a_token_a_certificate_and_a_restart(program: Path, tmp_path: Path) -> None:
    """Beyond loopback the kubeconfig carries both, and both stay over a restart."""
    how = ("--listen", "0.0.0.0", "--data", str(tmp_path / "data"), "--nodes", "2x1gpu")
    with serving_command(tmp_path, *how) as served:
        user = Kubectl(program, served, tmp_path / "home")
        assert served.url.startswith("https://")
        user("create", "-f", "-", stdin=manifest("a"))
        before = user("get", "pod", "a", "-o", "jsonpath={.metadata.uid}")
        token = user("config", "view", "--raw", "-o", "jsonpath={.users[0].user.token}")
        served.process.kill()
    with serving_command(tmp_path, *how) as served:
        user = Kubectl(program, served, tmp_path / "home")
        assert user("get", "pod", "a", "-o", "jsonpath={.metadata.uid}") == before
        assert user("config", "view", "--raw", "-o", "jsonpath={.users[0].user.token}") == token
        assert "Unauthorized" in user("get", "nodes", "--token", "x" * 40, fails=True)
