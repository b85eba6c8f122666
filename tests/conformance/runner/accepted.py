"""Cases in which Pumice decides otherwise on purpose. Each names the decision record that says why."""

from __future__ import annotations

_TWICE = "docs/decisions/0033-kai-0-17.md: a later allocate places nobody twice"
#: ``folder/file.yaml`` -> ``docs/decisions/NNNN-title.md: why in a few words``.
ACCEPTED: dict[str, str] = {f"gangpreempt/{number}.yaml": _TWICE for number in ("0027", "0042", "0079", "0144")}

#: Cases that KAI 0.13 and 0.17 decide differently, as recorded from the former.
_REPLACED = (
    "departments/0054",
    "elastic/0044",
    "gang/0239",
    "subgroups/1037",
    "subgroups/1047",
    "subgroups/1051",
    "subgroups/1107",
    "subgroups/1197",
    "topology/1158",
    "whole/0070",
)
_OLDER = "docs/decisions/0033-kai-0-17.md: recorded from an older version that decides otherwise"
#: (``folder/file.yaml``, commit from which it was recorded) -> as above.
ACCEPTED_OF_COMMIT: dict[tuple[str, str], str] = {(f"{case}.yaml", "72de64fc"): _OLDER for case in _REPLACED}

#: Cases that are open, by the same keys: reported as "not yet", and never as a difference that was accepted.
OPEN: dict[tuple[str, str], str] = {}


def why_accepted(file: str, commit: str) -> str:
    """Return why a case of this name, recorded from a commit of the reference, may differ; "" if it may not."""
    return ACCEPTED.get(file) or ACCEPTED_OF_COMMIT.get((file, commit), "")
