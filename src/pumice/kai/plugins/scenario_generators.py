"""sg-nodelocalgreedy, sg-multinodegang: which sets of victims a search tries. Source: KAI scenariogenerators."""

from __future__ import annotations

from pumice.api import Session, plugin
from pumice.kai import points
from pumice.kai.engine.points import MULTI_NODE, NODE_LOCAL


@plugin("sg-nodelocalgreedy")
@points.victim_sets(reads=())
def nodelocalgreedy(ssn: Session) -> str:
    """Return the name of the generator that frees one node at a time."""
    return NODE_LOCAL


@plugin("sg-multinodegang")
@points.victim_sets(reads=())
def multinodegang(ssn: Session) -> str:
    """Return the name of the generator that frees as few nodes as a gang needs."""
    return MULTI_NODE
