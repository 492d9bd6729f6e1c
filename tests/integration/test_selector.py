"""The landing page in a real browser: what it answers is what the channel has."""

import html.parser
import json
from collections.abc import Iterator
from fnmatch import fnmatch
from itertools import product
from pathlib import Path
from typing import NamedTuple
from urllib.parse import unquote, urlencode, urljoin, urlsplit

import pytest
from tests.support.browser import Browser
from tests.support.offered import PLATFORMS, PYTHONS, Published, offer, offer_extension, served

from torchyard.index.entry import package_key
from torchyard.model.identifier import Cell

pytestmark = pytest.mark.integration

TOOLS = {"pip": "wheel", "uv": "wheel", "conda": "conda", "pixi": "conda", "libtorch": "libtorch"}
READY = "return !document.getElementById('selector').hidden && document.querySelector('fieldset')"
COMMAND = "return document.getElementById('command').textContent"
NOTICE = "return document.getElementById('notice').textContent"
TAB, RIGHT, ENTER = "\ue004", "\ue014", "\ue007"


class Site(NamedTuple):
    """A channel in a directory, and where it is served."""

    folder: Path
    url: str
    files: list[Published]


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """Serve a channel below an address of its own, as a CDN would."""
    top = tmp_path_factory.mktemp("site")
    files = offer(top / "whl")
    with served(top) as url:
        yield Site(top / "whl", f"{url}whl/", files)


