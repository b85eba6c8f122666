"""The life of a batch.volcano.sh Job: made, run, restarted, ended, forgotten."""

import json
from typing import Any

import pytest

from pumice.model.pod import QUEUE_GATE
from pumice.runtime.controllers.jobs import command_target
from pumice.runtime.controllers.writes import Create, Delete, Patch
from tests.unit.runtime.controllers.job_world import NOW, World, policy, task

KEYS = "volcano.sh/"


def env_of(pod: dict[str, Any]) -> dict[str, Any]:
    return {each["name"]: each.get("value") for each in pod["spec"]["containers"][0]["env"]}


# -- a job that runs through


def test_a_job_waits_for_its_group_before_it_makes_pods() -> None:
    world = World(task("a", 1), task("b", 2), priorityClassName="high", queue="q")
    world.settle()
    assert world.phase == "Pending" and world.pods == {}
    assert world.group is not None
    spec = world.group["spec"]
    assert (spec["minMember"], spec["minTaskMember"], spec["queue"]) == (3, {"a": 1, "b": 2}, "q")
    assert spec["minResources"]["cpu"] == "3"
    (owner,) = world.group["metadata"]["ownerReferences"]
    assert (owner["kind"], owner["uid"], owner["controller"]) == ("Job", "job-uid", True)


def test_pods_carry_what_scheduler_and_user_look_for() -> None:
    world = World(task("a", 1), task("b", 2), priorityClassName="high")
    world.admit()
    assert list(world.pods) == ["j-a-0", "j-b-0", "j-b-1"]
    pod = world.pods["j-b-1"]
    assert pod["spec"]["schedulerName"] == "volcano" and pod["spec"]["priorityClassName"] == "high"
    annotations, labels = pod["metadata"]["annotations"], pod["metadata"]["labels"]
    assert annotations["scheduling.k8s.io/group-name"] == "j-job-uid"
    assert (annotations[f"{KEYS}task-spec"], annotations[f"{KEYS}task-index"]) == ("b", "1")
    assert (annotations[f"{KEYS}job-version"], annotations[f"{KEYS}job-retry-count"]) == ("0", "0")
    assert (labels[f"{KEYS}job-name"], labels[f"{KEYS}task-spec"], labels[f"{KEYS}job-namespace"]) == ("j", "b", "ns")


def test_a_job_runs_and_completes() -> None:
    world = World(minAvailable=2)
    world.admit()
    assert (world.phase, world.status("pending")) == ("Pending", 2)
    world.become("Running")
    world.settle()
    assert (world.phase, world.status("running"), world.status("pending")) == ("Running", 2, None)
    assert world.status("taskStatusCount") == {"w": {"phase": {"Running": 2}}}
    world.now += 3725
    world.become("Succeeded")
    world.settle()
    assert (world.phase, world.status("succeeded"), world.status("runningDuration")) == ("Completed", 2, "1h2m5s")
    assert [each["status"] for each in world.status("conditions")] == ["Pending", "Running", "Completed"]
    assert world.group is None and len(world.pods) == 2


def test_status_is_written_against_the_job_that_was_looked_at() -> None:
    world = World()
    world.change("Job", "j", {"metadata": {"resourceVersion": "7"}})
    patches = [write for write in world.asked() if isinstance(write, Patch)]
    assert [(patch.subresource, patch.version) for patch in patches] == [("status", "7")]


