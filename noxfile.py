"""Development tasks, each in an environment made from the lock file.

The checks are defined once, in `.ci/run`; the sessions here add the choice of Python, and the
tasks that change files.
"""

import re
import tomllib
from pathlib import Path

import nox

LOCK = "requirements/dev.txt"
PYTHONS = ["3.11", "3.12", "3.13", "3.14", "3.15"]

nox.needs_version = ">=2025.2.9"
nox.options.default_venv_backend = "uv|virtualenv"
nox.options.reuse_venv = "yes"
nox.options.sessions = ["lint", "docs", "build", "tests"]


def install(session: nox.Session) -> None:
    session.install("--require-hashes", "-r", LOCK)
    session.install("--no-deps", "--no-build-isolation", "--editable", ".", "--editable", "farm")


def check(session: nox.Session, *sections: str) -> None:
    """Run sections of `.ci/run` in the session's environment."""
    install(session)
    session.run("bash", ".ci/run", "--active", *sections, external=True)


@nox.session
def lint(session: nox.Session) -> None:
    """Lint, types and layers."""
    check(session, "lint", "types", "layers")


@nox.session(python=PYTHONS)
def tests(session: nox.Session) -> None:
    """Run the tests; arguments after `--` replace CI's selection: nox -s tests -- -m slow."""
    if session.posargs:
        install(session)
        session.run("pytest", *session.posargs)
    else:
        check(session, "tests")


@nox.session(python=PYTHONS[0], venv_backend="uv")
def minimums(session: nox.Session) -> None:
    """Run the tests with the oldest runtime dependencies that pyproject.toml allows."""
    install(session)
    session.install("--upgrade", "--resolution=lowest-direct", "--editable", ".")
    session.run("bash", ".ci/run", "--active", "tests", external=True)


@nox.session
def docs(session: nox.Session) -> None:
    """Check the links, the site and the generated parts of the documentation."""
    check(session, "docs", "generated")


@nox.session
def build(session: nox.Session) -> None:
    """Build the sdist and the wheel into dist/."""
    check(session, "package")


@nox.session
def release(session: nox.Session) -> None:
    """Build, check and list both distributions; `-- --upload` uploads them to PyPI."""
    check(session, "package")
    session.run("python", "scripts/release.py", *session.posargs)


@nox.session
def site(session: nox.Session) -> None:
    """Build the documentation site into build/site/; `-- --serve` serves it on loopback."""
    install(session)
    session.run("python", "scripts/site.py", *session.posargs)


@nox.session
def pictures(session: nox.Session) -> None:
    """Retake the pictures of the documentation: its site, torchyard's pages, and terminals."""
    install(session)
    session.run("python", "-m", "scripts.page_pictures")
    session.run("python", "-m", "scripts.site_pictures")
    session.run("python", "-m", "scripts.terminal_pictures")


@nox.session
def gen(session: nox.Session) -> None:
    """Regenerate the generated files."""
    install(session)
    session.run("python", "scripts/generate.py", *session.posargs)


@nox.session(python=PYTHONS[0], venv_backend="uv")
def bench(session: nox.Session) -> None:
    """Run the benchmarks in a user's environment, with the programs to compare with."""
    peers = ("auditwheel", "dumb-pypi", "pip", "wheel")
    ours = ("--reinstall-package=torchyard", ".[conda]")
    session.install("--compile-bytecode", "-c", LOCK, *ours, *peers)
    session.run("python", "benchmarks/bench.py", *session.posargs)


@nox.session
def load(session: nox.Session) -> None:
    """Run many short jobs on a farm and on Buildbot alone: nox -s load -- --jobs 1000."""
    install(session)
    session.run("python", "-m", "farm.benchmarks.load", *session.posargs)


@nox.session
def pins(session: nox.Session) -> None:
    """Write the hashes of the build requirements in data/builds.toml to their lock."""
    session.install("uv")
    data = Path("src/torchyard/data")
    rows = tomllib.loads((data / "builds.toml").read_text(encoding="utf-8"))
    wanted = sorted({pin for row in rows.values() for pin in row["requires"]})
    source = Path(session.create_tmp(), "backend.in")
    locked = []
    for pin in wanted:  # each by itself: releases may have different versions
        source.write_text(f"{pin}\n", encoding="utf-8")
        found = session.run(
            *("uv", "pip", "compile", "--quiet", "--universal", "--python-version", PYTHONS[0]),
            *("--no-deps", "--generate-hashes", "--no-emit-index-url", "--no-header"),
            *("--no-annotate", str(source)),
            silent=True,
        )
        locked.append(str(found))
    (data / "pins/backend.txt").write_text("".join(locked), encoding="utf-8")
    for lock in sorted(data.glob("pins/cuda-*[0-9].txt")):  # toolkits with all their libraries
        (toolkit,) = re.findall(r"^cuda-toolkit(==\S+)", lock.read_text("utf-8"), re.MULTILINE)
        # NVIDIA's own requirement of nvjitlink admits that of later releases.
        nvjitlink = f"nvidia-nvjitlink=={lock.stem.removeprefix('cuda-')}.*"
        source.write_text(f"cuda-toolkit[all]{toolkit}\n{nvjitlink}\n", encoding="utf-8")
        session.run(
            *("uv", "pip", "compile", "--quiet", "--python-version", PYTHONS[0]),
            *("--generate-hashes", "--no-emit-index-url", "--no-header", "--no-annotate"),
            *("--no-emit-package", "nvidia-cuda-opencl"),  # there is none for aarch64
            *(str(source), "--output-file", str(lock.with_name(f"{lock.stem}-all.txt"))),
        )


@nox.session
def update(session: nox.Session) -> None:
    """Update the lock file; `-- --upgrade-package NAME` upgrades only that package."""
    session.install("uv")
    session.run(
        *("uv", "pip", "compile", "--quiet", "--universal", "--python-version", PYTHONS[0]),
        *("--generate-hashes", "--no-strip-extras", "--no-emit-index-url", "--output-file", LOCK),
        *("--custom-compile-command", "nox -s update"),
        *(session.posargs or ["--upgrade"]),
        *("pyproject.toml", "farm/pyproject.toml", "requirements/dev.in"),
        *("--no-emit-package", "torchyard"),
    )
