"""Tools for steps in a CMake build directory."""

import os
import sys
from pathlib import Path

from torchyard.compute.registry import compute_platforms, platform_for
from torchyard.host.process import replace_process, stream
from torchyard.model.job_spec import JobSpec
from torchyard.terminal.console import say, write
from torchyard.toolchain.build_tree import keep_times, restore_tree
from torchyard.toolchain.cmake import (
    Configured,
    cache_script,
    install_script,
    repoint,
    request_file_api,
)
from torchyard.toolchain.interpreters import query_interpreter
from torchyard.toolchain.ninja import Bound
from torchyard.toolchain.summary import RequestedBuild, check_bindings, check_summary
from torchyard.toolchain.tree_version import check_tree_version


def _exit_unless_done(code: int) -> None:
    """Exit like a failed program, with a shell's exit code if a signal killed it."""
    if code:
        sys.exit(code if code > 0 else 128 - code)


def _relay(line: str) -> None:
    write(f"{line}\n")


def ask_tool(build: Path) -> None:
    """Write CMake File API queries into a build directory."""
    request_file_api(build)


def define_tool(script: Path, *, spec: JobSpec) -> None:
    """Write a CMake script that sets the file's cache entries."""
    script.write_text(cache_script(spec.task.table("cmake")), encoding="utf-8")


def configure_again_tool(build: Path) -> None:
    """Run CMake again in a build directory that the project's backend has configured.

    With a filled cache, PyTorch's CMake code writes other link lines, and the core's must equal
    those of a bindings job.
    """
    argv = ["cmake", str(Configured(build).build)]
    replace_process(argv, cwd=Path.cwd(), env=dict(os.environ))


def check_version_tool(*, spec: JobSpec) -> None:
    """Compare the tree's version with the requested one."""
    check_tree_version(Path.cwd(), os.environ["PYTORCH_BUILD_VERSION"], spec.task.label)


def check_summary_tool(build: Path, *, spec: JobSpec) -> None:
    """Compare a configured build with its cell's requirements."""
    from torchyard.toolchain.blas import root_of  # noqa: PLC0415 - urllib3 is slow

    task = spec.task
    source = platform_for(task.facts["compute"])
    features = source.table().machine.features.values()
    asked = RequestedBuild(
        compute=task.facts["compute"],
        blas=task.facts["variant"],
        blas_root=root_of(task.facts["variant"], os.environ),
        archs=tuple(task.words("archs")),
        cmake=task.table("cmake"),
        env=task.table("env"),
        parts={feature.switch: feature.libraries[0] for feature in features if feature.switch},
    )
    check_summary(Configured(build), asked, source, compute_platforms())


def core_targets_tool(build: Path) -> None:
    """Print the targets that do not depend on Python."""
    _relay(" ".join(Configured(build).core_targets()))


def artifact_tool(build: Path, target: str) -> None:
    """Print the file that a target makes."""
    _relay(str(Configured(build).artifact(target)))


def install_script_tool(build: Path, to: str) -> None:
    """Print a CMake script that installs files that do not depend on Python."""
    write(install_script(Configured(build.resolve()), to))


def restore_tool(tree: Path, to: Path) -> None:
    """Restore the build tree of a core."""
    restore_tree(tree, to)


def repoint_tool(build: Path) -> None:
    """Replace the Python in CMake's cache by the environment's."""
    executable = Path(os.environ["VIRTUAL_ENV"], "bin/python")
    python = query_interpreter(executable)
    argv = repoint(build, str(executable), python.include, python.prefix)
    say("+ " + " ".join(argv))
    _exit_unless_done(stream(argv, _relay))
    check_bindings(Configured(build))


def keep_times_tool(core: Path) -> None:
    """Give files that CMake wrote again, unchanged, the times that they have in the core's tree."""
    kept = keep_times(core, Path.cwd())
    _relay(f"{len(kept)} files were rewritten unchanged, and keep their times")


def bind_tool(build: Path, *, core: Path) -> None:
    """Build the remaining targets, but nothing of the core."""
    _exit_unless_done(Bound(core).build(build, _relay))
