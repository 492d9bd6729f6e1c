"""The settings of jobs, from tables, file and overrides: what results depend on besides inputs."""

from collections.abc import Sequence
from typing import NamedTuple

from torchyard.model.abi import AbiClass
from torchyard.model.canonical import fingerprint
from torchyard.model.conda_output import outputs_setting
from torchyard.model.config import ChannelConfig, Config
from torchyard.model.identifier import scope_path
from torchyard.model.lock import CONDA, CORE_LOCK, conda_packages
from torchyard.model.matrix import Needs
from torchyard.model.recipe import Stage
from torchyard.model.recipe_output import CONDA_FORMAT, RECIPE_CHANNELS, RecipeOutput
from torchyard.model.step import Setting, Step
from torchyard.model.tables import TORCH_PREFIX, Release
from torchyard.model.toolchain import Toolchain
from torchyard.model.values import Origin
from torchyard.plan.constraints import Head, Scope, is_release_bound, release_name
from torchyard.version import __version__

_DIGITS = 16


class SettingSource(NamedTuple):
    """A value of a setting, and where it comes from."""

    text: str
    origin: Origin


class Settings(NamedTuple):
    """The settings of a group of jobs.

    `history` has all values that each setting (`env.USE_MAGMA`) had, the effective one last.
    `needs` do not affect the result.
    """

    values: dict[str, Setting]
    history: dict[str, tuple[SettingSource, ...]]
    needs: Needs


