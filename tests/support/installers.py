"""Installers as users run them, without this machine's settings and caches."""

import os
import shlex
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple, Protocol

from torchyard.host.process import own_program

_OWN = ("PIP_", "UV_", "PYTHON")


class RefusedError(Exception):
    """An installer failed; the message is its output."""


class Resolved(NamedTuple):
    """What uv would install."""

    version: str
    sha256: str


class Installer(Protocol):
    """pip or uv."""

    agent: str
    """What it calls itself when it asks for a page."""

    def install(self, index: str, requirement: str, target: Path) -> dict[str, str]:
        """Install packages into a directory that is new; return versions by name."""


class Pip:
    """The pip of the Python that runs the tests."""

    agent = "pip"

    def install(self, index: str, requirement: str, target: Path) -> dict[str, str]:
        self._install(index, requirement, "--target", target)
        return installed(target)

    def _install(self, index: str, requirement: str, *words: object) -> None:
        own = ("--isolated", "--disable-pip-version-check", "--no-cache-dir", "--no-input")
        options = ("--index-url", index, "--retries", "0", "--only-binary", ":all:")
        run(sys.executable, "-m", "pip", *own, "install", *options, *words, requirement)


class Uv:
    """The uv of the development requirements."""

    agent = "uv"
    _options = ("--no-cache", "--no-config", "--no-progress", "--only-binary", ":all:")

    def lock(self, index: str, requirement: str, folder: Path) -> dict[str, Resolved]:
        """Choose all packages that are needed, and install none."""
        wanted, lock = folder / "wanted.in", folder / "locked.txt"
        wanted.write_text(requirement, encoding="utf-8")
        asked = ("--generate-hashes", "--no-header", "--no-annotate", "-o", lock, wanted)
        self._pip("compile", "--index-url", index, *asked)
        found = {}
        text = lock.read_text(encoding="utf-8").replace("\\\n", " ")
        for name, _, rest in (line.partition("==") for line in text.splitlines()):
            version, _, digest = rest.partition("--hash=sha256:")
            found[name] = Resolved(version.strip(), digest.split()[0])
        return found

    def install(self, index: str, requirement: str, target: Path) -> dict[str, str]:
        self._pip("install", "--index-url", index, "--target", target, requirement)
        return installed(target)

    def _pip(self, command: str, *words: object) -> None:
        python = ("--python", sys.executable)
        run(own_program("uv"), "pip", command, *self._options, *python, *words)


def run(*argv: object) -> None:
    """Run an installer to its end."""
    env = {name: value for name, value in os.environ.items() if not name.startswith(_OWN)}
    done = subprocess.run(
        [str(word) for word in argv],
        env={**env, "NO_PROXY": "*"},
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        raise RefusedError(done.stdout + done.stderr)


def installed(target: Path) -> dict[str, str]:
    """Return the versions of the packages that are installed in a directory."""
    infos = (path.name.removesuffix(".dist-info") for path in target.glob("*.dist-info"))
    return dict(name.rsplit("-", 1) for name in infos)


class FreshEnvironment:
    """A new environment in which commands are run as a user would type them.

    `own_settings` keeps this machine's settings of pip and uv, which say where their default index
    is; without them no other index than those of the command is asked.
    """

    def __init__(
        self, folder: Path, *, own_settings: bool = False, interpreter: str = sys.executable
    ) -> None:
        self._folder = folder
        programs = folder / "programs"
        programs.mkdir(parents=True)
        run(own_program("uv"), "venv", "--quiet", "--python", interpreter, folder / "env")
        python = folder / "env/bin/python"
        for name, words in {
            "pip": (sys.executable, "-m", "pip", "--python", str(python)),
            "uv": (own_program("uv"), "--system-certs"),
        }.items():
            program = programs / name
            program.write_text(f'#!/bin/sh\nexec {shlex.join(words)} "$@"\n', encoding="utf-8")
            program.chmod(0o755)
        env = dict(os.environ)
        if not own_settings:
            env = {name: value for name, value in env.items() if not name.startswith(_OWN)}
            env |= {"PIP_CONFIG_FILE": os.devnull, "UV_NO_CONFIG": "1", "NO_PROXY": "*"}
        self._env = env | {
            "PATH": f"{programs}:/usr/bin:/bin",
            "VIRTUAL_ENV": str(folder / "env"),
            "PIP_NO_CACHE_DIR": "1",
            "UV_NO_CACHE": "1",
        }

    def run(self, command: str) -> dict[str, str]:
        """Run a command as it was printed, and return the versions that are installed then."""
        self._shell(command)
        (site,) = (self._folder / "env/lib").glob("python*/site-packages")
        return installed(site)

    def resolve(self, command: str) -> str:
        """Return what a command says that it would install; nothing is."""
        return self._shell(f"{command} --dry-run")

    def _shell(self, command: str) -> str:
        done = subprocess.run(
            ["/bin/sh", "-c", command],
            env=self._env,
            cwd=self._folder,
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode:
            raise RefusedError(command + "\n" + done.stdout + done.stderr)
        return done.stdout + done.stderr
