"""Run pip and uv on untrusted packages.

They accept only wheels: installing a wheel runs none of its code, unlike building a source
distribution. Of the caller's variables, they get only those for installers and the network. They
run in a sandbox where bubblewrap works.
"""

import os
from collections.abc import Iterable, Iterator, Sequence
from email.parser import BytesHeaderParser
from pathlib import Path
from tempfile import TemporaryDirectory
from urllib.parse import unquote, urlsplit

from packaging.requirements import InvalidRequirement

from torchyard.errors import CheckError, ElsewhereError, HostError
from torchyard.host.bubblewrap import confined
from torchyard.host.files import says_full
from torchyard.host.http import explain_fetch
from torchyard.host.network_settings import (
    installer_cache,
    installer_files,
    installer_variables,
    linked_folders,
    local_paths,
    network_settings,
)
from torchyard.host.process import capture, own_program
from torchyard.model.requirement import parse_requirement
from torchyard.package.wheel.about import read_about

_CACHES = {"PIP_CACHE_DIR": "pip", "UV_CACHE_DIR": "uv"}

_OWN = {
    "PIP_DISABLE_PIP_VERSION_CHECK": "1",
    "UV_NO_PROGRESS": "1",
    "UV_LINK_MODE": "copy",  # otherwise tests could change the cache
}

_WHEELS = ("--only-binary", ":all:")

_PIP = """\
import sys
from pip._internal.cli.main import main
from pip._internal.distributions.sdist import SourceDistribution
from pip._internal.exceptions import InstallationError
from pip._internal.operations import prepare

def refuse(self, *_, **__):
    raise InstallationError(f"{getattr(self, 'req', self)} is no wheel, and nothing is built here")

SourceDistribution.prepare_distribution_metadata = prepare.unpack_vcs_link = refuse
sys.exit(main())
"""
"""pip without its building parts: it always builds requirements given by address."""


_VENV = """\
import ensurepip, glob, os, sys, sysconfig, venv, zipfile

folder = sys.argv[1]
places = os.path.join(os.path.dirname(ensurepip.__file__), "_bundled"), sysconfig.get_config_var("WHEEL_PKG_DIR")
found = [name for place in filter(None, places) for name in glob.glob(f"{place}/pip-{ensurepip.version()}-*.whl")]
venv.EnvBuilder(symlinks=True, with_pip=not found).create(folder)
if found:
    site = sysconfig.get_path("purelib", "posix_prefix", {"base": folder})
    zipfile.ZipFile(found[0]).extractall(site)
"""  # noqa: E501 - it is a program
"""venv with Python's bundled pip unpacked: pip takes seconds to install itself."""


def run_pip(python: str, command: str, *words: str, cwd: Path, sees: Iterable[Path] = ()) -> str:
    """Run `pip install` or `pip download` in an environment below `cwd`."""
    return _run([python, "-I", "-c", _PIP, command, *_WHEELS, *words], cwd, (Path(python), *sees))


def run_uv(*words: str, cwd: Path, sees: Iterable[Path] = ()) -> str:
    """Run torchyard's uv."""
    return _run([own_program("uv"), *words], cwd, sees)


def uv_install(python: str, *words: str, cwd: Path, sees: Iterable[Path] = ()) -> str:
    """Install into an environment below `cwd`."""
    return run_uv("pip", "install", "-q", "--python", python, *_WHEELS, *words, cwd=cwd, sees=sees)


def make_venv(python: str, folder: Path) -> None:
    """Make an environment with pip."""
    _run([python, "-I", "-c", _VENV, str(folder)], folder.parent, [Path(python)])


def _run(argv: Sequence[str], cwd: Path, sees: Iterable[Path]) -> str:
    given = installer_variables()
    texts = (*argv, *(text for name, text in given.items() if name != "PATH"))
    named = [path for _, path in (*local_paths(texts), *installer_files())]
    caches = {
        variable: installer_cache(name, given.get(variable)) for variable, name in _CACHES.items()
    }
    linked = [folder for path in named for folder in linked_folders(path)]
    readable = {part for path in (*sees, *named, *linked) for part in _parts_of(path)}
    with TemporaryDirectory(prefix=".", dir=cwd) as scratch:  # in a sandbox, /tmp is memory
        env = given | _OWN | {"HOME": str(Path.home()), "TMPDIR": scratch}
        env |= {name: str(path or scratch) for name, path in caches.items()}
        words = confined(
            argv,
            cwd=cwd,
            writable=[path for path in caches.values() if path is not None],
            readable=readable,
            network=True,
        )
        try:
            return capture(words, cwd=cwd, env=env)
        except HostError as error:
            shown = " ".join(argv).replace(f"-c {_PIP}", "-m pip")
            msg = str(error).replace(" ".join(words), shown)
            if says_full(msg):
                hint = "free some space, or set TMPDIR to a directory on another disk"
                raise ElsewhereError(msg, hint=hint, reason="disk") from error
            cause = None if network_settings().is_offline else explain_fetch(msg)
            raise cause or HostError(msg) from error


def channel_folders(indexes: Iterable[str]) -> Iterator[Path]:
    """Yield the channel directories of local indexes, which are their subdirectories."""
    for index in indexes:
        parts = urlsplit(index)
        if parts.scheme == "file":
            yield Path(unquote(parts.path)).parent


def _parts_of(path: Path) -> Iterator[Path]:
    """Yield a file or directory; for an interpreter, its directories."""
    if path in (Path.home(), Path("/")):
        return
    yield path
    real = Path(os.path.realpath(path))
    if real.parent.name == "bin":
        yield from (real.parent.parent / name for name in ("bin", "lib", "lib64", "include"))


def refuse_direct_references(wheel: Path) -> None:
    """Refuse a wheel with a requirement by address, which may be no wheel."""
    about = read_about(wheel)
    if about.metadata is None:
        msg = f"`{wheel.name}` has no metadata that can be read {about.fault}".rstrip()
        raise CheckError(msg, hint="`torchyard check` reports what is wrong with it")
    fields = BytesHeaderParser().parsebytes(about.metadata)
    for text in fields.get_all("Requires-Dist", ()):
        line = " ".join(str(text).split())
        try:
            requirement = parse_requirement(line)
        except InvalidRequirement as error:
            msg = f"`{wheel.name}` requires `{line}`, which can't be read"
            raise CheckError(msg, hint="correct its metadata") from error
        if requirement.url is not None:
            msg = f"`{wheel.name}` requires `{line}`: an address, not a package of an index"
            raise CheckError(msg, hint="require a name and a version; nothing was installed")
