"""Lock the conda environments of a file, each in a file of its own."""

from collections.abc import Callable
from pathlib import Path

from torchyard.config.lock import conda_lock_folder
from torchyard.errors import HostError
from torchyard.host.files import absolute, write_text
from torchyard.model.config import Config
from torchyard.model.identifier import ANY_PYTHON
from torchyard.model.lock import BUILD, CORE_LOCK, conda_head, conda_locks, conda_packages
from torchyard.model.matrix import values_of
from torchyard.model.toolchain import CondaToolchain
from torchyard.model.version import version_numbers
from torchyard.toolchain.conda_lock import solve_environments


def lock_conda(
    conda: CondaToolchain, config: Config, file: str, say: Callable[[str], object], *, upgrade: bool
) -> dict[str, str]:
    """Write the conda locks of a file, and return them; those that still fit are kept.

    Cores are compiled with the newest Python of the matrix, which their result does not depend on.
    Bindings get the packages of their core, as far as their Python allows it.
    """
    pythons = [tag for tag in values_of(config.matrix, "python") if tag != ANY_PYTHON]
    newest = max(pythons, key=lambda tag: (not tag.endswith("t"), version_numbers(tag[2:])))
    folder, base = Path(conda_lock_folder(file)), Path(absolute(file)).parent
    made: dict[str, str] = {}
    for name in conda_locks(config.matrix):
        platform, _, tag = name.partition("/")
        known = "" if upgrade else config.lock.conda.get(name, "")
        like = made.get(f"{platform}/{CORE_LOCK}", "")
        if known.startswith(conda_head(conda)) and _is_like(known, like):
            made[name] = known
            continue
        row, tag = config.tables.platforms[platform], newest if tag == CORE_LOCK else tag
        made[name] = solve_environments(conda, row, tag, base, like=like)
        if not _is_like(made[name], like):
            msg = f"the programs for {name} would be others than those of its core"
            raise HostError(msg, hint="run `torchyard lock --upgrade`")
        path = folder / f"{name}.lock"
        path.parent.mkdir(parents=True, exist_ok=True)
        write_text(str(path), made[name], replace=True)
        say(f"{name}: {sum(map(len, conda_packages(made[name]).values()))} packages")
    return made


def _is_like(lock: str, core: str) -> bool:
    """Return whether a lock has the compilers of its core's."""
    return not core or conda_packages(lock).get(BUILD) == conda_packages(core).get(BUILD)
