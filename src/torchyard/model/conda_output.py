"""What a file says about a conda package: metadata, requirements and tests."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Annotated, Literal

import msgspec
from msgspec import Meta

from torchyard.model.values import Value

Bound = Literal["x", "x.x", "x.x.x", "exact"]
"""How much of a version others must have: its first parts, or all of it and the build."""

Words = tuple[str, ...]


class CondaAbout(Value, kw_only=True):
    """The description of a conda package, instead of the wheel's or `pyproject.toml`'s."""

    summary: Annotated[str, Meta(description="A line about the package.")] = ""
    description: Annotated[str, Meta(description="More than a line.")] = ""
    homepage: Annotated[str, Meta(description="Address of the project.")] = ""
    documentation: Annotated[str, Meta(description="Address of its documentation.")] = ""
    repository: Annotated[str, Meta(description="Address of its source code.")] = ""
    license: Annotated[str, Meta(description="SPDX expression, such as `BSD-3-Clause`.")] = ""
    license_family: Annotated[str, Meta(description="Family of licences, such as `BSD`.")] = ""


class CondaTests(Value, kw_only=True):
    """Tests in a conda package, which `torchyard smoke` and rattler-build run."""

    imports: Annotated[Words, Meta(description="Python modules to import.")] = ()
    commands: Annotated[Words, Meta(description="Shell lines, of which each must succeed.")] = ()
    requires: Annotated[Words, Meta(description="Packages to install for the tests.")] = ()
    contents: Annotated[
        Words,
        Meta(
            description="Globs of files in the prefix: `lib/libdemo.so*`. A package without such "
            "files is not written."
        ),
    ] = ()


class CondaOutput(Value, kw_only=True):
    """A conda package of the project; what is left out is torchyard's choice."""

    name: Annotated[
        str | None,
        Meta(
            description="Name of the package; that of `conda-meta` contains `{device}`, which "
            "stands for `cpu` or `gpu`."
        ),
    ] = None
    version: Annotated[
        str | None, Meta(description="Version of the package, instead of the project's.")
    ] = None
    depends: Annotated[
        Words,
        Meta(
            description="More requirements: `numpy >=2,<3`. One for a package that torchyard "
            "requires as well replaces that requirement."
        ),
    ] = ()
    constrains: Annotated[
        Words,
        Meta(description="More constraints for packages that may be installed beside it."),
    ] = ()
    pin_compatible: Annotated[
        dict[str, Literal["x", "x.x", "x.x.x"]],
        Meta(
            description="Requirements in the version of the `host` environment of [toolchain] "
            'conda, with the parts that must not change: `{ numpy = "x" }`.'
        ),
    ] = {}
    ignore_run_exports: Annotated[
        Words,
        Meta(description="Packages that are not required although libraries or run exports ask."),
    ] = ()
    pin: Annotated[
        Bound | None,
        Meta(
            description="Run export of the package: the parts of its version that must not change "
            "in what is compiled against it, or `exact`. Default: `x.x` for `conda` and "
            "`conda-libtorch`; others have none."
        ),
    ] = None
    track_features: Annotated[
        Words, Meta(description="Features, which make solvers prefer packages without them.")
    ] = ()
    build_offset: Annotated[int, Meta(description="Added to the build number.")] = 0
    build_string: Annotated[
        str | None,
        Meta(
            description="Build string. `{flavour}` stands for compute and BLAS (`cuda130_mkl`), "
            "`{python}` for `py312`, `{hash}` for `h` and digits of all inputs, `{number}` for the "
            "build number, `{magma}` for `magma` or `nomagma`. It must have `{hash}`. Default: "
            "`{flavour}_{python}_{hash}_{number}`, without the words that it does not have."
        ),
    ] = None
    license_files: Annotated[
        Words,
        Meta(description="Globs of licence texts beside this file, besides the project's own."),
    ] = ()
    about: Annotated[CondaAbout, Meta(description="Description.")] = CondaAbout()
    tests: Annotated[CondaTests, Meta(description="Tests in the package.")] = CondaTests()


CondaOutputs = Mapping[str, CondaOutput]
"""By the kinds of packages, such as `conda-libtorch`."""

NONE: CondaOutputs = MappingProxyType({})


def outputs_setting(outputs: CondaOutputs) -> dict[str, str]:
    """Return the setting of jobs with these outputs."""
    from torchyard.model.canonical import canonical_json  # noqa: PLC0415 - hashlib is slow to import

    return {kind: canonical_json(output).decode() for kind, output in sorted(outputs.items())}


def outputs_of(texts: dict[str, str]) -> dict[str, CondaOutput]:
    """Return the outputs in the setting `outputs` of a job."""
    return {kind: msgspec.json.decode(text, type=CondaOutput) for kind, text in texts.items()}
