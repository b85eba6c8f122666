"""Cases in which Pumice decides otherwise on purpose. Each names the decision record that says why."""

from __future__ import annotations

#: ``folder/file.yaml`` -> ``docs/decisions/NNNN-title.md: why in a few words``.
ACCEPTED: dict[str, str] = {}
