"""What browsers are told about every answer, so that other sites get nowhere."""

from typing import Any

from buildbot.www.service import BuildbotSite
from twisted.web.server import Request

_HEADERS = {
    b"content-security-policy": b"frame-ancestors 'self'; form-action 'self'; base-uri 'self'",
    b"x-content-type-options": b"nosniff",
    b"x-frame-options": b"SAMEORIGIN",
    b"referrer-policy": b"same-origin",
}


class CarefulRequest(Request):
    """A request whose answer can't be put into another site's page, nor its cookie taken there."""

    is_behind_tls = False

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        for name, value in _HEADERS.items():
            self.responseHeaders.setRawHeaders(name, [value])

    def addCookie(self, *args: Any, **kwargs: Any) -> None:
        careful = {"httpOnly": True, "sameSite": b"lax", "secure": self.is_behind_tls}
        super().addCookie(*args, **(kwargs | careful))


def answer_carefully(*, is_behind_tls: bool) -> None:
    """Let the web server of this process answer so."""
    CarefulRequest.is_behind_tls = is_behind_tls
    BuildbotSite.requestFactory = CarefulRequest
