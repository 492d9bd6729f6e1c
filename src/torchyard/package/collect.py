"""Collecting the libraries of others that a core needs, while the toolchain that has them is there.

Packages are made later, maybe on another machine: what they may carry is kept with the core.
"""

import shutil
from collections.abc import Callable, Sequence
from pathlib import Path

from torchyard.errors import BuildError
from torchyard.package.elf import read_elf
from torchyard.package.policy import Policy

Find = Callable[[str], Path | None]
"""Finds a library by the name that others need it by."""


def collect(libraries: Sequence[Path], to: Path, policy: Policy, find: Find) -> list[Path]:
    """Copy what libraries need that is neither one of them nor the system's, by its name."""
    own = {library.name for library in libraries}
    waiting, collected = list(libraries), dict[str, Path]()
    while waiting:
        user = waiting.pop()
        elf = read_elf(user)
        for name in elf.needed if elf else ():
            if name in own or name in collected or policy.is_outside(name):
                continue
            found = find(name)
            if found is None:
                msg = f"`{user.name}` needs `{name}`, which is neither built nor found"
                hint = "the toolchain's folders and the compiler's were looked at; is it installed?"
                raise BuildError(msg, hint=hint)
            to.mkdir(parents=True, exist_ok=True)
            collected[name] = Path(shutil.copyfile(found, to / name))
            waiting.append(collected[name])
    return list(collected.values())
