"""`torchyard tool`: the internal commands that steps of recipes run in a job's directory."""

import os
import sys
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, NoReturn

import click
import msgspec

from torchyard.cli.lazy_group import LazyGroup
from torchyard.errors import BuildError
from torchyard.model.job_spec import JobSpec

if TYPE_CHECKING:
    from torchyard.checks.smoke.package_under_test import PackageUnderTest
    from torchyard.model.job_spec import Task


@click.group("tool", cls=LazyGroup, hidden=True)
def command() -> None:
    """Internal commands of recipes' steps."""


def _spec(path: str) -> JobSpec:
    return msgspec.json.decode(Path(path).read_bytes(), type=JobSpec)


def _exit_as(code: int) -> NoReturn:
    """Exit as a program did; if a signal killed it, with the exit code that a shell gives."""
    sys.exit(code if code >= 0 else 128 - code)


@command.command("survey")
@click.argument("request")
def survey_command(request: str) -> None:
    """Print the identities of a toolchain, in a root, as JSON."""
    from torchyard.compute.registry import platform_for
    from torchyard.config.tables import load_tables
    from torchyard.terminal.console import write
    from torchyard.toolchain.identity import SurveyRequest, identify
    from torchyard.toolchain.root import answer_with

    asked = msgspec.json.decode(request, type=SurveyRequest)
    find = partial(
        identify,
        asked.toolchain,
        computes={name: platform_for(name) for name in asked.computes},
        variants=asked.variants,
        tables=load_tables(),
    )
    write(answer_with(lambda: find().parts))


@command.command("equip")
@click.argument("name")
def equip_command(name: str) -> None:
    """Install a job's toolchain, in a root, and print its variables as JSON."""
    from torchyard.run.provision import equip_in_root
    from torchyard.terminal.console import write
    from torchyard.toolchain.root import answer_with

    write(answer_with(partial(equip_in_root, name)))


@command.command("doctor")
@click.argument("request")
def doctor_command(request: str) -> None:
    """Inspect a root for a build, in the root, and print what is found as JSON."""
    from torchyard.engines.admission import examine_in_root
    from torchyard.terminal.console import write
    from torchyard.toolchain.root import answer_with

    write(answer_with(partial(examine_in_root, request)))


@command.command("ask")
@click.argument("build")
def ask_command(build: str) -> None:
    """Write CMake File API queries into a build directory."""
    from torchyard.toolchain.cmake import request_file_api

    request_file_api(Path(build))


@command.command("define")
@click.option("--spec", required=True)
@click.argument("script")
def define_command(spec: str, script: str) -> None:
    """Write a CMake script that sets the cache entries that the file gives."""
    from torchyard.toolchain.cmake import cache_script

    Path(script).write_text(cache_script(_spec(spec).task.table("cmake")), encoding="utf-8")


@command.command("configure-again")
@click.argument("build")
def configure_again_command(build: str) -> None:
    """Run CMake a second time in a build directory that the project's backend has configured.

    With what the first time left in the cache, PyTorch's CMake code gives other link lines, and
    those of the core must be those that a bindings job gets.
    """
    from torchyard.host.process import replace_process
    from torchyard.toolchain.cmake import Configured

    argv = ["cmake", str(Configured(Path(build)).build)]
    replace_process(argv, cwd=Path.cwd(), env=dict(os.environ))


@command.command("check-version")
@click.option("--spec", required=True)
def check_version_command(spec: str) -> None:
    """Compare the version that the tree gives itself with the one that was asked for."""
    from torchyard.toolchain.tree_version import check_tree_version

    check_tree_version(Path.cwd(), os.environ["PYTORCH_BUILD_VERSION"], _spec(spec).task.label)


@command.command("check-summary")
@click.option("--spec", required=True)
@click.argument("build")
def check_summary_command(spec: str, build: str) -> None:
    """Compare a configured build with what its cell requires."""
    from torchyard.compute.registry import compute_platforms, platform_for
    from torchyard.toolchain.blas import root_of
    from torchyard.toolchain.cmake import Configured
    from torchyard.toolchain.summary import Asked, check_summary

    task = _spec(spec).task
    source = platform_for(task.facts["compute"])
    features = source.table().machine.features.values()
    asked = Asked(
        compute=task.facts["compute"],
        blas=task.facts["variant"],
        blas_root=root_of(task.facts["variant"], os.environ),
        archs=tuple(task.words("archs")),
        cmake=task.table("cmake"),
        env=task.table("env"),
        parts={one.switch: one.libraries[0] for one in features if one.switch},
    )
    check_summary(Configured(Path(build)), asked, source, compute_platforms())


