"""Collect a core's third-party libraries and their licences while its toolchain is available.

Packages are made later, maybe on another machine, so the libraries are kept with the core.
"""

import shutil
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from torchyard.errors import BuildError
from torchyard.model.matrix import any_match
from torchyard.package.elf.file import read_elf
from torchyard.package.policy import Policy
from torchyard.package.sbom.owner import LICENSES, owner_of

Find = Callable[[str], Path | None]
"""A function that finds a library by its needed name."""


def collect(libraries: Sequence[Path], to: Path, policy: Policy, find: Find) -> list[Path]:
    """Copy the needed and opened libraries that are neither built nor the system's."""
    names = {library.name for library in libraries}
    waiting, collected = list(libraries), dict[str, Path]()
    while waiting:
        user = waiting.pop()
        elf = read_elf(user)
        for name in elf.needed if elf else ():
            if name in names or name in collected or policy.is_outside(name):
                continue
            found = find(name)
            if found is None:
                msg = f"`{user.name}` needs `{name}`, which is neither built nor found"
                hint = "is it installed? The folders of toolchain and compiler were searched"
                raise BuildError(msg, hint=hint)
            to.mkdir(parents=True, exist_ok=True)
            opened = {path.name: path for path in _opened(found, policy)}
            for called, path in {**opened, name: found}.items():
                if called not in collected:
                    collected[called] = Path(shutil.copyfile(path, to / called))
                    waiting.append(collected[called])
                    _keep_licenses(path, to / LICENSES / called)
    return list(collected.values())


def _keep_licenses(library: Path, folder: Path) -> None:
    owner = owner_of(library)
    for path in owner.texts if owner else ():
        folder.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(path, folder / path.name)


def _opened(library: Path, policy: Policy) -> Iterator[Path]:
    """Yield the libraries in the same folder that a library opens by name at run time.

    A file may have several names there; the library opens its soname.
    """
    globs = policy.opened_by(library.name)
    for path in sorted(library.parent.iterdir()) if globs else ():
        elf = read_elf(path) if any_match(path.name, globs) else None
        if elf is not None and elf.soname == path.name:
            yield path