class SettingsMaker:
    """Makes settings, and shares equal ones between jobs."""

    def __init__(self, config: Config) -> None:
        self.config = config
        self.tables = config.tables
        self._compiling = config.project.recipe.compiling
        self._overrides = {
            stage: [
                (index, override.pattern)
                for index, override in enumerate(config.overrides)
                if stage in override.stages
            ]
            for stage in Stage
        }
        self._made: dict[tuple[Stage, Scope | None, str | None, tuple[int, ...]], Settings] = {}

    def of_source(self) -> Settings:
        """Return the source's settings: its commit or digest if known, else its location."""
        draft = self._draft(Stage.SOURCE)
        source = self.config.source
        if source.digest is not None:
            draft.set("digest", source.digest, self.config.origin("source.path"))
        elif source.sha256 is not None:
            draft.set("sha256", source.sha256, self.config.origin("source.sha256"))
        elif source.debian is not None:
            draft.set("debian", source.debian, self.config.origin("source.debian"))
        elif source.commit is not None:
            key = "commit" if "source.commit" in self.config.origins else "rev"
            draft.set("commit", source.commit, self.config.origin(f"source.{key}"))
        else:
            draft.set("git", source.git or "", self.config.origin("source.git"))
            draft.set("rev", source.rev or "", self.config.origin("source.rev"))
        draft.set("submodules", source.submodules, self.config.origin("source.submodules"))
        if source.also:
            also = {part.requested: part.identity for part in source.also}
            draft.set("also", also, self.config.origin("source.also"))
        if patches := self.config.patches.texts:
            origin = self.config.origin("source.patches")
            draft.set_files("patches", patches, origin)
            draft.set("series", tuple(patches), origin)
        return draft.finish(self._all_overrides(Stage.SOURCE))

    def of_publish(self, channel: ChannelConfig) -> Settings:
        draft = self._draft(Stage.PUBLISH)
        path = f"channel.{channel.name}"
        draft.set("channel", channel.name, self.config.origin(path))
        draft.set("url", channel.url, self.config.origin(f"{path}.url"))
        if Stage.PUBLISH not in self.config.steps:
            draft.set("external", channel.external, self.config.origin(f"{path}.external"))
            draft.set("variants", channel.variants, self.config.origin(f"{path}.variants"))
            if channel.upstream:
                draft.set("upstream", channel.upstream, self.config.origin(f"{path}.upstream"))
            if channel.smoke != "planned":
                draft.set("smoke", channel.smoke, self.config.origin(f"{path}.smoke"))
            if channel.sandbox != "any":
                draft.set("sandbox", channel.sandbox, self.config.origin(f"{path}.sandbox"))
            if self.config.conda_outputs:
                self._set_outputs(draft)
            self._set_check(draft)
        return draft.finish(self._all_overrides(Stage.PUBLISH))

    def of(self, stage: Stage, scope: Scope, form: str | None) -> Settings:
        """Return the settings of a job of a block, of its Python or of a cell.

        `form` is the package format of a cell.
        """
        head = (scope[0], scope[1], scope[2])
        overrides = tuple([i for i, pattern in self._overrides[stage] if pattern.matches(scope)])
        compiles, packs = stage is self._compiling, stage is Stage.PACKAGE
        formed = form if packs or stage is Stage.SMOKE else None
        environment = self._environment(stage, scope)
        about: Scope = scope[:4] if environment or (compiles and self._is_locked) else head
        has_index = stage is Stage.SMOKE and bool(self.config.smoke.indexes)
        is_own = compiles or packs or has_index or bool(environment)
        key = (stage, about if is_own else None, formed, overrides)
        made = self._made.get(key)
        if made is None:
            draft = self._draft(stage)
            if compiles:
                self._set_compiling(draft, *head)
            if compiles and self._is_locked:
                self._set_locked(draft, scope_path(scope[:4]))
            if lock := self.config.lock.conda.get(environment):
                draft.set_environments(environment, lock)
            if packs and form is not None:
                self._set_packaging(draft, form, *head)
            if stage is Stage.CHECK and stage not in self.config.steps:
                self._set_check(draft)
            if stage is Stage.SMOKE and stage not in self.config.steps:
                self._set_smoke(draft, form, head)
            made = self._made[key] = draft.finish(overrides)
        return made

    def of_conda(self, stage: Stage, scope: Scope, outputs: Sequence[RecipeOutput]) -> Settings:
        """Return the settings of a job for outputs of a conda recipe: of their build, or of one."""
        draft, origin = self._draft(stage), Origin("recipe.yaml")
        names = {output.cell.package: f"{output.version}-{output.build}" for output in outputs}
        draft.set("outputs", names, origin)
        if stage in (Stage.CORE, Stage.BINDINGS):
            first, *_ = outputs
            subdir = self.tables.platforms[scope[0]].conda_subdir
            draft.set("subdir", subdir, Origin("data/platforms.toml"))
            draft.set("variant", first.variant, origin)
            draft.set("rattler_build", first.rattler_build, Origin("this machine"))
            draft.set("fetches", any(output.fetches for output in outputs), origin)
        else:
            draft.set("format", CONDA_FORMAT, Origin("data/packages.toml"))
        if stage is not Stage.PACKAGE:
            self._set_channels(draft, outputs)
        if stage is Stage.SMOKE and stage not in self.config.steps:
            self._set_smoke(draft, CONDA_FORMAT, (scope[0], scope[1], scope[2]))
        patterns = self._overrides[stage]
        return draft.finish(tuple(index for index, pattern in patterns if pattern.matches(scope)))

    def _set_channels(self, draft: "_Draft", outputs: Sequence[RecipeOutput]) -> None:
        """Set the channels that a conda recipe is built and tested with."""
        channels = self.config.conda_channels
        origin = self.config.origin("conda.channels")
        if not channels:
            channels = tuple(dict.fromkeys(name for out in outputs for name in out.channels))
            origin = Origin("recipe.yaml")
        draft.set(RECIPE_CHANNELS, channels, origin)

    def of_served(self, scope: Scope, form: str) -> Settings:
        """Return the settings of a smoke job with the torch of a served cell."""
        draft = self._draft(Stage.SMOKE)
        if Stage.SMOKE not in self.config.steps:
            self._set_smoke(draft, form, (scope[0], scope[1], scope[2]))
        self._set_locked(draft, scope_path(scope[:4]))
        patterns = self._overrides[Stage.SMOKE]
        return draft.finish(tuple(index for index, pattern in patterns if pattern.matches(scope)))

    def _set_compiling(self, draft: "_Draft", platform: str, compute: str, variant: str) -> None:
        project = self.config.project
        draft.set("name", project.name, self.config.origin("project.name"))
        draft.set("version", project.version, self.config.origin("project.version"))
        row = self.tables.compute[compute]
        if row.version:
            shipped, row_origin = Origin(row.source), self.config.row_origin
            origin = row_origin("compute", compute, "version") or shipped
            draft.set(row.platform, row.version, origin)
            origin = row_origin("compute", compute, "archs", platform) or shipped
            draft.set("archs", row.archs[platform], origin)
            self._set_own_archs(draft, platform, compute, variant)
        self._set_libraries(draft, compute, variant)
        if self.config.toolchain is not None:
            self._set_build(draft, self.config.toolchain, (platform, compute, variant))

    @property
    def _is_locked(self) -> bool:
        """Whether a lock file pins the environments of the jobs, as for extensions."""
        return self.config.project.recipe.is_extension

    def _set_locked(self, draft: "_Draft", name: str) -> None:
        requires = self.config.lock.requirements(name)
        if requires and self.config.toolchain is not None:
            draft.set("requires", requires, Origin(f"torchyard.lock: {name}"))

    def _environment(self, stage: Stage, scope: Scope) -> str:
        """Return the name of the conda lock of a job that compiles; empty if it has none."""
        toolchain = self.config.toolchain
        if toolchain is None or toolchain.conda is None:
            return ""
        names = {Stage.CORE: (scope[0], CORE_LOCK), Stage.BINDINGS: (scope[0], *scope[3:4])}
        return "/".join(names.get(stage, ()))

    def _set_build(self, draft: "_Draft", toolchain: Toolchain, head: Head) -> None:
        """Set what a recipe's own steps use: toolchain and build backend."""
        _, compute, _ = head
        wishes = {"compiler": toolchain.compiler, "blas": toolchain.blas}
        row = self.tables.compute[compute]
        if row.has_origin:
            wishes[row.platform] = toolchain.origin_of(row.platform)
        build, origin = self.config.build, self.config.origin
        draft.set("toolchain", wishes, origin("toolchain"))
        draft.set("identity", toolchain.parts_of(*head), Origin("this machine"))
        if not self._is_locked:
            draft.set("backend", build.backend, self._build_origin("backend"))
            draft.set("requires", build.requires, self._build_origin("requires"))
        if build.tree is not None:
            draft.set_tree(build.tree)
        variables = build.gpu_env if row.is_gpu else build.cpu_env
        draft.set_env(variables, Origin("data/extensions.toml"))
        if row.translate:
            draft.set("translate", row.translate, Origin(row.source))
        if row.env:
            draft.set("toolkit_env", row.env, Origin(row.source))
        if build.prepare:
            draft.set("prepare", build.prepare, origin("build.prepare"))
        if build.glibc is not None:
            draft.set("glibc", build.glibc, origin("build.glibc"))
        if build.linalg is not None and row.pinned:
            draft.set("linalg", build.linalg, origin("build.linalg"))
        if toolchain.cache is not None:
            bound = is_release_bound(self.config, head)
            draft.set("cache", not bound, origin("channel" if bound else "toolchain.cache"))

    def _build_origin(self, key: str) -> Origin:
        """Return the line that sets a key of [build], or else the row with its value."""
        config, preset = self.config, self.config.build.preset
        if preset is None or f"build.{key}" in config.origins:
            return config.origin(f"build.{key}")
        return config.row_origin("builds", preset, key) or Origin(f"data/builds.toml: {preset}")

    def _set_packaging(
        self, draft: "_Draft", form: str, platform: str, compute: str, variant: str
    ) -> None:
        draft.set("format", form, Origin("data/packages.toml"))
        number = self.config.project.build_number
        if number:
            draft.set("build_number", str(number), self.config.origin("project.build_number"))
        if self._is_locked:
            label, origin = self.config.build.label, self.config.origin("build.label")
            draft.set("label", local_label(label, compute, variant), origin)
            if self.config.build.abi is not AbiClass.FULL:
                draft.set("abi", self.config.build.abi.value, self.config.origin("build.abi"))
            dependencies = self.config.project.dependencies
            if dependencies and self.tables.formats[form].library_pins:
                origin = self.config.origin("project.dependencies")
                draft.set("dependencies", dependencies, origin)
        row = self.tables.platforms[platform]
        for setting, column in self.tables.formats[form].platform.items():
            draft.set(setting, str(getattr(row, column)), Origin("data/platforms.toml"))
        if self.tables.formats[form].channels:
            self._set_conda(draft)
        if self.tables.formats[form].library_pins:
            self._set_libraries(draft, compute, variant)
            release = self._release(variant)
            if release is not None and compute in release.triton:
                origin = self._pin_origin(variant, "triton", compute)
                draft.set("triton", release.triton[compute], origin)

    def _set_conda(self, draft: "_Draft") -> None:
        config = self.config
        if config.conda_libraries != "bundled":
            draft.set("libraries", config.conda_libraries, config.origin("conda.libraries"))
        if config.conda_license:
            draft.set("license", config.conda_license, config.origin("conda.license"))
        if config.conda_outputs:
            self._set_outputs(draft)
        if config.conda_license_texts:
            origin = config.origin("conda.outputs")
            draft.set_files("license_texts", config.conda_license_texts, origin)

    def _set_outputs(self, draft: "_Draft") -> None:
        origin = self.config.origin("conda.outputs")
        draft.set("outputs", outputs_setting(self.config.conda_outputs), origin)

    def _set_check(self, draft: "_Draft") -> None:
        check, origin = self.config.check, self.config.origin("check.policy")
        self._set_version(draft)
        if check.text:
            draft.set_files("policy", {check.policy: check.text}, origin)
        else:
            draft.set("policy", check.policy, origin)

    def _set_smoke(self, draft: "_Draft", form: str | None, head: Head) -> None:
        smoke = self.config.smoke
        self._set_version(draft)
        draft.set("level", smoke.level, self.config.origin("smoke.level"))
        if smoke.tests:
            draft.set_files("tests", smoke.tests, self.config.origin("smoke.tests"))
        if form is not None and self.tables.formats[form].channels and smoke.channels:
            draft.set("channels", smoke.channels, self.config.origin("smoke.channels"))
        if form is not None and self.tables.formats[form].library_pins and smoke.indexes:
            _, compute, variant = head
            indexes = tuple(_cell_index(url, compute, variant) for url in smoke.indexes)
            draft.set("indexes", indexes, self.config.origin("smoke.indexes"))

    def _set_version(self, draft: "_Draft") -> None:
        """Set the version of torchyard, which ships rules, policies and tests."""
        draft.set("torchyard", __version__, Origin("torchyard"))

    def _set_libraries(self, draft: "_Draft", compute: str, variant: str) -> None:
        release = self._release(variant)
        if release is not None:
            for library, version in release.libraries.get(compute, {}).items():
                origin = self._pin_origin(variant, "libraries", compute, library)
                draft.set(library, version, origin)

    def _set_own_archs(self, draft: "_Draft", platform: str, compute: str, variant: str) -> None:
        """Set the architectures of the torch release, if known."""
        release = self._release(variant)
        archs = release.archs.get(compute, {}).get(platform) if release is not None else None
        if archs:
            draft.set("archs", archs, self._pin_origin(variant))

    def _release(self, variant: str) -> Release | None:
        return self.tables.releases.get(release_name(self.config, variant) or "")

    def _pin_origin(self, variant: str, *keys: str) -> Origin:
        """Return the line that sets a pin, or that chooses the torch release with the pin."""
        row = self.config.row_origin("releases", release_name(self.config, variant) or "", *keys)
        if row is not None:
            return row
        if self.config.project.recipe.is_extension:
            return self.config.origin("matrix.torch")
        key = "release" if "project.release" in self.config.origins else "version"
        return self.config.origin(f"project.{key}")

    def _all_overrides(self, stage: Stage) -> tuple[int, ...]:
        return tuple(index for index, _ in self._overrides[stage])

    def _draft(self, stage: Stage) -> "_Draft":
        return _Draft(self.config, stage)