@pytest.fixture(scope="module")
def chromium(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    """One browser for all tests of this file: to start one takes seconds."""
    with Browser(tmp_path_factory.mktemp("browser") / "log") as browser:
        yield browser


@pytest.fixture
def browser(chromium: Browser) -> Iterator[Browser]:
    """The browser at its usual width; nothing may be complained about in its console."""
    chromium.width(1280)
    yield chromium
    chromium.open("about:blank")
    assert chromium.complaints() == []


def open_at(browser: Browser, url: str, **choice: str) -> None:
    browser.open("about:blank")
    browser.open(f"{url}#{urlencode(choice)}" if choice else url)
    browser.until(READY)


def ask(browser: Browser, choice: dict[str, str]) -> tuple[str, str]:
    """Change the fragment, as a link would; the command, and what the page has to say on it."""
    browser.run(
        "const [hash] = arguments; document.getElementById('command').textContent = '';"
        "if (location.hash === hash) dispatchEvent(new HashChangeEvent('hashchange'));"
        "location.hash = hash;",
        f"#{urlencode(choice)}",
    )
    return str(browser.until(COMMAND)), str(browser.run(NOTICE))


class _Links(html.parser.HTMLParser):
    def __init__(self, text: str) -> None:
        super().__init__()
        self.found: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found += [value or "" for key, value in attrs if (tag, key) == ("a", "href")]


def reached(site: Site, tool: str, command: str) -> list[str]:
    """The digests of all files that a command could lead to, whatever the Python."""
    words = command.replace('"', "").split()
    url = next(word for word in words if word.startswith("http"))
    assert url.startswith(site.url)
    if TOOLS[tool] == "libtorch":
        return [unquote(urlsplit(url).path).removeprefix("/whl/")]
    if TOOLS[tool] == "wheel":
        page = f"{url}tinytorch/index.html"
        text = (site.folder / page.removeprefix(site.url)).read_text()
        links = [urlsplit(urljoin(page, link)).path for link in _Links(text).found]
        return [unquote(link).removeprefix("/whl/") for link in links]
    name, _, build = next(word for word in words if "=*=" in word).split("=")
    return [
        f"conda/{subdir}/{file}"
        for _, subdir in PLATFORMS.values()
        for file, record in json.loads(
            (site.folder / "conda" / subdir / "repodata.json").read_text()
        )["packages.conda"].items()
        if record["name"] == name and fnmatch(record["build"], build)
    ]


def key(file: Published) -> str:
    if file.part.startswith("conda/"):
        return f"{file.part}/{file.entry.file}"
    return package_key(file.entry.sha256, file.entry.file)


@pytest.mark.slow
def test_every_combination(browser: Browser, site: Site) -> None:
    open_at(browser, site.url)
    there = {file.cell: file for file in site.files}
    right = 0
    for platform, tool, compute, blas, python in product(
        PLATFORMS, TOOLS, ("cpu", "cu130", "rocm5.2"), ("mkl", "openblas"), PYTHONS
    ):
        choice = {"package": "tinytorch", "platform": platform, "tool": tool}
        choice |= {"compute": compute, "blas": blas, "python": python}
        command, notice = ask(browser, choice)
        kind = TOOLS[tool]
        of_python = "any" if kind == "libtorch" else python
        file = there.get(Cell(platform, compute, blas, of_python, kind))
        if file is None:
            assert "is not published for" in notice, choice
            continue
        assert notice == "", choice
        found = reached(site, tool, command)
        assert key(file) in found, choice
        assert {one.entry.variant for one in site.files if key(one) in found} == {
            f"{compute}-{blas}"
        }
        assert command.startswith("curl -L -o " if kind == "libtorch" else f"{tool} ")
        if kind == "conda":
            assert command.endswith(f" python=3.{python[3:]}")
        right += 1
    assert right == 2 * sum(file.cell.package != "libtorch" for file in site.files) + len(
        PYTHONS
    ) * sum(file.cell.package == "libtorch" for file in site.files)


def test_commands_to_the_letter(browser: Browser, site: Site) -> None:
    open_at(browser, site.url)
    choice = {"compute": "cpu", "blas": "mkl", "python": "cp311"}
    conda = '"tinytorch=*=cpu_mkl_*" python=3.11'
    expected = {
        "pip": f"pip install tinytorch --index-url {site.url}cpu-mkl/",
        "uv": f"uv pip install tinytorch --index-url {site.url}cpu-mkl/",
        "conda": f"conda install -c {site.url}conda -c conda-forge {conda}",
        "pixi": f"pixi workspace channel add --prepend {site.url}conda\npixi add {conda}",
    }
    assert {tool: ask(browser, choice | {"tool": tool})[0] for tool in expected} == expected


def test_what_is_not_there_can_not_be_chosen(browser: Browser, site: Site) -> None:
    open_at(browser, site.url, tool="conda", compute="cu130")
    disabled = browser.run(
        "return [...document.querySelectorAll('input:disabled')].map((one) => one.value)"
    )
    assert disabled == ["rocm5.2", "mkl", "cp310", "cp311", "cp313"]
    why = browser.run("return document.getElementById('why-python').textContent")
    assert why == ("Not published for Linux x86_64, conda, CUDA 13.0, OpenBLAS: 3.10, 3.11, 3.13.")


def test_a_choice_is_in_the_address(browser: Browser, site: Site) -> None:
    open_at(browser, site.url)
    for name, value in (("tool", "uv"), ("blas", "openblas"), ("python", "cp310")):
        browser.click(f"input[name={name}][value={value}]")
    command, address = browser.run(COMMAND), browser.run("return location.href")
    assert f"{site.url}cpu-openblas/" in str(command)
    open_at(browser, str(address))
    assert browser.run(COMMAND) == command
    checked = "return document.querySelector('input[name=python]:checked').value"
    assert browser.run(checked) == "cp310"


def test_a_wish_is_kept_while_it_can_not_be_had(browser: Browser, site: Site) -> None:
    open_at(browser, site.url)
    checked = "return document.querySelector('input[name=python]:checked').value"
    browser.click("input[value=cp310]")
    browser.click("input[value=cu130]")
    assert browser.run(checked) == "cp312"
    assert "Python 3.10 is not published" in str(browser.run(NOTICE))
    browser.click("input[value=cpu]")
    assert (browser.run(checked), browser.run(NOTICE)) == ("cp310", "")


def test_keys_are_enough(browser: Browser, site: Site) -> None:
    open_at(browser, site.url)
    where = "return document.activeElement.name || document.activeElement.id"
    seen = []
    for _ in range(6):
        browser.press(TAB)
        seen.append(browser.run(where))
        if seen[-1] == "compute":
            browser.press(RIGHT)
    assert seen == ["platform", "tool", "compute", "blas", "python", "copy"]
    assert f"{site.url}cu130-openblas/" in str(browser.run(COMMAND))
    browser.press(ENTER)
    assert browser.until(
        "const text = document.getElementById('copy').textContent; return text !== 'Copy' && text"
    ) in ("Copied", "Selected")


@pytest.mark.parametrize("width", [390, 1280])
@pytest.mark.parametrize("tool", ["pip", "libtorch"])
def test_nothing_is_wider_than_the_screen(
    browser: Browser, site: Site, width: int, tool: str
) -> None:
    browser.width(width)
    open_at(browser, site.url, tool=tool)
    browser.until(COMMAND)
    browser.run("document.getElementById('commands').open = true")
    assert browser.run("return document.documentElement.scrollWidth") == width


def test_everything_has_a_name_for_those_who_do_not_see(browser: Browser, site: Site) -> None:
    open_at(browser, site.url)
    tree = browser.devtools("Accessibility.getFullAXTree")
    assert isinstance(tree, dict)
    names = {
        (node["role"]["value"], node.get("name", {}).get("value"))
        for node in tree["nodes"]
        if not node["ignored"]
    }
    assert ("radio", "CUDA 13.0") in names
    assert ("group", "Python") in names
    assert ("button", "Copy the command") in names
    assert not [name for role, name in names if role in ("radio", "button", "link") and not name]


def test_without_scripts_there_are_tables_and_commands(browser: Browser, site: Site) -> None:
    browser.devtools("Emulation.setScriptExecutionDisabled", value=True)
    try:
        browser.open(site.url)
        tree = browser.devtools("Accessibility.getFullAXTree")
    finally:
        browser.devtools("Emulation.setScriptExecutionDisabled", value=False)
    text = json.dumps(tree)
    assert "Choosing needs JavaScript" in text
    assert "rocm5.2-openblas" in text
    assert "pip install tinytorch --index-url " in text
    assert "Copy the command" not in text


def test_names_and_versions_are_only_text(browser: Browser, site: Site, tmp_path: Path) -> None:
    evil = "<img src=x onerror=hit=1>"
    offers = [
        {
            "project": evil,
            "name": f"x$(reboot){evil}",
            "variant": "cpu",
            "version": f'"><script>hit=1</script>{evil}',
            "uploaded": evil,
            "platforms": {evil: [evil]},
        },
        {
            "project": "__proto__",
            "name": "a",
            "variant": "javascript:hit=1",
            "version": "1",
            "uploaded": "2026",
            "platforms": {"constructor": ["cp312"]},
        },
    ]
    (tmp_path / "index.html").write_bytes((site.folder / "index.html").read_bytes())
    (tmp_path / "channel.json").write_text(json.dumps({"parts": {"simple/x": {"offers": offers}}}))
    with served(tmp_path) as url:
        for package in (evil, "__proto__"):
            open_at(browser, url, package=package)
            assert browser.run("return [typeof hit, document.images.length]") == ["undefined", 0]
        ask(browser, {"package": evil})
        assert browser.run(COMMAND) == "# The name of this package is not safe in a command."


def test_pre_releases_are_asked_for(browser: Browser, tmp_path: Path) -> None:
    offer(tmp_path, "1.3.0.dev20261115")
    with served(tmp_path) as url:
        open_at(browser, url, tool="pip")
        assert "pip install --pre tinytorch" in str(browser.run(COMMAND))
        command, _ = ask(browser, {"tool": "uv"})
        assert "uv pip install --prerelease allow tinytorch" in command
        command, _ = ask(browser, {"tool": "conda"})
        assert "pre" not in command


def test_a_channel_that_can_not_be_read_says_so(chromium: Browser, site: Site) -> None:
    """Its commands are on the page all the same."""
    page = (site.folder / "index.html").read_text()
    lone = site.folder.parent / "lone"
    lone.mkdir()
    (lone / "index.html").write_text(page)
    chromium.open(urljoin(site.url, "../lone/"))
    chromium.until("return !document.getElementById('trouble').hidden")
    assert chromium.run("return document.getElementById('commands').open")
    assert len(chromium.complaints()) == 1


@pytest.fixture(scope="module")
def extensions(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Serve a channel of an extension whose torch is in another index, one for each compute."""
    top = tmp_path_factory.mktemp("extensions")
    offer_extension(top / "whl", ("https://example.org/whl/{compute}/",))
    with served(top) as url:
        yield f"{url}whl/"


def test_the_torch_of_the_user_is_asked_for(browser: Browser, extensions: str) -> None:
    open_at(browser, extensions)
    torches = "return [...document.querySelectorAll('input[name=torch]')].map((one) => one.value)"
    assert browser.run(torches) == ["2.9", "2.12", "2.13"]
    outside = "--extra-index-url https://example.org/whl/cu130/"
    index = f"{extensions}torch-2.12%2Bcu130/"
    command, notice = ask(browser, {"tool": "pip", "torch": "2.12", "compute": "cu130"})
    assert command == f"pip install tinyext==1.0+pt212cu130 --index-url {index} {outside}"
    assert notice == ""
    command, _ = ask(browser, {"tool": "uv", "torch": "2.12", "compute": "cu130"})
    assert command == (
        f"uv pip install tinyext --index {index} --default-index https://example.org/whl/cu130/"
    )
    help_text = "return document.getElementById('help-torch').textContent"
    assert 'pip install "torch==2.12.*" --index-url https://example.org/whl/cu130/' in str(
        browser.run(help_text)
    )


def test_a_torch_that_nothing_is_for_is_told(browser: Browser, extensions: str) -> None:
    open_at(browser, extensions)
    command, notice = ask(browser, {"tool": "pip", "torch": "2.11"})
    assert notice == "torch 2.11 is not published for Linux x86_64, pip; this is for torch 2.13."
    assert "pt213" in command
    _, notice = ask(browser, {"tool": "pip", "torch": "2.9", "compute": "cu130"})
    assert notice == "CUDA 13.0 is not published for Linux x86_64, pip, torch 2.9; this is for CPU."


@pytest.mark.parametrize("width", [390, 1280])
def test_no_torch_is_wider_than_the_screen(browser: Browser, extensions: str, width: int) -> None:
    browser.width(width)
    open_at(browser, extensions, torch="2.12", compute="cu130")
    browser.until(COMMAND)
    browser.run("document.getElementById('commands').open = true")
    assert browser.run("return document.documentElement.scrollWidth") == width
