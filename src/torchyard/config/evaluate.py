"""Evaluate a spec into a model: resolve names, parse units, check all that needs no plan."""

import re
from collections.abc import Callable, Mapping, Sequence

from torchyard.compute.registry import arch_hints, is_arch
from torchyard.config.ci import read_ci
from torchyard.config.conda import check_outputs
from torchyard.config.document import Document
from torchyard.config.matrix import MatrixReader, Problems, as_tuple
from torchyard.config.positions import Path
from torchyard.config.recipes import find_recipe, known_recipes
from torchyard.config.rows import merge_tables
from torchyard.config.source import read_patches, read_source
from torchyard.config.spec import (
    BuildSpec,
    ChannelSpec,
    CheckSpec,
    FileSpec,
    NeedsSpec,
    OverrideSpec,
    ProjectSpec,
    RequirementsSpec,
    SandboxSpec,
    SmokeSpec,
    StoreSpec,
    SubsetSpec,
    ToolchainSpec,
)
from torchyard.config.steps import check_names, read_steps
from torchyard.errors import ConfigError
from torchyard.model.abi import AbiClass
from torchyard.model.config import ChannelConfig, Config, Project, Sandbox, own_release
from torchyard.model.identifier import PROJECT_NAME, Cell, fits_identifier
from torchyard.model.lock import CONDA, BuildLock
from torchyard.model.matrix import Needs, Override, Pattern, Subset, values_of
from torchyard.model.proof import Check, Smoke
from torchyard.model.quantity import parse_duration, parse_size
from torchyard.model.recipe import DEPTH, Dimension, Recipe, Stage
from torchyard.model.recipe_output import RecipeOutput
from torchyard.model.suggest import did_you_mean
from torchyard.model.tables import Tables
from torchyard.model.toolchain import REGISTRY, Build, CondaToolchain, Toolchain, is_pinned

NO_RELEASE = "none"
"""The value of `release` for projects without pins of a torch release."""
_PASSWORD = re.compile(r"\w://[^/@\s]*:[^/@\s$]+@")
_INDEX = re.compile(r"(?:https?://[^@/\s'\"]+|file://)/\S*|https?://[^@/\s'\"]+")
"""Addresses of indexes, without a user name."""
_TORCH = re.compile(r"\s*torch(?![\w.-])", re.IGNORECASE)
VERSION = re.compile(r"\d+(?:\.\d+)*(?:(?:a|b|rc)\d+)?(?:\.post\d+)?(?:\.dev\d+)?")
_TARGET = re.compile(r"[A-Za-z0-9_.+-]+")
_LABEL = re.compile(r"[a-z0-9]+(\.[a-z0-9]+)*")
_IMAGE = re.compile(
    r"(?:[A-Za-z0-9.-]+(?::\d{1,5})?/)?[a-z0-9]+(?:[._/-]+[a-z0-9]+)*"
    r"(?::\w[\w.-]{0,127})?(?:@sha256:[0-9a-f]{64})?"
)
"""The name of an image: its registry, path, tag and digest."""
GLIBC = re.compile(r"2\.\d{1,3}")
_NUMBER = re.compile(r"0|[1-9]\d?")
_DATE = re.compile(r"20\d{6}")


