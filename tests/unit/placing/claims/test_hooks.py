"""What plugins share of claims: nothing where no pod has claims, and one object for all plugins."""

from __future__ import annotations

from pumice.placing.claims.hooks import claiming_in
from pumice.testing.build import pod
from pumice.testing.devices import claim, offered
from tests.unit.placing.claims.kit import claiming, opened, world


def test_nothing_is_looked_at_where_no_pod_claims() -> None:
    assert claiming_in(opened(world(offered("n1", 1), claim("c", gpu_com=1), pod("a", "a")))) is None


def test_two_plugins_share_what_is_known_of_a_session() -> None:
    ssn = opened(world(offered("n1", 1), claim("c", gpu_com=1), claiming("a", "c")))
    assert claiming_in(ssn) is not None
    assert claiming_in(ssn) is claiming_in(ssn)
