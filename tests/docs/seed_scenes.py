"""The scenes of docs/evidence/seeds.md: projects, trees and channels that its commands run in."""

import os
import shutil
import signal
import socket
import subprocess
import sys
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

import pytest
from farm.tests.git_projects import make_project
from tests.docs.prepare import Preparer, run, torchyard
from tests.docs.scene import Scene
from tests.support.conda import SUBDIR, index, make_package
from tests.support.dependency_tree import git, make_tree
from tests.support.helpers import EXAMPLE, SMALL
from tests.support.made_wheel import make_wheel
from tests.support.recipe import PREFIX, SAMPLE, Project, channel_for, copy_sample, shared_sample
from tests.support.sabotage import World, stand_in_cuda, stand_in_driver, stand_in_rocm, write
from tests.support.services import LOOPBACK, reserved_port
from tests.support.wheels import CPU, shared_wheel

_CELLS = (
    *(f"cpu-mkl/{cell}" for cell in ("cp311/wheel", "cp311/conda", "cp312/wheel", "cp312/conda")),
    *(f"cpu-mkl/any/{kind}" for kind in ("conda-libtorch", "libtorch")),
    *(f"cpu-openblas/{cell}" for cell in ("cp311/wheel", "cp311/conda")),
    *(f"cpu-openblas/any/{kind}" for kind in ("conda-libtorch", "libtorch")),
)
"""Packages that tests/integration/test_recipe.py builds, too, in the same store."""


_FARM = """\
file = "{file}"
listen = "127.0.0.1:{port}"
web = "127.0.0.1:{web}"
[worker.w1]
platform = "linux-x86_64"
memory = "8 GB"
disk = "8 GB"
[nightly.main]
at = "02:00"
subset = "nightly"
"""

_IN_ROOT = """\
[project]
name = "torch"
version = "2.6.0"
release = "none"
[source]
path = "."
[toolchain]
root = "root"
compiler = "gcc-13"
cuda = "system"
blas = "system"
[matrix]
platform = ["linux-x86_64"]
compute = ["cu124"]
blas = ["openblas"]
python = ["cp313"]
package = ["wheel"]
"""

_CUDNN = {
    "include/cudnn_version.h": "#define CUDNN_MAJOR 9\n#define CUDNN_MINOR 10\n"
    "#define CUDNN_PATCHLEVEL 2\n"
}
_NCCL = "#define NCCL_MAJOR 2\n#define NCCL_MINOR 27\n#define NCCL_PATCH 3\n"
_CLANG = """\
#include <stdio.h>
#include <string.h>
#include <unistd.h>
int main(int count, char **words)
{
    if (count > 1 && !strcmp(words[1], "--version"))
        return puts("clang version 19.0.0") < 0;
    if (count > 1 && (!strncmp(words[1], "--print", 7) || !strncmp(words[1], "--target", 8)))
        return 0;
    return execv("/usr/bin/gcc", words);
}
"""
"""A program that pretends to be ROCm's clang: a script has no libraries to be identified by."""


