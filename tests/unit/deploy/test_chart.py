"""The chart with other values than its own. That its own give the kustomize base is asked in tests/kube."""

from pathlib import Path
from typing import Any

import click
import pytest
import yaml

import pumice
from pumice.cli.main import main
from pumice.runtime.policy.conf import policy_of
from pumice.runtime.policy.languages import builtin_registry
from pumice.volcano.table import volcano_registry
from tests.unit.deploy.helm import render

DEPLOY = Path(__file__).resolve().parents[3] / "deploy"


def rendered(**values: Any) -> dict[str, dict[str, Any]]:
    return {f"{obj['kind']}/{obj['metadata']['name']}": obj for obj in render(DEPLOY / "chart", "ns", values)}


def container(objects: dict[str, dict[str, Any]]) -> dict[str, Any]:
    (found,) = objects["Deployment/pumice"]["spec"]["template"]["spec"]["containers"]
    return dict(found)


def test_everything_goes_to_the_namespace_of_the_release() -> None:
    for name, obj in rendered().items():
        clusterwide = name.startswith("ClusterRole")
        assert obj["metadata"].get("namespace") == (None if clusterwide else "ns"), name
        assert [s["namespace"] for s in obj.get("subjects", ())] in ([], ["ns"]), name


def test_versions_are_the_packages() -> None:
    about = yaml.safe_load((DEPLOY / "chart" / "Chart.yaml").read_text())
    (image,) = yaml.safe_load((DEPLOY / "base" / "kustomization.yaml").read_text())["images"]
    assert about["version"] == about["appVersion"] == image["newTag"] == pumice.__version__
    assert container(rendered())["image"] == f"pumice:{pumice.__version__}"


def test_crds_are_those_of_the_project() -> None:
    assert (DEPLOY / "chart" / "crds").resolve() == DEPLOY / "crds"
    wanted = {f"crds/{path.name}" for path in (DEPLOY / "crds").glob("*.yaml")}
    assert set(yaml.safe_load((DEPLOY / "kustomization.yaml").read_text())["resources"]) == wanted | {"base"}


def test_controllers_that_are_off_have_no_rights() -> None:
    on, off = rendered(), rendered(controllers={"enabled": False})
    assert on.keys() - off.keys() == {"ClusterRole/pumice-controllers", "ClusterRoleBinding/pumice-controllers"}
    assert "--controllers=" in container(off)["args"] and "--controllers=" not in container(on)["args"]


def test_values_reach_the_deployment() -> None:
    objects = rendered(
        image={"repository": "mine/pumice", "tag": "t"},
        schedulerName="other",
        extraArgs=["-v=4"],
        conf={"existingConfigMap": "volcano-scheduler-configmap"},
        nodeSelector={"role": "control"},
        tolerations=[{"operator": "Exists"}],
        priorityClassName="",
    )
    it = container(objects)
    assert it["image"] == "mine/pumice:t" and it["args"][-1] == "-v=4" and "--scheduler-name=other" in it["args"]
    spec = objects["Deployment/pumice"]["spec"]["template"]["spec"]
    assert spec["nodeSelector"] == {"role": "control"} and spec["tolerations"] == [{"operator": "Exists"}]
    assert "priorityClassName" not in spec
    assert spec["volumes"][0]["configMap"]["name"] == "volcano-scheduler-configmap"
    assert "ConfigMap/pumice-scheduler-conf" not in objects


def test_the_conf_is_a_policy_that_loads() -> None:
    text = rendered()["ConfigMap/pumice-scheduler-conf"]["data"]["volcano-scheduler.conf"]
    assert [action.name for action in policy_of(text, volcano_registry()).actions] == [
        "enqueue",
        "allocate",
        "backfill",
    ]


def test_the_arguments_are_options_of_pumice_run() -> None:
    run = main.get_command(click.Context(main), "run")
    if run is None:
        pytest.skip("PUMICE RUN IS NOT THERE YET: its options cannot be compared with the manifests")
    known = {option for parameter in run.get_params(click.Context(run)) for option in parameter.opts}
    both = container(rendered()), container(rendered(controllers={"enabled": False}))
    words = {word.partition("=")[0] for each in both for word in each["args"] if word.startswith("-")}
    assert words <= known


def test_the_container_may_do_as_little_as_possible() -> None:
    objects = rendered()
    it, spec = container(objects), objects["Deployment/pumice"]["spec"]["template"]["spec"]
    assert spec["securityContext"]["runAsNonRoot"] and spec["securityContext"]["runAsUser"] > 0
    security = it["securityContext"]
    assert security["readOnlyRootFilesystem"] and not security["allowPrivilegeEscalation"]
    assert security["capabilities"] == {"drop": ["ALL"]}


def test_with_a_certificate_health_is_served_over_tls() -> None:
    plain, secret = rendered(), rendered(tls={"secretName": "pumice-tls", "metrics": True})
    probes = [container(secret)[f"{name}Probe"]["httpGet"] for name in ("liveness", "readiness")]
    assert [probe["scheme"] for probe in probes] == ["HTTPS", "HTTPS"]
    assert "scheme" not in container(plain)["livenessProbe"]["httpGet"]
    assert "--metrics-tls=True" in container(secret)["args"] or "--metrics-tls=true" in container(secret)["args"]
    assert not [word for word in container(plain)["args"] if "tls" in word]
    assert secret["Service/pumice"]["metadata"]["annotations"]["prometheus.io/scheme"] == "https"
    volumes = secret["Deployment/pumice"]["spec"]["template"]["spec"]["volumes"]
    assert {"name": "tls", "secret": {"secretName": "pumice-tls"}} in volumes


def test_the_manifests_for_kais_policy_are_complete() -> None:
    kustomization = yaml.safe_load((DEPLOY / "kai" / "kustomization.yaml").read_text())
    files = {str(path.relative_to(DEPLOY / "kai")) for path in (DEPLOY / "kai").rglob("*.yaml")}
    assert set(kustomization["resources"]) == files - {"kustomization.yaml"}
    assert kustomization["images"][0]["newTag"] == pumice.__version__
    conf = yaml.safe_load((DEPLOY / "kai" / "conf.yaml").read_text())["data"]["kai.conf"]
    assert policy_of(conf, builtin_registry()).dialect.name == "kai"
    ours, base = (DEPLOY / path for path in ("kai/scheduler.yaml", "base/deployment.yaml"))
    scheduler, other = (
        each["spec"]["template"]["spec"]["containers"][0]
        for path in (ours, base)
        for each in yaml.safe_load_all(path.read_text())
        if each["kind"] == "Deployment"
    )
    arguments = scheduler.pop("args")
    other.pop("args")
    assert scheduler == other
    command = main.get_command(click.Context(main), "run")
    assert command is not None and command.make_context("run", arguments[1:])