@pytest.mark.parametrize(
    ("spec", "ends", "wanted"),
    [
        pytest.param({}, ("Succeeded", "Failed"), "Failed", id="one of two that both must run"),
        pytest.param({"minAvailable": 1}, ("Succeeded", "Failed"), "Completed", id="one is enough"),
        pytest.param({"minSuccess": 1}, ("Succeeded", "Failed"), "Completed", id="minSuccess reached"),
        pytest.param({"minSuccess": 2}, ("Succeeded", "Failed"), "Failed", id="minSuccess missed"),
        pytest.param({"minSuccess": 1}, ("Succeeded", "Running"), "Completed", id="minSuccess ends the rest"),
        pytest.param({}, ("Succeeded", "Running"), "Running", id="still at it"),
        pytest.param({}, ("Running", "Pending"), "Pending", id="fewer than the minimum"),
    ],
)
def test_how_pods_end_a_job(spec: dict[str, Any], ends: tuple[str, str], wanted: str) -> None:
    world = World(**spec)
    world.admit()
    world.become("Running")
    world.settle()
    for name, phase in zip(world.pods, ends, strict=True):
        world.become(phase, name)
    world.settle()
    assert world.phase == wanted
    assert "Running" not in [p["status"]["phase"] for p in world.pods.values()] or wanted not in ("Completed", "Failed")


# -- policies


@pytest.mark.parametrize(
    ("action", "wanted", "left"),
    [
        ("AbortJob", "Aborted", ["j-w-0"]),
        ("CompleteJob", "Completed", ["j-w-0"]),
        ("TerminateJob", "Terminated", ["j-w-0"]),
    ],
)
def test_policies_that_end_a_job_keep_what_has_finished(action: str, wanted: str, left: list[str]) -> None:
    world = World(policies=[policy(action, "PodFailed")])
    world.admit()
    world.become("Running")
    world.settle()
    world.become("Failed", "j-w-0")
    world.settle()
    assert world.phase == wanted and list(world.pods) == left and world.group is None


def test_a_restart_makes_everything_anew() -> None:
    world = World(policies=[policy("RestartJob", "PodEvicted")])
    world.admit()
    world.become("Running")
    world.settle()
    before = {pod["metadata"]["uid"] for pod in world.pods.values()}
    world.evict("j-w-1")
    world.step()
    assert (world.phase, world.status("version"), world.status("retryCount")) == ("Restarting", 1, 1)
    world.settle()
    assert world.phase == "Pending" and world.pods == {} and world.group is not None
    world.admit()
    assert not before & {pod["metadata"]["uid"] for pod in world.pods.values()} and len(world.pods) == 2
    assert {pod["metadata"]["annotations"][f"{KEYS}job-version"] for pod in world.pods.values()} == {"1"}


def test_a_restart_goes_on_where_a_crash_left_it() -> None:
    world = World(policies=[policy("RestartJob", "PodFailed")])
    world.admit()
    world.become("Failed", "j-w-0")
    first = world.asked()[0]
    assert isinstance(first, Patch)
    world.change("Job", "j", first.merge)  # the rest of the batch is lost
    world.settle()
    assert world.phase == "Pending" and world.status("retryCount") == 1
    assert {pod["metadata"]["annotations"][f"{KEYS}job-version"] for pod in world.pods.values()} == {"1"}


def test_tries_end_and_what_failed_last_stays() -> None:
    world = World(policies=[policy("RestartJob", "PodFailed")], maxRetry=2)
    for _ in range(2):
        world.admit()
        world.become("Running")
        world.settle()
        world.become("Failed", "j-w-0")
        world.settle()
    assert (world.phase, world.status("retryCount")) == ("Failed", 2)
    assert list(world.pods) == ["j-w-0"]


@pytest.mark.parametrize(
    ("action", "restarted"),
    [
        ("RestartTask", {"j-a-0", "j-a-1", "j-a-2", "j-a-3"}),
        ("RestartPod", {"j-a-1"}),
        ("RestartPartition", {"j-a-0", "j-a-1"}),
    ],
)
def test_a_part_of_a_job_is_restarted(action: str, restarted: set[str]) -> None:
    cut = {"totalPartitions": 2, "partitionSize": 2}
    world = World(
        task("a", 4, partitionPolicy=cut), task("b", 1), policies=[policy(action, "PodFailed")], minAvailable=1
    )
    world.admit()
    world.become("Running")
    world.settle()
    before = {name: pod["metadata"]["uid"] for name, pod in world.pods.items()}
    group = world.group
    world.become("Failed", "j-a-1")
    world.settle()
    after = {name: pod["metadata"]["uid"] for name, pod in world.pods.items()}
    assert {name for name in before if before[name] != after[name]} == restarted
    assert (world.status("version"), world.status("retryCount"), world.group) == (None, 1, group)


