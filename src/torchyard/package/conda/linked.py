"""The requirements of a conda package, from what it is linked with and what it was built with."""

from collections.abc import Iterable
from pathlib import Path

from torchyard.errors import BuildError
from torchyard.model.lock import BUILD, HOST, conda_requests
from torchyard.model.values import Value
from torchyard.package.conda.name import required_name
from torchyard.toolchain.conda_prefix import PREFIXES, RunExports, installed_packages

ENVIRONMENTS = "environments.json"
"""The file of a result that says what its conda environments were."""

_OWN = ("__", "python")
"""What packages require by rules of their own: virtual packages, and the Python's ABI."""


class LinkedPackages(Value, kw_only=True):
    """The requirements of a package, its constraints, and what is remarkable in them."""

    depends: tuple[str, ...] = ()
    constrains: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()


class LibraryOwner(Value, kw_only=True):
    """A package with a library."""

    name: str
    version: str
    exports: RunExports


class Environments(Value, kw_only=True):
    """What conda environments were, for the packages of what was compiled in them.

    `owners` are the packages of libraries by their names, `system` the files of the C library.
    `offered` and `constrains` are the run exports of the packages that the file asks for, `asked`
    those of them in the host.
    """

    owners: dict[str, LibraryOwner]
    system: tuple[str, ...]
    offered: tuple[str, ...]
    constrains: tuple[str, ...]
    asked: tuple[str, ...]

    def trace(self, needed: Iterable[str]) -> LinkedPackages:
        """Return the requirements of a package that needs these libraries.

        As in a feedstock, these are the run exports of the packages asked for. Those of libraries
        that are not linked are left out, and those of packages that are linked, but not asked for,
        are added.
        """
        offered = {required_name(spec): spec for spec in self.offered}
        linked = {self._owner(name).name: name for name in sorted({*needed} - {*self.system})}
        depends, notes = list[str](), list[str]()
        for name, library in linked.items():
            owner = self._owner(library)
            own = (*owner.exports.weak, *owner.exports.strong)
            depends += [offered[name]] if name in offered else own or [f"{name} >={owner.version}"]
            if not {name, *map(required_name, own)} & {*offered, *self.asked}:
                notes.append(f"`{library}` is linked, and `{HOST}` does not ask for {name}")
        owners = {owner.name for owner in self.owners.values()}
        for name, spec in offered.items():
            if name in linked or name.startswith(_OWN) or spec in depends:
                continue
            if name in owners:
                notes.append(f"`{spec}` is left out: nothing is linked with {name}")
            else:
                depends.append(spec)
        return LinkedPackages(
            depends=tuple(dict.fromkeys(depends)), constrains=self.constrains, notes=tuple(notes)
        )

    def _owner(self, library: str) -> LibraryOwner:
        if library not in self.owners:
            msg = f"`{library}` is linked, and in no package of the conda environments"
            raise BuildError(msg, hint="add the package with it to `host` of [toolchain] conda")
        return self.owners[library]


def survey_environments(lock: str, top: Path = Path(PREFIXES)) -> Environments:
    """Return what the environments of a lock are, where they are installed.

    Strong run exports of `build` count, and all of `host`, whose libraries come first.
    """
    build, host = (installed_packages(top / name) for name in (BUILD, HOST))
    asked = conda_requests(lock)
    strong = [package.exports for package in build if package.name in asked[BUILD]]
    every = [package.exports for package in host if package.name in asked[HOST]]
    offered = [spec for exports in (*strong, *every) for spec in exports.strong]
    constrains = [spec for exports in (*strong, *every) for spec in exports.strong_constrains]
    return Environments(
        owners={
            library: LibraryOwner(
                name=package.name, version=package.version, exports=package.exports
            )
            for package in (*build, *host)
            for library in package.libraries
        },
        system=tuple(
            path.rpartition("/")[2]
            for package in build
            for path in package.files
            if "/sysroot/" in path and ".so" in path
        ),
        offered=(*offered, *(spec for exports in every for spec in exports.weak)),
        constrains=(*constrains, *(spec for one in every for spec in one.weak_constrains)),
        asked=asked[HOST],
    )
