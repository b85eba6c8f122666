"""Questions to a scheduler that runs, over HTTP."""

from __future__ import annotations

import os
from collections.abc import Iterable
from http import HTTPStatus
from http.client import HTTPException
from typing import Any
from urllib.error import HTTPError, URLError
from urllib.parse import urlencode
from urllib.request import HTTPRedirectHandler, ProxyHandler, Request, build_opener

from pumice.library.errors import InputError

#: The variable with the Kubernetes token for a scheduler that is asked beyond loopback.
TOKEN = "PUMICE_TOKEN"
_TEXT_MAX = 512
_ANSWER_BYTES_MAX = 64 << 20
_ANSWER_S = 60.0


class _NoRedirect(HTTPRedirectHandler):
    """Follows no redirect: urllib would send the token to the address that it names too."""

    def redirect_request(self, *_: Any) -> None:
        return None


def ask(server: str, path: str, parameters: Iterable[tuple[str, str]] = ()) -> tuple[str, int]:
    """Return the answer of a scheduler that runs, and the exit code of the command that made it.

    ``server``: the address of its metrics, such as ``http://127.0.0.1:8080``. Over TLS the token of ``PUMICE_TOKEN`` is
    sent, otherwise none. Raises: InputError for an address that does not answer, and with the scheduler's own words
    for a question that it refuses.
    """
    if not server.startswith(("http://", "https://")):
        raise InputError(f"found {server[:60]!r}, wanted http:// or https:// and an address")
    query = urlencode(list(parameters))
    url = f"{server.rstrip('/')}{path}{'?' if query else ''}{query}"
    token = os.environ.get(TOKEN, "").strip() if server.startswith("https://") else ""
    if not (token.isascii() and token.isprintable()):
        raise InputError(f"{TOKEN}: found a token with characters that no token has")
    opener: Any = build_opener(ProxyHandler({}), _NoRedirect)  # an address of this machine is asked through no proxy
    try:
        asked = Request(url, headers={"Authorization": f"Bearer {token}"} if token else {})
        with opener.open(asked, timeout=_ANSWER_S) as answer:
            body = answer.read(_ANSWER_BYTES_MAX + 1)
            code = int(answer.headers.get("X-Pumice-Exit-Code") or 0)
    except HTTPError as error:
        if error.code == HTTPStatus.NOT_FOUND:
            raise InputError(
                f"{server[:60]}: found no page {path}, wanted the address of a scheduler's metrics"
            ) from None
        text = error.read(_TEXT_MAX).decode("utf-8", "replace").strip().removeprefix("error: ")
        raise InputError(f"{server[:60]}: {text or error.reason}") from None
    except (URLError, OSError, HTTPException, ValueError) as error:
        reason = getattr(error, "reason", error)
        why = reason.strerror if isinstance(reason, OSError) and reason.strerror else reason
        raise InputError(f"{server[:60]}: {why}") from None
    if len(body) > _ANSWER_BYTES_MAX:
        raise InputError(f"{server[:60]}: found an answer of more than {_ANSWER_BYTES_MAX >> 20} MB")
    return body.decode("utf-8", "replace"), code
