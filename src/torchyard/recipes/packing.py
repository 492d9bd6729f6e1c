"""From an order for a package to the call that makes it."""

from pathlib import Path

import msgspec

from torchyard.errors import BuildError
from torchyard.model.job_spec import JobSpec
from torchyard.model.recipe import Stage
from torchyard.package.assemble.assemble import Assembled, assemble_libtorch, assemble_wheel
from torchyard.package.conda.metadata import CondaBuild, CondaKind
from torchyard.package.conda.write import Sources, assemble_conda
from torchyard.package.versions import local_version
from torchyard.recipes.pytorch import commit_of, core_of

_HASH = 7
"""Digits of a fingerprint in a conda build string."""


_BESIDE = {
    CondaKind.PACKAGE: (CondaKind.LIBRARIES, CondaKind.LINALG),
    CondaKind.TESTS: (CondaKind.PACKAGE, CondaKind.LIBRARIES, CondaKind.LINALG),
    CondaKind.LIBRARIES: (),
    CondaKind.LINALG: (CondaKind.LIBRARIES,),
    CondaKind.META: (),  # it fits the package of any Python, and none is at hand
}
"""What must be installed with each kind of conda package, and is made by the same build."""


def pack(order: Path, inputs: Path, scratch: Path, out: Path) -> list[Path]:
    """Make the package that an order asks for; return the files that were written."""
    asked = msgspec.json.decode(order.read_bytes(), type=JobSpec)
    task, facts = asked.task, asked.task.facts
    core = inputs / Stage.CORE
    match task.text("format"):
        case "wheel":
            return _files(
                assemble_wheel(
                    install=core / "install",
                    vendor=core / "vendor",
                    image=inputs / Stage.BINDINGS / "image",
                    scratch=scratch,
                    out=out,
                    name=facts["name"],
                    version=local_version(facts["version"], facts["compute"]),
                    python=facts["python"],
                    platform_tag=task.text("platform_tag"),
                    compute=facts["compute"],
                    toolkit=core_of(asked).text("cuda"),
                    pins={k: v for k, v in task.settings.items() if isinstance(v, str)},
                    order=order,
                )
            )
        case "zip":
            return _files(
                assemble_libtorch(
                    install=core / "install",
                    vendor=core / "vendor",
                    scratch=scratch,
                    out=out,
                    name=facts["name"],
                    version=local_version(facts["version"], facts["compute"]),
                    compute=facts["compute"],
                    git_hash=commit_of(asked),
                    order=order,
                )
            )
        case "conda":
            kind = CondaKind(facts["kind"])
            return _conda(asked, kind, order, inputs, scratch=scratch, out=out)
        case other:
            msg = f"nobody knows how to write a package of format `{other}`"
            raise BuildError(msg)


def _files(made: Assembled) -> list[Path]:
    return [path for path in made if path is not None]


def pack_beside(order: Path, inputs: Path, scratch: Path, out: Path) -> list[Path]:
    """Make the other conda packages of a build that an order's package can't do without."""
    asked = msgspec.json.decode(order.read_bytes(), type=JobSpec)
    package = next(task for task in asked.tasks if task.stage is Stage.PACKAGE)
    if package.text("format") != "conda" or package.recipe != "pytorch":
        return []
    whole = not core_of(asked).text("linalg")  # then the plugin is a part of the libraries
    made: list[Path] = []
    for kind in _BESIDE[CondaKind(package.facts["kind"])]:
        if kind is not CondaKind.LINALG or not whole:
            made += _conda(asked.of(package), kind, order, inputs, scratch=scratch, out=out)
    return made


def _conda(  # noqa: PLR0913 - what is made, of what, and where
    order: JobSpec, kind: CondaKind, carried: Path, inputs: Path, *, scratch: Path, out: Path
) -> list[Path]:
    """Make a conda package; the plugin for linear algebra is one with MAGMA, and one without."""
    task, core = order.task, core_of(order)
    facts = task.facts
    bindings = next((t for t in order.tasks if t.stage is Stage.BINDINGS), None)
    build = CondaBuild(
        name=facts["name"],
        version=facts["version"],
        compute=facts["compute"],
        blas=facts["variant"],
        subdir=task.text("subdir"),
        build_hash=(bindings or core).fingerprint[:_HASH],
        core_hash=core.fingerprint[:_HASH],
        python=facts["python"] if bindings else None,
        linalg_apart=bool(core.text("linalg")),
    )
    sources = Sources(
        core=inputs / Stage.CORE,
        image=inputs / Stage.BINDINGS / "image" if bindings else None,
        tests=_tests(inputs / Stage.CORE / "tree"),
    )
    builds = [build]
    if kind is CondaKind.LINALG:
        builds.append(msgspec.structs.replace(build, magma=False))
    return [
        assemble_conda(kind, one, sources, scratch=scratch, out=out, order=carried)
        for one in builds
    ]


def _tests(tree: Path) -> Path | None:
    """The test suite in a project's source, if it is where most have theirs."""
    return next((tree / name for name in ("test", "tests") if (tree / name).is_dir()), None)