class SeedScenes(Preparer):
    """Makes the scenes of the page."""

    def matrix(self) -> Scene:
        """Return a scene with the matrix of PyTorch, of which nothing is built."""
        scene = self.empty()
        shutil.copy(EXAMPLE, scene.start)
        return scene

    def built(self) -> Scene:
        """Return a scene in tinytorch, built for CPUs, with its packages in `../dist`."""
        with shared_sample(self._factory) as project:
            jobs = [f"package:{PREFIX}/{cell}" for cell in _CELLS]
            project.torchyard("build", *jobs)
            shutil.copytree(project.folder, self._folder / "tinytorch", copy_function=os.link)
        return self._tinytorch(jobs)

    def built_with_needs(self) -> Scene:
        """Return the scene of `built`, with what the packages require in channels."""
        scene = self.built()
        channel_for(Project(scene.start), "cp311", "cp312")
        make_wheel(self._folder / "needs", "typing_extensions", "4.16.0")
        return scene

    def cuda(self) -> Scene:
        """Return a scene in tinytorch, built for CUDA 13.0 on this machine, which has no GPU."""
        project = copy_sample(self._folder / "tinytorch")
        project.torchyard("build", f"package:{PREFIX}/cu130-openblas/*")
        return self._tinytorch([f"package:{PREFIX}/cu130-openblas/*"])

    def _tinytorch(self, jobs: list[str]) -> Scene:
        scene = self._scene(self._folder / "tinytorch")
        (scene.start / "torchyard.toml").unlink()  # a link: tests change this file
        shutil.copy(SAMPLE / "torchyard.toml", scene.start)
        torchyard("store", "get", *jobs, "-o", "../dist", cwd=scene.start)
        return scene

    def root(self) -> Scene:
        """Return a scene with a file that compiles in a root, which its first command makes."""
        scene = self.empty()
        write(scene.start, {"torchyard.toml": _IN_ROOT})
        return scene

    def release(self) -> Scene:
        """Return a scene beside a clone with the dependencies of PyTorch 2.5.1, and a channel."""
        scene = self.empty()
        tree = make_tree(scene.start)
        address = self._git_daemon(scene.start)
        modules = (tree / ".gitmodules").read_text(encoding="utf-8")
        write(tree, {".gitmodules": modules.replace(str(scene.start), address)})
        git(tree, "commit", "--quiet", "--all", "--message=addresses")
        git(tree, "tag", "v2.5.1")
        git(tree, "submodule", "--quiet", "sync")
        scene.stand_ins["https://github.com/pytorch"] = address
        for name, version in (("sleef", "3.7"), ("sympy", "1.13.3")):
            make_package(self._folder / "conda" / SUBDIR, name, version, "0")
        index(self._folder / "conda")
        scene.stand_ins["https://conda.example.org"] = self._serve(self._folder / "conda")
        write(scene.start, {"recipe.toml": f'{SMALL}[build]\nrequires = ["sympy==1.13.1"]\n'})
        requires = ["sympy==1.13.1", "typing-extensions>=4.8.0", "triton==3.1.0"]
        make_wheel(self._folder / "wheels", "torch", "2.5.1+cpu", requires=requires)
        argv = (self._folder / "wheels", "--to", "./channel", "--external", "*")
        torchyard("publish", *argv, cwd=scene.start)
        return scene

    def _git_daemon(self, folder: Path) -> str:
        """Serve the repositories below a directory on loopback, and return their address."""
        with reserved_port() as port:
            where = (f"--port={port}", f"--base-path={folder}", "--export-all", "--reuseaddr")
        argv = ["git", "daemon", f"--listen={LOOPBACK}", *where, str(folder)]
        daemon = subprocess.Popen(argv, start_new_session=True)
        self._stack.callback(daemon.wait)
        self._stack.callback(os.killpg, daemon.pid, signal.SIGTERM)
        while True:
            assert daemon.poll() is None, "it has ended"
            with suppress(ConnectionRefusedError), socket.create_connection((LOOPBACK, port)):
                return f"git://{LOOPBACK}:{port}"

    def wheel(self) -> Scene:
        """Return a scene beside a real wheel of torch, for CPUs."""
        scene = self.empty()
        wheel = shared_wheel(self._factory, CPU, "3.11")
        os.link(wheel, scene.start / wheel.name)
        return scene

    def farm_master(self) -> Scene:
        """Return a scene beside a project in git and a master that is stopped."""
        scene = self.empty()
        _, file = make_project(scene.start / "project")
        (scene.start / "farm").mkdir(mode=0o700)
        with reserved_port() as port, reserved_port() as web:
            text = _FARM.format(file=file, port=port, web=web)
        (scene.start / "farm/farm.toml").write_text(text, encoding="utf-8")
        return scene

    def running_farm(self) -> Scene:
        """Return the scene of a master that can be started."""
        scene = self.farm_master()
        torchyard("farm", "init", "farm", "-f", "project/torchyard.toml", cwd=scene.start)
        stop = [sys.executable, "-m", "torchyard", "farm", "stop", "farm"]
        self._stack.callback(subprocess.run, stop, cwd=scene.start, check=False)
        return scene

    def tree(self) -> Scene:
        """Return a scene beside a tree that doctor finds ready, and programs that say otherwise."""
        world = self._world()
        world.library(self._folder / "old/libgomp.so.1", "int x;", "-Wl,-soname,libgomp.so.1")
        (self._folder / "conda/conda-meta").mkdir(parents=True)
        (self._folder / "conda/bin").mkdir()
        return self._beside(world)

    def fake_cuda(self) -> Scene:
        """Return the scene of a tree, with stand-ins for CUDA 13.0, drivers and gcc 16."""
        world = self._world()
        write(stand_in_cuda(world, "13.0"), {"lib/libcudnn.so": "", **_CUDNN})
        write(self._folder / "static", {"lib/libcudnn_static.a": "", **_CUDNN})
        write(self._folder / "static", {"lib/libnccl_static.a": "", "include/nccl.h": _NCCL})
        for name, code in (("driver", "return 0;"), ("driver-804", "return 804;")):
            stand_in_driver(world, code, 12020)
            (self._folder / "driver").rename(self._folder / f"fake-{name}")
        world.first = self._folder / "gcc-16"
        for name in ("gcc", "g++"):
            world.says(name, "16.2.0", f"/usr/bin/{name}")
        return self._beside(world)

    def fake_rocm(self) -> Scene:
        """Return the scene of a tree, with a stand-in for ROCm 6.4."""
        world = self._world()
        clang = stand_in_rocm(world) / "llvm/bin/clang"
        clang.unlink()
        (self._folder / "clang.c").write_text(_CLANG, encoding="utf-8")
        run("gcc", "-o", clang, self._folder / "clang.c", cwd=self._folder)
        shutil.copy(SAMPLE / "torchyard.toml", self._folder)
        (self._folder / "smoke").mkdir()
        write(self._folder / "conda/include", {"thrust/complex.h": ""})
        write(world.tree, {"tools/amd_build/build_amd.py": ""})
        shutil.copytree(world.tree, self._folder / "pytorch-2.4")
        write(self._folder / "pytorch-2.4", {"version.txt": "2.4.1\n"})
        world.env["PATH"] = f"{self._folder / 'rocm/bin'}:{world.env['PATH']}"
        world.first = self._folder / "cmake-3.30"
        world.says("cmake", "cmake version 3.30.3", "/usr/bin/cmake")
        return self._beside(world)

    def _world(self) -> World:
        """Make a machine that is ready for a build by hand."""
        with pytest.MonkeyPatch.context() as patch:
            return World(self._folder, patch)

    def _beside(self, world: World) -> Scene:
        path = f"{self._folder / '.programs'}:{world.env['PATH']}"
        env = {**world.env, "PATH": path, "LD_LIBRARY_PATH": "", "VIRTUAL_ENV": ""}
        return Scene(folder=self._folder, start=self._folder, stack=self._stack, env=env)


