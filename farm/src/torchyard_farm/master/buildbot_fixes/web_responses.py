"""How the web server answers: whole, and so that other sites get nowhere."""

from collections.abc import Iterator
from json import JSONEncoder
from typing import Any

from buildbot.www.rest import V2RootResource
from buildbot.www.service import BuildbotSite
from twisted.internet import reactor
from twisted.web.server import Request

_HEADERS = {
    b"content-security-policy": b"frame-ancestors 'self'; form-action 'self'; base-uri 'self'",
    b"x-content-type-options": b"nosniff",
    b"x-frame-options": b"SAMEORIGIN",
    b"referrer-policy": b"same-origin",
}


class HardenedRequest(Request):
    """A request whose answer can't be put into another site's page, nor its cookie taken there."""

    is_behind_tls = False

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        for name, value in _HEADERS.items():
            self.responseHeaders.setRawHeaders(name, [value])

    def addCookie(self, *args: Any, **kwargs: Any) -> None:
        careful = {"httpOnly": True, "sameSite": b"lax", "secure": self.is_behind_tls}
        super().addCookie(*args, **(kwargs | careful))


def harden_web_server(*, is_behind_tls: bool) -> None:
    """Let the web server of this process answer so."""
    HardenedRequest.is_behind_tls = is_behind_tls
    BuildbotSite.requestFactory = HardenedRequest
    V2RootResource._write_json_data = staticmethod(_write_whole)  # noqa: SLF001 - no other way


def _write_whole(request: Any, encoder: JSONEncoder, data: object) -> None:
    """Spell an answer in a thread, and write it in the one that has the connections.

    Buildbot writes it in the former, piece by piece, and some of them get lost.
    """
    body = "".join(_while_wanted(request, encoder.iterencode(data))).encode()
    reactor.callFromThread(_write, request, body)


def _while_wanted(request: Any, pieces: Iterator[str]) -> Iterator[str]:
    for piece in pieces:
        if request.channel is None:
            return
        yield piece


def _write(request: Any, body: bytes) -> None:
    if not request.finished and request.channel is not None:
        request.setHeader(b"content-length", str(len(body)).encode())
        request.write(b"" if request.method == b"HEAD" else body)
