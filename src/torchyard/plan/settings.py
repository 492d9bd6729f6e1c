"""What a job's result depends on besides its inputs: facts from the tables, and overrides."""

from typing import NamedTuple

from torchyard.model.canonical import canonical_json
from torchyard.model.matrix import Needs
from torchyard.model.recipe import Dimension, Stage
from torchyard.model.tables import TORCH_PREFIX, Tables
from torchyard.model.values import Origin
from torchyard.model.yard import Channel, Yard

Setting = str | bool | list[str] | dict[str, str]


class Settings(NamedTuple):
    """The settings of some jobs, where each came from, and their canonical JSON."""

    values: dict[str, Setting]
    origins: dict[str, Origin]
    encoded: str
    needs: Needs


class SettingsMaker:
    """Makes settings once for all the jobs that have the same."""

    def __init__(self, yard: Yard, tables: Tables) -> None:
        self.yard = yard
        self.tables = tables
        stages = yard.project.recipe.stages
        self._compiling = Stage.CORE if Stage.CORE in stages else Stage.BINDINGS
        self._with_facts = (self._compiling, Stage.PACKAGE)
        self._made: dict[tuple[Stage, tuple[str, str, str] | None, tuple[int, ...]], Settings] = {}

    def of_source(self) -> Settings:
        yard = self.yard
        values: dict[str, Setting] = {"name": yard.project.name, "version": yard.project.version}
        origins = {key: yard.origin(f"project.{key}") for key in values}
        if yard.source.path is None:
            for key, value in (("git", yard.source.git), ("rev", yard.source.rev)):
                values[key] = value or ""
                origins[key] = yard.origin(f"source.{key}")
        else:
            values["digest"] = yard.source.digest or ""
            origins["digest"] = yard.origin("source.path")
        values["submodules"] = yard.source.submodules
        origins["submodules"] = yard.origin("source.submodules")
        return self._with_overrides(Stage.SOURCE, values, origins, self._all_for(Stage.SOURCE))

    def of_publish(self, channel: Channel) -> Settings:
        values: dict[str, Setting] = {"channel": channel.name, "url": channel.url}
        path = f"channel.{channel.name}"
        origins = {"channel": self.yard.origin(path), "url": self.yard.origin(f"{path}.url")}
        return self._with_overrides(Stage.PUBLISH, values, origins, self._all_for(Stage.PUBLISH))

    def _all_for(self, stage: Stage) -> tuple[int, ...]:
        overrides = enumerate(self.yard.overrides)
        return tuple(index for index, override in overrides if stage in override.stages)

    def of(
        self,
        stage: Stage,
        platform: str,
        compute: str,
        variant: str,
        overrides: tuple[int, ...],
    ) -> Settings:
        """The settings of a job about this block, given which overrides match it."""
        about = (platform, compute, variant) if stage in self._with_facts else None
        key = (stage, about, overrides)
        made = self._made.get(key)
        if made is None:
            values, origins = self._facts(stage, platform, compute, variant)
            made = self._with_overrides(stage, values, origins, overrides)
            self._made[key] = made
        return made

    def _facts(
        self, stage: Stage, platform: str, compute: str, variant: str
    ) -> tuple[dict[str, Setting], dict[str, Origin]]:
        """What the tables say that this stage should know."""
        facts: list[tuple[str, Setting | None, str]] = []
        if stage is self._compiling:
            cuda, rocm = self.tables.cuda.get(compute), self.tables.rocm.get(compute)
            if cuda:
                facts += [
                    ("cuda", cuda.version, "cuda"),
                    ("archs", [*cuda.archs[platform]], "cuda"),
                ]
            if rocm:
                facts += [
                    ("rocm", rocm.version, "rocm"),
                    ("archs", [*rocm.archs[platform]], "rocm"),
                ]
        if stage is Stage.PACKAGE:
            facts += [("platform_tag", self.tables.platforms[platform].wheel_tag, "platforms")]
            facts += [("triton", self._triton(compute, variant), "releases")]
        if stage in self._with_facts:
            pins = self._pins(compute, variant)
            facts += [(name, version, "releases") for name, version in pins.items()]
        written = [(name, value, table) for name, value, table in facts if value is not None]
        values = {name: value for name, value, _ in written}
        return values, {name: Origin(f"data/{table}.toml") for name, _, table in written}

    def _pins(self, compute: str, variant: str) -> dict[str, str | None]:
        """The libraries that the torch release is compiled against for this compute."""
        release = self.tables.releases.get(self.release_of(variant))
        if release and compute in release.cuda:
            cuda = release.cuda[compute]
            return {"cudnn": cuda.cudnn, "nccl": cuda.nccl}
        if release and release.xpu and compute == "xpu":
            return {"oneapi": release.xpu.oneapi}
        return {}

    def _triton(self, compute: str, variant: str) -> str | None:
        """The Triton that the packages of a torch release ask for; a CPU needs none."""
        release = self.tables.releases.get(self.release_of(variant))
        if release is None or compute == "cpu":
            return None
        if compute == "xpu":
            return release.xpu.triton if release.xpu else None
        return release.triton

    def release_of(self, variant: str) -> str:
        """The torch release that counts: the project's own, or the one it is compiled against."""
        if self.yard.project.recipe.variant is Dimension.TORCH:
            return variant.removeprefix(TORCH_PREFIX)
        return self.yard.project.release

    def _with_overrides(
        self,
        stage: Stage,
        values: dict[str, Setting],
        origins: dict[str, Origin],
        overrides: tuple[int, ...],
    ) -> Settings:
        """Lay overrides over facts in the order of the file: the last one wins."""
        env: dict[str, str] = {}
        cmake: dict[str, str] = {}
        needs = self.yard.requirements.get(stage, Needs())
        for index in overrides:
            override = self.yard.overrides[index]
            path = f"override[{index}]"
            for name, table, given in (
                ("env", env, override.env),
                ("cmake", cmake, override.cmake),
            ):
                table.update(given)
                keys = {f"{name}.{key}" for key in given}
                origins.update({key: self.yard.origin(f"{path}.{key}") for key in keys})
            if override.archs:
                values["archs"] = list(override.archs)
                origins["archs"] = self.yard.origin(f"{path}.archs")
            needs = override.needs.over(needs)
        if env:
            values["env"] = env
        if cmake:
            values["cmake"] = cmake
        return Settings(values, origins, canonical_json(values).decode(), needs)