def evaluate(
    spec: FileSpec,
    document: Document,
    tables: Tables,
    lock: BuildLock | None = None,
    outputs_with: Callable[[Tables], Sequence[RecipeOutput]] | None = None,
) -> Config:
    """Return the config of a spec, or fail with all of its errors.

    `tables` are the shipped ones. `outputs_with` reads the outputs of a conda recipe.
    """
    problems, lock = Problems(document), lock or BuildLock()
    _refuse_passwords(document.raw, problems)
    tables = merge_tables(spec.tables, problems, tables)
    outputs = tuple(outputs_with(tables)) if outputs_with else ()
    tables = _with_outputs(tables, outputs, spec, problems)
    project = _project(spec.project, problems, tables)
    reader = MatrixReader(problems, project.recipe, tables, tuple(out.cell for out in outputs))
    root = _root(spec, lock, problems)
    toolchain = _toolchain(spec.toolchain, root)
    steps = read_steps(spec.steps, project.recipe, problems)
    channels = _channels(spec.channel, spec.subset, problems)
    config = Config(
        project=project,
        source=read_source(spec.source, problems, has_root=root is not None),
        patches=read_patches(spec.source, steps, problems),
        matrix=reader.matrix(spec.matrix),
        subsets={
            name: Subset(
                name=name,
                pattern=reader.restriction(subset, ("subset", name)),
                cells=_cells(subset, problems, name),
                choose=subset.choose,
            )
            for name, subset in spec.subset.items()
        },
        overrides=tuple(
            _override(override, reader, ("override", index))
            for index, override in enumerate(spec.override)
        ),
        store=spec.store.url,
        copies=_copies(spec.store, problems),
        channels=channels,
        requirements=_requirements(spec.requirements, problems),
        steps=steps,
        sandbox=_sandbox(spec.sandbox, toolchain, problems),
        toolchain=toolchain,
        lock=lock,
        build=_build(spec.build, project, problems, tables),
        conda_libraries="channel" if toolchain and toolchain.conda else spec.conda.libraries,
        conda_license=spec.conda.license,
        conda_outputs=spec.conda.outputs,
        conda_channels=tuple(spec.conda.channels),
        recipe_outputs=outputs,
        check=_check(spec.check, problems),
        smoke=_smoke(spec.smoke, project.recipe, problems),
        ci=read_ci(spec.ci, reader, channels, spec.subset),
        tables=tables,
        origins=document.origins(),
    )
    _check_conda(config, problems)
    check_outputs(config, problems)
    if problems.found:
        raise ConfigError.of(problems.found)
    return config


def _with_outputs(
    tables: Tables, outputs: Sequence[RecipeOutput], spec: FileSpec, problems: Problems
) -> Tables:
    """Return tables with the outputs of a conda recipe; check the project against them."""
    if not outputs:
        if spec.conda.channels:
            what = "these channels are for recipe `conda`"
            hint = "`channels` of [smoke] are for tests, those of [toolchain.conda] for builds"
            problems.add((CONDA, "channels"), what, hint, at_key=True)
        return tables
    from torchyard.config.recipe_outputs import with_recipe_outputs  # noqa: PLC0415 - few need it

    versions = dict.fromkeys(output.version for output in outputs)
    if spec.project.version not in versions:
        what = f"the recipe has version {', '.join(versions)}, and not `{spec.project.version}`"
        problems.add(("project", "version"), what, f'write version = "{next(iter(versions))}"')
    for key in ("nightly", "build_number", "release"):
        if f"project.{key}" in problems.document.origins():
            what = f"a conda recipe says itself what `{key}` would"
            problems.add(("project", key), what, "leave it out", at_key=True)
    return with_recipe_outputs(tables, outputs)


def _project(spec: ProjectSpec, problems: Problems, tables: Tables) -> Project:
    recipe = find_recipe(spec.recipe)
    if recipe is None:
        hint = did_you_mean(spec.recipe, known_recipes())
        what = f"`project.recipe` can't be `{spec.recipe}`"
        problems.add(("project", "recipe"), what, hint)
        raise ConfigError.of(problems.found)
    if not PROJECT_NAME.fullmatch(spec.name):
        hint = "letters and digits, with - _ or . between them"
        problems.add(("project", "name"), f"`{spec.name}` is not a package name", hint)
    if spec.nightly is not None and not _DATE.fullmatch(spec.nightly):
        hint = "eight digits, such as 20261114; usually by --set project.nightly=20261114"
        problems.add(("project", "nightly"), f"`{spec.nightly}` is not a date", hint)
    version = spec.version if spec.nightly is None else f"{spec.version}.dev{spec.nightly}"
    if not VERSION.fullmatch(version):
        hint = "such as 2.14.0, 2.14.0rc1 or 2.15.0.dev20261115; `+cu130` is added by torchyard"
        problems.add(("project", "version"), f"`{version}` is not a public version", hint)
    if spec.release not in (None, NO_RELEASE, *tables.releases):
        hint = did_you_mean(spec.release or "", tables.releases)
        what = f"there are no pins for torch release `{spec.release}`"
        problems.add(("project", "release"), what, hint)
    has_none = spec.release == NO_RELEASE or recipe.is_rendered
    release = None if has_none else spec.release or own_release(spec.version)
    number = str(spec.build_number)
    if not _NUMBER.fullmatch(number):
        hint = "0 to 99: conda's solvers would take 100 and more for a build with MKL"
        problems.add(("project", "build_number"), f"`{number}` is not a build number", hint)
        number = "0"
    _check_dependencies(spec, recipe, problems)
    return Project(
        name=spec.name,
        version=version,
        recipe=recipe,
        release=release,
        build_number=int(number),
        dependencies=tuple(sorted(set(spec.dependencies))),
    )


