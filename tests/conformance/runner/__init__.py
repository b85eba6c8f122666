"""The recorded decisions of the reference schedulers, run against Pumice. Source: ``shared/conformance/README.md``."""

from __future__ import annotations

from tests.conformance.runner.report import Report
from tests.conformance.runner.result import CaseResult, Status
from tests.conformance.runner.runner import run_conformance

__all__ = ["CaseResult", "Report", "Status", "run_conformance"]
