"""Cases recorded from KAI-Scheduler. Source: ``shared/conformance/kai/FORMAT.md``."""

from __future__ import annotations

from tests.conformance.runner.kai.run import FORMAT_PREFIX, run_kai_case

__all__ = ["FORMAT_PREFIX", "run_kai_case"]
