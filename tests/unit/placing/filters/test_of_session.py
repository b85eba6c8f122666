"""One of each filter a session, and its module imported when the first pod needs it."""

import subprocess
import sys

import pytest

from pumice.placing.filters import of_session
from pumice.testing.build import cluster, node, session

LATE = ("port_filter", "inter_pod_filter", "spread_filter", "inter_pod_score")


@pytest.mark.parametrize("name", LATE)
def test_plugins_of_a_session_share_one(name: str) -> None:
    ssn, make = session(cluster(node("n")), "tiers: []"), getattr(of_session, name)
    assert make(ssn) is make(ssn)
    assert make(ssn) is not make(session(cluster(node("n")), "tiers: []"))


def test_no_module_is_imported_before_a_pod_needs_it() -> None:
    late = [f"pumice.placing.filters.{name}" for name in ("ports", "interpod", "spread", "preferred_terms")]
    code = f"import sys, pumice.placing.filters.of_session; print([m for m in {late} if m in sys.modules])"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "[]\n"