@pytest.mark.parametrize(
    ("own", "job", "wanted"),
    [
        pytest.param(
            [policy("CompleteJob", "PodFailed")], [policy("AbortJob", "PodFailed")], "Completing", id="own first"
        ),
        pytest.param([policy("CompleteJob", "PodEvicted")], [policy("AbortJob", "*")], "Aborting", id="any event"),
        pytest.param(
            [policy("CompleteJob", exitCode=3)], [policy("AbortJob", "PodFailed")], "Completing", id="exit code"
        ),
        pytest.param([policy("CompleteJob", exitCode=4)], [], "Running", id="another exit code"),
        pytest.param([], [policy("AbortJob", "TaskCompleted")], "Running", id="another event"),
    ],
)
def test_which_policy_counts(own: list[Any], job: list[Any], wanted: str) -> None:
    world = World(task(policies=own), policies=job)
    world.admit()
    world.become("Running")
    world.settle()
    world.become("Failed", "j-w-0", exit_code=3)
    world.step()
    assert world.phase == wanted


def test_a_task_that_is_done_may_end_the_job() -> None:
    world = World(task("m", 1, policies=[policy("CompleteJob", "TaskCompleted")]), task("w", 2))
    world.admit()
    world.become("Running")
    world.settle()
    world.become("Succeeded", "j-m-0")
    world.settle()
    assert world.phase == "Completed" and list(world.pods) == ["j-m-0"]


def test_containers_that_start_too_often_fail_their_task() -> None:
    world = World(task(maxRetry=2), policies=[policy("AbortJob", "TaskFailed")])
    world.admit()
    world.become("Running")
    for restarts, wanted in ((2, "Running"), (3, "Aborting")):
        world.change("Pod", "j-w-0", {"status": {"containerStatuses": [{"restartCount": restarts}]}})
        world.step()
        assert world.phase == wanted


def test_an_unknown_group_is_an_event() -> None:
    world = World(policies=[policy("RestartJob", "Unknown")])
    world.admit()
    world.change("PodGroup", "j-job-uid", {"status": {"phase": "Unknown"}})
    world.step()
    assert world.phase == "Restarting" and world.group is None


def test_an_action_waits_for_its_time() -> None:
    world = World(policies=[policy("AbortJob", "PodPending", timeout="10m")])
    world.admit()
    world.now += 300
    world.step()
    assert [wake.after_s for wake in world.wakes] == [300] and world.phase == "Pending"
    world.become("Running")
    world.now += 600
    world.settle()
    assert world.phase == "Running", "the cause went away"
    world.become("Pending", "j-w-0")
    world.step()
    assert world.phase == "Aborting"


def test_an_eviction_that_waits_is_not_forgotten() -> None:
    world = World(policies=[policy("AbortJob", "PodEvicted", timeout="1m")])
    world.admit()
    world.evict("j-w-0")
    world.settle()
    assert len(world.pods) == 2 and world.phase == "Pending"
    world.now += 61
    world.step()
    assert world.phase == "Aborting"


def test_an_eviction_is_seen_while_the_pod_still_ends_and_counts_once() -> None:
    world = World(policies=[policy("RestartPod", "PodEvicted")])
    world.admit()
    world.become("Running")
    world.settle()
    world.change("Pod", "j-w-0", {"metadata": {"deletionTimestamp": "2024-01-01T00:00:00Z"}})
    world.settle()
    assert (world.phase, world.status("retryCount"), world.status("terminating")) == ("Restarting", 1, 1)
    world.evict("j-w-0")
    assert world.requests == ()
    world.settle()
    assert (world.status("retryCount"), len(world.pods)) == (1, 2)


