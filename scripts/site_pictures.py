"""Retake the screenshots of the documentation site: `python -m scripts.site_pictures`.

Builds the site, opens it in headless Chromium at the widths of a desktop and a phone, and writes
docs/images/site-*.png. Needs chromium and chromedriver. Fails if a page requests anything from
another host. The committed ones were reduced to 64 colours with Pillow.
"""

import tempfile
from pathlib import Path
from typing import NamedTuple

from scripts.site import ROOT, SITE, build
from tests.support.browser import Browser
from tests.support.offered import served

IMAGES = ROOT / "docs/images"
DESKTOP, PHONE = 1280, 390


# The search dialog is a shadow tree of an element of its own.
_RESULTS = """return [...document.querySelectorAll('*')].some(
    element => element.shadowRoot?.querySelector('ol li'))"""
_OTHERS = """return performance.getEntriesByType('resource').map(entry => entry.name)
    .filter(name => new URL(name).host != location.host)"""


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


def show(browser: Browser, page: str, width: int, scheme: str) -> None:
    """Open a page with a width and a colour scheme, and wait until it is loaded."""
    feature = {"name": "prefers-color-scheme", "value": scheme}
    browser.devtools("Emulation.setEmulatedMedia", features=[feature])
    browser.width(width)
    browser.open(page)
    browser.until("return document.readyState == 'complete'")


def take(browser: Browser, site: str, picture: Picture) -> bytes:
    show(browser, site + picture.page, picture.width, picture.scheme)
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
    with (
        tempfile.TemporaryDirectory(prefix="site-") as folder,
        served(SITE) as site,
        Browser(Path(folder) / "browser.log") as browser,
    ):
        for picture in PICTURES:
            data = take(browser, site, picture)
            path = IMAGES / f"site-{picture.name}.png"
            path.write_bytes(data)
            print(f"{path.relative_to(ROOT)}: {path.stat().st_size:,} bytes")


if __name__ == "__main__":
    main()
