"""The recorded decisions of the reference schedulers, run against Pumice. Source: ``shared/conformance/README.md``."""

from __future__ import annotations

from pumice.testing.conformance.report import Report
from pumice.testing.conformance.result import CaseResult, Status
from pumice.testing.conformance.runner import run_conformance

__all__ = ["CaseResult", "Report", "Status", "run_conformance"]
