"""Retake the screenshots of the documentation site: `python -m scripts.site_pictures`.

Builds the site, opens it in headless Chromium at the widths of a desktop and a phone, and writes
docs/images/site-*.png. Needs chromium and chromedriver. Fails if a page requests anything from
another host. The committed ones were reduced to 64 colours with Pillow.
"""

import functools
import http.server
import tempfile
import threading
from pathlib import Path
from typing import NamedTuple

from scripts.site import ROOT, SITE, build
from tests.support.browser import Browser

IMAGES = ROOT / "docs/images"
DESKTOP, PHONE = 1280, 390


# The search dialog is a shadow tree of an element of its own.
_RESULTS = """return [...document.querySelectorAll('*')].some(
    element => element.shadowRoot?.querySelector('ol li'))"""
_OTHERS = """return performance.getEntriesByType('resource').map(entry => entry.name)
    .filter(name => new URL(name).host != location.host)"""


class Quiet(http.server.SimpleHTTPRequestHandler):
    """Serves files without logging requests."""

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the library's name
        """Drop the line."""


class Picture(NamedTuple):
    """A page, the width and colour scheme of its screenshot, and a text to search for."""

    name: str
    page: str
    width: int
    scheme: str = "light"
    search: str = ""


PICTURES = (
    Picture("home-desktop", "", DESKTOP),
    Picture("guide-desktop-dark", "guides/build-on-this-machine/", DESKTOP, "dark"),
    Picture("search-desktop", "guides/", DESKTOP, search="yank"),
    Picture("start-phone", "getting-started/first-steps/", PHONE),
    Picture("rules-phone-dark", "reference/rules/", PHONE, "dark"),
)


def take(browser: Browser, site: str, picture: Picture) -> bytes:
    feature = {"name": "prefers-color-scheme", "value": picture.scheme}
    browser.devtools("Emulation.setEmulatedMedia", features=[feature])
    browser.width(picture.width)
    browser.open(site + picture.page)
    browser.until("return document.readyState == 'complete'")
    if picture.search:
        browser.click(".md-search__button")
        browser.until("return document.activeElement != document.body")
        browser.press(*picture.search)
        browser.until(_RESULTS)
    others = browser.run(_OTHERS)
    if others:
        msg = f"/{picture.page} asks for {others}"
        raise RuntimeError(msg)
    return browser.screen()


def main() -> None:
    build()
    handler = functools.partial(Quiet, directory=SITE)
    with (
        tempfile.TemporaryDirectory(prefix="site-") as folder,
        http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server,
        Browser(Path(folder) / "browser.log") as browser,
    ):
        threading.Thread(target=server.serve_forever, daemon=True).start()
        for picture in PICTURES:
            data = take(browser, f"http://127.0.0.1:{server.server_port}/", picture)
            path = IMAGES / f"site-{picture.name}.png"
            path.write_bytes(data)
            print(f"{path.relative_to(ROOT)}: {path.stat().st_size:,} bytes")
        server.shutdown()


if __name__ == "__main__":
    main()