@command.command("core-targets")
@click.argument("build")
def core_targets_command(build: str) -> None:
    """Print the targets that do not depend on Python."""
    from torchyard.toolchain.cmake import Configured

    click.echo(" ".join(Configured(Path(build)).core_targets()))


@command.command("artifact")
@click.argument("build")
@click.argument("target")
def artifact_command(build: str, target: str) -> None:
    """Print the file that a target makes."""
    from torchyard.toolchain.cmake import Configured

    click.echo(Configured(Path(build)).artifact(target))


@command.command("install-script")
@click.argument("build")
@click.argument("to")
def install_script_command(build: str, to: str) -> None:
    """Print a CMake script that installs what does not depend on Python."""
    from torchyard.toolchain.cmake import Configured, install_script

    click.echo(install_script(Configured(Path(build).resolve()), to), nl=False)


@command.command("collect")
@click.option("--spec", required=True)
@click.option("--to", required=True)
@click.argument("install")
def collect_command(spec: str, to: str, install: str) -> None:
    """Copy the third-party libraries that an installed core needs."""
    from torchyard.package.assemble.collect import collect
    from torchyard.package.libtorch.format import LibtorchFormat
    from torchyard.package.policy import policy_for
    from torchyard.toolchain.compilers import find_library

    policy = policy_for(LibtorchFormat.NAME, _spec(spec).task.facts["compute"], "")
    libraries = [path for path in sorted(Path(install).rglob("*")) if path.is_file()]
    find = partial(find_library, os.environ["CC"], os.environ.get("LD_LIBRARY_PATH", ""))
    for path in collect(libraries, Path(to), policy, find):
        click.echo(path.name)


@command.command("restore")
@click.argument("tree")
@click.argument("to")
def restore_command(tree: str, to: str) -> None:
    """Restore the build tree of a core."""
    from torchyard.toolchain.build_tree import restore_tree

    restore_tree(Path(tree), Path(to))


@command.command("repoint")
@click.option("--core")
@click.argument("build")
def repoint_command(core: str | None, build: str) -> None:
    """Replace the Python in CMake's cache by the environment's.

    Files that are written again as they are in the tree of a core keep their times.
    """
    from torchyard.host.process import stream
    from torchyard.toolchain.build_tree import keep_times
    from torchyard.toolchain.cmake import Configured, repoint
    from torchyard.toolchain.interpreters import query_interpreter
    from torchyard.toolchain.summary import check_bindings

    executable = Path(os.environ["VIRTUAL_ENV"], "bin/python")
    python = query_interpreter(executable)
    argv = repoint(Path(build), str(executable), python.include, python.prefix)
    click.echo("+ " + " ".join(argv), err=True)
    if code := stream(argv, click.echo):
        _exit_as(code)
    check_bindings(Configured(Path(build)))
    if core is None:
        return
    kept = keep_times(Path(core), Path.cwd())
    click.echo(f"{len(kept)} files were written again as they were, and keep their times")


@command.command("bind")
@click.option("--core", required=True)
@click.argument("build")
def bind_command(core: str, build: str) -> None:
    """Build the remaining targets, and nothing of the core."""
    from torchyard.toolchain.ninja import Bound

    _exit_as(Bound(Path(core)).build(Path(build), click.echo))


@command.command("project-wheel")
@click.option("--python", required=True)
@click.option("--to", required=True)
@click.option("--source", required=True)
@click.option("--libraries")
def project_wheel_command(python: str, to: str, source: str, libraries: str | None) -> None:
    """Make a wheel of the project in the working directory, with its own backend."""
    from torchyard.host.process import replace_process
    from torchyard.run.downloads import offer_downloads
    from torchyard.toolchain.python_project import (
        PYPROJECT,
        build_wheel_program,
        read_build_system,
    )
    from torchyard.toolchain.wheel_libraries import compiler_variables

    env = os.environ | offer_downloads(Path(source), Path.cwd())
    if libraries is not None:
        links = Path(to).with_name("libraries")
        found = compiler_variables(Path(python).parents[1], libraries, links)
        env |= {key: f"{env[key]}:{value}" if key in env else value for key, value in found.items()}
    file = Path(PYPROJECT)
    said = file.read_text(encoding="utf-8", errors="replace") if file.is_file() else None
    system = read_build_system(said)
    argv = [python, "-c", build_wheel_program(system, to)]
    replace_process(argv, cwd=Path.cwd(), env=env)


