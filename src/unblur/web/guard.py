"""Who may speak to the server, and what every answer says to the browser.

The server listens on this machine only, but every page that the user opens in the browser can send requests there.
So a request must name our own address as its host (a name of somebody else's that points here is refused), must not
come from another page, and must carry a cookie that is only given in exchange for the token of the start address.
Pages on other ports of this machine count as the same site for cookies; the origin tells them apart.
"""

from __future__ import annotations

import hmac
import secrets
from collections.abc import Awaitable, Callable, Collection, MutableMapping
from dataclasses import dataclass, field
from typing import Any

from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import cookie_parser

Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]

PAGE_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
    "form-action 'self'; frame-src 'self'; frame-ancestors 'none'; base-uri 'none'"
)
REPORT_POLICY = (
    "sandbox; default-src 'none'; style-src 'unsafe-inline'; img-src data:; frame-ancestors 'self'; base-uri 'none'; "
    "form-action 'none'"
)
"""For a report, which has its style in it and no scripts: it is shown as if it came from nowhere."""
HEADERS = {
    "content-security-policy": PAGE_POLICY,
    "x-content-type-options": "nosniff",
    "x-frame-options": "SAMEORIGIN",
    "referrer-policy": "same-origin",  # with no-referrer, browsers would hide the origin of our own forms
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "permissions-policy": "camera=(), geolocation=(), microphone=()",
    "cache-control": "no-store",
}
TOKEN_HEADER = "x-unblur-token"
SAFE = ("GET", "HEAD", "OPTIONS")


@dataclass
class Keys:
    """The secrets of one run of the server: the token of the start address, and those who have shown it."""

    token: str = field(default_factory=lambda: secrets.token_urlsafe(32))
    cookie: str = field(default_factory=lambda: f"unblur-{secrets.token_hex(4)}")
    """The name of the cookie: servers on two ports of one machine would overwrite each other's."""
    _secret: bytes = field(default_factory=lambda: secrets.token_bytes(32))
    _visitors: set[str] = field(default_factory=set)

    def admit(self, token: str) -> str | None:
        """Give the holder of the token a name that nobody can guess."""
        if not hmac.compare_digest(token.encode(), self.token.encode()):
            return None
        visitor = secrets.token_urlsafe(32)
        self._visitors.add(visitor)
        return visitor

    def knows(self, visitor: str) -> bool:
        return visitor in self._visitors

    def form_token(self, visitor: str) -> str:
        """What a form of this visitor must carry."""
        return hmac.new(self._secret, visitor.encode(), "sha256").hexdigest()

    def accepts(self, visitor: str, token: str) -> bool:
        """Whether a form is this visitor's."""
        return hmac.compare_digest(token.encode(), self.form_token(visitor).encode())


@dataclass(frozen=True)
class Refusal:
    """Why a request is not answered."""

    status: int
    reason: str


Refuse = Callable[[Scope, Receive, Send, Refusal], Awaitable[None]]


class Guard:
    """Lets through what may pass, and sets the headers of every answer."""

    def __init__(self, app: App, *, hosts: Collection[str], keys: Keys, refuse: Refuse) -> None:
        self._app, self._hosts, self._keys, self._refuse = app, frozenset(hosts), keys, refuse
        self._origins = {f"http://{host}" for host in hosts}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
            return
        if scope["type"] != "http":
            await send({"type": "websocket.close", "code": 1008})
            return

        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in HEADERS.items():
                    headers.setdefault(name, value)
            await send(message)

        headers = Headers(scope=scope)
        scope.setdefault("state", {})["visitor"] = self._visitor(headers)
        refusal = self._reason(scope, headers)
        if refusal is None:
            await self._app(scope, receive, send_with_headers)
        else:
            await self._refuse(scope, receive, send_with_headers, refusal)

    def _visitor(self, headers: Headers) -> str:
        found = cookie_parser(headers.get("cookie", "")).get(self._keys.cookie, "")
        return found if self._keys.knows(found) else ""

    def _reason(self, scope: Scope, headers: Headers) -> Refusal | None:
        path, unsafe = scope["path"], scope["method"] not in SAFE
        if headers.getlist("host") not in [[host] for host in self._hosts]:
            return Refusal(421, "this address is not ours; use the one that unblur serve has printed")
        if any(origin not in self._origins for origin in headers.getlist("origin")):
            return Refusal(403, "another page has sent this request; it is not answered")
        if unsafe and not headers.getlist("origin"):
            return Refusal(403, "the browser does not say which page has sent this; it is not accepted")
        if self._from_elsewhere(headers):
            return Refusal(403, "another page has sent this request; it is not answered")
        if path.startswith(("/open/", "/static/")):
            return None
        visitor = scope["state"]["visitor"]
        if not visitor:
            return Refusal(403, "this page opens with the address that unblur serve has printed, token included")
        if unsafe and path.startswith("/api/") and not self._keys.accepts(visitor, headers.get(TOKEN_HEADER, "")):
            return Refusal(403, "the request lacks the token of its page; reload the page")
        return None

    def _from_elsewhere(self, headers: Headers) -> bool:
        """Whether the browser says that another page wants this for itself; following a link is the user's own act."""
        site = headers.get("sec-fetch-site", "none")
        follows = headers.get("sec-fetch-mode") == "navigate" and headers.get("sec-fetch-dest") == "document"
        return site in ("cross-site", "same-site") and not follows
