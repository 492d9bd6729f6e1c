"""The toolchain of a cell in a directory of this machine, for shells outside of jobs.

toolchain/IDENTITY/             a part that was installed; all environments share it
PLATFORM/BLOCK/PYTHON/          the environment of a cell
env/                          its Python environment, with the build requirements and pip
tools/                        ninja, and the compilers by their plain names
activate.bash …               to source
environment.json              what it consists of
"""

from collections.abc import Callable, Sequence
from pathlib import Path

import msgspec

from torchyard.errors import ConfigError
from torchyard.features.env.report import EnvReport
from torchyard.host.files import absolute
from torchyard.host.locks import locked, remove_folder, replace_bytes, report_full_disk
from torchyard.host.own_files import make_own_directory
from torchyard.model.job_spec import JobSpec
from torchyard.model.toolchain import Toolchain
from torchyard.model.values import UNDECODABLE
from torchyard.run.environment import bring_ninja, cell_variables
from torchyard.run.provision import provide_toolchain
from torchyard.toolchain.activation import (
    CellEnvironment,
    EnvironmentPart,
    write_scripts,
)
from torchyard.toolchain.cmake import cache_script
from torchyard.toolchain.compilers import link_compilers
from torchyard.toolchain.digests import DIGESTS, Digests
from torchyard.toolchain.provision import ENV, ToolchainLayout
from torchyard.toolchain.pypi import pinned_pip
from torchyard.toolchain.variables import entries_variables
from torchyard.workspace.cell_job import find_cell_job
from torchyard.workspace.locations import home_directory
from torchyard.workspace.progress import ignore_line

_HOME = "env"
"""The directory of environments, beside the store."""

_SHARED = "toolchain"
_RECORD = "environment.json"
_ENTRIES = "entries.cmake"
_CELL = "TORCHYARD_CELL"
"""The variable with the cell whose environment is active."""


def lay_out_environment(
    file: str = "torchyard.toml",
    words: Sequence[str] = (),
    *,
    changes: Sequence[str] = (),
    install: str | None = None,
    on_line: Callable[[str], object] = ignore_line,
) -> EnvReport:
    """Install the toolchain of a cell for shells, unless it is installed.

    Args:
        file: The configuration.
        words: Words of a selector of a single Python of a block.
        changes: Changes to the file, each as `KEY=VALUE`.
        install: Directory of environments, instead of the one beside the store.
        on_line: Called with progress.
    """
    spec, config = find_cell_job(file, words, changes)
    toolchain = config.toolchain or Toolchain()
    if toolchain.has_own_system:
        where = f"the root {toolchain.root}" if toolchain.root else "conda environments"
        msg = f"{spec.task.cell} is compiled in {where}"
        hint = f"`torchyard shell {spec.task.id}` opens a shell in it, with its toolchain"
        raise ConfigError(msg, hint=hint)
    home = Path(absolute(install)) if install else Path(home_directory(file), _HOME)
    folder = home / spec.task.scope
    with report_full_disk(home):
        make_own_directory(home)
    with report_full_disk(home), locked(home / "lock", wait=True):
        if not (folder / _RECORD).exists():
            on_line(f"lays out {spec.task.cell} in {folder}")
        layout = ToolchainLayout(folder, str(folder), home / _SHARED)
        made = equip_folder(spec, layout, Digests(home / DIGESTS))
        _remove_unused(home)
    return EnvReport.of(made)


def equip_folder(spec: JobSpec, layout: ToolchainLayout, digests: Digests) -> CellEnvironment:
    """Install the toolchain of a job into a folder, with scripts to source."""
    folder, core = layout.folder, spec.compiled
    folder.mkdir(parents=True, exist_ok=True)
    tools = provide_toolchain(spec, layout, digests, also=pinned_pip(core.words("requires")))
    if entries := core.table("cmake"):
        replace_bytes(folder / _ENTRIES, cache_script(entries).encode())
        tools |= entries_variables(str(folder / _ENTRIES)) | core.table("env")
    bring_ninja(folder / "tools")
    identities = core.table("identity")
    link_compilers(identities["compiler"].split()[0], tools, folder / "tools")
    variables = cell_variables(spec.task, tools, str(folder / "tools"))
    made = CellEnvironment(
        cell=spec.task.cell,
        folder=str(folder),
        parts=tuple(_parts(spec, layout, variables)),
        variables=variables | {_CELL: spec.task.cell},
    )
    write_scripts(made)
    replace_bytes(folder / _RECORD, msgspec.json.encode(made))
    return made


def _parts(
    spec: JobSpec, layout: ToolchainLayout, variables: dict[str, str]
) -> list[EnvironmentPart]:
    """Return the parts of the environment with their paths."""
    paths = {"compiler": variables["CC"], "python": str(layout.folder / ENV)}
    identities = spec.compiled.table("identity") | {"python": spec.task.facts["python"]}
    found = []
    for name, identity in identities.items():
        installed = layout.path_of(name, identity)
        path = paths.get(name) or (str(installed) if installed.is_dir() else "")
        found.append(EnvironmentPart(part=name, identity=identity, path=path))
    return found


def _remove_unused(home: Path) -> None:
    """Remove parts that no environment uses; none if a record is unreadable."""
    used = set()
    for record in home.glob(f"*/*/*/{_RECORD}"):
        try:
            made = msgspec.json.decode(record.read_bytes(), type=CellEnvironment)
        except UNDECODABLE:
            return
        used |= {Path(part.path).name for part in made.parts}
    shared = home / _SHARED
    for folder in sorted(shared.iterdir()) if shared.is_dir() else ():
        if folder.name not in used:
            remove_folder(folder)
