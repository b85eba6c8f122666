"""Cases in which Pumice decides otherwise on purpose. Each names the decision record that says why."""

from __future__ import annotations

#: ``folder/file.yaml`` -> ``docs/decisions/NNNN-title.md: why in a few words``.
ACCEPTED: dict[str, str] = {
    f"gangpreempt/{number}.yaml": "docs/decisions/0039-accepted-differences.md: a later allocate places nobody twice"
    for number in ("0027", "0042", "0079", "0144")
} | {"subgroups/1047.yaml": "docs/decisions/0039-accepted-differences.md: not explained; KAI parts ways there"}
