"""Users of groups of shared GPUs come, change their groups, and go."""

from __future__ import annotations

from pumice.kube.binding.group_users import GroupUsers


def test_a_group_is_there_while_it_has_users() -> None:
    users = GroupUsers()
    users.put("ns/b", ["g0", "g1"])
    users.put("ns/a", ["g1"])
    assert list(users) == ["g0", "g1"]
    assert users.of("g1") == ["ns/a", "ns/b"]
    users.drop("ns/b")
    assert "g0" not in users and users.of("g1") == ["ns/a"]
    users.drop("ns/a")
    assert not users and users.of("g1") == []


def test_new_groups_of_a_user_take_the_place_of_its_old_ones() -> None:
    users = GroupUsers()
    users.put("ns/a", ["g0"])
    users.put("ns/a", ["g1"])
    assert list(users) == ["g1"]
    users.put("ns/a", [])
    assert not users


def test_a_user_that_was_never_there_can_be_dropped() -> None:
    users = GroupUsers()
    users.put("ns/a", ["g0"])
    users.drop("ns/b")
    assert users.of("g0") == ["ns/a"]
