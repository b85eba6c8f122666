"""Variables, ports and commands that plugins for distributed frameworks add to the pods of a job.

Source: Volcano's job plugins, with the arguments of their documentation.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping

from pumice.model.manifest.reading.fields import FieldError, Obj
from pumice.model.workloads.job import VolcanoJob
from pumice.runtime.controllers.job_plugins import Plugins, argument, hosts, port_of

#: The ports of Ray's head: argument -> the port without one, and its name in the service.
_RAY_PORTS = {"port": ("6379", "gcs"), "dashboardPort": ("8265", "dashboard"), "clientServerPort": ("10001", "client")}
#: Whose pods all open one port: plugin -> its name, and which it is without an argument.
_OPENED = {"mpi": ("mpijob-port", "22"), "pytorch": ("pytorchjob-port", "23456")}


#: Annotation for Ascend's plugins, which make a table of ranks from it.
HCCL_RANK_KEY = "hccl/rankIndex"


def check(job: VolcanoJob, plugins: Plugins) -> None:
    """Raise FieldError for a framework without its main task, or for an invalid port."""
    for name, role, default in (("mpi", "master", "master"), ("ray", "head", "head")):
        if name not in plugins:
            continue
        task = argument(plugins[name], role, default)
        if task not in (each.name for each in job.tasks):
            raise FieldError(f"spec.plugins.{name}", f"no task {task}", f"a task for --{role}")
    for name, (_, default) in _OPENED.items():
        if name in plugins:
            port_of(plugins, name, "port", default)
    if "ray" in plugins:
        ray_ports(plugins)


def variables(job: VolcanoJob, plugins: Plugins, task: str, index: int) -> dict[str, str]:
    """Return the variables of one pod, in addition to those of the service of ``svc``."""
    found: dict[str, str] = {}
    if "env" in plugins:
        found |= {"VK_TASK_INDEX": str(index), "VC_TASK_INDEX": str(index)}
    if "pytorch" in plugins:
        found |= _pytorch(job, plugins["pytorch"], task, index)
    if "tensorflow" in plugins:
        found |= _tensorflow(job, plugins["tensorflow"], task, index)
    if "mpi" in plugins:
        found |= _mpi(job, plugins["mpi"], task)
    return found


def pod_annotations(job: VolcanoJob, plugins: Plugins, task: str, index: int, spec: Obj) -> dict[str, str]:
    """Return the annotations of one pod. ``spec``: with its variables. For ``hcclrank`` it is the pod's rank in a job
    on NPUs: the RANK of its first container that has one, else masters are counted first."""
    if "hcclrank" not in plugins:
        return {}
    for container in spec.get("containers") or ():
        for each in container.get("env") or ():
            if each.get("name") == "RANK" and each.get("value"):
                return {HCCL_RANK_KEY: str(each["value"])}
    arguments = plugins["hcclrank"]
    master, worker = argument(arguments, "master", "master"), argument(arguments, "worker", "worker")
    if task not in (master, worker):
        return {}
    before = sum(each.replicas for each in job.tasks if each.name == master != task)
    return {HCCL_RANK_KEY: str(before + index)}


def _pytorch(job: VolcanoJob, arguments: tuple[str, ...], task: str, index: int) -> dict[str, str]:
    """Return variables for PyTorch. Ranks count the masters first. Pods of other tasks get none."""
    master, worker = argument(arguments, "master", "master"), argument(arguments, "worker", "worker")
    sizes = {each.name: each.replicas for each in job.tasks if each.name in (master, worker)}
    if task not in sizes or master not in sizes:
        return {}
    return {
        "MASTER_ADDR": hosts(job, master, 1)[0],
        "MASTER_PORT": argument(arguments, "port", "23456"),
        "WORLD_SIZE": str(sum(sizes.values())),
        "RANK": str(index if task == master else sizes[master] + index),
    }


def _tensorflow(job: VolcanoJob, arguments: tuple[str, ...], task: str, index: int) -> dict[str, str]:
    """Return variables for TensorFlow. Pods of tasks without a role get none."""
    roles = {argument(arguments, role, role): role for role in ("ps", "worker", "chief", "evaluator")}
    if task not in roles:
        return {}
    port = argument(arguments, "port", "2222")
    cluster = {
        roles[each.name]: [f"{host}:{port}" for host in hosts(job, each.name, each.replicas)]
        for each in job.tasks
        if each.name in roles
    }
    return {"TF_CONFIG": json.dumps({"cluster": cluster, "task": {"type": roles[task], "index": index}})}


def _mpi(job: VolcanoJob, arguments: tuple[str, ...], task: str) -> dict[str, str]:
    """Return where the workers are, for ``mpiexec --host`` on the master."""
    if task != argument(arguments, "master", "master"):
        return {}
    worker = argument(arguments, "worker", "worker")
    names = [host for each in job.tasks if each.name == worker for host in hosts(job, worker, each.replicas)]
    return {"MPI_HOST": ",".join(names)}


def open_ports(spec: Obj, plugins: Plugins) -> None:
    """Add the ports of frameworks to every container that does not open them itself."""
    for plugin, (name, default) in _OPENED.items():
        if plugin in plugins:
            for container in spec.get("containers") or ():
                _open(container, name, port_of(plugins, plugin, "port", default))


def _open(container: Obj, name: str, port: int) -> None:
    there = container.get("ports") or ()
    if not any(each.get("containerPort") == port or each.get("name") == name for each in there):
        container["ports"] = [*there, {"name": name, "containerPort": port, "protocol": "TCP"}]


# -- Ray


def ray_ports(plugins: Plugins) -> Mapping[str, int]:
    """Return the ports of Ray's head by name. Raises: FieldError for invalid ports."""
    names = {"clientServerPort": ("clientServerPort", "clientPort")}  # Volcano's page has one, its program the other
    given = plugins["ray"]
    found = {}
    for each, (default, name) in _RAY_PORTS.items():
        spelt = next((way for way in names.get(each, ()) if argument(given, way, "")), each)
        found[name] = port_of(plugins, "ray", spelt, default)
    return found


