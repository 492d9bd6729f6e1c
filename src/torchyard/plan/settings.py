"""What a job's result depends on besides its inputs: facts from the tables, and overrides."""

from typing import NamedTuple

from torchyard.model.canonical import fingerprint
from torchyard.model.config import Channel, Config
from torchyard.model.matrix import Needs
from torchyard.model.recipe import Dimension, Stage
from torchyard.model.step import Setting, Step
from torchyard.model.tables import Release, Tables
from torchyard.model.toolchain import Toolchain
from torchyard.model.values import Origin
from torchyard.plan.constraints import Head, Scope, is_release_bound, release_of
from torchyard.version import __version__

_DIGITS = 16


class SettingSource(NamedTuple):
    """What somebody said a setting should be."""

    text: str
    origin: Origin


class Settings(NamedTuple):
    """The settings of some jobs.

    `history` has, for each of them unfolded (`env.USE_MAGMA`),
    all that was said about it, the last word last; `needs` have no influence on the result.
    """

    values: dict[str, Setting]
    history: dict[str, tuple[SettingSource, ...]]
    needs: Needs


class SettingsMaker:
    """Makes settings once for all the jobs that have the same."""

    def __init__(self, config: Config, tables: Tables) -> None:
        self.config = config
        self.tables = tables
        self._compiling = config.project.recipe.compiling
        self._overrides = {
            stage: [
                (index, override.pattern)
                for index, override in enumerate(config.overrides)
                if stage in override.stages
            ]
            for stage in Stage
        }
        self._made: dict[tuple[Stage, Head | None, str | None, tuple[int, ...]], Settings] = {}

    def of_source(self) -> Settings:
        """A source is its commit if that is known, whatever repository it is taken from."""
        draft = self._draft(Stage.SOURCE)
        source = self.config.source
        if source.digest is not None:
            draft.say("digest", source.digest, self.config.origin("source.path"))
        elif source.commit is not None:
            key = "commit" if "source.commit" in self.config.origins else "rev"
            draft.say("commit", source.commit, self.config.origin(f"source.{key}"))
        else:
            draft.say("git", source.git or "", self.config.origin("source.git"))
            draft.say("rev", source.rev or "", self.config.origin("source.rev"))
        draft.say("submodules", source.submodules, self.config.origin("source.submodules"))
        return draft.finish(self._all_overrides(Stage.SOURCE))

    def of_publish(self, channel: Channel) -> Settings:
        draft = self._draft(Stage.PUBLISH)
        path = f"channel.{channel.name}"
        draft.say("channel", channel.name, self.config.origin(path))
        draft.say("url", channel.url, self.config.origin(f"{path}.url"))
        if Stage.PUBLISH not in self.config.steps:
            draft.say("external", channel.external, self.config.origin(f"{path}.external"))
            draft.say("variants", channel.variants, self.config.origin(f"{path}.variants"))
            self._say_check(draft)
        return draft.finish(self._all_overrides(Stage.PUBLISH))

    def of(self, stage: Stage, scope: Scope, form: str | None) -> Settings:
        """Return the settings of a job about a block, a Python of it or a cell.

        `form` is the package format of a cell.
        """
        head = (scope[0], scope[1], scope[2])
        overrides = tuple([i for i, pattern in self._overrides[stage] if pattern.matches(scope)])
        compiles, packs = stage is self._compiling, stage is Stage.PACKAGE
        formed = form if packs or stage is Stage.SMOKE else None
        key = (stage, head if compiles or packs else None, formed, overrides)
        made = self._made.get(key)
        if made is None:
            draft = self._draft(stage)
            if compiles:
                self._say_compiling(draft, *head)
            if packs and form is not None:
                self._say_packaging(draft, form, *head)
            if stage is Stage.CHECK and stage not in self.config.steps:
                self._say_check(draft)
            if stage is Stage.SMOKE and stage not in self.config.steps:
                self._say_smoke(draft, form)
            made = self._made[key] = draft.finish(overrides)
        return made

    def _say_compiling(self, draft: "_Draft", platform: str, compute: str, variant: str) -> None:
        project = self.config.project
        draft.say("name", project.name, self.config.origin("project.name"))
        draft.say("version", project.version, self.config.origin("project.version"))
        row = self.tables.compute[compute]
        if row.version:
            origin = Origin(row.source)
            draft.say(row.platform, row.version, origin)
            draft.say("archs", row.archs[platform], origin)
        self._say_libraries(draft, compute, variant)
        if self.config.toolchain is not None:
            self._say_build(draft, self.config.toolchain, (platform, compute, variant))

    def _say_build(self, draft: "_Draft", toolchain: Toolchain, head: Head) -> None:
        """What a recipe's own steps want to know: with what the project is built, and how."""
        _, compute, _ = head
        wishes = {"compiler": toolchain.compiler, "blas": toolchain.blas}
        row = self.tables.compute[compute]
        if row.has_origin:
            wishes[row.platform] = toolchain.origin_of(row.platform)
        build, origin = self.config.build, self.config.origin
        draft.say("toolchain", wishes, origin("toolchain"))
        draft.say("identity", toolchain.parts_of(*head), Origin("this machine"))
        draft.say("backend", build.backend, origin("build.backend"))
        draft.say("requires", build.requires, origin("build.requires"))
        if build.linalg is not None and row.pinned:
            draft.say("linalg", build.linalg, origin("build.linalg"))
        if toolchain.cache is not None:
            bound = is_release_bound(self.config, head)
            draft.say("cache", not bound, origin("channel" if bound else "toolchain.cache"))

    def _say_packaging(
        self, draft: "_Draft", form: str, platform: str, compute: str, variant: str
    ) -> None:
        draft.say("format", form, Origin("data/packages.toml"))
        row = self.tables.platforms[platform]
        for setting, column in self.tables.formats[form].platform.items():
            draft.say(setting, str(getattr(row, column)), Origin("data/platforms.toml"))
        if self.tables.formats[form].library_pins:
            self._say_libraries(draft, compute, variant)
            release = self._release(variant)
            if release is not None and compute in release.triton:
                draft.say("triton", release.triton[compute], self._release_origin())

    def _say_check(self, draft: "_Draft") -> None:
        check, origin = self.config.check, self.config.origin("check.policy")
        self._say_version(draft)
        if check.text:
            draft.say_files("policy", {check.policy: check.text}, origin)
        else:
            draft.say("policy", check.policy, origin)

    def _say_smoke(self, draft: "_Draft", form: str | None) -> None:
        smoke = self.config.smoke
        self._say_version(draft)
        draft.say("level", smoke.level, self.config.origin("smoke.level"))
        if smoke.tests:
            draft.say_files("tests", smoke.tests, self.config.origin("smoke.tests"))
        if form is not None and self.tables.formats[form].channels and smoke.channels:
            draft.say("channels", smoke.channels, self.config.origin("smoke.channels"))

    def _say_version(self, draft: "_Draft") -> None:
        """Rules, policies and tests that are shipped are those of one torchyard."""
        draft.say("torchyard", __version__, Origin("torchyard"))

    def _say_libraries(self, draft: "_Draft", compute: str, variant: str) -> None:
        release = self._release(variant)
        if release is not None:
            for library, version in release.libraries.get(compute, {}).items():
                draft.say(library, version, self._release_origin())

    def _release(self, variant: str) -> Release | None:
        return self.tables.releases.get(release_of(self.config, variant) or "")

    def _release_origin(self) -> Origin:
        """The line that chose the torch release whose libraries are taken."""
        if self.config.project.recipe.variant is Dimension.TORCH:
            return self.config.origin("matrix.torch")
        key = "release" if "project.release" in self.config.origins else "version"
        return self.config.origin(f"project.{key}")

    def _all_overrides(self, stage: Stage) -> tuple[int, ...]:
        return tuple(index for index, _ in self._overrides[stage])

    def _draft(self, stage: Stage) -> "_Draft":
        return _Draft(self.config, stage)


