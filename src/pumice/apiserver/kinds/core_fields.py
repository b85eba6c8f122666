"""Fields of Kubernetes' own kinds that have a meaning in this cluster, for ``kubectl explain`` and for validation.

A listed field must have its type. Other fields are stored unchanged.
"""

from __future__ import annotations

import re
from functools import cache
from typing import Final

from pumice.model.manifest.reading.fields import Obj

#: A kind or a part of one, and its fields below it: name, type, meaning. ``[T]``: a list, ``{T}``: values by name.
_TEXT: Final = """
Pod: Containers that run together on one node.
  spec PodSpec What is asked for.
  status PodStatus What came of it.
PodSpec:
  schedulerName string The scheduler that is to find a node, such as volcano.
  nodeName string The node; written by a binding.
  containers [Container] What runs; its requests are what the scheduler counts.
  initContainers [Container] What runs before, one after the other.
  ephemeralContainers [Container] What kubectl debug added.
  overhead {quantity} What the pod takes beside its containers.
  priorityClassName string The PriorityClass that gives the priority.
  priority integer The higher, the more important; from the priority class.
  preemptionPolicy string PreemptLowerPriority or Never.
  nodeSelector {string} Labels that the node must have.
  readinessGates [Gate] Conditions that make it ready.
  affinity object Rules about nodes and other pods, required or preferred.
  tolerations [Toleration] Taints that the pod puts up with.
  topologySpreadConstraints [Spread] How evenly pods are to be spread.
  schedulingGates [Gate] While there is one, no scheduler looks at the pod.
  restartPolicy string Always, OnFailure or Never.
  terminationGracePeriodSeconds integer Time to end when the pod is deleted.
Container:
  name string Unique in the pod.
  image string What to run; nothing is run here.
  resources Resources What it asks for and may use.
  ports [Port] Host ports count in scheduling.
Resources:
  requests {quantity} What the scheduler counts; from limits where not given.
  limits {quantity} What it may use at most.
Port:
  containerPort integer The port.
  hostPort integer The port of the node that it takes.
  protocol string TCP, UDP or SCTP.
Toleration:
  key string The taint's key; empty for all.
  operator string Equal or Exists.
  value string The taint's value.
  effect string NoSchedule, PreferNoSchedule or NoExecute; empty for all.
  tolerationSeconds integer How long, under NoExecute.
Spread:
  maxSkew integer How uneven it may be.
  topologyKey string The label of nodes that makes the domains.
  whenUnsatisfiable string DoNotSchedule or ScheduleAnyway.
  labelSelector object The pods that are counted.
Gate:
  name string Whose gate it is.
PodStatus:
  phase string Pending, Running, Succeeded or Failed.
  conditions [Condition] PodScheduled, Ready and others.
  nominatedNodeName string Where room is being made for the pod.
  startTime time When it began to run.
  podIP string An address that nothing answers.
  reason string Why it is in its phase, in one word.
  containerStatuses [ContainerStatus] What became of each container.
  qosClass string Guaranteed, Burstable or BestEffort.
ContainerStatus:
  name string Which container.
  ready boolean Whether it runs.
  restartCount integer How often it was started anew.
Condition:
  type string What it is about.
  status string True, False or Unknown.
  reason string Why, in one word.
  message string Why, in words.
  lastTransitionTime time When the status changed last.
Deployment: So many pods of a template, replaced one after the other. No controller acts on it here.
  spec WorkloadSpec What is asked for.
ReplicaSet: So many pods of a template. No controller acts on it here.
  spec WorkloadSpec What is asked for.
StatefulSet: So many pods of a template, each with a name that stays. No controller acts on it here.
  spec WorkloadSpec What is asked for.
DaemonSet: A pod of a template on each node. No controller acts on it here.
  spec WorkloadSpec What is asked for.
Job: Pods of a template that run to their end.
  spec WorkloadSpec What is asked for.
WorkloadSpec:
  replicas integer How many pods.
  parallelism integer How many pods of a Job at a time.
  completions integer How many pods of a Job must succeed.
  selector Selector Its pods.
  template Template What a pod of it is made of.
Template:
  metadata TemplateMetadata Labels and annotations of such a pod.
  spec PodSpec What such a pod asks for.
TemplateMetadata:
  labels {string} Its labels.
  annotations {string} Its annotations.
Service: A name for some pods. Nothing answers here.
  spec ServiceSpec What is asked for.
ServiceSpec:
  ports [ServicePort] By which it would be reached.
  selector {string} Labels of its pods.
  clusterIP string None: it has no address here.
  clusterIPs [string] The same.
  type string ClusterIP, NodePort, LoadBalancer or ExternalName.
ServicePort:
  name string Unique in the service.
  port integer The port.
  protocol string TCP, UDP or SCTP.
Node: What pods are put on.
  spec NodeSpec What is wanted of it.
  status NodeStatus What it has.
NodeSpec:
  unschedulable boolean Takes no new pods (kubectl cordon).
  taints [Taint] Keep pods away that do not tolerate them.
Taint:
  key string Its name.
  value string Its value.
  effect string NoSchedule, PreferNoSchedule or NoExecute.
NodeStatus:
  capacity {quantity} All that it has.
  allocatable {quantity} What pods may ask for.
  conditions [Condition] Ready and others.
  addresses [Address] Where it is.
  nodeInfo {string} Versions of what runs on it.
Address:
  type string InternalIP, ExternalIP or Hostname.
  address string The address.
PriorityClass: A name for a priority.
  value integer The higher, the more important.
  globalDefault boolean For pods that name none.
  preemptionPolicy string PreemptLowerPriority or Never.
  description string What it is for.
Namespace: A place for names.
  status NamespaceStatus Whether it is being deleted.
NamespaceStatus:
  phase string Active or Terminating.
Event: Something that happened to an object.
  type string Normal or Warning.
  reason string What, in one word.
  message string What, in words.
  involvedObject Reference The object.
  source object Who says so.
  series Series How often, where it happens again and again.
  count integer How often, in the older form.
Reference:
  kind string Its kind.
  namespace string Its namespace.
  name string Its name.
  uid string Its uid.
Series:
  count integer How often.
  lastObservedTime time When it happened last.
ConfigMap: Texts by name.
  data {string} The texts.
Secret: Values by name, in base64.
  type string What kind of secret.
  data {string} The values.
ResourceQuota: What a namespace may use.
  spec Quota The limits.
Quota:
  hard {quantity} By resource.
PodDisruptionBudget: How many of some pods must stay up when pods are evicted.
  spec Budget The rule.
Budget:
  minAvailable amount How many stay: a number or percent.
  maxUnavailable amount How many may be gone: a number or percent.
  selector Selector The pods.
Selector:
  matchLabels {string} Labels that must be there with these values.
  matchExpressions [Requirement] What else must hold.
Requirement:
  key string The label.
  operator string In, NotIn, Exists or DoesNotExist.
  values [string] For In and NotIn.
Lease: Who leads, and until when.
  spec LeaseSpec The holder.
LeaseSpec:
  holderIdentity string Who holds it.
  leaseDurationSeconds integer How long after renewTime.
  renewTime time When it was renewed last.
CustomResourceDefinition: A kind of one's own.
  spec Definition Its names and versions.
  status object Whether it is served.
Definition:
  group string The API group.
  scope string Namespaced or Cluster.
  names Names What it is called.
  versions [Version] What is served; one of them is stored.
Names:
  plural string The name in paths.
  singular string The name of one.
  kind string The kind.
  listKind string The kind of a list.
  shortNames [string] For those who type.
  categories [string] Groups of kinds, such as all.
Version:
  name string Such as v1 or v1alpha1.
  served boolean Whether it can be asked for.
  storage boolean Whether objects are stored in it.
  schema Schema What its objects must look like.
  subresources object Whether there is a path for the status.
  additionalPrinterColumns [PrinterColumn] What kubectl get shows.
  selectableFields [Selectable] What field selectors may name.
Schema:
  openAPIV3Schema object A structural schema.
PrinterColumn:
  name string The heading.
  type string Such as string, integer or date.
  jsonPath string Where the value is.
  priority integer Above 0: with -o wide only.
  description string What it means.
Selectable:
  jsonPath string Where the value is.
"""
_HEAD = re.compile(r"(?P<name>\w+):(?: (?P<about>.*))?")
_FIELD = re.compile(r"  (?P<name>\w+) (?P<type>\S+) (?P<about>.*)")
_PLAIN = ("string", "integer", "boolean")
_AMOUNTS = {"quantity": "A quantity such as 500m, 4 or 16Gi.", "amount": "A number, or a share such as 50%."}


