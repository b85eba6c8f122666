"""The pods of a job as objects of the API, with what its plugins add: environment, host names, a service.

Source: Volcano's job controller.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator

from pumice.model.manifest.jobs import JOB_NAME_KEY, JOB_NAMESPACE_KEY, TASK_INDEX_KEY, pods_of
from pumice.model.manifest.reading.fields import Obj
from pumice.model.pod import GROUP_NAME_ANNOTATION, TASK_SPEC_KEY
from pumice.model.workloads.job import JobTask, VolcanoJob
from pumice.runtime.controllers import job_ssh
from pumice.runtime.controllers.job_frameworks import open_ports, pod_annotations, ray_ports, start_ray, variables
from pumice.runtime.controllers.job_plugins import Plugins, argument, hosts, plugins_of, switched_on
from pumice.runtime.controllers.job_policies import VERSION_KEY
from pumice.runtime.controllers.job_ssh import NewKeys
from pumice.runtime.controllers.writes import Create, owner_reference, part

_RETRY_KEY = "volcano.sh/job-retry-count"
_HOSTS_FOLDER = "/etc/volcano"


def pod_objects(
    obj: Obj, job: VolcanoJob, names: frozenset[str], group_name: str, version: int, retries: int
) -> Iterator[Obj]:
    """Yield the pods with these names, in the order of tasks and indices."""
    raw = dict(zip((task.name for task in job.tasks), part(obj, "spec")["tasks"], strict=True))
    plugins = plugins_of(obj)
    for pod in pods_of(job):
        if pod.name not in names:
            continue
        task, index = pod.annotations[TASK_SPEC_KEY], pod.annotations[TASK_INDEX_KEY]
        spec = copy.deepcopy(part(raw[task], "template", "spec"))
        _fill(spec, job, pod.scheduler_name)
        if pod.gates:
            spec["schedulingGates"] = [{"name": gate} for gate in pod.gates]
        _mount_volumes(spec, obj, job)
        _add_env(spec, variables(job, plugins, task, int(index)))
        open_ports(spec, plugins)
        if "ray" in plugins:
            start_ray(spec, job, plugins, task)
        if "svc" in plugins:
            _add_hosts(spec, job, pod.name)
        if "ssh" in plugins:
            _mount(spec, f"{job.name}-ssh", job_ssh.volume(job), job_ssh.mount_path(plugins))
        found = pod_annotations(job, plugins, task, int(index), spec)
        own = {GROUP_NAME_ANNOTATION: group_name, VERSION_KEY: str(version), _RETRY_KEY: str(retries)}
        yield {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {
                "name": pod.name,
                "namespace": job.namespace,
                "labels": dict(pod.labels),
                "annotations": {**found, **pod.annotations, **own},
                "ownerReferences": [owner_reference(obj)],
            },
            "spec": spec,
        }


def supporting_objects(obj: Obj, job: VolcanoJob, new_keys: NewKeys) -> Iterator[Create]:
    """Yield what must exist before the pods. Raises: NoKeys."""
    plugins = plugins_of(obj)
    if "svc" in plugins:
        yield from map(Create, _network_objects(obj, job, plugins))
    if "ray" in plugins:
        yield Create(_head_service(obj, job, plugins))
    if "ssh" in plugins:
        data = {"type": "Opaque", "data": job_ssh.secret_data(job, plugins, new_keys)}
        yield Create(_owned(obj, job, "v1", "Secret", job_ssh.secret_name(job)) | data)
    for name, claim in _claims(obj, job):
        yield Create(_owned(obj, job, "v1", "PersistentVolumeClaim", name) | {"spec": claim})


def controlled_resources(obj: Obj, job: VolcanoJob) -> dict[str, str]:
    """Return how ``status.controlledResources`` names what must exist before the pods."""
    claims = {f"volume-pvc-{name}": name for name, _ in _claims(obj, job)}
    return {f"plugin-{name}": name for name in plugins_of(obj)} | claims


def _claims(obj: Obj, job: VolcanoJob) -> Iterator[tuple[str, Obj]]:
    """Yield claims that are created for volumes of the job, as name and spec."""
    for i, volume in enumerate(part(obj, "spec").get("volumes") or ()):
        if volume.get("volumeClaim") and not volume.get("volumeClaimName"):
            yield claim_name(job, i), volume["volumeClaim"]


def claim_name(job: VolcanoJob, index: int) -> str:
    """Return the name of the claim for a volume of a job. Another job with the same name gets another claim."""
    return f"{job.name}-volume-{index}-{job.uid[:12]}".rstrip("-")


# -- one pod's spec


def _fill(spec: Obj, job: VolcanoJob, scheduler_name: str) -> None:
    spec["schedulerName"] = spec.get("schedulerName") or scheduler_name
    if job.priority_class_name and not spec.get("priorityClassName"):
        spec["priorityClassName"] = job.priority_class_name
    if spec.get("hostNetwork") and not spec.get("dnsPolicy"):
        spec["dnsPolicy"] = "ClusterFirstWithHostNet"


def _containers(spec: Obj) -> list[Obj]:
    return [*(spec.get("initContainers") or ()), *(spec.get("containers") or ())]


def _mount_volumes(spec: Obj, obj: Obj, job: VolcanoJob) -> None:
    """Mount a job's volumes into every container. One without a claim is empty and lives as long as the pod."""
    for i, volume in enumerate(part(obj, "spec").get("volumes") or ()):
        name = f"volcano-volume-{i}"
        claim = volume.get("volumeClaimName")
        if not claim and volume.get("volumeClaim"):
            claim = claim_name(job, i)
        source: Obj = {"persistentVolumeClaim": {"claimName": claim}} if claim else {"emptyDir": {}}
        _mount(spec, name, source, volume["mountPath"])