def test_a_pod_that_its_job_deletes_is_not_evicted() -> None:
    world = World(task(replicas=3), minAvailable=1, policies=[policy("AbortJob", "PodEvicted")])
    world.admit()
    world.job["spec"]["tasks"][0]["replicas"] = 1
    for write in world.asked():
        if isinstance(write, Patch) and write.ref.kind == "Pod":
            world.change("Pod", write.ref.name, write.merge)
    world.evict("j-w-2")
    world.settle()
    assert world.phase == "Pending" and list(world.pods) == ["j-w-0"]


# -- orders


def test_orders_are_followed_once() -> None:
    world = World()
    world.admit()
    world.order("AbortJob")
    world.settle()
    assert world.phase == "Aborted" and ("Command", "order") not in world.objects
    world.order("ResumeJob")
    world.settle()
    assert (world.phase, world.status("retryCount"), world.status("version")) == ("Pending", 1, 2)


@pytest.mark.parametrize("action", ["ResumeJob", "Nonsense"])
def test_orders_without_meaning_are_cleared_away(action: str) -> None:
    world = World()
    world.admit()
    world.order(action)
    world.settle()
    assert world.phase == "Pending" and len(world.pods) == 2 and ("Command", "order") not in world.objects


def test_target_of_a_command() -> None:
    world = World()
    world.order("AbortJob")
    assert command_target(world.objects["Command", "order"]) == ("Job", "job-uid")
    assert command_target({"apiVersion": "v1", "kind": "Pod"}) is None


# -- changes of the job


def test_a_job_that_grows_and_shrinks() -> None:
    world = World(minAvailable=1)
    world.admit()
    world.job["spec"]["tasks"][0]["replicas"] = 4
    world.job["spec"]["minAvailable"] = 3
    world.settle()
    assert len(world.pods) == 4
    assert world.group is not None and world.group["spec"]["minMember"] == 3
    world.job["spec"]["tasks"][0]["replicas"] = 1
    world.job["spec"]["minAvailable"] = 1
    world.settle()
    assert list(world.pods) == ["j-w-0"] and world.group["spec"]["minMember"] == 3 - 2


def test_a_name_that_is_taken_is_waited_for() -> None:
    world = World(task(replicas=1))
    world.admit()
    world.change("Pod", "j-w-0", {"metadata": {"deletionTimestamp": "2024-01-01T00:00:00Z"}})
    assert not [write for write in world.asked() if isinstance(write, Create)]
    del world.objects["Pod", "j-w-0"]
    assert [write for write in world.asked() if isinstance(write, Create)]


@pytest.mark.parametrize(
    ("iteration", "running", "made"),
    [("all", ["j-a-0"], False), ("all", ["j-a-0", "j-b-0"], True), ("any", ["j-a-0"], True), ("any", [], False)],
)
def test_a_task_waits_for_others(iteration: str, running: list[str], made: bool) -> None:
    depends = {"name": ["a", "b"], "iteration": iteration}
    world = World(task("a", 1, minAvailable=1), task("b", 1, minAvailable=1), task("c", 1, dependsOn=depends))
    world.admit()
    for name in running:
        world.become("Running", name)
    world.settle()
    assert ("j-c-0" in world.pods) is made


@pytest.mark.parametrize(
    ("running", "made"),
    [pytest.param(["j-a-0"], False, id="some"), pytest.param(["j-a-0", "j-a-1"], True, id="all")],
)
def test_a_task_waits_for_all_of_one_that_names_no_minimum(running: list[str], made: bool) -> None:
    """Volcano's webhook writes the number of replicas into it; without the webhook no pod was waited for."""
    world = World(task("a", 2), task("b", 1, dependsOn={"name": ["a"]}), minAvailable=2)
    world.admit()
    world.become("Running", *running)
    world.settle()
    assert ("j-b-0" in world.pods) is made