@cache
def fields_of(kind: str) -> Obj | None:
    """Return the schema of a kind, None if it is not described."""
    return _schema(kind) if kind in _parts() else None


@cache
def _parts() -> dict[str, tuple[str, dict[str, tuple[str, str]]]]:
    """Return part -> (description, field -> (type, meaning))."""
    found: dict[str, tuple[str, dict[str, tuple[str, str]]]] = {}
    fields: dict[str, tuple[str, str]] = {}
    for line in _TEXT.strip().splitlines():
        if head := _HEAD.fullmatch(line):
            fields = {}
            found[head["name"]] = (head["about"] or "", fields)
        elif field := _FIELD.fullmatch(line):
            fields[field["name"]] = (field["type"], field["about"])
        else:
            raise AssertionError(f"a line that cannot be read: {line}")
    return found


def _schema(part: str) -> Obj:
    about, fields = _parts()[part]
    found: Obj = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    found["properties"] = {name: _typed(*field) for name, field in fields.items()}
    return found | ({"description": about} if about else {})


def _typed(kind: str, about: str) -> Obj:
    if kind.startswith("["):
        return {"type": "array", "description": about, "items": _below(kind[1:-1])}
    if kind.startswith("{"):
        return {"type": "object", "description": about, "additionalProperties": _below(kind[1:-1])}
    return {**_below(kind), "description": about}


def _below(kind: str) -> Obj:
    if kind in _AMOUNTS:
        return {"x-kubernetes-int-or-string": True, "type": "string", "description": _AMOUNTS[kind]}
    if kind == "time":
        return {"type": "string", "format": "date-time"}
    if kind == "object":
        return {"type": kind, "x-kubernetes-preserve-unknown-fields": True}
    return {"type": kind} if kind in _PLAIN else _schema(kind)
