"""Options of ``pumice run`` that need KAI's policy language, and what they start beside the scheduler."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from typing import TYPE_CHECKING, Any

import click

from pumice.cli.errors import InputError
from pumice.cli.run_flags import go_flag

if TYPE_CHECKING:
    from pumice.kube.api.client import Client
    from pumice.kube.informers.watch_failures import WatchFailures
    from pumice.kube.scheduler.languages import ClusterLanguage
    from pumice.kube.scheduler.settings import Settings

_NODE_POOL_LABEL = "kai.scheduler/node-pool"
_OPTIONS = (
    click.option(
        "--nodepool-label-key",
        default=_NODE_POOL_LABEL,
        show_default=True,
        metavar="KEY",
        help="dialect: kai: the label that divides nodes, queues and PodGroups among schedulers.",
    ),
    click.option(
        "--partition-label-value",
        default="",
        metavar="V",
        help="Value of that label for this scheduler; empty: objects without the label.",
    ),
    go_flag("--bind-requests", default=False, help="dialect: kai: let KAI's binder bind pods, by BindRequests."),
    click.option(
        "--bind-backoff-limit",
        type=click.IntRange(0, 1000),
        metavar="N",
        help="How often KAI's binder retries a failed bind. Default: never.",
    ),
    click.option(
        "--gpu-reservation-image",
        default="",
        metavar="IMAGE",
        help="Image of KAI's resource-reservation pods, which hold shared GPUs. Without it (or --bind-requests), pods "
        "that share GPUs are not bound.",
    ),
    click.option(
        "--default-priorities-configmap-name",
        default="",
        metavar="NAME",
        help="ConfigMap with the priority class and preemptibility of workloads that name none, by kind of owner.",
    ),
    click.option(
        "--default-priorities-configmap-namespace", default="", metavar="NS", help="Namespace of that ConfigMap."
    ),
)
#: Of these, those that say nothing under another language: what is given all the same is refused.
_DEFAULTS: dict[str, object] = {
    "nodepool_label_key": _NODE_POOL_LABEL,
    "partition_label_value": "",
    "bind_requests": False,
    "bind_backoff_limit": None,
    "gpu_reservation_image": "",
    "default_priorities_configmap_name": "",
    "default_priorities_configmap_namespace": "",
}


def kai_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options, each passed on by its own name."""
    for option in reversed(_OPTIONS):
        command = option(command)
    return command


def kai_settings(given: dict[str, Any], language: ClusterLanguage) -> dict[str, Any]:
    """Return the settings of the scheduler that these options change. Raises: InputError for options without effect."""
    from pumice.kube.binding.gpu_reservations import ReservationSettings
    from pumice.kube.scheduler.languages import NodePool
    from pumice.kube.writers.writing import Requests, Writing

    if language.dialect != "kai":
        for name, default in _DEFAULTS.items():
            if given[name] != default:
                raise InputError(f"--{name.replace('_', '-')}: needs a policy with dialect: kai")
        return {}
    if given["bind_backoff_limit"] is not None and not given["bind_requests"]:
        raise InputError("--bind-backoff-limit: needs --bind-requests")
    requests = Requests(given["bind_backoff_limit"]) if given["bind_requests"] else None
    reserving = ReservationSettings(given["gpu_reservation_image"]) if given["gpu_reservation_image"] else None
    return {
        "pool": NodePool(given["nodepool_label_key"], given["partition_label_value"]),
        "writing": Writing(requests=requests, reserving=reserving),
    }


def kind_defaults_of(given: dict[str, Any]) -> str:
    """Return namespace and name of the ConfigMap with the defaults of kinds, "" for none. Raises: InputError."""
    namespace, name = (given[f"default_priorities_configmap_{part}"] for part in ("namespace", "name"))
    if bool(namespace) != bool(name):
        raise InputError("wanted both or none of --default-priorities-configmap-name and …-namespace")
    return f"{namespace}/{name}" if name else ""


def kai_controllers(
    wanted: str, kind_defaults: str, client: Client, settings: Settings, troubles: WatchFailures
) -> Callable[[], Coroutine[Any, Any, None]] | None:
    """Return what does the work of KAI's pod-grouper, as ``--controllers`` says. Raises: InputError."""
    from pumice.kube.controllers.leading import FOR_KAI, NEVER, Controllers
    from pumice.kube.controllers.loop import ControlSettings
    from pumice.runtime.controllers.kai.groups import GroupingSettings

    if wanted in ("off", ""):
        return None
    if wanted not in ("auto", "on", "podgroup"):
        raise InputError(f"--controllers: found {wanted[:40]!r}, wanted auto, on, off or podgroup")
    deference = NEVER if wanted == "on" else FOR_KAI
    label = settings.pool.label if settings.pool is not None else _NODE_POOL_LABEL
    grouping = GroupingSettings(settings.scheduler_names, settings.default_queue, label, kind_defaults)
    control = ControlSettings(("podgroup",))
    return Controllers(client, control, deference=deference, troubles=troubles, grouping=grouping).run
