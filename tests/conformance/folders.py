"""The folders of recorded cases that ``make conformance`` runs, and how many cases of each do not simply pass."""

from __future__ import annotations

from collections.abc import Mapping

from tests.conformance.runner import Status

#: Folder -> how many of its cases are accepted and not yet. Other counts fail, as a failed case does: a plugin that is
#: no longer found turns cases into "not yet", and that must not go unseen.
FOLDERS: Mapping[str, Mapping[Status, int]] = {
    "kai-generated": {Status.ACCEPTED: 10, Status.NOT_YET: 0},
    "kai-0.17-generated": {Status.ACCEPTED: 0, Status.NOT_YET: 0},
    "volcano-generated": {Status.ACCEPTED: 4, Status.NOT_YET: 0},
    "kai": {Status.ACCEPTED: 0, Status.NOT_YET: 0},
    "kai-0.17": {Status.ACCEPTED: 0, Status.NOT_YET: 0},
    "volcano": {Status.ACCEPTED: 39, Status.NOT_YET: 0},
}
