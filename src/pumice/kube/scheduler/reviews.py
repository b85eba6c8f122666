"""Who asks, by the Kubernetes token of a request: TokenReview says whose it is, SubjectAccessReview what they may see.

A user sees the jobs of the namespaces in which they may get pods, and nodes one by one if they may get nodes. Answers
of the API server are kept for a short time. How many are kept, how many reviews run and wait, and what each may take
is bounded, because anyone who reaches the port can send tokens.
"""

from __future__ import annotations

import asyncio
import time
from base64 import b64decode
from binascii import Error as NotBase64
from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterable
from hashlib import sha256
from itertools import compress
from typing import Any

from aiohttp import web
from msgspec import UNSET, Struct, UnsetType, json

from pumice.kube.api.client import ONCE, Caps, Client
from pumice.kube.api.errors import NO_JSON, ApiError, Garbage, KubeError
from pumice.kube.api.kinds import NODES, PODS, SUBJECT_ACCESS_REVIEWS, TOKEN_REVIEWS, Kind
from pumice.runtime.serving.viewers import Scope, Viewer

#: How long answers of the API server hold: who a user is and what they may do, and what is refused.
YES_S, NO_S = 60.0, 10.0
#: How many answers are kept of each kind.
KEPT_MAX = 4096
#: In how many namespaces one user is looked up who may not get the pods of all.
NAMESPACES_MAX = 500
#: Reviews that run at the same time, and that run or wait.
AT_WORK, ASKED_MAX = 8, 256
#: Reviews a second at most, for all that send tokens.
RATE = 200.0
#: How long all reviews for one request may take.
SCOPE_S = 10.0
CAPS = Caps(answer_bytes=1 << 20, connect_s=5.0, request_s=5.0)
_TOKEN_MAX = 16 << 10
_WANTED = (
    "wanted a Kubernetes token: Authorization: Bearer TOKEN, or the token as the password of a user with any name\n"
)
_CHALLENGE = 'Bearer realm="pumice", Basic realm="pumice: the password is a Kubernetes token", charset="UTF-8"'


class User(Struct, frozen=True):
    """A user as TokenReview names them, and as SubjectAccessReview wants them. ``extra``: as JSON."""

    username: str = ""
    uid: str = ""
    groups: tuple[str, ...] = ()
    extra: bytes = b""


class _UserInfo(Struct):
    username: str = ""
    uid: str = ""
    groups: tuple[str, ...] | None = None
    extra: dict[str, list[str]] | None = None


class _Status(Struct):
    authenticated: bool = False
    user: _UserInfo | UnsetType = UNSET
    allowed: bool = False
    denied: bool = False


class _Review(Struct):
    status: _Status | UnsetType = UNSET


class AnswerCache:
    """Answers by key, each for some time, the least recently used ones dropped first. ``clock``: seconds that never go
    back."""

    def __init__(self, most: int, clock: Callable[[], float]) -> None:
        self._most, self._clock = most, clock
        self._found: OrderedDict[Hashable, tuple[float, Any]] = OrderedDict()

    def __len__(self) -> int:
        return len(self._found)

    def get(self, key: Hashable) -> Any:
        """Return an answer that still holds, or UNSET."""
        until, answer = self._found.get(key, (0.0, UNSET))
        if answer is UNSET or self._clock() >= until:
            return UNSET
        self._found.move_to_end(key)
        return answer

    def put(self, key: Hashable, answer: object, hold_s: float) -> None:
        self._found[key] = self._clock() + hold_s, answer
        self._found.move_to_end(key)
        if len(self._found) > self._most:
            self._found.popitem(last=False)


