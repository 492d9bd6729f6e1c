"""Tools for a project's wheel and compiled files."""

import os
from pathlib import Path

from torchyard.errors import BuildError
from torchyard.host.process import replace_process
from torchyard.insight.static_links import LINKS
from torchyard.package.assemble.project import keep_project
from torchyard.package.wheel.glibc_promise import check_glibc
from torchyard.package.wheel.name import SUFFIX
from torchyard.package.zip.unpack import unpack_zip
from torchyard.terminal.console import write
from torchyard.toolchain.compiled_code import check_compiled
from torchyard.toolchain.downloads import offer_downloads
from torchyard.toolchain.ninja import Bound
from torchyard.toolchain.python_project import PYPROJECT, build_wheel_program, read_build_system
from torchyard.toolchain.wheel_libraries import compiler_variables


def project_wheel_tool(
    *, python: Path, to: Path, source: Path, libraries: str | None = None
) -> None:
    """Make a wheel of the project in the working directory with its backend."""
    env = os.environ | offer_downloads(source, Path.cwd())
    if libraries is not None:
        found = compiler_variables(python.parents[1], libraries, to.with_name("libraries"))
        env |= {key: f"{env[key]}:{value}" if key in env else value for key, value in found.items()}
    file = Path(PYPROJECT)
    text = file.read_text(encoding="utf-8", errors="replace") if file.is_file() else None
    links = to.with_name(LINKS)
    links.unlink(missing_ok=True)
    program = build_wheel_program(read_build_system(text), str(to), str(links))
    argv = [str(python), "-c", program]
    replace_process(argv, cwd=Path.cwd(), env=env)


def keep_project_tool(*, to: Path) -> None:
    """Keep what packages take from the source: its licences, its description and its tests."""
    for path in keep_project(Path(), to):
        write(f"{path}\n")


def unpack_tool(folder: Path, *, to: Path, core: Path | None = None) -> None:
    """Unpack the wheel in a directory; fail if a part of the core was rebuilt for it."""
    if core is not None:
        Bound(core).check(Path("build"))
    wheels = list(folder.glob(f"*{SUFFIX}"))
    if len(wheels) != 1:
        msg = f"the project's backend made {len(wheels)} wheels, and should make one"
        raise BuildError(msg, hint="look further up in the log for the cause")
    unpack_zip(wheels[0], to)
    if core is None:
        check_compiled(to, Path.cwd())


def check_glibc_tool(glibc: str, folders: tuple[Path, ...]) -> None:
    """Compare the system symbols that libraries need with the promised ones."""
    check_glibc(glibc, folders, Path.cwd())
