"""What steps do to make packages, and what is in them."""

import os
from functools import partial
from pathlib import Path

from torchyard.errors import BuildError
from torchyard.host.process import replace_process
from torchyard.model.job_spec import JobSpec
from torchyard.package.assemble.collect import collect
from torchyard.package.libtorch.format import LibtorchFormat
from torchyard.package.policy import extension_policy, policy_for
from torchyard.package.wheel.extension import BROUGHT, required_libraries
from torchyard.package.wheel.format import WheelFormat
from torchyard.package.wheel.glibc_promise import check_glibc
from torchyard.package.wheel.name import SUFFIX
from torchyard.package.zip.unpack import unpack_zip
from torchyard.recipes.packing import pack
from torchyard.terminal.console import write
from torchyard.toolchain.compiled_code import check_compiled
from torchyard.toolchain.compilers import find_library
from torchyard.toolchain.downloads import offer_downloads
from torchyard.toolchain.ninja import Bound
from torchyard.toolchain.python_project import PYPROJECT, build_wheel_program, read_build_system
from torchyard.toolchain.wheel_libraries import compiler_variables


def collect_tool(install: Path, *, spec: JobSpec, to: Path) -> None:
    """Copy the third-party libraries that an installed core needs."""
    policy = policy_for(LibtorchFormat.NAME, spec.task.facts["compute"], "")
    libraries = [path for path in sorted(install.rglob("*")) if path.is_file()]
    for path in collect(libraries, to, policy, _library_finder()):
        write(f"{path.name}\n")


def collect_extension_tool(image: Path, *, to: Path, environment: Path) -> None:
    """Copy the third-party libraries that an extension needs, and its requirements do not bring."""
    libraries = [path for path in sorted(image.rglob("*.so*")) if path.is_file()]
    brought = required_libraries(image, environment)
    to.with_name(BROUGHT).write_text("\n".join(brought), encoding="utf-8")
    policy = extension_policy(WheelFormat.NAME, "", brought)
    for path in collect(libraries, to, policy, _library_finder()):
        write(f"{path.name}\n")


def _library_finder() -> "partial[Path | None]":
    return partial(find_library, os.environ["CC"], os.environ.get("LD_LIBRARY_PATH", ""))


def project_wheel_tool(
    *, python: Path, to: Path, source: Path, libraries: str | None = None
) -> None:
    """Make a wheel of the project in the working directory, with its own backend."""
    env = os.environ | offer_downloads(source, Path.cwd())
    if libraries is not None:
        found = compiler_variables(python.parents[1], libraries, to.with_name("libraries"))
        env |= {key: f"{env[key]}:{value}" if key in env else value for key, value in found.items()}
    file = Path(PYPROJECT)
    text = file.read_text(encoding="utf-8", errors="replace") if file.is_file() else None
    argv = [str(python), "-c", build_wheel_program(read_build_system(text), str(to))]
    replace_process(argv, cwd=Path.cwd(), env=env)


def check_glibc_tool(glibc: str, folders: tuple[Path, ...]) -> None:
    """Compare what libraries need of the system with what was promised."""
    check_glibc(glibc, folders, Path.cwd())


def unpack_tool(folder: Path, *, to: Path, core: Path | None = None) -> None:
    """Unpack the wheel in a directory, unless a part of a core was built again for it."""
    if core is not None:
        Bound(core).check(Path("build"))
    wheels = list(folder.glob(f"*{SUFFIX}"))
    if len(wheels) != 1:
        msg = f"the project's backend made {len(wheels)} wheels, and should make one"
        raise BuildError(msg, hint="look further up in the log for what it did")
    unpack_zip(wheels[0], to)
    if core is None:
        check_compiled(to, Path.cwd())


def pack_tool(*, spec: Path, inputs: Path, scratch: Path, to: Path) -> None:
    """Make a package from what was built."""
    for path in pack(spec, inputs, scratch, to):
        write(f"{path.name}\n")