def _check_dependencies(spec: ProjectSpec, recipe: Recipe, problems: Problems) -> None:
    """Check the requirements that wheels get besides those of the project."""
    if spec.dependencies and not recipe.is_extension:
        what = f"wheels of recipe `{recipe.name}` can't have requirements from the file"
        problems.add(("project", "dependencies"), what, "leave it out", at_key=True)
    for index, text in enumerate(spec.dependencies):
        path: Path = ("project", "dependencies", index)
        if not _is_requirement(text):
            problems.add(path, f"`{text}` is not a requirement", "write it as in pyproject.toml")
        elif _TORCH.match(text):
            what = "a wheel requires the torch of its cell"
            problems.add(path, what, "leave it out; [matrix] sets the releases")


def _cells(spec: SubsetSpec, problems: Problems, name: str) -> tuple[str, ...]:
    cells = as_tuple(spec.cells)
    if spec.cells is not None and not cells:
        problems.add_empty(("subset", name, "cells"))
    return cells


def _refuse_passwords(value: object, problems: Problems, path: Path = ()) -> None:
    """Refuse addresses with passwords anywhere in a file: they would be stored with results."""
    if isinstance(value, str) and _PASSWORD.search(value) and path[:1] != ("channel",):
        hint = "write it into netrc, or where git, pip and uv keep passwords"
        problems.add(path, "an address must not contain a name or password", hint)
    if isinstance(value, list | dict):
        for key, item in value.items() if isinstance(value, dict) else enumerate(value):
            _refuse_passwords(item, problems, (*path, key))


def _channels(
    specs: Mapping[str, ChannelSpec], subsets: Mapping[str, object], problems: Problems
) -> dict[str, ChannelConfig]:
    channels = {}
    for name, spec in specs.items():
        path: Path = ("channel", name)
        if not fits_identifier(name):
            problems.add(path, f"`{name}` can't be part of an identifier")
        if spec.subset is not None and spec.subset not in subsets:
            hint = did_you_mean(spec.subset, subsets)
            problems.add((*path, "subset"), f"there is no [subset.{spec.subset}]", hint)
        scheme, separator, _ = spec.url.partition("://")
        if not spec.url or (separator and scheme not in ("file", "s3")):
            hint = "file://…, s3://… or a directory"
            problems.add((*path, "url"), f"`{spec.url}` is not the address of a channel", hint)
        if separator and "@" in spec.url.partition("://")[2].partition("/")[0]:
            hint = "set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY in the environment instead"
            problems.add((*path, "url"), "an address must not contain a name or password", hint)
        others = [other for other in specs if other != name]
        if spec.promote_from is not None and spec.promote_from not in others:
            hint = did_you_mean(spec.promote_from, others) if others else "there is only this one"
            what = f"`{spec.promote_from}` is not another channel"
            problems.add((*path, "promote_from"), what, hint)
        elif _goes_in_circles(name, specs):
            what = f"`{name}` promotes to itself through other channels"
            problems.add((*path, "promote_from"), what)
        if spec.promote_from is not None and spec.subset is not None:
            what = "a channel receives a subset of a build or promotions, not both"
            problems.add((*path, "subset"), what, at_key=True)
        _check_elsewhere(spec, path, problems)
        channels[name] = ChannelConfig(
            name=name,
            url=spec.url,
            subset=spec.subset,
            promote_from=spec.promote_from,
            external=tuple(sorted(set(spec.external))),
            upstream=tuple(dict.fromkeys(spec.upstream)),
            smoke=spec.smoke,
            sandbox=spec.sandbox,
            variants=spec.variants,
        )
    return channels


