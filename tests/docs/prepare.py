"""Scenes for the pages of the documentation: a clone, a project that was built, a channel."""

import os
import shutil
import subprocess
import sys
from contextlib import ExitStack
from pathlib import Path

import pytest
from tests.docs.scene import Scene
from tests.support.conda import make_package
from tests.support.forked import run_torchyard
from tests.support.helpers import ROOT
from tests.support.made_wheel import make_wheel
from tests.support.offered import served
from tests.support.services import reserved_port

from torchyard.host.locks import locked

_FOLDER = Path(__file__).parent
_SKIPPED = shutil.ignore_patterns(".torchyard", "dist", "__pycache__")
_NIGHTLIES = ("20261113", "20261114", "20261115")


def _environment() -> dict[str, str]:
    """Return this process' environment, with the programs beside this Python first on PATH."""
    return {**os.environ, "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"}


def run(*argv: object, cwd: Path) -> None:
    """Run a program that has to succeed, found beside this Python or on PATH."""
    words, env = list(map(str, argv)), _environment()
    done = subprocess.run(words, cwd=cwd, env=env, check=False, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr


def torchyard(*argv: object, cwd: Path) -> None:
    done = run_torchyard(argv, _environment(), cwd)
    assert done.returncode == 0, done.stdout + done.stderr


def _commit(folder: Path) -> None:
    """Make a repository of a directory, with one commit."""
    git = ("git", "-c", "user.name=test", "-c", "user.email=test@example.org")
    run(*git, "init", "--quiet", "--initial-branch=main", cwd=folder)
    run(*git, "add", "--all", cwd=folder)
    run(*git, "commit", "--quiet", "--message=all", cwd=folder)


class Preparer:
    """Makes the scenes of pages; slow preparations are made once for all of them."""

    def __init__(self, folder: Path, stack: ExitStack, factory: pytest.TempPathFactory) -> None:
        self._folder = folder
        self._stack = stack
        self._factory = factory

    def _scene(self, start: Path) -> Scene:
        """Return a scene with an environment that pip and uv install into."""
        scene = Scene(folder=self._folder, start=start, stack=self._stack)
        run("uv", "venv", "--quiet", "--python", sys.executable, self._folder / "env", cwd=start)
        scene.env["VIRTUAL_ENV"] = str(self._folder / "env")
        if (Path.home() / ".pyenv").is_dir():
            scene.env["PYENV_ROOT"] = str(Path.home() / ".pyenv")
        return scene

    def empty(self) -> Scene:
        """Return a scene in an empty directory."""
        start = self._folder / "project"
        start.mkdir()
        return self._scene(start)

    def repository(self) -> Scene:
        """Return a scene in an empty directory, with a repository in place of PyTorch's."""
        scene = self.empty()
        code = self._folder / "pytorch/pytorch"  # `init` knows it by this
        shutil.copytree(ROOT / "examples/small/code", code, ignore=_SKIPPED)
        _commit(code)
        run("git", "tag", "v2.14.0", cwd=code)
        scene.stand_ins["https://github.com/pytorch/pytorch"] = code.as_uri()
        return scene

    def clone(self) -> Scene:
        """Return a scene in a clone of the repository, with the parts that pages use."""
        start = self._folder / "torchyard"
        for name in ("examples", "tests/projects/tinyext", "tests/projects/tinytorch"):
            shutil.copytree(ROOT / name, start / name, ignore=_SKIPPED)
        _commit(start)
        return self._scene(start)

    def checkout(self) -> Scene:
        """Return a scene in a clone of the whole repository."""
        start = self._folder / "torchyard"
        run("git", "clone", "--quiet", ROOT, start, cwd=self._folder)
        return self._scene(start)

    def small(self) -> Scene:
        """Return a scene in the small example, of which nothing has been built."""
        start = self._folder / "small"
        shutil.copytree(ROOT / "examples/small", start, ignore=_SKIPPED)
        return self._scene(start)

    def small_wheels(self) -> Scene:
        """Return a scene in the small example, which has been built."""
        start = self._folder / "small"
        shutil.copytree(self._built("small", ROOT / "examples/small"), start)
        return self._scene(start)

    def torch(self) -> Scene:
        """Return a scene in a project of made-up torch that was built and published."""
        start = self._folder / "torch"
        shutil.copytree(self._built("torch", _FOLDER / "torch"), start)
        packages = self._folder / "srv/packages"
        packages.parent.mkdir()
        (start / "packages").rename(packages)
        file = start / "torchyard.toml"
        text = file.read_text(encoding="utf-8")
        file.write_text(text.replace('"packages/', f'"{packages}/'), encoding="utf-8")
        scene = self._scene(start)
        scene.stand_ins["https://example.org"] = self._serve(packages)
        scene.stand_ins["/srv/packages"] = str(packages)
        scene.stand_ins["/srv/torch"] = str(start)
        scene.stand_ins["/srv/other"] = str(self._folder / "other")
        scene.stand_ins["/srv/signed"] = str(self._folder / "signed")
        return scene

    def tools(self) -> Scene:
        """Return the scene of a project, with a channel `tools` of conda packages beside it."""
        scene = self.torch()
        made = self._folder / "tools"
        for version in ("1.0", "2.0"):
            make_package(made, "base", version, "0")
        make_package(made, "app", "1.0", "0", depends=["base"])
        torchyard("publish", made, "--to", self._folder / "srv/packages/tools", cwd=scene.start)
        return scene

    def release(self) -> Scene:
        """Return the scene of a project whose channel `release` has something to take back."""
        scene = self.torch()
        torchyard("channel", "promote", "test", "release", "torch==2.14.0", cwd=scene.start)
        return scene

    def extensions(self) -> Scene:
        """Return a scene with wheels of an extension in `dist`, and an index of torch."""
        scene = self.empty()
        packages = self._folder / "srv/packages"
        for release in ("2.13", "2.14"):
            for compute in ("cpu", "cu130"):
                version = f"1.0+pt{release.replace('.', '')}{compute}"
                make_wheel(scene.start / "dist", "myext", version, requires=[f"torch=={release}.*"])
                make_wheel(self._folder / "torches", "torch", f"{release}.0+{compute}")
        torchyard("publish", self._folder / "torches", "--to", packages / "whl", cwd=scene.start)
        scene.stand_ins["https://example.org"] = self._serve(packages)
        scene.stand_ins["/srv/packages"] = str(packages)
        return scene

    def serving(self) -> Scene:
        """Return the scene of a project with an empty directory that a web server serves."""
        scene = self.torch()
        channel = self._folder / "srv/channel"
        channel.mkdir()
        scene.stand_ins["http://packages.example.org"] = self._serve(channel)
        scene.stand_ins["/srv/channel"] = str(channel)
        scene.stand_ins["/srv/copy"] = str(self._folder / "srv/copy")
        return scene

    def farm(self) -> Scene:
        """Return the scene of a project of which nothing was built, without a farm."""
        start = self._folder / "torch"
        shutil.copytree(_FOLDER / "torch", start, ignore=_SKIPPED)
        return self._farm_scene(self._scene(start), start / "farm")

    def tinytorch_farm(self) -> Scene:
        """Return a scene in a clone, where a farm for a copy of tinytorch will be started."""
        return self._farm_scene(self.clone(), self._folder / "tinytorch/farm")

    def _farm_scene(self, scene: Scene, folder: Path) -> Scene:
        """Let the master in a directory have other ports than the usual, and stop it at the end."""
        stop = [sys.executable, "-m", "torchyard", "farm", "stop", str(folder)]
        self._stack.callback(subprocess.run, stop, check=False, capture_output=True)
        ports = {usual: self._stack.enter_context(reserved_port()) for usual in (9989, 8010)}
        edits = "; ".join(f"s/:{usual}/:{port}/" for usual, port in ports.items())
        init = "torchyard farm init farm"
        scene.stand_ins[init] = f"{init} && sed -i '{edits}' farm/farm.toml"
        for usual, port in ports.items():
            scene.stand_ins[f"127.0.0.1:{usual}"] = f"127.0.0.1:{port}"
        return scene

    def farm_user(self) -> Scene:
        """Return the scene of a farm that was made, but not started."""
        scene = self.farm()
        torchyard("farm", "init", "farm", cwd=scene.start)
        return scene

    def _built(self, name: str, project: Path) -> Path:
        """Build a project once for all processes of a test run."""
        place = self._factory.getbasetemp()
        if "PYTEST_XDIST_WORKER" in os.environ:
            place = place.parent
        folder = place / f"docs-{name}"
        with locked(place / f"docs-{name}.lock", wait=True):
            if not (folder / "done").exists():
                shutil.rmtree(folder, ignore_errors=True)
                shutil.copytree(project, folder, ignore=_SKIPPED)
                torchyard("build", "-o", "dist", cwd=folder)
                if name == "torch":
                    self._publish_nightlies(folder)
                (folder / "done").touch()
        return folder

    def _publish_nightlies(self, folder: Path) -> None:
        """Publish what other nights made, oldest first."""
        for day in _NIGHTLIES:
            nightly = folder / "nights" / day
            nightly.mkdir(parents=True)
            for compute in ("cpu", "cu130"):
                version = f"2.14.0.dev{day}+{compute}"
                for python in ("cp311", "cp312"):
                    argv = (version, python, "wheel", "-", nightly)
                    run(sys.executable, folder / "code/make.py", *argv, cwd=folder)
            torchyard("publish", nightly, "--to", "nightly", cwd=folder)

    def _serve(self, folder: Path) -> str:
        """Serve a directory on loopback, and return its address."""
        return self._stack.enter_context(served(folder)).rstrip("/")
