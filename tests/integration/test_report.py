"""The report of a plan: its data, and its page in a browser."""

import json
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.support.browser import Browser
from tests.support.reported_project import make_reported_project, torchyard
from tests.support.schemas import validate

pytestmark = [
    pytest.mark.integration,
    pytest.mark.skipif(
        not all(map(shutil.which, ("cmake", "ninja", "g++"))), reason="needs cmake, ninja and g++"
    ),
]

SECTIONS = ("plan", "grid", "timeline", "graph", "sizes", "findings", "drift")
_NO_LINE = {"downloadThroughput": 0, "uploadThroughput": 0}
TAB, ENTER = "\ue004", "\ue007"


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = make_reported_project(tmp_path_factory.mktemp("report"))
    torchyard(made, "report", "--source", "tree", "-o", "all.html")
    return made


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    with Browser(tmp_path_factory.mktemp("browser") / "log") as browser:
        yield browser


def test_the_data_beside_the_page(project: Path) -> None:
    document = json.loads((project / "all.json").read_text())
    validate(document, "report")
    assert {job["state"] for job in document["jobs"]} == {"made"}
    assert [one["what"] for one in document["timings"]] == [
        "core:small-1.0/linux-x86_64/cpu-generic"
    ]
    assert document["graphs"][0]["graph"]["nodes"]
    assert len(document["checks"]) == 2
    assert document["drift"]["release"] == "2.5"


def test_a_job_of_the_plan(project: Path) -> None:
    torchyard(project, "report", "core:*", "-o", "core.html")
    document = json.loads((project / "core.json").read_text())
    assert [job["stage"] for job in document["jobs"]] == ["core"]
    assert document["checks"] == {}
    assert "None of these jobs makes packages." in (project / "core.html").read_text()


def test_a_source_that_is_not_there(project: Path) -> None:
    with pytest.raises(AssertionError, match="there is no directory `nowhere`"):
        torchyard(project, "report", "--source", "nowhere", "-o", "none.html")
    assert not (project / "none.html").exists()


def test_another_plan_of_which_nothing_is_made(project: Path) -> None:
    other = project / "other.toml"
    text = (project / "torchyard.toml").read_text()
    other.write_text(text.replace('version = "1.0"', 'version = "2.0"'))
    torchyard(project, "report", "other.toml", "-o", "other.html")
    document = json.loads((project / "other.json").read_text())
    states = {job["stage"]: job["state"] for job in document["jobs"]}
    assert states.pop("source") == "made"
    assert set(states.values()) == {"missing"}
    assert document["timings"] == []


def test_the_page_stands_alone(project: Path, browser: Browser) -> None:
    browser.devtools("Network.enable")
    browser.devtools("Network.emulateNetworkConditions", offline=True, latency=0, **_NO_LINE)
    browser.open((project / "all.html").as_uri())
    for name in SECTIONS:
        browser.click(f'nav a[href="#{name}"]')
        assert browser.run("return location.hash") == f"#{name}"
        words = browser.run(f"return document.getElementById('{name}').innerText.length")
        assert isinstance(words, int)
        assert words > 10
    assert browser.run("return performance.getEntriesByType('resource').length") == 0
    assert browser.complaints() == []


def test_every_part_can_be_opened_by_keyboard(project: Path, browser: Browser) -> None:
    browser.open((project / "all.html").as_uri())
    browser.press(TAB)
    assert browser.run("return document.activeElement.className") == "skip"
    focused = []
    for _ in range(60):
        browser.press(TAB)
        name = browser.run("return document.activeElement.tagName")
        focused.append(name)
        if name == "SUMMARY":
            break
    assert focused[: len(SECTIONS)] == ["A"] * len(SECTIONS)
    assert focused[-1] == "SUMMARY"
    browser.press(ENTER)
    assert browser.run("return document.activeElement.parentElement.open") is True
    for number in range(
        int(str(browser.run("return document.querySelectorAll('summary').length")))
    ):
        browser.run(
            f"const one = document.querySelectorAll('summary')[{number}]; one.scrollIntoView();"
            "if (!one.parentElement.open) one.click()"
        )
    assert browser.run("return [...document.querySelectorAll('details')].every(d => d.open)")
    assert browser.complaints() == []


@pytest.mark.parametrize("width", [1280, 390])
def test_nothing_is_wider_than_the_screen(project: Path, browser: Browser, width: int) -> None:
    browser.open((project / "all.html").as_uri())
    browser.width(width)
    browser.run("document.querySelectorAll('details').forEach(d => d.open = true)")
    assert browser.run("return document.documentElement.scrollWidth") == width


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("npm") is None, reason="npm is not installed")
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_no_serious_fault(
    project: Path, browser: Browser, tmp_path: Path, scheme: str
) -> None:
    subprocess.run(
        ["npm", "install", "--silent", "--prefix", str(tmp_path), "axe-core@4"], check=True
    )
    axe = (tmp_path / "node_modules/axe-core/axe.min.js").read_text()
    features = [{"name": "prefers-color-scheme", "value": scheme}]
    browser.devtools("Emulation.setEmulatedMedia", features=features)
    torchyard(project, "deps", "--source", "tree", "--html", "deps.html")
    for name in ("all", "deps"):
        browser.open((project / f"{name}.html").as_uri())
        assert browser.run("return document.querySelectorAll('main table').length")
        browser.run("document.querySelectorAll('details').forEach(d => d.open = true)")
        browser.run(axe)
        found = browser.run("return axe.run().then(r => r.violations)")
        assert isinstance(found, list)
        bad = [(one["id"], one["impact"], one["nodes"][0]["html"]) for one in found]
        assert [one for one in bad if one[1] in ("serious", "critical")] == []
