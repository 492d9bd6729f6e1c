"""Tools for third-party libraries that a package has to bring."""

import os
from functools import partial
from pathlib import Path

import msgspec

from torchyard.insight.inventory import take_inventory
from torchyard.model.job_spec import JobSpec
from torchyard.model.lock import CONDA
from torchyard.package.assemble.collect import collect
from torchyard.package.conda.linked import survey_environments
from torchyard.package.libtorch.format import LibtorchFormat
from torchyard.package.policy import extension_policy, policy_for
from torchyard.package.wheel.extension import BROUGHT, required_libraries
from torchyard.package.wheel.format import WheelFormat
from torchyard.terminal.console import write
from torchyard.toolchain.compilers import find_library, library_folders


def collect_tool(install: Path, *, spec: JobSpec, to: Path) -> None:
    """Copy the third-party libraries that an installed core needs."""
    policy = policy_for(LibtorchFormat.NAME, spec.task.facts["compute"], "")
    libraries = [path for path in sorted(install.rglob("*")) if path.is_file()]
    for path in collect(libraries, to, policy, _library_finder()):
        write(f"{path.name}\n")


def keep_environments_tool(to: Path, *, spec: JobSpec) -> None:
    """Write what the conda environments of a job are: packages may be made on another machine."""
    for lock in spec.task.table(CONDA).values():
        to.write_bytes(msgspec.json.encode(survey_environments(lock)))


def collect_extension_tool(image: Path, *, to: Path, environment: Path) -> None:
    """Copy the third-party libraries that an extension needs and its requirements lack."""
    libraries = [path for path in sorted(image.rglob("*.so*")) if path.is_file()]
    brought = required_libraries(image, environment)
    to.with_name(BROUGHT).write_text("\n".join(brought), encoding="utf-8")
    policy = extension_policy(WheelFormat.NAME, "", brought)
    for path in collect(libraries, to, policy, _library_finder()):
        write(f"{path.name}\n")


def inventory_tool(
    libraries: Path, *, to: Path, vendor: Path | None = None, links: Path | None = None
) -> None:
    """List what the libraries in a folder are made of, by the build in the working directory."""
    folders = library_folders(os.environ["CC"], os.environ.get("LIBRARY_PATH", ""))
    facts = take_inventory(
        Path.cwd(), libraries, vendor, links, find=_library_finder(), folders=folders
    )
    to.write_bytes(msgspec.json.encode(facts))
    for part in facts.components:
        write(f"{part.kind} {part.name} {part.version} {' '.join(part.files)}\n")


def _library_finder() -> "partial[Path | None]":
    return partial(find_library, os.environ["CC"], os.environ.get("LD_LIBRARY_PATH", ""))