@command.command("collect-extension")
@click.option("--to", required=True)
@click.option("--environment", required=True)
@click.argument("image")
def collect_extension_command(to: str, environment: str, image: str) -> None:
    """Copy the third-party libraries that an extension needs, and its requirements do not bring."""
    from torchyard.package.assemble.collect import collect
    from torchyard.package.policy import extension_policy
    from torchyard.package.wheel.extension import BROUGHT, required_libraries
    from torchyard.package.wheel.format import WheelFormat
    from torchyard.toolchain.compilers import find_library

    libraries = [path for path in sorted(Path(image).rglob("*.so*")) if path.is_file()]
    find = partial(find_library, os.environ["CC"], os.environ.get("LD_LIBRARY_PATH", ""))
    brought = required_libraries(Path(image), Path(environment))
    Path(to).with_name(BROUGHT).write_text("\n".join(brought), encoding="utf-8")
    for path in collect(libraries, Path(to), extension_policy(WheelFormat.NAME, "", brought), find):
        click.echo(path.name)


@command.command("check-glibc")
@click.argument("glibc")
@click.argument("folders", nargs=-1)
def check_glibc_command(glibc: str, folders: tuple[str, ...]) -> None:
    """Compare what libraries need of the system with what was promised."""
    from torchyard.package.wheel.glibc_promise import check_glibc

    check_glibc(glibc, map(Path, folders), Path.cwd())


@command.command("unpack")
@click.option("--core")
@click.option("--to", required=True)
@click.argument("folder")
def unpack_command(core: str | None, to: str, folder: str) -> None:
    """Unpack the wheel in a directory, unless a part of a core was built again for it."""
    from torchyard.package.wheel.name import SUFFIX
    from torchyard.package.zip.unpack import unpack_zip
    from torchyard.toolchain.compiled_code import check_compiled
    from torchyard.toolchain.ninja import Bound

    if core is not None:
        Bound(Path(core)).check(Path("build"))
    wheels = list(Path(folder).glob(f"*{SUFFIX}"))
    if len(wheels) != 1:
        msg = f"the project's backend made {len(wheels)} wheels, and should make one"
        raise BuildError(msg, hint="look further up in the log for what it did")
    unpack_zip(wheels[0], Path(to))
    if core is None:
        check_compiled(Path(to), Path.cwd())


@command.command("pack")
@click.option("--spec", required=True)
@click.option("--inputs", required=True)
@click.option("--scratch", required=True)
@click.option("--to", required=True)
def pack_command(spec: str, inputs: str, scratch: str, to: str) -> None:
    """Make a package from what was built."""
    from torchyard.recipes.packing import pack

    for path in pack(Path(spec), Path(inputs), Path(scratch), Path(to)):
        click.echo(path.name)


def lay_out_files(files: Mapping[str, str], folder: Path) -> Path:
    """Write files that a job spec contains, and return their directory; none is outside of it."""
    from torchyard.host.untrusted_tree import UntrustedTree

    folder.mkdir(parents=True, exist_ok=True)
    with UntrustedTree(folder) as tree:
        for name, text in files.items():
            if above := name.rpartition("/")[0]:
                tree.make_directory(above)
            with tree.create_file(name) as file:
                file.write(text.encode())
    return folder


@command.command("check")
@click.option("--spec", required=True)
@click.option("--to", required=True)
@click.argument("folder")
def check_command(spec: str, to: str, folder: str) -> None:
    """Check the package of a job, and write two reports: for machines, and for people."""
    from torchyard.app.check import check_packages, refuse_errors
    from torchyard.package.delivered import delivered_packages
    from torchyard.reports.check.text import check_report
    from torchyard.terminal.console import show
    from torchyard.terminal.json_output import encode

    job = _spec(spec)
    task = job.task
    policy = task.text("policy")
    for name in task.table("policy"):
        policy = str(lay_out_files(task.table("policy"), Path("policy").absolute()) / name)
    packages = delivered_packages(Path(folder))
    document = check_packages(packages, policy=policy, html=Path(to, "check.html"), spec=job)
    Path(to, "check.json").write_bytes(encode(document))
    show(check_report(document))
    refuse_errors(document)


