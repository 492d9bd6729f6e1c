"""Make the conda packages of a job; imported only by jobs that write packages."""

from hashlib import sha256
from pathlib import Path

import msgspec

from torchyard.model.conda_output import outputs_of
from torchyard.model.job_spec import Task
from torchyard.model.lock import CONDA, HOST, conda_packages
from torchyard.model.recipe import Stage
from torchyard.package.assemble.project import PROJECT
from torchyard.package.conda.linked import ENVIRONMENTS, Environments
from torchyard.package.conda.metadata import CondaBuild, CondaKind
from torchyard.package.conda.table import channel_sonames, load_conda_table
from torchyard.package.conda.write import Sources, assemble_conda
from torchyard.package.format import PackageBuild
from torchyard.toolchain.summary import is_wanted

_HASH = 7
"""The number of a fingerprint's digits in a conda build string."""


_BESIDE = {
    CondaKind.PACKAGE: (CondaKind.LIBRARIES, CondaKind.LINALG),
    CondaKind.TESTS: (CondaKind.PACKAGE, CondaKind.LIBRARIES, CondaKind.LINALG),
    CondaKind.LIBRARIES: (),
    CondaKind.LINALG: (CondaKind.LIBRARIES,),
    CondaKind.META: (),  # it fits the package of any Python
}
"""The kinds from the same build to install with each kind of conda package."""


def pack_companions(build: PackageBuild) -> list[Path]:
    """Make the other packages of the build that must be installed with a package."""
    whole = not build.core.text("linalg")  # then the libraries include the plugin
    made: list[Path] = []
    for kind in _BESIDE[CondaKind(build.spec.task.facts["kind"])]:
        if kind is not CondaKind.LINALG or not whole:
            made += pack_kind(build, kind)
    return made


def pack_kind(made: PackageBuild, kind: str) -> list[Path]:
    """Make a conda package; of the plugin, one without MAGMA, and one with it unless it is off."""
    spec, core = made.spec, made.core
    inputs = made.inputs
    task = spec.task
    facts = task.facts
    bindings = next((t for t in spec.tasks if t.stage is Stage.BINDINGS), None)
    channel = bool(channel_sonames(task.text("libraries")))
    outputs = task.table("outputs")
    extra = " channel" * channel + "".join(f" {outputs[kind]}" for kind in sorted(outputs))
    lock = next(iter((bindings or core).table(CONDA).values()), "")
    build = CondaBuild(
        name=facts["name"],
        version=facts["version"],
        compute=facts["compute"],
        blas=facts["variant"],
        subdir=task.text("subdir"),
        build_hash=_build_hash(bindings or core, extra),
        core_hash=_build_hash(core, extra),
        number=made.number,
        python=facts["python"] if bindings else None,
        linalg_apart=bool(core.text("linalg")),
        channel_libraries=channel,
        license=task.text("license"),
        outputs=outputs_of(outputs),
        host=conda_packages(lock).get(HOST, {}),
        pins={pin: core.text(pin) for pin in load_conda_table().pins if core.text(pin)},
    )
    compiled = inputs / (Stage.BINDINGS if kind == CondaKind.PACKAGE else Stage.CORE)
    sources = Sources(
        environments=_environments(compiled / ENVIRONMENTS),
        core=inputs / Stage.CORE,
        image=inputs / Stage.BINDINGS / "image" if bindings else None,
        project=inputs / Stage.CORE / PROJECT,
        license_texts=task.table("license_texts"),
    )
    builds = [build]
    if kind == CondaKind.LINALG:
        without = msgspec.structs.replace(build, magma=False)
        has_magma = is_wanted("USE_MAGMA", core.table("env"), core.table("cmake"))
        builds = [build, without] if has_magma else [without]
    return [
        assemble_conda(
            CondaKind(kind),
            build,
            sources,
            scratch=made.scratch,
            out=made.out,
            spec=made.carried,
            bill=made.bill,
        )
        for build in builds
    ]


def _build_hash(task: Task, extra: str) -> str:
    """Return the digits for a build string; `extra` is what else makes packages different."""
    text = task.fingerprint
    return (sha256(f"{text}{extra}".encode()).hexdigest() if extra else text)[:_HASH]


def _environments(kept: Path) -> Environments | None:
    """Return the conda environments that something was compiled in, if it was in any."""
    if not kept.is_file():
        return None
    return msgspec.json.decode(kept.read_bytes(), type=Environments)
