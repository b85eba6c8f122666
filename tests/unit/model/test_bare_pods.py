"""What people call the jobs of pods without a PodGroup."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from pumice.model.manifest.jobs import podgroup_for_bare_pod
from pumice.model.pod import Pod
from pumice.model.workloads.bare_pods import shown_name
from pumice.testing.build import pod

ALONE = replace(pod("web-1"), uid="4f1c")
OWNED = replace(pod("web-7d4b9-x2"), uid="9a", owner=("ReplicaSet", "web-7d4b9", "77aa"))


@pytest.mark.parametrize(("bare", "shown"), [(ALONE, "ns/web-1"), (OWNED, "ns/web-7d4b9")], ids=["pod", "owner"])
def test_a_group_that_was_made_for_pods_is_called_as_they_are(bare: Pod, shown: str) -> None:
    group, member = podgroup_for_bare_pod(bare)
    assert shown_name(group.key, [member]) == shown


@pytest.mark.parametrize("key", ["ns/train", "ns/podgroup-0815"])
def test_other_groups_are_called_by_their_own_name(key: str) -> None:
    assert shown_name(key, [ALONE, OWNED]) == key
    assert shown_name(key, []) == key
