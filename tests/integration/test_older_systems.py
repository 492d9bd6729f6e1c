"""An extension from `init` to a wheel for older systems, in an image of a registry.

The image is Debian 11, with a Python in /opt/python. Its glibc, 2.31, is the oldest to be had.
"""

import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from shlex import quote
from typing import NamedTuple

import pytest
import yaml
from tests.support.containers import as_in_docker, container, needs_podman
from tests.support.helpers import ROOT
from tests.support.registries import (
    PASSWORD,
    make_image,
    make_whole_layout,
    needs_registry,
    running_registry,
    set_up_client,
    write_login,
)
from tests.support.roots import make_manylinux, make_system

from torchyard.errors import BuildError
from torchyard.host.bubblewrap import can_confine
from torchyard.host.network_settings import installer_files, installer_variables, local_paths

pytestmark = [
    pytest.mark.integration,
    pytest.mark.slow,
    needs_registry,
    pytest.mark.skipif(shutil.which("debootstrap") is None, reason="needs debootstrap"),
    pytest.mark.skipif(not can_confine(), reason="bubblewrap does not work here"),
    pytest.mark.skipif(sys.version_info[:2] != (3, 11), reason="the image has Python 3.11"),
]

TORCHYARD = Path(sys.executable).with_name("torchyard")
NOISE = """
#include <sys/random.h>
extern "C" int noise(char *to) { return getrandom(to, 8, 0); }
"""
USE = "import tinyext, torch; assert tinyext.twice(torch.ones(2)).tolist() == [2.0, 2.0]"
COMPATIBLE = ("libffi.so.7", "libssl.so.1.1", "libcrypto.so.1.1")
"""What the Python of Debian 11 needs in newer systems."""


class Built(NamedTuple):
    """A project that was built in an image, and the roots that it was made of."""

    project: Path
    image: str
    wheel: Path
    bullseye: Path
    said: str


def call(project: Path, *words: str, code: int = 0) -> str:
    done = subprocess.run(
        [TORCHYARD, *words], cwd=project, capture_output=True, text=True, check=False
    )
    assert done.returncode == code, done.stdout + done.stderr
    return done.stdout + done.stderr


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Built]:
    """Build tinyext in an image of a registry that wants a password."""
    scratch = tmp_path_factory.mktemp("older")
    bullseye = make_manylinux(scratch)
    cache = subprocess.run(["uv", "cache", "dir"], capture_output=True, text=True, check=True)
    with (
        pytest.MonkeyPatch.context() as patch,
        running_registry(scratch / "registry", password=True) as registry,
    ):
        set_up_client(scratch / "home", patch, registry.address)
        patch.setenv("UV_CACHE_DIR", cache.stdout.strip())
        write_login(scratch / "home/.docker/config.json", registry.address)
        tar = ["tar", "-C", str(bullseye), "--exclude=./dev", "--exclude=./proc", "-cf", "-", "."]
        layer = subprocess.run(tar, capture_output=True, check=True).stdout
        layout = make_whole_layout(scratch / "image", make_image(scratch / "image", layer))
        image = registry.push(layout, "team/manylinux:1")
        shutil.rmtree(layout)
        project = scratch / "tinyext"
        shutil.copytree(ROOT / "tests/projects/tinyext", project)
        options = ("--torch", "2.13", "--python", "cp311", "--glibc", "2.31", "--image", image)
        said = call(project, "init", *options)
        file = project / "torchyard.toml"
        text = re.sub(r'(disk|memory) = "\d+ GB"', r'\1 = "2 GB"', file.read_text(encoding="utf-8"))
        file.write_text(text, encoding="utf-8")
        said += call(project, "lock")
        said += call(project, "plan")
        said += call(project, "build", "--skip", "smoke:*", "-o", str(scratch / "dist"))
        (wheel,) = (scratch / "dist").glob("*.whl")
        yield Built(project, image, wheel, bullseye, said)


def test_the_wheel_is_for_older_systems(built: Built) -> None:
    """On this machine itself it needs a newer glibc: the compiler's headers ask for it."""
    found = re.search(r"-manylinux_2_(\d+)_x86_64\.whl", built.wheel.name)
    assert found is not None
    assert int(found[1]) <= 31
    assert "promise: everything runs with glibc 2.31 or newer" in built.said


def test_the_image_is_locked_by_its_digest(built: Built) -> None:
    lock = (built.project / "torchyard.lock").read_text(encoding="utf-8")
    assert re.search(rf'"{re.escape(built.image)}" = "sha256:[0-9a-f]{{64}}"', lock)


def test_nothing_that_was_written_has_the_password(built: Built) -> None:
    assert PASSWORD not in built.said
    work = built.project / ".torchyard"
    files = (one for one in work.rglob("*") if "roots" not in one.parts and one.is_file())
    assert not [one for one in files if PASSWORD.encode() in one.read_bytes()]


def test_a_broken_promise_is_refused_by_name(built: Built, tmp_path: Path) -> None:
    project = tmp_path / "tinyext"
    shutil.copytree(built.project, project, ignore=shutil.ignore_patterns(".torchyard"))
    (project / ".torchyard/work").mkdir(parents=True)
    (project / ".torchyard/work/roots").symlink_to(built.project / ".torchyard/work/roots")
    with (project / "csrc/twice.cpp").open("a", encoding="utf-8") as source:
        source.write(NOISE)
    file = project / "torchyard.toml"
    text = file.read_text(encoding="utf-8").replace('glibc = "2.31"', 'glibc = "2.24"')
    file.write_text(text, encoding="utf-8")
    said = " ".join(call(project, "build", "--skip", "smoke:*", code=BuildError.exit_code).split())
    assert "it would not run with the promised glibc 2.24" in said
    assert "needs `getrandom` in version GLIBC_2.25 of libc.so.6" in said
    assert "csrc/twice.o`" in said