def _check_elsewhere(spec: ChannelSpec, path: Path, problems: Problems) -> None:
    """Check a channel's settings for packages outside of it."""
    if "" in spec.external:
        index = spec.external.index("")
        problems.add((*path, "external", index), "a package's name can't be empty")
    for index, url in enumerate(spec.upstream):
        if not _INDEX.fullmatch(url):
            problems.add((*path, "upstream", index), *_no_index(url))


def _goes_in_circles(name: str, specs: Mapping[str, ChannelSpec]) -> bool:
    seen: list[str] = []
    spec: ChannelSpec | None = specs[name]
    while spec is not None and spec.promote_from is not None and spec.promote_from not in seen:
        seen.append(spec.promote_from)
        spec = specs.get(spec.promote_from)
    return name in seen


def _requirements(spec: RequirementsSpec, problems: Problems) -> dict[Stage, Needs]:
    needs = {
        stage: _needs(getattr(spec, stage), problems, ("requirements", stage.value))
        for stage in Stage
    }
    return {stage: need for stage, need in needs.items() if need != Needs()}


def _needs(spec: NeedsSpec, problems: Problems, path: Path) -> Needs:
    def read(key: str, written: str | None, parse: Callable[[str], int]) -> int | None:
        if written is None:
            return None
        try:
            return parse(written)
        except ValueError as error:
            problems.add((*path, key), str(error))
            return None

    return Needs(
        memory=read("memory", spec.memory, parse_size),
        disk=read("disk", spec.disk, parse_size),
        time=read("time", spec.time, parse_duration),
        capabilities=tuple(spec.capabilities),
    )


def _copies(spec: StoreSpec, problems: Problems) -> str | None:
    if spec.copies is not None:
        try:
            parse_size(spec.copies)
        except ValueError as error:
            problems.add(("store", "copies"), str(error))
    return spec.copies


def _override(spec: OverrideSpec, reader: MatrixReader, path: Path) -> Override:
    problems = reader.problems
    pattern = reader.pattern(spec, path)
    values = (spec.env, spec.cmake, spec.archs, spec.pass_env, spec.backend)
    if not any(values) and spec.cache is None and spec.needs == NeedsSpec():
        hint = "give env, pass_env, cmake, archs, backend, cache or needs"
        problems.add(path, "this override sets nothing", hint)
    check_names(spec.pass_env, problems, (*path, "pass_env"))
    for index, arch in enumerate(spec.archs):
        if not is_arch(arch):
            hint = f"write {'; '.join(arch_hints())}"
            problems.add((*path, "archs", index), f"`{arch}` is not an architecture", hint)
    for name in spec.env:
        if not name.isidentifier():
            problems.add((*path, "env", name), f"`{name}` is not a valid environment variable")
    stages = []
    for index, word in enumerate(as_tuple(spec.stage)):
        if word in reader.recipe.stages:
            stage = Stage(word)
            stages.append(stage)
            _check_sharing(stage, pattern, reader, path)
        else:
            hint = did_you_mean(word, [stage.value for stage in reader.recipe.stages])
            what = f"recipe `{reader.recipe.name}` has no stage `{word}`"
            listed = isinstance(spec.stage, list)
            problems.add((*path, "stage", index) if listed else (*path, "stage"), what, hint)
    compiling = {
        "cmake": spec.cmake,
        "archs": spec.archs,
        "backend": spec.backend,
        "cache": spec.cache is not None,
    }
    for key, given in compiling.items():
        if given and reader.recipe.compiling not in stages:
            what = f"only stage `{reader.recipe.compiling}` has `{key}`"
            problems.add((*path, key), what, at_key=True)
    return Override(
        pattern=pattern,
        stages=tuple(stages),
        origin=problems.document.origin(path),
        env=spec.env,
        cmake=spec.cmake,
        archs=tuple(sorted(set(spec.archs), key=_by_number)),
        pass_env=tuple(spec.pass_env),
        backend=spec.backend,
        cache=spec.cache,
        needs=_needs(spec.needs, problems, (*path, "needs")),
    )


