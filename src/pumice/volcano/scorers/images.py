"""ImageLocality: score how much of the pod's images a node already has. Source: kube-scheduler ImageLocality (1.36)."""

from __future__ import annotations

import numpy as np

from pumice.columns.dtypes import F64
from pumice.model.pod import PodSpec
from pumice.placing.derived import Derived

_MIB = 1024 * 1024
LEAST = 23 * _MIB
MOST_PER_CONTAINER = 1000 * _MIB


def image_scores(facts: Derived, spec: PodSpec) -> F64:
    """Return 0 to 100, cached while no node changes. Shape (N,)."""

    def build() -> F64:
        total = np.zeros(len(facts), dtype=np.int64)
        for image in spec.images:
            size, rows = known_images(facts).get(full_name(image), (0, []))
            if rows:
                # Images that many nodes have count more, so that pods of one image do not gather where it happens to
                # be.
                total[rows] += int(size * (len(rows) / len(facts)))
        most = MOST_PER_CONTAINER * max(1, spec.container_count)
        return ((np.clip(total, LEAST, most) - LEAST) * 100 // (most - LEAST)).astype(np.float64)

    return facts.get(("images", spec.images, spec.container_count), build)


def known_images(facts: Derived) -> dict[str, tuple[int, list[int]]]:
    """Return the size of each image, as the first node reports it, and the nodes that have it."""

    def build() -> dict[str, tuple[int, list[int]]]:
        found: dict[str, tuple[int, list[int]]] = {}
        for row, node in enumerate(facts.facts.objs):
            for image in node.images:
                for name in image.names:
                    rows = found.setdefault(name, (image.size_bytes, []))[1]
                    # A node may list an image under one name twice.
                    if not rows or rows[-1] != row:
                        rows.append(row)
        return found

    return facts.get(("known images",), build)


def full_name(image: str) -> str:
    """Return the name of an image with a tag, ``:latest`` by default."""
    # A colon before the last slash belongs to the port of a registry.
    return image if image.rfind(":") > image.rfind("/") else f"{image}:latest"
