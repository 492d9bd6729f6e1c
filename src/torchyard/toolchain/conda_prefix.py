"""What is installed in conda environments: packages, their files, and their run exports."""

from contextlib import suppress
from functools import cache
from pathlib import Path

import msgspec

from torchyard.host.untrusted_tree import UntrustedTree
from torchyard.model.values import UNDECODABLE, Value

PREFIXES = "/opt/conda"
"""The directory of both environments in a root."""

_EXPORTS = "run_exports"
"""The directory of run exports in an environment, in a file for each package."""

_IN_PACKAGE = "info/run_exports.json"


class RunExports(Value, kw_only=True):
    """The run exports of a package: requirements of packages that are built with it."""

    weak: tuple[str, ...] = ()
    strong: tuple[str, ...] = ()
    weak_constrains: tuple[str, ...] = ()
    strong_constrains: tuple[str, ...] = ()


class _Record(msgspec.Struct):
    """The needed fields of an environment's record of a package."""

    name: str
    version: str
    files: tuple[str, ...] = ()
    link: dict[str, str | int] = {}


class InstalledPackage(Value, kw_only=True):
    """A package of an environment."""

    name: str
    version: str
    files: tuple[str, ...]
    exports: RunExports = RunExports()

    @property
    def libraries(self) -> list[str]:
        """The names of the shared libraries that programs of the environment find."""
        paths = (path.rpartition("/") for path in self.files)
        return [name for folder, _, name in paths if folder == "lib" and ".so" in name]


@cache
def installed_packages(prefix: Path) -> tuple[InstalledPackage, ...]:
    """Return the packages of an environment in a root, sorted by name."""
    packages = (
        InstalledPackage(
            name=record.name,
            version=record.version,
            files=record.files,
            exports=msgspec.json.decode(_kept(prefix, record).read_bytes(), type=RunExports),
        )
        for record in _records(prefix)
    )
    return tuple(sorted(packages, key=lambda package: package.name))


def keep_run_exports(prefix: Path) -> None:
    """Copy the run exports of packages into their environment; indexes need not have them."""
    (prefix / _EXPORTS).mkdir(parents=True)
    for record in _records(prefix):
        with UntrustedTree(Path(str(record.link["source"]))) as package:
            if not package.has(_IN_PACKAGE):
                _kept(prefix, record).write_bytes(b"{}")
                continue
            with package.open_file(_IN_PACKAGE) as file:
                _kept(prefix, record).write_bytes(file.read())


def _kept(prefix: Path, record: _Record) -> Path:
    return prefix / _EXPORTS / f"{record.name}.json"


def _records(prefix: Path) -> list[_Record]:
    """Return the records of an environment; packages could bring others, which lead elsewhere."""
    found = []
    for path in sorted((prefix / "conda-meta").glob("*.json")):
        with suppress(*UNDECODABLE):
            record = msgspec.json.decode(path.read_bytes(), type=_Record)
            if path.name.startswith(f"{record.name}-{record.version}-") and "/" not in record.name:
                found.append(record)
    return found
