"""The pages of plans in a real browser, while a real farm builds."""

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from farm.tests.farms import TrialFarm
from farm.tests.showcase import BROKEN, shown_text
from tests.support.browser import Browser
from tests.support.helpers import make_project
from tests.support.services import LOOPBACK
from torchyard_farm.web.markup import css_class
from torchyard_farm.web.progress import TaskState

pytestmark = pytest.mark.integration

_LONG = 200
_TAB, _ENTER = "\ue004", "\ue007"
_NAMELESS = """
const text = (one) => (one.getAttribute("aria-label") || one.textContent || "").trim();
return [...document.querySelectorAll("a, button, input, select, summary, [tabindex]")]
  .filter((one) => !text(one) && !one.getAttribute("aria-labelledby"))
  .map((one) => one.outerHTML);
"""
_PALE = """
const parts = (colour) => colour.match(/[0-9.]+/g).slice(0, 3).map((part) => {
  const value = part / 255;
  return value <= 0.04045 ? value / 12.92 : ((value + 0.055) / 1.055) ** 2.4;
});
const light = (colour) => {
  const [red, green, blue] = parts(colour);
  return 0.2126 * red + 0.7152 * green + 0.0722 * blue;
};
const page = document.querySelector("main");
return arguments[0].map((state) => {
    const chip = document.createElement("span");
    chip.className = "chip " + state;
    page.append(chip);
    const { color, backgroundColor } = getComputedStyle(chip);
    const [low, high] = [light(color), light(backgroundColor)].sort((a, b) => a - b);
    chip.remove();
    return [state, (high + 0.05) / (low + 0.05)];
  }).filter(([, contrast]) => contrast < 4.5);
"""


@pytest.fixture
def farm(tmp_path: Path) -> Iterator[TrialFarm]:
    text = shown_text(0.01, ["cu126"], ["cp313", "cp314"], ["wheel"])
    wait = f"until test $i != 60 -o -e {tmp_path}/go; do echo [$i/120]; sleep 0.2; done"
    assert "  sleep 0.01\n" in text
    text = text.replace("  sleep 0.01\n", f"  {wait}\n")
    file = make_project(tmp_path / "project", text)
    with TrialFarm(tmp_path / "farm", file, "sqlite:///state.sqlite", ("w1",)) as farm:
        farm.start_master()
        yield farm


def names_of_controls(browser: Browser) -> list[str]:
    """Return the links, buttons and regions of a page, as screen readers announce them."""
    tree = browser.devtools("Accessibility.getFullAXTree")
    assert isinstance(tree, dict)
    nodes = [node for node in tree["nodes"] if not node["ignored"]]
    roles = ("link", "button", "region", "image", "navigation")
    return [node["name"]["value"] for node in nodes if node["role"]["value"] in roles]


@pytest.mark.slow
def test_a_plan_can_be_watched(farm: TrialFarm, tmp_path: Path) -> None:
    web, plan = f"http://{LOOPBACK}:{farm.web}/", farm.submit()
    with ExitStack() as stack:
        browser = stack.enter_context(Browser(tmp_path / "browser.log"))
        browser.open(f"{web}plugins/plans/{plan}")
        browser.run("window.stays = true")
        assert "0 of 9 jobs done" in str(browser.run("return document.body.innerText"))
        farm.start_workers()
        browser.until("return document.querySelector('#running li')", seconds=_LONG)
        browser.until(
            "return /step 2.2: compile, [0-9]+ of 120/.test(document.body.innerText)",
            seconds=_LONG,
        )
        names = names_of_controls(browser)
        assert all(names)
        assert "Pause updates" in names
        assert f"core:{plan[:12]}/linux-x86_64/cu126-mkl: running" in names

        (tmp_path / "go").touch()
        browser.until("return document.querySelector('#failures li')", seconds=_LONG)
        assert browser.run("return window.stays")  # it was never reloaded
        told = str(browser.run("return document.querySelector('#failures').innerText"))
        assert BROKEN in told
        assert "A header is missing" in told
        assert "nvToolsExt.h" in told
        assert browser.run("return document.querySelector('#news').textContent") == "1 failed"
        assert all(names_of_controls(browser))
        assert browser.run(_NAMELESS) == []
        assert browser.complaints() == []

        fits_a_phone(browser)
        for scheme in ("light", "dark"):
            features = [{"name": "prefers-color-scheme", "value": scheme}]
            browser.devtools("Emulation.setEmulatedMedia", features=features)
            assert browser.run(_PALE, [css_class(state) for state in TaskState]) == []
        leads_to_the_log(browser)


def fits_a_phone(browser: Browser) -> None:
    browser.width(390)
    wide = browser.run("return document.documentElement.scrollWidth")
    assert wide == 390
    inside = browser.run(
        "const one = document.querySelector('.scroll'); one.focus();"
        "return [one.scrollWidth > one.clientWidth, document.activeElement === one]"
    )
    assert inside == [True, True]


def leads_to_the_log(browser: Browser) -> None:
    """With the keyboard alone: to the first failure, and to its log."""
    browser.run("document.querySelector('#failures').setAttribute('tabindex', -1)")
    browser.run("document.querySelector('#failures').focus()")
    browser.press(_TAB, _ENTER)
    browser.until("return location.hash.startsWith('#/builders/')", seconds=_LONG)
    browser.until("return document.body.innerText.includes('stdio')", seconds=_LONG)
    browser.until("return document.body.innerText.includes('A header is missing')", seconds=_LONG)
    link = "[...document.querySelectorAll('a')].find((one) => one.textContent === 'plan')"
    assert "/plugins/plans/" in str(browser.until(f"return ({link})?.href", seconds=_LONG))


@pytest.mark.slow
def test_updates_can_be_paused_and_a_lost_master_is_told(farm: TrialFarm, tmp_path: Path) -> None:
    web, plan = f"http://{LOOPBACK}:{farm.web}/", farm.submit()
    with Browser(tmp_path / "browser.log") as browser:
        browser.open(f"{web}#/plans")
        browser.until("return location.pathname === '/plugins/plans/'", seconds=_LONG)
        browser.click(f"[href='{plan}']")
        browser.until("return document.querySelector('#totals')", seconds=_LONG)
        browser.click("#pause")
        name = "return document.querySelector('#pause').getAttribute('aria-label')"
        assert browser.run(name) == "Resume updates"
        farm.kill("master")
        browser.click("#pause")
        shown = "return !document.querySelector('#trouble').hidden"
        browser.until(shown, seconds=_LONG)
        farm.start_master()
        browser.until("return document.querySelector('#trouble').hidden", seconds=_LONG)
