"""Settings of a running scheduler."""

from __future__ import annotations

from msgspec import Struct

from pumice.kube.scheduler.languages import VOLCANO, ClusterLanguage, NodePool
from pumice.kube.scheduler.node_shards import Sharding
from pumice.kube.writers.writing import AS_VOLCANO_DOES, Writing


class Settings(Struct, frozen=True):
    """Settings. ``on_change`` False: one cycle per period and no others. ``conf_s``: how often the conf file is read.
    ``flush_s``: at the end, how long decisions may take. ``node_labels``: only nodes with one of these (key, value)
    count; none: all.

    ``lease_namespace``: must exist before this competes for leadership; "": not checked. ``replay``: flags with which
    ``pumice schedule`` decides on a dump as this would. ``language``: that of the policy. ``pool``: only objects of
    this node pool count; None: all. ``writing``: how decisions are written. ``sharding``: which NodeShard has
    the nodes of this scheduler; None: all nodes are its own.
    """

    scheduler_names: tuple[str, ...] = ("volcano",)
    default_queue: str = "default"
    use_priority_classes: bool = True
    period_s: float = 1.0
    on_change: bool = True
    node_labels: tuple[tuple[str, str], ...] = ()
    conf_s: float = 2.0
    flush_s: float = 20.0
    lease_namespace: str = ""
    replay: tuple[str, ...] = ()
    language: ClusterLanguage = VOLCANO
    pool: NodePool | None = None
    writing: Writing = AS_VOLCANO_DOES
    sharding: Sharding | None = None
