"""Which addresses and requests are of this machine, for servers that answer no other."""

from __future__ import annotations

from ipaddress import ip_address

from aiohttp import web


def is_loopback(address: str) -> bool:
    """Return True if only programs on this machine can reach an address."""
    try:
        return ip_address(address).is_loopback
    except ValueError:
        return address == "localhost"


def is_from_here(request: web.Request) -> bool:
    """Return True for a request of this machine that was not caused by a page of another site.

    Such a page may let a name of its own resolve to loopback, but the browser sends that name as the Host header.
    """
    return is_loopback(request.remote or "") and names_this_machine(request.host)


def names_this_machine(host: str) -> bool:
    """Return True for a Host header, with or without a port, that says loopback."""
    return is_loopback(host[1:].partition("]")[0] if host.startswith("[") else host.partition(":")[0])