@command.command("smoke")
@click.option("--spec", required=True)
@click.option("--inputs", required=True)
@click.option("--channel", "channels", multiple=True)
@click.option("--to", required=True)
@click.argument("folder")
def smoke_command(spec: str, inputs: str, channels: tuple[str, ...], to: str, folder: str) -> None:
    """Test the package of a job, and write a report; companion conda packages are made first."""
    from torchyard.checks.smoke.package_under_test import read_package_under_test
    from torchyard.package.delivered import delivered_packages
    from torchyard.recipes.packing import pack_beside

    beside = pack_beside(
        Path(spec), Path(inputs), Path("packing").absolute(), Path("beside").absolute()
    )
    delivered = delivered_packages(Path(folder))
    _try_out(
        _spec(spec).task,
        channels,
        [read_package_under_test(path) for path in delivered],
        to,
        [read_package_under_test(path) for path in beside],
    )


@command.command("visit")
@click.option("--spec", required=True)
@click.option("--channel", "channels", multiple=True)
@click.option("--to", required=True)
def visit_command(spec: str, channels: tuple[str, ...], to: str) -> None:
    """Test a published package, installed from its public address, and write a report."""
    from torchyard.checks.smoke.package_under_test import PackageUnderTest
    from torchyard.recipes.proof import PUBLISHED

    task = _spec(spec).task
    _try_out(task, channels, [msgspec.convert(task.table(PUBLISHED), PackageUnderTest)], to)


def _try_out(
    task: "Task",
    channels: tuple[str, ...],
    packages_under_test: Sequence["PackageUnderTest"],
    to: str,
    beside: Sequence["PackageUnderTest"] = (),
) -> None:
    """Test packages with the settings of a job, and write a report."""
    from torchyard.app.smoke import refuse_failures, smoke_all, smoke_request
    from torchyard.host.signals import exit_on_sigterm
    from torchyard.reports.smoke.text import smoke_report
    from torchyard.terminal.console import say, show
    from torchyard.terminal.json_output import encode

    given = task.table("tests")  # all in one folder, whose name is part of theirs
    tests = lay_out_files(given, Path("tests")) / min(given).partition("/")[0] if given else None
    request = smoke_request(
        level=task.text("level"), tests=tests, channels=channels, indexes=task.words("indexes")
    )
    exit_on_sigterm()
    with TemporaryDirectory(prefix="torchyard-smoke-") as scratch:
        folder = Path(scratch)
        document = smoke_all(packages_under_test, request, beside, folder=folder, on_line=say)
        say("removing the environments")
    Path(to, "smoke.json").write_bytes(encode(document))
    show(smoke_report(document))
    refuse_failures(document, every=True)


@command.command("publish")
@click.option("--spec", required=True)
@click.option("--url", required=True)
@click.option("--to", required=True)
@click.argument("inputs")
def publish_command(spec: str, url: str, to: str, inputs: str) -> None:
    """Publish the packages of a plan, all of which are inputs, and write a report."""
    from torchyard.app.publish import PublishRequest, publish_request
    from torchyard.checks.policies import load_policy, parse_policy
    from torchyard.config.credentials import take_credentials
    from torchyard.model.config import SandboxDemand, SmokeDemand
    from torchyard.publish.gates import Demands
    from torchyard.publish.plan_results import PlanResults
    from torchyard.recipes.publishing import PUBLISHED
    from torchyard.reports.publish.text import publish_report
    from torchyard.terminal.console import show
    from torchyard.terminal.json_output import encode
    from torchyard.terminal.progress import ProgressLine

    take_credentials()
    task = _spec(spec).task
    policies = [parse_policy(name, text) for name, text in task.table("policy").items()]
    request = PublishRequest(
        url=url,
        paths=(),
        results=PlanResults(Path(inputs), task.label),
        policy=policies[0] if policies else load_policy(task.text("policy")),
        demands=Demands(
            external=tuple(task.words("external")),
            upstream=tuple(task.words("upstream")),
            smoke=msgspec.convert(task.text("smoke") or "planned", SmokeDemand),
            sandbox=msgspec.convert(task.text("sandbox") or "any", SandboxDemand),
        ),
        name=task.text("channel"),
        grouping="compute-blas" if task.text("variants") == "compute-blas" else "compute",
    )
    document = publish_request(request, ProgressLine)
    Path(to, PUBLISHED).write_bytes(encode(document))
    show(publish_report(document))
