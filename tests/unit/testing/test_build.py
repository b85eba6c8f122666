"""Clusters in a few words: what is not understood is said, and not left out."""

from __future__ import annotations

from typing import Any

import pytest

from pumice.testing.build import cluster, node, pod


@pytest.mark.parametrize(
    ("wrong", "named"),
    [
        pytest.param([[pod("p")]], "list", id="a list in a list"),
        pytest.param([node("a"), None], "NoneType", id="nothing"),
        pytest.param("a", "str", id="a name"),
    ],
)
def test_what_is_no_object_is_not_dropped(wrong: Any, named: str) -> None:
    with pytest.raises(TypeError, match=f"among these is a {named}"):
        cluster(node("n"), wrong)