def test_a_gang_that_waits_for_itself_is_reported() -> None:
    world = World(task("a", 2), task("b", 1, dependsOn={"name": ["a"]}))
    world.admit()
    (tell,) = {each.reason: each for each in world.reports}.values()
    assert (tell.type, tell.reason) == ("Warning", "DependsOn")
    assert "minAvailable is 3, and only 2 pods" in tell.message


# -- in which queue


def test_a_job_that_names_no_queue_is_in_that_of_its_namespace() -> None:
    world = World()
    world.namespace_queue = "team"
    world.admit()
    assert world.group is not None and world.group["spec"]["queue"] == "team"
    assert {pod["metadata"]["labels"]["volcano.sh/queue-name"] for pod in world.pods.values()} == {"team"}
    world.namespace_queue = "another"
    world.become("Running")
    world.settle()
    assert world.group["spec"]["queue"] == "team", "a group that is there is not moved"


def test_a_job_that_names_a_queue_is_in_that() -> None:
    world = World(queue="own")
    world.namespace_queue = "team"
    world.settle()
    assert world.group is not None and world.group["spec"]["queue"] == "own"


# -- what users see


def reports(world: World, reason: str) -> list[tuple[str, str]]:
    return [(each.type, each.message) for each in world.reports if each.reason == reason]


def test_a_restart_says_why() -> None:
    world = World(task(replicas=3), policies=[policy("RestartJob", "PodFailed")], minAvailable=3)
    world.admit()
    world.become("Running")
    world.settle()
    world.become("Failed", "j-w-1", exit_code=137)
    world.step()
    why = "pod j-w-1 failed with exit code 137"
    assert reports(world, "ExecuteAction") == [("Warning", f"Start to execute action RestartJob: {why}")]
    assert world.job["status"]["state"]["message"] == f"by RestartJob: {why}"


def test_a_job_that_fails_says_why() -> None:
    world = World(task(replicas=2), minAvailable=2)
    world.admit()
    world.become("Running")
    world.settle()
    world.become("Succeeded", "j-w-0")
    world.become("Failed", "j-w-1", exit_code=1)
    world.settle()
    why = "1 of 2 pods succeeded, failed: j-w-1"
    assert reports(world, "JobFailed") == [("Warning", f"Job failed: {why}")]
    assert (world.phase, world.job["status"]["state"]["message"]) == ("Failed", why)


def test_a_job_whose_tries_are_over_says_so() -> None:
    world = World(task(replicas=1), policies=[policy("RestartJob", "PodFailed")], maxRetry=1)
    world.admit()
    world.become("Running")
    world.settle()
    world.become("Failed", exit_code=1)
    world.settle()
    assert world.phase == "Failed"
    assert reports(world, "JobFailed") == [("Warning", "Job failed: restarted 1 times, the limit of its maxRetry (1)")]


# -- what jobs ask for beside pods


def test_plugins_give_index_and_hosts() -> None:
    world = World(task("ps", 1), task("big-w", 2), plugins={"env": [], "svc": []})
    world.admit()
    pod = world.pods["j-big-w-1"]
    assert (pod["spec"]["hostname"], pod["spec"]["subdomain"]) == ("j-big-w-1", "j")
    assert env_of(pod)["VC_TASK_INDEX"] == env_of(pod)["VK_TASK_INDEX"] == "1"
    assert {"VC_PS_HOSTS", "VC_BIG_W_HOSTS", "VC_BIG_W_NUM"} <= env_of(pod).keys()
    data = world.objects["ConfigMap", "j-svc"]["data"]
    assert (data["VC_BIG_W_HOSTS"], data["VC_BIG_W_NUM"]) == ("j-big-w-0.j,j-big-w-1.j", "2")
    assert data["big-w.host"] == "j-big-w-0.j\nj-big-w-1.j"
    service = world.objects["Service", "j"]["spec"]
    assert service["clusterIP"] == "None"
    assert service["selector"].items() <= pod["metadata"]["labels"].items()
    assert ("NetworkPolicy", "j") in world.objects
    assert world.status("controlledResources") == {"plugin-env": "env", "plugin-svc": "svc"}


