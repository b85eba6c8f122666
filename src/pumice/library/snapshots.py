"""A cluster from the snapshot of a cycle, with the policy that it contains."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from pumice.library.cluster import Cluster
from pumice.library.errors import InputError
from pumice.library.policies import policy
from pumice.runtime.files.known_objects import all_objects_in
from pumice.runtime.files.snapshot_file import Cycle, SnapshotError, read_cycle
from pumice.sim.scenes.inputs import Inputs
from pumice.sim.scenes.scene import Scene


def saved_cycle(paths: Sequence[str]) -> Cycle:
    """Return the cycle of one snapshot. Raises: InputError, OSError."""
    if len(paths) > 1:
        raise InputError("a snapshot contains a whole cluster: wanted no other input")
    try:
        return read_cycle(Path(paths[0]))
    except SnapshotError as error:
        raise InputError(f"{paths[0]}: {error}") from None


def cluster_of_snapshot(paths: Sequence[str]) -> Cluster:
    """Return the cluster of one snapshot. Raises: InputError, PolicyError."""
    cycle = saved_cycle(paths)
    scene = Scene(tuple(all_objects_in(cycle.snapshot, cycle.now)), ())
    # A text of one line would be taken for a path.
    own = policy(cycle.conf + "\n#\n", strict=not cycle.lenient, name=f"{paths[0]}: policy")
    return Cluster(Inputs(scene, (f"snapshot {paths[0]}",), (), cycle.now), tuple(paths), None, own)