def _root(spec: FileSpec, lock: BuildLock, problems: Problems) -> str | None:
    """Return the address of the root; an image by its digest, if the file or the lock has it."""
    path, image = (spec.toolchain or ToolchainSpec()).root, spec.root.image
    if image is None:
        return path
    if path is not None:
        problems.add(("toolchain", "root"), "[root] has an image already", "leave one of them out")
    if not _IMAGE.fullmatch(image):
        hint = "write it as for `docker pull`: quay.io/pypa/manylinux_2_28_x86_64"
        problems.add(("root", "image"), f"`{image}` is not the name of an image", hint)
    digest = lock.images.get(image)
    return f"{REGISTRY}{image}@{digest}" if digest else f"{REGISTRY}{image}"


def _toolchain(spec: ToolchainSpec | None, root: str | None) -> Toolchain | None:
    if spec is None and root is None:
        return None
    spec = spec or ToolchainSpec()
    conda = None
    if spec.conda is not None:
        build, host = (tuple(sorted(specs)) for specs in (spec.conda.build, spec.conda.host))
        conda = CondaToolchain(channels=tuple(spec.conda.channels), build=build, host=host)
    return Toolchain(
        compiler=spec.compiler,
        blas=spec.blas,
        toolkits={"cuda": spec.cuda},
        cache=spec.cache,
        root=root,
        conda=conda,
    )


def _check_conda(config: Config, problems: Problems) -> None:
    """Refuse what conda environments can't make, or what would be another core than theirs."""
    if config.project.recipe.is_rendered and config.toolchain is not None:
        what = "a conda recipe says itself with what it is compiled"
        problems.add(("project", "recipe"), what, "leave out [toolchain] and [root]")
        return
    if config.toolchain is None or config.toolchain.conda is None:
        return
    path, tables = ("toolchain", CONDA), config.tables
    if config.toolchain.root is not None:
        problems.add(path, "jobs in conda environments have no other root", "leave one of them out")
    if config.project.recipe.is_extension or config.project.recipe.compiling in config.steps:
        what = "conda environments are for the steps of recipe `pytorch`"
        problems.add(path, what, "leave `conda` out")
    for compute in values_of(config.matrix, "compute"):
        if compute in tables.compute and tables.compute[compute].is_gpu:
            what = f"conda environments can't build for {compute} yet"
            problems.add(path, what, "build it by a file without `conda`")
    for kind in values_of(config.matrix, "package"):
        if not tables.formats[tables.packages[kind].format].channels:
            what = f"`{kind}` packages can't contain what conda's compilers made"
            hint = "build them by a file without `conda`: their core is another one"
            problems.add(path, what, hint)


def _build(spec: BuildSpec, project: Project, problems: Problems, tables: Tables) -> Build:
    is_locked = project.recipe.is_extension
    for index, requirement in enumerate(spec.requires or ()):
        if is_locked and not _is_requirement(requirement):
            what = f"`{requirement}` is not a requirement"
            problems.add(("build", "requires", index), what, "write it as in pyproject.toml")
        elif not is_locked and not is_pinned(requirement):
            what = f"`{requirement}` is not pinned"
            hint = "name one version, such as cmake==3.31.10, so that the build can be repeated"
            problems.add(("build", "requires", index), what, hint)
    abi = AbiClass(spec.abi)
    if abi is not AbiClass.FULL and not is_locked:
        what = f"recipe `{project.recipe.name}` does not support ABI class {abi}"
        problems.add(("build", "abi"), what, "leave it out")
    label = spec.label or ("{compute}" if abi.fits_torches else Build().label)
    if not _LABEL.fullmatch(re.sub(r"\{(torch|compute)\}", "0", label)):
        hint = "letters, digits and points, with {torch} and {compute} for those of each cell"
        problems.add(("build", "label"), f"`{label}` is not a valid local version", hint)
    if spec.glibc is not None and not GLIBC.fullmatch(spec.glibc):
        problems.add(("build", "glibc"), f"`{spec.glibc}` is not a glibc version", "such as 2.28")
    if spec.linalg is not None and not _TARGET.fullmatch(spec.linalg):
        problems.add(("build", "linalg"), f"`{spec.linalg}` is not the name of a CMake target")
    if spec.tree is not None and spec.tree not in tables.trees:
        hint = did_you_mean(spec.tree, tables.trees)
        problems.add(("build", "tree"), f"there is no kind of tree `{spec.tree}`", hint)
    release = project.release or own_release(project.version)
    preset = None if spec.tree is None else tables.preset_for(release)
    row = Build() if preset is None else tables.builds[preset]
    requires = row.requires if spec.requires is None else spec.requires
    return Build(
        backend=spec.backend or row.backend,
        requires=tuple(sorted(requires)),
        prepare=tuple(spec.prepare),
        tree=spec.tree,
        preset=preset,
        linalg=spec.linalg,
        label=label,
        abi=abi,
        glibc=spec.glibc,
        gpu_env=_known_variables(project, gpu=True),
        cpu_env=_known_variables(project, gpu=False),
    )