def test_pytorch_ranks_masters_and_workers() -> None:
    world = World(task("master", 1), task("w", 2), task("log", 1), plugins={"pytorch": ["--worker=w", "--port=99"]})
    world.admit()
    found = {name: env_of(pod) for name, pod in world.pods.items()}
    assert {name: env.get("RANK") for name, env in found.items()} == {
        "j-master-0": "0",
        "j-w-0": "1",
        "j-w-1": "2",
        "j-log-0": None,
    }
    wanted = {"MASTER_ADDR": "j-master-0.j", "MASTER_PORT": "99", "WORLD_SIZE": "3"}
    assert wanted.items() <= found["j-w-1"].items() and wanted.items() <= found["j-master-0"].items()
    assert ("Service", "j") in world.objects, "hosts have names by the plugin svc"
    assert world.status("controlledResources") == {"plugin-pytorch": "pytorch", "plugin-svc": "svc"}


def test_tensorflow_tells_who_is_in_the_cluster() -> None:
    world = World(task("ps", 1), task("trainer", 2), task("log", 1), plugins={"tensorflow": ["--worker=trainer"]})
    world.admit()
    config = json.loads(env_of(world.pods["j-trainer-1"])["TF_CONFIG"])
    cluster = {"ps": ["j-ps-0.j:2222"], "worker": ["j-trainer-0.j:2222", "j-trainer-1.j:2222"]}
    assert config == {"cluster": cluster, "task": {"type": "worker", "index": 1}}
    assert "TF_CONFIG" not in env_of(world.pods["j-log-0"])


@pytest.mark.parametrize(
    ("argument", "refused"),
    [
        ("--disable-network-policy=true", True),
        ("--disable-network-policy", True),
        ("-disable-network-policy=1", True),
        ("--disable-network-policy=false", False),
    ],
)
def test_the_network_policy_can_be_refused(argument: str, refused: bool) -> None:
    world = World(plugins={"svc": [argument]})
    world.settle()
    assert ("Service", "j") in world.objects
    assert (("NetworkPolicy", "j") not in world.objects) is refused


def test_a_service_may_publish_addresses_that_are_not_ready() -> None:
    world = World(plugins={"svc": ["--publish-not-ready-addresses"]})
    world.settle()
    assert world.objects["Service", "j"]["spec"]["publishNotReadyAddresses"] is True


def test_a_value_may_follow_its_argument() -> None:
    world = World(task("master", 1), plugins={"pytorch": ["--port", "99"]})
    world.admit()
    assert env_of(world.pods["j-master-0"])["MASTER_PORT"] == "99"


def test_arguments_that_nobody_reads_are_named() -> None:
    world = World(task("master", 1), plugins={"svc": ["--disable-netwrok-policy=true"], "env": ["loud"]})
    world.admit()
    ((kind, message),) = set(reports(world, "PluginArgument"))
    assert kind == "Warning"
    assert "svc: unknown argument 'disable-netwrok-policy', known: --publish-not-ready" in message
    assert "env: unknown argument 'loud', known: none" in message
    assert world.pods, "it is a doubt, and no hindrance"


def test_volumes_of_a_job_are_mounted_everywhere() -> None:
    claim = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
    volumes = [
        {"mountPath": "/old", "volumeClaimName": "there"},
        {"mountPath": "/new", "volumeClaim": claim},
        {"mountPath": "/scratch"},
    ]
    world = World(task(replicas=1), volumes=volumes)
    world.admit()
    spec = world.pods["j-w-0"]["spec"]
    assert [each["mountPath"] for each in spec["containers"][0]["volumeMounts"]] == ["/old", "/new", "/scratch"]
    made = spec["volumes"][1]["persistentVolumeClaim"]["claimName"]
    assert spec["volumes"][0]["persistentVolumeClaim"]["claimName"] == "there" and "emptyDir" in spec["volumes"][2]
    assert world.objects["PersistentVolumeClaim", made]["spec"] == claim


