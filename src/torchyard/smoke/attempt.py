"""Run a test: in a separate process and a fresh folder, with a time limit."""

import os
import re
import shutil
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

from torchyard.compute.registry import compute_platforms, platform_for
from torchyard.host.process import own_program
from torchyard.host.timed_run import TimedRun, run_with_timeout
from torchyard.package.policy import load_layouts
from torchyard.smoke.outcome import Outcome, SmokeAttempt
from torchyard.smoke.package_under_test import PackageUnderTest
from torchyard.smoke.suite import BUILD_FILE, Need, Test
from torchyard.smoke.surroundings import Surroundings
from torchyard.toolchain.variables import SYSTEM_PATH

FACT = "TORCHYARD_SMOKE_"
"""Prefix of the environment variables that describe the package to tests."""

NOTE = "note: "
"""Prefix of lines reported, with the rest of the output, even when the test passes."""

_SHOWN = 60
"""The most lines of a test's output to report, from its end."""

_DEVICES = Path("/dev")

_IDLE = 0.1
"""A test that used less than this share of its time was waiting."""

_PROJECT = """\
cmake_minimum_required(VERSION 3.18)
project({name} LANGUAGES CXX)
set(CMAKE_CXX_STANDARD 20)
find_package({package} REQUIRED)
string(TOUPPER {package} _package)
add_executable({name} {file})
target_link_libraries({name} PRIVATE ${{${{_package}}_LIBRARIES}})
"""

_ERROR = re.compile(r"\berror: |^CMake Error|undefined reference|^error")


def facts(package: PackageUnderTest, around: Surroundings) -> dict[str, str]:
    """Return facts for tests as environment variables; unknown values are empty."""
    platform = platform_for(package.compute)
    drivers = (name for row in package.rules for name in row.drivers)
    known = {
        "KIND": package.format,
        "NAME": around.installation.distribution or package.name,
        "VERSION": package.version,
        "COMPUTE": package.compute,
        "DEVICE": platform.torch_device,
        "TOOLKIT": " ".join((platform.torch_version, platform.version(package.compute))).strip(),
        "TOOLKITS": " ".join(filter(None, (c.torch_version for c in compute_platforms()))),
        "COMMIT": package.commit,
        "PYTHON": around.installation.version,
        "MODULES": " ".join(around.installation.modules),
        "OWN": " ".join(around.installation.own_modules),
        "SYSTEM": " ".join((*load_layouts().system, *drivers)),
        "DRIVERS": " ".join(_drivers()),
        "ENVIRONMENT": around.environment.value,
        **package.promises,
    }
    gpus = platform.visible_devices  # the caller decides which GPUs to use
    chosen = {gpus: os.environ[gpus]} if gpus in os.environ else {}
    return chosen | {FACT + name: value for name, value in known.items()}


def _drivers() -> Iterator[str]:
    """Yield the driver libraries of all compute platforms."""
    for platform in compute_platforms():
        for row in platform.libraries().values():
            yield from row.drivers


def lacking(test: Test, package: PackageUnderTest, around: Surroundings) -> str:
    """Return why a test can't run here, or ""."""
    installation = around.installation
    if test.language == "python" and not installation.python:
        return "there is no Python in this environment"
    compiles = test.language in ("c++", "cmake")
    needs_compiler = Need.COMPILER in test.needs or compiles
    if needs_compiler and not shutil.which("c++", path=SYSTEM_PATH):
        return "there is no C++ compiler here"
    if compiles and not _cmake():
        return "there is no cmake here"
    if Need.HEADERS in test.needs and not installation.include:
        return "this Python has no headers"
    if Need.GPU in test.needs and (why := _no_gpu(package.compute)):
        return why
    return next((why for need, why in around.without.items() if need in test.needs), "")


def _no_gpu(compute: str) -> str:
    platform = platform_for(compute)
    if platform.device_nodes:
        return "" if list(_DEVICES.glob(platform.device_nodes)) else "there is no GPU here"
    return f"torchyard knows no GPU for {compute}" if platform.is_gpu else "it is for no GPU"


def not_run(test: Test, around: Surroundings, why: str) -> SmokeAttempt:
    """Return the outcome of a test that can't run, or is not needed."""
    return SmokeAttempt(
        test=test.name,
        about=test.about,
        variant=around.variant,
        outcome=Outcome.NOT_RUN,
        why=why,
    )


