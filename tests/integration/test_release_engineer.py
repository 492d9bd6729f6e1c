"""A release as its engineer and its users see it: from a directory of wheels to `pip install`.

The commands that `torchyard which` and the landing page print are run as they are printed, in new
environments, against a channel that nginx serves.
"""

import html
import json
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.support.browser import Browser
from tests.support.helpers import Command
from tests.support.installers import FreshEnvironment
from tests.support.made_wheel import make_wheel
from tests.support.served import Served, serve_directory

pytestmark = pytest.mark.integration

TOOLS = ("pip", "uv")
PYPI = (
    "cffi",
    "cryptography",
    "markupsafe",
    "msgspec",
    "numpy",
    "pillow",
    "pydantic-core",
    "pyyaml",
    "requests",
    "rpds-py",
)
"""Ten projects; what four of them require is not among them."""


def which_commands(torchyard: Command, served: Served, project: str) -> dict[str, str]:
    """The commands that `which` prints for this machine."""
    told = torchyard("which", served.url, project, "--cpu", "--json")
    assert told.code == 0, told.err
    commands: dict[str, str] = json.loads(told.out)["choice"]["commands"]
    assert "\n".join(commands.values()) in torchyard("which", served.url, project, "--cpu").out
    return commands


def static_commands(served: Served) -> list[str]:
    """The commands of the landing page for readers without JavaScript."""
    page = Path(served.place.removeprefix("file://"), "index.html").read_text("utf-8")
    found = re.findall(r"<dd><code>(.*?)</code></dd>", page)
    plain = (re.sub(r"<[^>]*>", "", text).replace("HERE", served.url) for text in found)
    return [html.unescape(text) for text in plain]


def chosen_command(browser: Browser, served: Served, project: str, tool: str) -> str:
    """The command of the landing page for a choice."""
    browser.open(f"{served.url}/#package={project}&tool={tool}")
    script = "return document.getElementById('command').textContent.startsWith(arguments[0])"
    browser.until(script, tool)
    return str(browser.run("return document.getElementById('command').textContent"))


@pytest.fixture
def extension(tmp_path: Path, torchyard: Command) -> Iterator[Served]:
    """A channel with an extension, and the one that has the torch which it requires."""
    make_wheel(tmp_path / "torch", "torch", "2.14.0+cpu", requires=["shared"])
    make_wheel(tmp_path / "torch", "shared")
    make_wheel(tmp_path / "dist", "myext", "1.0+cpu", requires=["torch==2.14.0"])
    make_wheel(tmp_path / "dist", "myext", "0.9+cpu", requires=["torch==2.14.0"])
    with (
        serve_directory(tmp_path / "upstream", torchyard) as upstream,
        serve_directory(tmp_path / "own", torchyard) as served,
    ):
        upstream.publish(tmp_path / "torch")
        index = f"{upstream.url}/cpu/"
        served.publish(tmp_path / "dist", "--external", "torch", "--upstream", index)
        yield served


@pytest.mark.parametrize("tool", TOOLS)
def test_the_commands_for_an_extension_find_its_torch(
    extension: Served, torchyard: Command, tmp_path: Path, tool: str
) -> None:
    wanted = {"myext": "1.0+cpu", "torch": "2.14.0+cpu", "shared": "1.0"}
    command = which_commands(torchyard, extension, "myext")[tool]
    assert FreshEnvironment(tmp_path / "which").run(command) == wanted
    (printed,) = static_commands(extension)
    if tool == "pip":
        assert FreshEnvironment(tmp_path / "page").run(printed) == wanted


@pytest.mark.parametrize("tool", TOOLS)
def test_the_landing_page_shows_commands_that_work(
    extension: Served, tmp_path: Path, tool: str
) -> None:
    with Browser(tmp_path / "driver.log") as browser:
        command = chosen_command(browser, extension, "myext", tool)
    wanted = {"myext": "1.0+cpu", "torch": "2.14.0+cpu", "shared": "1.0"}
    assert FreshEnvironment(tmp_path / "page").run(command) == wanted


@pytest.mark.slow
def test_ten_wheels_from_pypi_are_published_in_three_commands(
    torchyard: Command, tmp_path: Path
) -> None:
    """Some require what is not in the channel; the hint says how to declare that."""
    dist = tmp_path / "dist"
    words = ("download", "--quiet", "--no-deps", "--only-binary", ":all:", "--dest", str(dist))
    subprocess.run([sys.executable, "-m", "pip", *words, *PYPI], check=True, capture_output=True)
    assert len(list(dist.iterdir())) == len(PYPI)
    with serve_directory(tmp_path, torchyard) as served:
        refused = torchyard("publish", dist, "--to", served.place)
        assert refused.code == 15
        assert len(refused.err) < 1000, refused.err
        options = shlex.split(refused.err.rpartition(", or by ")[2])
        done = torchyard("publish", dist, "--to", served.place, *options)
        assert done.code == 0, done.err
        audited = torchyard("channel", "check", served.url)
        assert audited.code == 0, audited.out
        for project in ("requests", "cffi", "pillow"):
            commands = which_commands(torchyard, served, project)
            for tool in TOOLS:
                fresh = FreshEnvironment(tmp_path / f"{project}-{tool}", own_settings=True)
                assert project in fresh.run(commands[tool])