def _known_variables(project: Project, *, gpu: bool) -> dict[str, str]:
    if not project.recipe.is_extension:
        return {}
    from torchyard.config.known_extensions import known_variables  # noqa: PLC0415 - few need it

    return known_variables(project.name, gpu=gpu)


def _is_requirement(text: str) -> bool:
    from torchyard.model.requirement import is_plain_requirement  # noqa: PLC0415 - slow

    return is_plain_requirement(text)


def _check(spec: CheckSpec, problems: Problems) -> Check:
    if not spec.policy:
        problems.add(("check", "policy"), "the policy can't be empty", 'leave it out for "default"')
    return Check(policy=spec.policy)


def _smoke(spec: SmokeSpec, recipe: Recipe, problems: Problems) -> Smoke:
    for index, channel in enumerate(spec.channels):
        if not channel:
            problems.add(("smoke", "channels", index), "a channel is an address or a directory")
    for index, url in enumerate(spec.indexes):
        plain = url.replace("{release}", "").replace("{compute}", "")
        if not _INDEX.fullmatch(url):
            problems.add(("smoke", "indexes", index), *_no_index(url))
        elif "{release}" in url and not recipe.is_extension:
            what = f"recipe `{recipe.name}` is not built against a torch release"
            problems.add(("smoke", "indexes", index), what, "write it without {release}")
        elif "{" in plain or "}" in plain:
            what = f"`{url}` has an unknown word in braces"
            hint = "{release} is the torch release, such as 2.13, {compute} the compute platform"
            problems.add(("smoke", "indexes", index), what, hint)
    return Smoke(
        level=spec.level,
        folder=spec.tests or "",
        channels=tuple(spec.channels),
        indexes=tuple(dict.fromkeys(spec.indexes)),
    )


def _no_index(url: str) -> tuple[str, str]:
    """Return the error for an invalid address of an index, and the hint."""
    return f"`{url}` is not the address of an index", (
        "write https://… or file:///…, without a user name or password"
    )


def _sandbox(spec: SandboxSpec, toolchain: Toolchain | None, problems: Problems) -> Sandbox:
    toolchain = toolchain or Toolchain()
    root, where = toolchain.root, "conda environments" if toolchain.conda else "a root"
    is_own = toolchain.has_own_system
    if is_own and spec.kind not in (None, "bwrap"):
        what = f"jobs in {where} need bubblewrap"
        problems.add(("sandbox", "kind"), what, 'leave it out, or write kind = "bwrap"')
    if is_own and toolchain.cache is not None:
        what = f"jobs in {where} can't reach a compile cache, which is outside of it"
        problems.add(("toolchain", "cache"), what, "leave out `cache`, or the system of jobs")
    for index, path in enumerate(spec.readable):
        if not path or path == "/":
            problems.add(("sandbox", "readable", index), "the whole file system can't be readable")
    kind = "bwrap" if is_own else spec.kind
    return Sandbox(kind=kind, root=root, readable=tuple(spec.readable))


def _by_number(arch: str) -> list[tuple[int, str]]:
    """Return a sort key that puts 9.0 before 10.0; the file's order has no meaning."""
    return [(int(word) if word.isdigit() else 0, word) for word in re.findall(r"\d+|\D+", arch)]


def _check_sharing(stage: Stage, pattern: Pattern, reader: MatrixReader, path: Path) -> None:
    """Refuse a setting that would split a shared job."""
    for field in Cell._fields[DEPTH[stage] :]:
        if getattr(pattern, field):
            dimension = reader.recipe.variant if field == "variant" else Dimension(field)
            what = f"a setting of stage `{stage}` can't depend on `{dimension}`"
            hint = f"one {stage} job is shared by all its {dimension} values; drop the key"
            reader.problems.add((*path, dimension), what, hint, at_key=True)
