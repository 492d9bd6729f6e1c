"""The pages of graph and timings in a real browser: at two widths, light and dark, and for axe."""

import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.support.browser import Browser
from tests.support.forked import run_torchyard
from tests.support.linked_project import build_linked, pack_linked

pytestmark = [pytest.mark.integration, pytest.mark.slow]
ENV = {"PATH": "/usr/bin:/bin", "NO_COLOR": "1"}

AXE = """\
return axe.run().then(found => found.violations
  .filter(one => ["serious", "critical"].includes(one.impact))
  .map(one => one.id + ": " + one.nodes.map(node => node.html).join(" ")))
"""


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    folder = tmp_path_factory.mktemp("pages")
    build = build_linked(folder / "linked")
    wheel = pack_linked(build, folder / "linked-1-py3-none-any.whl", tool="tool")
    graph, package, timings = (folder / f"{name}.html" for name in ("graph", "package", "timings"))
    for path, words in (
        (graph, [build, "--against", wheel]),
        (package, [wheel]),
    ):
        done = run_torchyard(["graph", *words, "--html", path], ENV)
        assert done.returncode == 0, done.stderr
    done = run_torchyard(["timings", build, "--html", timings], ENV)
    assert done.returncode == 0, done.stderr
    return [graph, package, timings]


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    with Browser(tmp_path_factory.mktemp("browser") / "driver.log") as opened:
        yield opened


@pytest.fixture(scope="module")
def axe(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The program, from npm."""
    folder = tmp_path_factory.mktemp("npm")
    if not shutil.which("npm"):
        pytest.skip("npm is not installed")
    command = ["npm", "install", "--silent", "--prefix", str(folder), "axe-core"]
    done = subprocess.run(command, check=False, capture_output=True, text=True)
    if done.returncode:
        pytest.skip(f"npm can't get axe-core: {done.stderr}")
    return (folder / "node_modules/axe-core/axe.min.js").read_text(encoding="utf-8")


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [1280, 390])
def test_a_page_at_a_width(
    browser: Browser, pages: list[Path], axe: str, width: int, scheme: str
) -> None:
    features = [{"name": "prefers-color-scheme", "value": scheme}]
    browser.devtools("Emulation.setEmulatedMedia", features=features)
    browser.width(width)
    for page in pages:
        browser.open(page.as_uri())
        assert browser.complaints() == []
        assert browser.run("return document.scrollingElement.scrollWidth <= innerWidth"), page
        shown = browser.run(
            "return [...document.querySelectorAll('svg')].filter(one => one.getClientRects().length"
            " && one.getBoundingClientRect().height > 20).length"
        )
        assert shown == 1, page
        browser.run(axe)
        assert browser.run(AXE) == [], page
