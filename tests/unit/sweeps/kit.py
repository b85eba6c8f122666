"""Small sweeps."""

from __future__ import annotations

from pumice.sweeps.plan import Plan, plan_of
from pumice.sweeps.request import Request
from tests.tidy import repo

DEMO = str(repo.ROOT / "examples" / "demo")
CONF = f"{DEMO}/volcano-scheduler.conf"


def request(**more: object) -> Request:
    given = {"inputs": [DEMO], "policies": ["default"], "seeds": "0..1", "until": "30m", "shake": "60s"}
    return Request(**{**given, **more})  # type: ignore[arg-type]


def plan(**more: object) -> Plan:
    return plan_of(request(**more))
