"""What plugins ask about claims: why no node need be looked at, what rides on a bind."""

from __future__ import annotations

from pumice.columns.views import Node
from pumice.framework.plugin.filter_result import Code, Unfit
from pumice.model.decisions import CLAIMS, ClaimGrant
from pumice.placing.claims.hooks import claiming_in
from pumice.testing.build import pod
from pumice.testing.devices import claim, offered
from tests.unit.placing.claims.kit import claiming, opened, task, world


def test_no_eviction_helps_where_nothing_can_ever_be_given() -> None:
    ssn = opened(world(offered("n1", 1), claim("c", gpu_com=1), claiming("a", "c"), claiming("b", "gone"), names="ab"))
    claims = claiming_in(ssn)
    assert claims is not None
    assert claims.refused(task(ssn, "a"), "so: ") is None
    assert claims.refused(task(ssn, "b"), "so: ") == Unfit("so: resourceclaim ns/gone not found", Code.UNRESOLVABLE)


def test_a_bind_carries_what_the_claims_were_given() -> None:
    pods = claiming("a", "c"), pod("b", "b")
    ssn = opened(world(offered("n1", 1), claim("c", gpu_com=1), pods, names="ab"))
    claims = claiming_in(ssn)
    assert claims is not None
    with ssn.statement() as stmt:
        stmt.allocate([task(ssn, "a").row], [0])
        found = claims.granted(task(ssn, "a"), Node(ssn.tables, 0))
        assert found is not None
        (grant,) = found[CLAIMS]  # type: ignore[misc, attr-defined]
        assert isinstance(grant, ClaimGrant)
        assert grant.allocation is not None
        assert [each.device for each in grant.allocation.devices] == ["0"]
    assert claims.granted(task(ssn, "b"), Node(ssn.tables, 0)) is None