def start_ray(spec: Obj, job: VolcanoJob, plugins: Plugins, task: str) -> None:
    """Set the command with which the main container of a pod starts the cluster, or joins it."""
    head, worker = (argument(plugins["ray"], role, role) for role in ("head", "worker"))
    if task not in (head, worker):
        return
    ports = ray_ports(plugins)
    if task == head:
        command = (
            f"ray start --head --block --dashboard-host=0.0.0.0 --port={ports['gcs']}"
            f" --dashboard-port={ports['dashboard']} --ray-client-server-port={ports['client']}"
        )
    else:
        command = f"ray start --block --address={hosts(job, head, 1)[0]}:{ports['gcs']}"
    main = ray_container(plugins, task)
    for container in spec.get("containers") or ():
        if container.get("name") == main:
            container["command"] = ["sh", "-c", command]
            for name, port in ports.items() if task == head else ():
                _open(container, name, port)


def ray_container(plugins: Plugins, task: str) -> str:
    """Return the container of a task's pods in which Ray runs, "" for a task without Ray."""
    for role in ("head", "worker"):
        if task == argument(plugins["ray"], role, role):
            return argument(plugins["ray"], f"{role}Container", role)
    return ""


def ray_doubts(obj: Obj, job: VolcanoJob, plugins: Plugins) -> Iterator[str]:
    """Yield Ray's tasks whose pods lack the container in which it should be started."""
    for task, raw in zip(job.tasks, obj["spec"]["tasks"], strict=True) if "ray" in plugins else ():
        main = ray_container(plugins, task.name)
        containers = raw.get("template", {}).get("spec", {}).get("containers") or ()
        if main and main not in (each.get("name") for each in containers):
            yield f"ray: task {task.name} has no container {main}, so Ray is not started in it"