@pytest.mark.parametrize(
    ("spec", "word"),
    [
        ({"plugins": {"mpi": []}}, "no task master"),
        ({"plugins": {"horovod": []}}, "horovod"),
        ({"plugins": {"pytorch": ["--port=http"]}}, "a port from 1 to 65535"),
        ({"plugins": {"ray": ["--head=w", "--dashboardPort=70000"]}}, "--dashboardPort=70000"),
        ({"plugins": {"ssh": ["--ssh-public-key=k"]}}, "both --ssh-private-key"),
        ({"plugins": {"svc": 5}}, "spec.plugins.svc"),
        ({"plugins": ["svc"]}, "spec.plugins"),
        ({"minAvailable": 3}, "minAvailable"),
        ({"tasks": [task("a b")]}, "a b"),
        ({"tasks": [task("a", dependsOn={"name": ["b"]}), task("b", dependsOn={"name": ["a"]}), task("c")]}, "a, b,"),
        ({"tasks": [task("a", dependsOn={"name": ["a"]})]}, "depend on each other"),
    ],
)
def test_what_cannot_be_done_is_reported(spec: dict[str, Any], word: str) -> None:
    world = World(**spec)
    world.settle()
    (tell,) = world.reports
    assert tell.type == "Warning" and word in tell.message and len(world.objects) == 1


def test_pods_that_ask_their_queue_get_its_gate() -> None:
    """Volcano's webhook adds it to any pod with the annotation."""
    asks = task("w", 1)
    asks["template"]["metadata"] = {"annotations": {QUEUE_GATE: "true"}}
    asks["template"]["spec"]["schedulingGates"] = [{"name": "example.com/wait"}]
    world = World(asks, task("v", 1))
    world.admit()
    gates = [{"name": "example.com/wait"}, {"name": QUEUE_GATE}]
    assert world.pods["j-w-0"]["spec"]["schedulingGates"] == gates
    assert "schedulingGates" not in world.pods["j-v-0"]["spec"]


def test_the_job_tells_why_its_group_waits() -> None:
    world = World()
    world.admit()
    reports = [{"type": "Scheduled", "status": "True", "lastTransitionTime": "2024-01-01T00:00:00Z"}]
    world.change("PodGroup", "j-job-uid", {"status": {"conditions": reports}})
    world.step()
    assert world.reports == []
    reports.append(
        {**reports[0], "type": "Unschedulable", "lastTransitionTime": "2024-01-02T00:00:00Z", "message": "no room"}
    )
    world.change("PodGroup", "j-job-uid", {"status": {"conditions": reports}})
    world.step()
    assert [tell.message for tell in world.reports] == ["PodGroup ns:j unschedulable, reason: no room"]


# -- the end


def test_a_finished_job_goes_after_its_time() -> None:
    world = World(ttlSecondsAfterFinished=60)
    world.admit()
    world.become("Running")
    world.settle()
    world.become("Succeeded")
    world.settle()
    world.now += 20
    world.settle()
    assert [wake.after_s for wake in world.wakes] == [40]
    world.now = NOW + 60
    (write,) = world.asked()
    assert isinstance(write, Delete) and write.ref.kind == "Job"


def test_a_job_of_another_scheduler_is_left_alone() -> None:
    assert World(schedulerName="other").asked() == []


def test_a_job_that_is_being_deleted_is_left_alone() -> None:
    world = World()
    world.change("Job", "j", {"metadata": {"deletionTimestamp": "2024-01-01T00:00:00Z"}})
    assert world.asked() == []