class SceneMaker(NamedTuple):
    """How a scene of the page is made, and whether its commands run at night only."""

    prepare: Callable[[SeedScenes], Scene]
    slow: bool = False
    programs: tuple[str, ...] = ()


SCENES = {
    "matrix": SceneMaker(SeedScenes.matrix),
    "built, slow": SceneMaker(SeedScenes.built_with_needs, slow=True, programs=("gcc", "bwrap")),
    "CUDA, slow": SceneMaker(SeedScenes.cuda, slow=True, programs=("nvcc", "bwrap")),
    "torch, slow": SceneMaker(SeedScenes.wheel, slow=True),
    "farm": SceneMaker(SeedScenes.farm_master),
    "farm, slow": SceneMaker(SeedScenes.running_farm, slow=True),
    "root, slow": SceneMaker(SeedScenes.root, slow=True, programs=("debootstrap", "bwrap")),
    "2.5.1, slow": SceneMaker(SeedScenes.release, slow=True),
    "tree, slow": SceneMaker(SeedScenes.tree, slow=True, programs=("gcc",)),
    "fake CUDA, slow": SceneMaker(SeedScenes.fake_cuda, slow=True, programs=("gcc",)),
    "fake ROCm": SceneMaker(SeedScenes.fake_rocm, programs=("gcc",)),
    "channel, slow": SceneMaker(SeedScenes.torch, slow=True),
}
