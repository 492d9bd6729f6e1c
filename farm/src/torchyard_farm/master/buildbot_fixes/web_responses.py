"""Responses of the web server: written at once, with headers that protect against other sites.

Defect of Buildbot 4.3 (`www/rest.py`): it writes JSON in pieces from a thread, which Twisted does
not allow, and pieces get lost. It also sets no security headers or cookie attributes.
"""

from collections.abc import Iterator
from functools import partial
from json import JSONEncoder

from buildbot.www.rest import V2RootResource
from buildbot.www.service import BuildbotSite
from twisted.web.server import Request

from torchyard_farm.twisted_tools import global_reactor

_HEADERS = {
    b"content-security-policy": b"frame-ancestors 'self'; form-action 'self'; base-uri 'self'",
    b"x-content-type-options": b"nosniff",
    b"x-frame-options": b"SAMEORIGIN",
    b"referrer-policy": b"same-origin",
}


class HardenedRequest(Request):
    """A request with security headers, whose cookies are for this site only."""

    is_behind_tls = False

    def __init__(self, *args: object, **kwargs: object) -> None:
        super().__init__(*args, **kwargs)
        for name, value in _HEADERS.items():
            self.responseHeaders.setRawHeaders(name, [value])

    def addCookie(self, *args: object, **kwargs: object) -> None:
        hardened = {"httpOnly": True, "sameSite": b"lax", "secure": self.is_behind_tls}
        super().addCookie(*args, **(kwargs | hardened))


def harden_web_server(*, is_behind_tls: bool) -> None:
    """Use hardened requests and complete responses in this process's web server."""
    HardenedRequest.is_behind_tls = is_behind_tls
    BuildbotSite.requestFactory = HardenedRequest
    V2RootResource._write_json_data = staticmethod(_write_whole)  # noqa: SLF001 - no other way


def _write_whole(request: Request, encoder: JSONEncoder, data: object) -> None:
    """Encode a response in this thread, and write it in the reactor's."""
    body = "".join(_while_connected(request, encoder.iterencode(data))).encode()
    global_reactor().callFromThread(partial(_write, request, body))


def _while_connected(request: Request, pieces: Iterator[str]) -> Iterator[str]:
    for piece in pieces:
        if not _is_connected(request):
            return
        yield piece


def _is_connected(request: Request) -> bool:
    return request.channel is not None


def _write(request: Request, body: bytes) -> None:
    if not request.finished and _is_connected(request):
        request.setHeader(b"content-length", str(len(body)).encode())
        request.write(b"" if request.method == b"HEAD" else body)
