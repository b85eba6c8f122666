"""Kinds that own pods and are read one by one, and for which language's gangs."""

from __future__ import annotations

from typing import Final

from pumice.kube.api.kinds import Kind

DEPLOYMENTS = Kind("apps", "v1", "deployments", "Deployment")
REPLICA_SETS = Kind("apps", "v1", "replicasets", "ReplicaSet")
STATEFUL_SETS = Kind("apps", "v1", "statefulsets", "StatefulSet")

#: Definitions of kinds without a rule.
KARTAS = Kind("run.ai", "v1alpha1", "kartas", "Karta", namespaced=False)

#: Kind -> whether it is read for Volcano's PodGroups, and for KAI's. Kinds that Volcano's controllers watch are not
#: read.
_OWNERS: Final = {
    DEPLOYMENTS: (False, True),
    REPLICA_SETS: (False, True),
    STATEFUL_SETS: (False, True),
    Kind("apps", "v1", "daemonsets", "DaemonSet"): (True, False),
    Kind("batch", "v1", "jobs", "Job"): (True, True),
    Kind("batch", "v1", "cronjobs", "CronJob"): (False, True),
    Kind("kubeflow.org", "v1", "pytorchjobs", "PyTorchJob"): (True, True),
    Kind("kubeflow.org", "v1", "tfjobs", "TFJob"): (True, True),
    Kind("kubeflow.org", "v1", "mpijobs", "MPIJob"): (True, True),
    Kind("kubeflow.org", "v2beta1", "mpijobs", "MPIJob"): (True, True),
    Kind("kubeflow.org", "v1", "xgboostjobs", "XGBoostJob"): (True, True),
    Kind("kubeflow.org", "v1", "paddlejobs", "PaddleJob"): (True, False),
    Kind("kubeflow.org", "v1", "jaxjobs", "JAXJob"): (True, True),
    Kind("kubeflow.org", "v1", "notebooks", "Notebook"): (False, True),
    Kind("ray.io", "v1", "rayclusters", "RayCluster"): (True, True),
    Kind("ray.io", "v1", "rayjobs", "RayJob"): (False, True),
    Kind("ray.io", "v1", "rayservices", "RayService"): (False, True),
    Kind("leaderworkerset.x-k8s.io", "v1", "leaderworkersets", "LeaderWorkerSet"): (False, True),
    Kind("jobset.x-k8s.io", "v1alpha2", "jobsets", "JobSet"): (False, True),
    Kind("trainer.kubeflow.org", "v1alpha1", "trainjobs", "TrainJob"): (False, True),
    Kind("argoproj.io", "v1alpha1", "workflows", "Workflow"): (False, True),
    Kind("tekton.dev", "v1", "pipelineruns", "PipelineRun"): (False, True),
    Kind("tekton.dev", "v1", "taskruns", "TaskRun"): (False, True),
    Kind("serving.knative.dev", "v1", "services", "Service"): (False, True),
    Kind("serving.knative.dev", "v1", "configurations", "Configuration"): (False, True),
    Kind("serving.knative.dev", "v1", "revisions", "Revision"): (False, True),
    Kind("nvidia.com", "v1alpha1", "dynamographdeployments", "DynamoGraphDeployment"): (False, True),
    Kind("nvidia.com", "v1beta1", "dynamographdeployments", "DynamoGraphDeployment"): (False, True),
    Kind("amlarc.azureml.com", "v1alpha1", "amljobs", "AmlJob"): (False, True),
    Kind("run.ai", "v1", "runaijobs", "RunaiJob"): (False, True),
    Kind("egx.nvidia.io", "v1", "spotrequests", "SPOTRequest"): (False, True),
    Kind("grove.io", "v1alpha1", "podcliquesets", "PodCliqueSet"): (False, True),
    Kind("grove.io", "v1alpha1", "podcliquescalinggroups", "PodCliqueScalingGroup"): (False, True),
    Kind("grove.io", "v1alpha1", "podcliques", "PodClique"): (False, True),
    Kind("scheduler.grove.io", "v1alpha1", "podgangs", "PodGang"): (False, True),
}
READ_FOR_VOLCANO: Final = tuple(kind for kind, (volcano, _) in _OWNERS.items() if volcano)
READ_FOR_KAI: Final = tuple(kind for kind, (_, kai) in _OWNERS.items() if kai)
