"""A client that must not be used: for what is decided without asking a server."""

from __future__ import annotations

from pumice.kube.api.access import Access
from pumice.kube.api.client import Client

SILENT = Client(Access("http://nobody.invalid"))