@pytest.mark.parametrize("suite", ["bullseye", "bookworm", "trixie"])
def test_the_wheel_is_imported_in_old_and_new_systems(
    built: Built, suite: str, tmp_path: Path
) -> None:
    root = built.bullseye if suite == "bullseye" else make_system(suite, tmp_path)
    site, libraries = tmp_path / "site", tmp_path / "libraries"
    libraries.mkdir()
    for name in COMPATIBLE:
        shutil.copy(built.bullseye / "usr/lib/x86_64-linux-gnu" / name, libraries)
    lock = (built.project / "torchyard.lock").read_text(encoding="utf-8")
    pins = (name.split("-")[:2] for name in re.findall(r'^"(\S+\.whl)" =', lock, re.MULTILINE))
    argv = [sys.executable, "-m", "pip", "install", "-qq", "--no-deps", "--target", str(site)]
    subprocess.run([*argv, str(built.wheel), *("==".join(pin) for pin in pins)], check=True)
    shown = ["--ro-bind", root, "/", "--tmpfs", "/mnt", "--tmpfs", "/opt", "--dev", "/dev"]
    shown += ["--ro-bind", built.bullseye / "opt", "/opt", "--ro-bind", site, "/mnt/site"]
    shown += ["--ro-bind", libraries, "/mnt/libraries", "--proc", "/proc", "--tmpfs", "/tmp"]
    shown += ["--setenv", "PYTHONPATH", "/mnt/site", "--chdir", "/mnt"]
    shown += ["--setenv", "LD_LIBRARY_PATH", "/mnt/libraries"]
    python = "/opt/python/cp311-cp311/bin/python"
    subprocess.run(["bwrap", *map(str, shown), "--", python, "-c", USE], check=True)


# ------------------------------------------------------------------------------- generated CI

RUN = """\
set -e
export GITHUB_ENV=/tmp/env GITHUB_PATH=/tmp/path
touch $GITHUB_ENV $GITHUB_PATH
run() {
    set -a; . $GITHUB_ENV; set +a
    for folder in $(cat $GITHUB_PATH); do PATH="$folder:$PATH"; done
    eval "$1"
}
"""
"""Runs lines one after another, as GitHub and GitLab do."""


def script_lines(provider: str, text: str) -> list[list[str]]:
    """Return the lines that each job of a generated file runs."""
    document = yaml.safe_load(text)
    if provider == "gitlab":
        return [job["script"] for job in document.values()]
    jobs = document["jobs"].values()
    return [[step["run"] for step in job["steps"] if "run" in step] for job in jobs]


def installer_volumes() -> Iterator[str]:
    """Yield podman's options that show the settings of installers, and what they name."""
    own = ("PATH", "UV_CACHE_DIR")  # of the container
    texts = [text for name, text in installer_variables().items() if name not in own]
    files = [path for _, path in installer_files()]
    named = [path for _, path in local_paths([*texts, *(one.read_text() for one in files)])]
    indexes = [path.parent for path in named if path.name == "simple"]  # their files are beside it
    for path in sorted({Path("/etc/ssl/certs"), *files, *named, *indexes}):
        yield from ("--volume", f"{path}:{path}:ro")


@needs_podman
@pytest.mark.parametrize("provider", ["github", "gitlab"])
def test_lines_of_generated_ci_run_in_the_image(
    built: Built, provider: str, tmp_path: Path
) -> None:
    """The container is as docker makes it: without namespaces, and so without bubblewrap.

    Actions are not run: jobs share a directory, as if all artifacts were handed on.
    """
    repository = tmp_path / "repository"
    shutil.copytree(built.project, repository, ignore=shutil.ignore_patterns(".torchyard"))
    argv = ["uv", "build", "--quiet", "--offline", "--no-build-isolation", "--wheel"]
    argv += ["--python", sys.executable, "--out-dir", str(repository), str(ROOT)]
    subprocess.run(argv, check=True)
    (own,) = repository.glob("torchyard-*.whl")
    own.rename(tmp_path / own.name)
    with (repository / "torchyard.toml").open("a", encoding="utf-8") as file:
        install = f"python -m pip install --quiet {tmp_path / own.name}"
        file.write(f'\n[ci]\npython = "3.11"\ninstall = "{install}"\n')
        file.write('[ci.pipeline.pull-request]\non = ["pull-request"]\nall_jobs = true\n')
    call(repository, "ci", "generate", provider)
    (path,) = repository.rglob("torchyard-pull-request.yml")
    text = path.read_text(encoding="utf-8")
    assert f"{built.image}@sha256:" in text
    options = (*as_in_docker(tmp_path), *installer_volumes(), "--env", "PART=cp311")
    options += ("--env", "HOME=/root", "--env", "PATH=/usr/local/bin:/usr/bin:/bin")
    for lines in script_lines(provider, text):
        script = RUN + "".join(f"run {quote(line)}\n" for line in lines)
        inside = container(
            tmp_path, *options, "--workdir", str(repository), root=str(built.bullseye)
        )
        done = subprocess.run(
            [*inside, "bash", "-c", script], capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stdout + done.stderr
    (wheel,) = (repository / ".torchyard/packages").glob("*.whl")
    assert wheel.read_bytes() == built.wheel.read_bytes(), "the fingerprint is the same"