class Reviews:
    """Asks an API server about tokens. ``viewer`` is the guard of a server. ``client``: for reviews alone, so that no
    bind and no lease waits for them."""

    def __init__(self, client: Client, clock: Callable[[], float] = time.monotonic) -> None:
        self._client = client
        self._users, self._rights = AnswerCache(KEPT_MAX, clock), AnswerCache(KEPT_MAX, clock)
        self._slots, self._asked = asyncio.Semaphore(AT_WORK), 0

    async def viewer(self, request: web.Request) -> Viewer:
        """Return the user of a request. Raises: HTTPUnauthorized without a token that the API server accepts,
        HTTPServiceUnavailable if it cannot be asked."""
        user = await self._user_of(token_of(request.headers.get("Authorization", "")))
        if user is None:
            raise _unauthorized("the API server does not accept this token\n")
        return _TokenUser(self, user)

    async def may_get(self, user: User, kind: Kind, namespace: str = "") -> bool:
        """Return True if a user may get objects of a kind in a namespace, "" for all. Raises: HTTPException."""
        key = (user, kind.full_name, namespace)
        found = self._rights.get(key)
        if found is UNSET:
            found = await self._ask_right(user, kind, namespace)
            self._rights.put(key, found, YES_S if found else NO_S)
        return bool(found)

    async def _user_of(self, token: str) -> User | None:
        key = sha256(token.encode()).digest()  # a token that is kept could leak
        found = self._users.get(key)
        if found is UNSET:
            status = await self._review(TOKEN_REVIEWS, {"token": token})
            user = status.user if status.authenticated else UNSET
            found = _user(user) if isinstance(user, _UserInfo) else None
            self._users.put(key, found, NO_S if found is None else YES_S)
        return found if isinstance(found, User) else None

    async def _ask_right(self, user: User, kind: Kind, namespace: str) -> bool:
        attributes = {"verb": "get", "group": kind.group, "resource": kind.plural, "namespace": namespace}
        about: dict[str, Any] = {"user": user.username, "groups": user.groups, "resourceAttributes": attributes}
        if user.uid:
            about["uid"] = user.uid
        if user.extra:
            about["extra"] = json.decode(user.extra)
        status = await self._review(SUBJECT_ACCESS_REVIEWS, about)
        return status.allowed and not status.denied

    async def _review(self, kind: Kind, spec: dict[str, Any]) -> _Status:
        if self._asked >= ASKED_MAX:
            raise web.HTTPServiceUnavailable(text=f"{ASKED_MAX:,} reviews of tokens wait already; ask again later\n")
        self._asked += 1
        try:
            async with self._slots:
                body = {"apiVersion": kind.api_version, "kind": kind.kind, "spec": spec}
                raw = await self._client.post(kind.list_path, body, retries=ONCE)
            status = json.decode(raw, type=_Review).status
            if status is UNSET:
                raise Garbage(f"POST {kind.list_path}", "found no status")
            return status
        except (KubeError, *NO_JSON) as error:
            raise web.HTTPServiceUnavailable(text=f"tokens cannot be reviewed: {_why(error, kind)}\n") from None
        finally:
            self._asked -= 1


class _TokenUser(Viewer):
    """A user whose rights are looked up when they are needed."""

    def __init__(self, reviews: Reviews, user: User) -> None:
        self._reviews, self._user = reviews, user
        self.name = f"user {user.username}"

    async def scope(self, namespaces: Iterable[str]) -> Scope:
        try:
            async with asyncio.timeout(SCOPE_S):
                return await self._scope(namespaces)
        except TimeoutError:
            text = f"found no answer about your rights within {SCOPE_S:.0f} s; ask again later\n"
            raise web.HTTPServiceUnavailable(text=text) from None

    async def _scope(self, namespaces: Iterable[str]) -> Scope:
        may, user = self._reviews.may_get, self._user
        everywhere, nodes = await asyncio.gather(may(user, PODS), may(user, NODES))
        if everywhere:
            return Scope(None, nodes)
        there = list(namespaces)
        if len(there) > NAMESPACES_MAX:
            text = f"found jobs in {len(there):,} namespaces, wanted at most {NAMESPACES_MAX} for users who may not"
            raise web.HTTPForbidden(text=f"{text} get pods in all namespaces\n")
        found: set[str] = set()
        for at in range(0, len(there), AT_WORK):  # not all at once, which leaves room for reviews of others
            some = there[at : at + AT_WORK]
            seen = await asyncio.gather(*(may(user, PODS, each) for each in some))
            found.update(compress(some, seen))
        return Scope(frozenset(found), nodes)


def token_of(authorization: str) -> str:
    """Return the token of an Authorization header: a bearer token, or the password of Basic, which browsers ask for.

    Raises: HTTPUnauthorized if there is none.
    """
    scheme, _, value = authorization.partition(" ")
    found = value.strip()
    if scheme.lower() == "basic":
        try:
            found = b64decode(found, validate=True).decode().partition(":")[2]
        except (NotBase64, UnicodeDecodeError):
            found = ""
    elif scheme.lower() != "bearer":
        found = ""
    if not 0 < len(found) <= _TOKEN_MAX:
        raise _unauthorized(_WANTED)
    return found


def _unauthorized(text: str) -> web.HTTPUnauthorized:
    return web.HTTPUnauthorized(text=text, headers={"WWW-Authenticate": _CHALLENGE})


def _user(found: _UserInfo) -> User:
    # In one order, so that equal users have equal answers.
    extra = b"" if not found.extra else json.encode(found.extra, order="sorted")
    return User(found.username, found.uid, found.groups or (), extra)


def _why(error: Exception, kind: Kind) -> str:
    if isinstance(error, ApiError) and error.status == 403:
        return f"the scheduler may not create {kind.full_name}: see deploy/base/rbac.yaml"
    return str(error)
