"""Questions that read their input themselves."""

from __future__ import annotations

from pumice.library.cluster import Cluster, load
from pumice.library.explanation import Explanation
from pumice.library.policies import PolicyLike


def explain(job: str, cluster: Cluster | str, policy: PolicyLike | None = None, *, ways: bool = True) -> Explanation:
    """Say why a job waits in a cluster or a file with one. See ``Cluster.explain``."""
    return (cluster if isinstance(cluster, Cluster) else load(cluster)).explain(job, policy, ways=ways)