def attempt(
    test: Test, package: PackageUnderTest, around: Surroundings, folder: Path
) -> SmokeAttempt:
    """Run a test, and return its outcome, or why it did not run."""

    def result(
        outcome: Outcome, why: str = "", seconds: float = 0.0, output: str = ""
    ) -> SmokeAttempt:
        return SmokeAttempt(
            test=test.name,
            about=test.about,
            variant=around.variant,
            outcome=outcome,
            why=why,
            seconds=round(seconds, 2),
            output=output,
        )

    def short(text: str) -> str:
        """Return a text without the names of temporary folders, which vary."""
        text = text.replace(str(folder), ".")
        return text.replace(around.installation.prefix, "<environment>")

    why = lacking(test, package, around)
    if why:
        return not_run(test, around, why)
    folder.mkdir(parents=True)
    seconds = counted = 0.0
    lines = [""]
    env = around.env | facts(package, around)
    if test.language == "shell":
        env |= {"PREFIX": around.installation.prefix, "CONDA_PREFIX": around.installation.prefix}
        env["PATH"] = f"{around.installation.prefix}/bin:{env.get('PATH', SYSTEM_PATH)}"
    for argv in _commands(test, around, folder):
        trial = run_with_timeout(
            argv,
            cwd=folder,
            env=env,
            seconds=max(1.0, test.timeout - counted),
            wrapper=_wrapped(around, folder),
            is_python=test.language == "python",
        )
        seconds += trial.seconds
        counted += trial.seconds - trial.waited
        lines = [*trial.lines]
        if trial.late or trial.code:
            outcome, why = _verdict(trial, test)
            return result(outcome, short(why), seconds, short("\n".join(lines[-_SHOWN:])))
    shutil.rmtree(folder, ignore_errors=True)
    note = next((line.removeprefix(NOTE) for line in lines if line.startswith(NOTE)), "")
    return result(Outcome.PASSED, short(note), seconds, short("\n".join(lines)) if note else "")


def _wrapped(around: Surroundings, folder: Path) -> list[str]:
    """Return the sandbox command for a test, run in the test's folder."""
    return [*around.wrapper, "--chdir", str(folder), "--"] if around.wrapper else []


def _commands(test: Test, around: Surroundings, folder: Path) -> list[list[str]]:
    if test.language == "python":
        return [[around.installation.python, "-I", "-X", "faulthandler", test.path]]
    if test.language == "shell":
        return [["bash", "-e", test.path]]
    source, name = Path(test.path), re.sub(r"\W", "_", Path(test.path).stem)
    if test.language == "c++":
        source = folder / "source"
        source.mkdir()
        text = _PROJECT.format(name=name, package=test.package, file=test.path)
        (source / BUILD_FILE).write_text(text, encoding="utf-8")
    build = str(folder / "build")
    roots = ";".join(around.installation.roots)
    configure = [_cmake(), "-G", "Ninja", "-S", str(source), "-B", build]
    configure += ["-DCMAKE_EXE_LINKER_FLAGS=-Wl,--disable-new-dtags"]  # else LD_LIBRARY_PATH wins
    configure += [f"-DCMAKE_PREFIX_PATH={roots}", f"-DCMAKE_MAKE_PROGRAM={own_program('ninja')}"]
    link = ["env", "-u", "LD_LIBRARY_PATH", _cmake(), "--build", build]  # it precedes rpaths here
    return [configure, link, [f"{build}/{name}"]]


def _cmake() -> str:
    beside = own_program("cmake")
    return beside if os.sep in beside else ""


def _verdict(trial: TimedRun, test: Test) -> tuple[Outcome, str]:
    used = f"it used {trial.cpu:.1f} s of processor time"
    if trial.starved:
        return Outcome.NOT_DECIDED, f"the machine was too busy: in {trial.seconds:.0f} s {used}"
    if trial.late:
        hangs = ", so it hangs" if trial.cpu < test.timeout * _IDLE else ""
        return Outcome.TIMED_OUT, f"not done after {test.timeout} s; {used}{hangs}"
    if trial.signal:
        return Outcome.CRASHED, f"killed by {trial.signal}"
    return Outcome.FAILED, _reason(trial, test)


def _reason(trial: TimedRun, test: Test) -> str:
    """Return the most useful line: the last, or the first error of a compiler, linker or CMake."""
    lines = [line.strip() for line in trial.lines if line.strip()]
    if test.language != "python":
        for line, after in pairwise([*lines, ""]):
            if _ERROR.search(line):
                return f"{line} {after}" if line.endswith(":") else line
    return lines[-1] if lines else f"exit code {trial.code}"
