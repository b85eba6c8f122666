"""A scheduler that runs, and its answers as tables."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import msgspec

from pumice.library.asking import ask
from pumice.library.column import Column, count, flag, number, text
from pumice.library.errors import InputError
from pumice.library.explanation import Explanation, Waiting
from pumice.library.html import html_facts
from pumice.library.table import Table

JOB_COLUMNS = (
    text("job", "namespace/name"),
    text("queue", "its queue"),
    text("state", "as on the page Jobs"),
    text("code", "what is nearest in the way, one word; missing if it does not wait"),
    text("sentence", "the same with numbers"),
    count("pods", "pods", "size"),
    count("running", "pods", "pods that hold a place"),
    count("waiting", "pods", "pods that wait"),
    count("minimum", "pods", "how many it needs to start"),
    count("priority", "", "priority"),
    number("created", "s", "creation, seconds since the epoch"),
)
QUEUE_COLUMNS = (
    text("queue", "name"),
    text("parent", "the queue above; missing for a root"),
    number("weight", "", "weight"),
    flag("open", "it takes new jobs"),
    count("jobs", "jobs", "jobs in it"),
)
NODE_COLUMNS = (
    text("node", "name"),
    text("group", "rack or zone; missing if none is known"),
    text("closed", "why it takes no new pod; missing if it does"),
    count("pods", "pods", "pods on it"),
)
_OF_JOBS = {"asks": "asked for by its pods that have not ended", "holds": "held by it"}
_OF_QUEUES = {
    "guarantee": "guaranteed",
    "deserved": "deserved by its spec",
    "limit": "may be held at most; missing for no limit",
    "used": "held",
    "waiting": "asked for by jobs that wait",
}
_OF_NODES = {"offers": "allocatable", "used": "used"}


def connect(url: str) -> Scheduler:
    """Return a scheduler that runs. ``url``: the address of its metrics, such as ``http://127.0.0.1:8080``.

    A scheduler answers on its own machine alone (``kubectl port-forward`` elsewhere). Raises: InputError if nothing
    answers there.
    """
    found = Scheduler(url)
    found.queues()  # a wrong address is said here, and not at the first question
    return found


class Scheduler:
    """A scheduler that runs. Each method asks it anew, about its newest snapshot; nothing is kept or changed."""

    def __init__(self, url: str) -> None:
        self.url = url

    def jobs(self) -> Table:
        """Return a row for each job of the newest snapshot."""
        document, resources = self._document("/jobs")
        keys = ("name", "queue", "state", "code", "sentence", "pods", "running", "waiting", "minimum", "priority",
                "created")  # fmt: skip
        return _table("jobs", JOB_COLUMNS, keys, document["rows"], _OF_JOBS, resources)

    def queues(self) -> Table:
        """Return a row for each queue, after that of its parent."""
        document, resources = self._document("/queues")
        keys = ("name", "parent", "weight", "open", "jobs")
        return _table("queues", QUEUE_COLUMNS, keys, document["queues"], _OF_QUEUES, resources)

    def nodes(self) -> Table:
        """Return a row for each node."""
        document, resources = self._document("/nodes")
        # The first way to group nodes is the narrowest.
        near = next(iter(document["groupings"]), None)
        group = [near["groups"][of] if of >= 0 else "" for of in near["of"]] if near else [""] * len(document["names"])
        columns = {"name": document["names"], "group": group}
        columns |= {key: document[key] for key in ("closed", "pods", "offers", "used")}
        rows = [dict(zip(columns, each, strict=True)) for each in zip(*columns.values(), strict=True)]
        return _table("nodes", NODE_COLUMNS, ("name", "group", "closed", "pods"), rows, _OF_NODES, resources)

    def explain(self, job: str, *, ways: bool = True) -> Explanation:
        """Say why a job waits, and what would help it. See ``Cluster.explain``. Raises: InputError."""
        return Explanation(self._asked("/explain", [("job", job), ("ways", "1" if ways else "0")]))

    def waiting(self) -> Waiting:
        """Return all jobs that wait, by reason, and the change that would let most of them start."""
        return Waiting(self._asked("/explain", [("all", "1")]))

    def _document(self, path: str) -> tuple[Any, list[tuple[str, str]]]:
        """Return what a page shows, and (name, unit) of each resource in its amounts."""
        found = self._asked(path)
        return found["data"], [(each["name"], each["unit"]) for each in found["head"]["resources"]]

    def _asked(self, path: str, parameters: Iterable[tuple[str, str]] = ()) -> Any:
        body, _ = ask(self.url, path, parameters)
        try:
            found = msgspec.json.decode(body)
        except msgspec.DecodeError:
            found = None
        if not isinstance(found, dict) or not ("schema" in found or {"head", "data"} <= found.keys()):
            raise InputError(f"{self.url[:60]}: found {body[:40]!r}, wanted an answer of pumice run")
        return found

    def __repr__(self) -> str:
        return f"<scheduler {self.url}>"

    def _repr_html_(self) -> str:
        return html_facts("scheduler", {"address": self.url})


def _table(
    name: str,
    columns: Sequence[Column],
    keys: Sequence[str],
    rows: Sequence[Mapping[str, Any]],
    amounts: Mapping[str, str],
    resources: Sequence[tuple[str, str]],
) -> Table:
    """Return rows of JSON as a table. ``amounts``: key -> meaning of lists with an entry for each resource, each of
    which becomes a column such as ``used.cpu``."""
    more = [
        number(f"{key}.{resource}", unit, f"{resource} {about}")
        for key, about in amounts.items()
        for resource, unit in resources
    ]
    # An empty text in JSON is a missing value.
    found = [
        (*(None if row[key] == "" else row[key] for key in keys), *(each for key in amounts for each in row[key]))
        for row in rows
    ]
    return Table(name, (*columns, *more), lambda: found)
