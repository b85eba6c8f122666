"""Host ports: which clash on a node, and with which pods a pod is compared."""

from __future__ import annotations

import pytest

from pumice.model.pod import HostPort
from pumice.placing.filters.pods import pod_index
from pumice.placing.filters.ports import TAKEN, PortFilter, Ports
from tests.unit.volcano.cluster import Cluster, pod
from tests.unit.volcano.pods import NODES


@pytest.mark.parametrize(
    ("held", "wanted", "clashes"),
    [
        pytest.param(HostPort(80), HostPort(80), True, id="same port"),
        pytest.param(HostPort(80), HostPort(81), False, id="another port"),
        pytest.param(HostPort(80), HostPort(80, "UDP"), False, id="another protocol"),
        pytest.param(HostPort(80, ""), HostPort(80, "TCP"), True, id="no protocol is TCP"),
        pytest.param(HostPort(80, ip=""), HostPort(80, ip="10.0.0.1"), True, id="no address is every address"),
        pytest.param(HostPort(80, ip="10.0.0.1"), HostPort(80), True, id="every address wanted"),
        pytest.param(HostPort(80), HostPort(80, ip="10.0.0.1"), True, id="every address held"),
        pytest.param(HostPort(80, ip="10.0.0.1"), HostPort(80, ip="10.0.0.2"), False, id="another address"),
        pytest.param(HostPort(80, ip="10.0.0.1"), HostPort(80, ip="10.0.0.1"), True, id="same address"),
    ],
)
def test_which_ports_clash(held: HostPort, wanted: HostPort, clashes: bool) -> None:
    assert [Ports([(0, [one])]).clashing(other) for one, other in ((held, wanted), (wanted, held))] == [clashes] * 2


def test_all_classes_with_a_clashing_port_are_found() -> None:
    held = [(1, [HostPort(80)]), (3, [HostPort(81)]), (70, [HostPort(9), HostPort(80, ip="10.0.0.1")])]
    assert Ports(held).clashing(HostPort(80)) == 1 << 1 | 1 << 70
    assert Ports(held).clashing(HostPort(80, ip="10.0.0.2")) == 1 << 1


def test_a_pod_is_kept_off_the_node_of_a_pod_that_has_its_port() -> None:
    """Any of the ports of any pod there, and until that pod has left."""
    there = [
        pod("a", "x1", host_ports=(HostPort(80), HostPort(81))),
        pod("b", "x2", host_ports=(HostPort(82),)),
    ]
    wanting = pod("p", host_ports=(HostPort(9), HostPort(81)))
    cluster = Cluster(NODES, [*there, wanting], "predicates")
    assert cluster.reasons("p") == {"x1": [TAKEN.reason]}
    stmt = cluster.ssn.statement()
    stmt.evict([cluster.row_of["a"]], "make room")
    assert cluster.reasons("p") == {}
    stmt.discard()
    assert cluster.reasons("p") == {"x1": [TAKEN.reason]}


def test_only_pods_with_ports_are_asked_about() -> None:
    cluster = Cluster(NODES, [pod("a", host_ports=(HostPort(80),)), pod("p")], "predicates")
    concerns = PortFilter(pod_index(cluster.ssn)).concerns
    assert [concerns(cluster.task(name).cls.row) for name in "ap"] == [True, False]