def _mount(spec: Obj, name: str, source: Obj, path: str) -> None:
    spec["volumes"] = [*(spec.get("volumes") or ()), {"name": name, **source}]
    for container in _containers(spec):
        container["volumeMounts"] = [*(container.get("volumeMounts") or ()), {"name": name, "mountPath": path}]


def _add_env(spec: Obj, values: dict[str, str]) -> None:
    """Add variables, except those that a container sets itself."""
    for container in _containers(spec) if values else ():
        there = {each.get("name") for each in container.get("env") or ()}
        added = [{"name": name, "value": value} for name, value in values.items() if name not in there]
        container["env"] = [*(container.get("env") or ()), *added]


# -- the plugin svc


def _add_hosts(spec: Obj, job: VolcanoJob, name: str) -> None:
    """Add a host name that the job's service resolves, and where the other pods are."""
    spec["hostname"] = spec.get("hostname") or name
    spec["subdomain"] = spec.get("subdomain") or job.name
    config = _config_name(job)
    _mount(spec, config, {"configMap": {"name": config}}, _HOSTS_FOLDER)
    for container in _containers(spec):
        there = {each.get("name") for each in container.get("env") or ()}
        added = [
            {"name": key, "valueFrom": {"configMapKeyRef": {"name": config, "key": key}}}
            for key in _host_names(job)
            if key not in there
        ]
        container["env"] = [*(container.get("env") or ()), *added]


def _host_variables(job: VolcanoJob) -> dict[str, str]:
    found = {}
    for task in job.tasks:
        prefix = _prefix_of(task)
        found[f"{prefix}_HOSTS"] = ",".join(hosts(job, task.name, task.replicas))
        found[f"{prefix}_NUM"] = str(task.replicas)
    return found


def _host_names(job: VolcanoJob) -> Iterator[str]:
    """Yield the names of these variables, which each pod has, without the values, which have the names of all pods."""
    for task in job.tasks:
        yield from (f"{_prefix_of(task)}_HOSTS", f"{_prefix_of(task)}_NUM")


def _prefix_of(task: JobTask) -> str:
    return f"VC_{task.name.replace('-', '_').upper()}"


def _config_name(job: VolcanoJob) -> str:
    return f"{job.name}-svc"


def _network_objects(obj: Obj, job: VolcanoJob, plugins: Plugins) -> Iterator[Obj]:
    """Yield the hosts as files, a headless service, and unless refused a network policy for the job's pods."""
    mine = {JOB_NAME_KEY: job.name, JOB_NAMESPACE_KEY: job.namespace}
    files = {f"{task.name}.host": "\n".join(hosts(job, task.name, task.replicas)) for task in job.tasks}
    yield _owned(obj, job, "v1", "ConfigMap", _config_name(job)) | {"data": {**files, **_host_variables(job)}}
    yield _owned(obj, job, "v1", "Service", job.name) | {
        "spec": {
            "clusterIP": "None",
            "selector": mine,
            "publishNotReadyAddresses": switched_on(plugins, "svc", "publish-not-ready-addresses"),
            "ports": [{"name": "placeholder-volcano", "port": 1, "protocol": "TCP"}],
        }
    }
    if switched_on(plugins, "svc", "disable-network-policy"):
        return
    yield _owned(obj, job, "networking.k8s.io/v1", "NetworkPolicy", job.name) | {
        "spec": {
            "podSelector": {"matchLabels": mine},
            "policyTypes": ["Ingress"],
            "ingress": [{"from": [{"podSelector": {"matchLabels": mine}}]}],
        }
    }


def _head_service(obj: Obj, job: VolcanoJob, plugins: Plugins) -> Obj:
    """Return the service by which users reach the head of a Ray cluster."""
    head = argument(plugins["ray"], "head", "head")
    ports = [
        {"name": name, "port": port, "targetPort": port, "protocol": "TCP"} for name, port in ray_ports(plugins).items()
    ]
    selector = {JOB_NAME_KEY: job.name, JOB_NAMESPACE_KEY: job.namespace, TASK_SPEC_KEY: head}
    spec = {"selector": selector, "ports": ports}
    return _owned(obj, job, "v1", "Service", f"{job.name}-head-svc") | {"spec": spec}


def _owned(obj: Obj, job: VolcanoJob, api_version: str, kind: str, name: str) -> Obj:
    metadata = {"name": name, "namespace": job.namespace, "ownerReferences": [owner_reference(obj)]}
    return {"apiVersion": api_version, "kind": kind, "metadata": metadata}
