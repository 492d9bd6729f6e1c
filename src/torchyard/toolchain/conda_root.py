"""Roots of conda environments: all but the kernel comes from channels.

Such a root has the environments of a lock below `/opt/conda`, and otherwise only links to what
programs expect at fixed paths: the loader and the C library of the environment's sysroot, and a
shell.
"""

import os
import re
from collections.abc import Iterable, Sequence
from functools import partial
from hashlib import sha256
from pathlib import Path

from torchyard.errors import HostError
from torchyard.host.locks import locked, report_full_disk
from torchyard.host.network_settings import local_paths
from torchyard.host.process import capture
from torchyard.host.snapshot import EPOCH
from torchyard.host.untrusted_tree import EntryKind, UntrustedTree, remove_tree
from torchyard.model.lock import BUILD, HOST
from torchyard.toolchain.blas import Blas, blas_variables
from torchyard.toolchain.conda_lock import USER
from torchyard.toolchain.conda_prefix import PREFIXES, keep_run_exports
from torchyard.toolchain.interpreters import Interpreter
from torchyard.toolchain.provision import ENV, ToolchainLayout
from torchyard.toolchain.pypi import make_environment
from torchyard.toolchain.rattler import call_rattler
from torchyard.toolchain.root import add_environments
from torchyard.toolchain.root_image import ROOTS
from torchyard.toolchain.toolkit import ToolkitSource
from torchyard.toolchain.variables import SYSTEM_PATH, compose

_BUILD, _HOST = f"{PREFIXES}/{BUILD}", f"{PREFIXES}/{HOST}"
_PROGRAMS = {"sh": "bash", "bash": "bash", "env": "env"}
"""Programs that scripts name by a path in /bin or /usr/bin, and those of the environment."""

_INSIDE = (_HOST.lstrip("/"), _BUILD.lstrip("/"))
_NEEDED = re.compile(r"lib(gcc_s|z|ffi|ssl|crypto|bz2|lzma)\.so\.\d[\d.]*")
"""What most systems have: uv, and a Python of another version than the host's, would not run."""

_CACHE = "packages"
_FILE = re.compile(r"\bfile:\S+")
_FOLDERS = ("lib", "lib32", "lib64")
_PYTHON = re.compile(r"python3\.(\d+t?)")
_SHELL = frozenset(("_", "PWD", "OLDPWD", "SHLVL", "CONDA_SHLVL"))


def find_conda_root(lock: str, work: Path, only: str = "") -> str:
    """Return the root of a lock, which is made once below the directory of jobs.

    Packages of other addresses than below `only` are refused. They are linked from a cache beside
    the root, which others share. A hostile package can change others there, so with `only`, for
    specs of others, a root has a cache of its own.
    """
    folder = work / ROOTS / f"conda-{sha256(lock.encode()).hexdigest()}"
    if not folder.is_dir():
        with locked(folder.with_name(f"{folder.name}.lock"), wait=True), report_full_disk(work):
            if not folder.is_dir():
                _make(lock, folder, only)
    return str(folder)


def _make(lock: str, folder: Path, only: str) -> None:
    """Make a root completely or not at all."""
    part = folder.with_name(f"{folder.name}.part")
    remove_tree(part)  # left by a killed process
    part.mkdir()
    try:
        home = part if only else folder.parent
        file = part / "conda.lock"
        file.write_text(lock, encoding="utf-8")
        asked = {
            "file": str(file),
            "folder": f"{part}{PREFIXES}",
            "seen_as": PREFIXES,
            "environments": [BUILD, HOST],
            "cache": f"{home}/{_CACHE}",
            "only": only,
        }
        local = {path.parent for _, path in local_paths(_FILE.findall(lock))}
        made = call_rattler("environments", asked, USER, writable=home, readable=local)
        if other := made.error:
            msg = f"this machine takes conda packages from {only} only, and not {other}"
            raise HostError(msg, hint="name channels, or set CONDA_CHANNEL_ALIAS on this machine")
        for name in (BUILD, HOST):
            keep_run_exports(Path(f"{part}{PREFIXES}/{name}"))
        remove_tree(part / _CACHE)
        with UntrustedTree(part) as tree:
            _add_system(tree)
            _add_python(tree)
            add_environments(tree)
        for top, folders, names in os.walk(part):  # else an object could look older than a header
            for name in (*folders, *names):
                os.utime(f"{top}/{name}", (EPOCH, EPOCH), follow_symlinks=False)
        os.sync()
        part.rename(folder)
    finally:
        remove_tree(part)