class _Draft:
    """Settings while things are still being said about them."""

    def __init__(self, config: Config, stage: Stage) -> None:
        self.config = config
        self.stage = stage
        self.needs = config.requirements.get(stage, Needs())
        self.values: dict[str, Setting] = {}
        self.history: dict[str, tuple[SettingSource, ...]] = {}

    def say(self, name: str, value: Setting, origin: Origin) -> None:
        self.values[name] = value
        self._remember(name, value, origin)

    def say_files(self, name: str, files: dict[str, str], origin: Origin) -> None:
        """Take the texts of files; whoever asks is told their names, and one digest of all."""
        self.values[name] = files
        self._remember(name, f"{' '.join(files)} ({fingerprint(files)[:_DIGITS]})", origin)

    def _remember(self, name: str, value: Setting, origin: Origin) -> None:
        said = SettingSource(_spell(value), origin)
        self.history[name] = (*self.history.get(name, ()), said)

    def _say_steps(self) -> None:
        """Steps that the file gives stand in place of the recipe's."""
        if self.stage in self.config.steps:
            origin = self.config.origin(f"steps.{self.stage.value}")
            self.say("steps", self.config.steps[self.stage], origin)

    def finish(self, overrides: tuple[int, ...]) -> Settings:
        """Lay the overrides over everything, in the order of the file: the last one wins."""
        self._say_steps()
        tables: dict[str, dict[str, str]] = {"cmake": {}, "env": {}}
        passed: dict[str, None] = {}
        for index in overrides:
            override = self.config.overrides[index]
            path = f"override[{index}]"
            if override.archs and "archs" in self.values:
                self.say("archs", override.archs, self.config.origin(f"{path}.archs"))
            for name, word in (("backend", override.backend), ("cache", override.cache)):
                if word is not None and name in self.values:
                    self.say(name, word, self.config.origin(f"{path}.{name}"))
            if override.pass_env:
                passed.update(dict.fromkeys(override.pass_env))
                origin = self.config.origin(f"{path}.pass_env")
                self.say("pass_env", tuple(sorted(passed)), origin)
            for name, given in (("cmake", override.cmake), ("env", override.env)):
                tables[name].update(given)
                for key, value in given.items():
                    origin = self.config.origin(f"{path}.{name}.{key}")
                    self._remember(f"{name}.{key}", value, origin)
            self.needs = override.needs.over(self.needs)
        values = {**self.values, **{name: table for name, table in tables.items() if table}}
        return Settings(values, self.history, self.needs)


def _spell(value: Setting) -> str:
    """Write a setting in one line."""
    match value:
        case bool():
            return str(value).lower()
        case tuple():
            words = (item.title if isinstance(item, Step) else item for item in value)
            return ("; " if any(isinstance(item, Step) for item in value) else " ").join(words)
        case _:
            return str(value)
