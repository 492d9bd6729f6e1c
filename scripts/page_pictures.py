"""Retake the screenshots of torchyard's own pages: `python -m scripts.page_pictures [DIRECTORY]`.

Builds the small sample on this machine, publishes it, checks a wheel of PyTorch, and writes
docs/images/check-report.png and those of the landing page, timings, graph and report, at the widths
of a desktop and a phone; to a directory, also in dark. Needs chromium and chromedriver. Takes a few
minutes. The committed ones were reduced to 64 colours with Pillow.
"""

import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import NamedTuple

from scripts.site import ROOT
from scripts.site_pictures import DESKTOP, IMAGES, PHONE, show
from tests.support.browser import Browser
from tests.support.offered import served

SAMPLE = ROOT / "tests/projects/tinytorch"
CORE = "core:linux-x86_64/cpu-openblas"
TORCH = "torch==2.13.0"
CHANNEL = '\n[channel.open]\nurl = "open"\nsmoke = "off"\nexternal = ["*"]\n'
LINES = (
    ("build", "package:linux-x86_64/cpu-openblas/*", "-o", "dist"),
    ("timings", CORE, "--html", "timings.html"),
    ("graph", CORE, "--html", "graph.html"),
    ("report", "-o", "report.html"),
    ("publish", "--to", "open", "--partial"),
)


class Picture(NamedTuple):
    """A page, and the width and height of its screenshot; a height of 0 shows all of it."""

    name: str
    page: str
    width: int
    height: int = 900


PICTURES = (
    Picture("check-report", "check.html", 1180, 0),
    Picture("landing-desktop", "open/index.html", DESKTOP, 0),
    Picture("landing-phone", "open/index.html", PHONE, 0),
    Picture("timings-desktop", "timings.html", DESKTOP),
    Picture("timings-phone", "timings.html", PHONE),
    Picture("graph-desktop", "graph.html", DESKTOP),
    Picture("graph-phone", "graph.html", PHONE),
    Picture("report-desktop", "report.html", DESKTOP),
    Picture("report-phone", "report.html", PHONE),
)


def make_pages(project: Path) -> None:
    """Build the sample, and write all pages about it into its directory."""
    shutil.copytree(SAMPLE, project, ignore=shutil.ignore_patterns(".torchyard"))
    with (project / "torchyard.toml").open("a", encoding="utf-8") as file:
        file.write(CHANNEL)
    torchyard = str(Path(sys.executable).with_name("torchyard"))
    for words in LINES:
        subprocess.run([torchyard, *words], cwd=project, check=True)
    download = [sys.executable, "-m", "pip", "download", "-q", "--no-deps", TORCH, "-d", "torch"]
    subprocess.run(download, cwd=project, check=True)
    (wheel,) = (project / "torch").iterdir()
    check = [torchyard, "check", str(wheel), "--html", "check.html"]
    subprocess.run(check, cwd=project, check=False)  # fails: findings are part of the picture


def take(browser: Browser, page: str, picture: Picture, scheme: str) -> bytes:
    show(browser, page, picture.width, scheme)
    data = browser.screen() if picture.height else browser.picture()
    complaints = [text for text in browser.complaints() if "/favicon.ico" not in text]
    if complaints:
        raise RuntimeError(complaints)
    return data


def main() -> None:
    folder = Path(sys.argv[1]) if sys.argv[1:] else IMAGES
    schemes = ("light", "dark") if sys.argv[1:] else ("light",)
    with tempfile.TemporaryDirectory(prefix="pages-") as scratch:
        project = Path(scratch, "tinytorch")
        make_pages(project)
        with served(project) as site, Browser(Path(scratch, "browser.log")) as browser:
            for picture in PICTURES:
                for scheme in schemes:
                    data = take(browser, site + picture.page, picture, scheme)
                    suffix = "" if scheme == "light" else "-dark"
                    path = folder / f"{picture.name}{suffix}.png"
                    path.write_bytes(data)
                    print(f"{path}: {len(data):,} bytes")


if __name__ == "__main__":
    main()