def _add_system(tree: UntrustedTree) -> None:
    """Link the loader, the C library and a shell to where programs look for them."""
    inside = _BUILD.lstrip("/")
    tops = [f"{entry.path}/sysroot" for entry in tree.entries(inside)]
    sysroot = next((path for path in tops if _has(tree, path)), None)
    lacking = [name for name in _PROGRAMS.values() if not _has(tree, f"{inside}/bin/{name}")]
    if sysroot is None or lacking:
        what = ", ".join((*(() if sysroot else ("sysroot",)), *dict.fromkeys(lacking)))
        msg = f"jobs can't run in the conda environment `{BUILD}`, which has no {what}"
        hint = "add `sysroot_linux-64`, `bash` and `coreutils` to `build` in [toolchain] conda"
        raise HostError(msg, hint=hint)
    tree.make_directory("etc")
    tree.make_directory("usr/bin")
    tree.create_link("bin", "usr/bin")
    machine = sysroot.rpartition("/")[0].rpartition("/")[2]
    for name, program in {**_PROGRAMS, "strip": f"{machine}-strip"}.items():
        tree.create_link(f"usr/bin/{name}", f"{_BUILD}/bin/{program}")
    for name in _FOLDERS:
        if _has(tree, f"{sysroot}/{name}"):
            tree.create_link(name, f"/{sysroot}/{name}")
        _add_libraries(tree, f"usr/{name}", sysroot)


def _add_libraries(tree: UntrustedTree, folder: str, sysroot: str) -> None:
    """Link the libraries of a folder of the sysroot, and those that torchyard's programs need."""
    found = tree.find(f"{sysroot}/{folder}") if _has(tree, f"{sysroot}/usr") else None
    if found is None or found.kind is not EntryKind.FOLDER:
        return
    tree.make_directory(folder)
    for entry in tree.entries(found.path):
        tree.create_link(f"{folder}/{entry.path.rpartition('/')[2]}", f"/{entry.path}")
    for prefix in filter(partial(_has, tree), (f"{path}/lib" for path in _INSIDE)):
        for entry in tree.entries(prefix):
            path = f"{folder}/{entry.path.rpartition('/')[2]}"
            if _NEEDED.fullmatch(path.rpartition("/")[2]) and tree.find(path) is None:
                tree.create_link(path, f"/{entry.path}")


def _add_python(tree: UntrustedTree) -> None:
    """Link the environment's Python to where those of roots are."""
    tree.make_directory("opt/python")
    for entry in tree.entries(f"{_HOST.lstrip('/')}/lib"):
        if found := _PYTHON.fullmatch(entry.path.rpartition("/")[2]):
            tag = f"cp3{found[1]}"
            tree.create_link(f"opt/python/{tag}-{tag}", _HOST)


def _has(tree: UntrustedTree, path: str) -> bool:
    try:
        return tree.find(path) is not None
    except HostError:  # what should be a directory is none
        return False


def equip_conda(
    *,
    interpreter: Interpreter,
    blas: str,
    requires: Sequence[str],
    layout: ToolchainLayout,
    platforms: Iterable[ToolkitSource],
) -> dict[str, str]:
    """Create the backend's environment on the host's Python; return the variables of steps.

    This runs in the root. `requires` are packages from PyPI in addition to the host's.
    """
    env = _activated()
    env |= {source.cmake_switch: "0" for source in platforms if source.cmake_switch}
    library = Blas(name=blas, version="", origin="system", digest="", root=_HOST)
    found = blas_variables(library, "")
    found.pop("LD_LIBRARY_PATH")  # the compiler has libraries of its own
    env, root = compose(env, found), f"{layout.seen_as}/{ENV}"
    make_environment(interpreter, requires, layout.folder / ENV, inherits=True)
    return compose(env | {"VIRTUAL_ENV": root}, {"PATH": f"{root}/bin"})


def _activated() -> dict[str, str]:
    """Return the variables of both environments, activated as conda does it for a build."""
    asked = {"prefixes": [_HOST, _BUILD], "path": SYSTEM_PATH}
    script = call_rattler("activate", asked, USER).script
    given = {"PATH": SYSTEM_PATH, "PREFIX": _HOST, "BUILD_PREFIX": _BUILD, "CONDA_BUILD": "1"}
    text = capture(["/bin/bash", "-euc", f"{script}\nenv -0"], cwd=Path("/"), env=given)
    found = (entry.partition("=") for entry in text.split("\0") if entry.strip())
    return {name: value for name, _, value in found if name not in _SHELL}