class _Draft:
    """Settings under construction."""

    def __init__(self, config: Config, stage: Stage) -> None:
        self.config = config
        self.stage = stage
        self.needs = config.requirements.get(stage, Needs())
        self.values: dict[str, Setting] = {}
        self.history: dict[str, tuple[SettingSource, ...]] = {}
        self._tables: dict[str, dict[str, str]] = {"cmake": {}, "env": {}}

    def set_tree(self, name: str) -> None:
        """Set the entries of a kind of tree, unless an override changes them."""
        tree, shipped = self.config.tables.trees[name], Origin(f"data/trees.toml: {name}")
        for table, given in (("cmake", tree.cmake), ("env", tree.env)):
            for key, value in given.items():
                origin = self.config.row_origin("trees", name, table, key) or shipped
                self._set_entry(table, key, value, origin)

    def set_env(self, given: dict[str, str], origin: Origin) -> None:
        """Set variables of the build, unless an override changes them."""
        for name, value in given.items():
            self._set_entry("env", name, value, origin)

    def _set_entry(self, table: str, key: str, value: str, origin: Origin) -> None:
        self._tables[table][key] = value
        self._remember(f"{table}.{key}", value, origin)

    def set(self, name: str, value: Setting, origin: Origin) -> None:
        self.values[name] = value
        self._remember(name, value, origin)

    def set_files(self, name: str, files: dict[str, str], origin: Origin) -> None:
        """Set the texts of files; the history gets their names and a digest of all."""
        self.values[name] = files
        self._remember(name, f"{' '.join(files)} ({fingerprint(files)[:_DIGITS]})", origin)

    def set_environments(self, name: str, lock: str) -> None:
        """Set conda environments; the history gets the packages of each."""
        self.values[CONDA] = {name: lock}
        for environment, packages in conda_packages(lock).items():
            listed = " ".join(f"{package}={packages[package]}" for package in sorted(packages))
            text = f"{listed} ({fingerprint(lock)[:_DIGITS]})"
            origin = Origin(f"torchyard.conda/{name}.lock")
            self.history[f"conda.{environment}"] = (SettingSource(text, origin),)

    def _remember(self, name: str, value: Setting, origin: Origin) -> None:
        source = SettingSource(_spell(value), origin)
        self.history[name] = (*self.history.get(name, ()), source)

    def _set_steps(self) -> None:
        """Set the file's steps, which replace those of the recipe."""
        if self.stage in self.config.steps:
            origin = self.config.origin(f"steps.{self.stage.value}")
            self.set("steps", self.config.steps[self.stage], origin)

    def finish(self, overrides: tuple[int, ...]) -> Settings:
        """Apply the overrides in the order of the file; the last one wins."""
        self._set_steps()
        passed: dict[str, None] = {}
        for index in overrides:
            override = self.config.overrides[index]
            path = f"override[{index}]"
            if override.archs and "archs" in self.values:
                self.set("archs", override.archs, self.config.origin(f"{path}.archs"))
            for name, word in (("backend", override.backend), ("cache", override.cache)):
                if word is not None and name in self.values:
                    self.set(name, word, self.config.origin(f"{path}.{name}"))
            if override.pass_env:
                passed.update(dict.fromkeys(override.pass_env))
                origin = self.config.origin(f"{path}.pass_env")
                self.set("pass_env", tuple(sorted(passed)), origin)
            for table, given in (("cmake", override.cmake), ("env", override.env)):
                for key, value in given.items():
                    origin = self.config.origin(f"{path}.{table}.{key}")
                    self._set_entry(table, key, value, origin)
            self.needs = override.needs.over(self.needs)
        values = {
            **self.values,
            **{name: entries for name, entries in self._tables.items() if entries},
        }
        return Settings(values, self.history, self.needs)


def local_label(template: str, compute: str, variant: str) -> str:
    """Return the local version of an extension's packages, such as `pt213cu130`."""
    release = variant.removeprefix(TORCH_PREFIX).replace(".", "")
    return template.replace("{torch}", release).replace("{compute}", compute)


def _cell_index(template: str, compute: str, variant: str) -> str:
    """Return the index used to test a cell's wheels."""
    release = variant.removeprefix(TORCH_PREFIX)
    return template.replace("{release}", release).replace("{compute}", compute)


def _spell(value: Setting) -> str:
    """Return a setting as one line of text."""
    match value:
        case bool():
            return str(value).lower()
        case tuple():
            words = (item.title if isinstance(item, Step) else item for item in value)
            return ("; " if any(isinstance(item, Step) for item in value) else " ").join(words)
        case _:
            return str(value)
