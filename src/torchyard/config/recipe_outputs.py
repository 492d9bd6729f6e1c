"""Name the outputs of a conda recipe as cells, and find what each build needs of the others."""

import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from msgspec.structs import replace

from torchyard.compute.registry import PLAIN
from torchyard.errors import ConfigError
from torchyard.model.identifier import ANY_PYTHON, Cell
from torchyard.model.recipe_output import CONDA_FORMAT, RecipeOutput, build_scope
from torchyard.model.tables import PackageKind, Tables
from torchyard.toolchain.conda_recipe import OutputName, output_name, render_recipe

if TYPE_CHECKING:
    from rattler_build import RenderedVariant, Stage1Recipe

DEFAULT_VARIANT = "default"
"""The variant of outputs that use no key with several values."""
CONDA_FORGE = "conda-forge"

_PYTHON, _CUDA, _TARGET, _CHANNELS = (
    *("python", "cuda_compiler_version"),
    *("target_platform", "channel_sources"),
)
_OF_ALL = frozenset((_PYTHON, _CUDA, _TARGET, _CHANNELS, "channel_targets"))
"""Keys that seldom name a variant: other fields of cells have them, or all outputs."""
_TAG = re.compile(r"(\d)\.(\d+)[^_]*(?:.*_cp\d+(t)\b)?")
_OTHER = re.compile(r"[^A-Za-z0-9_.]+")


class _Draft(NamedTuple):
    """An output, and all keys that it depends on, also through others that it pins exactly."""

    platform: str
    name: OutputName
    rendered: "RenderedVariant"
    used: dict[str, str]
    cell: Cell


def read_recipe_outputs(
    folder: str, platforms: Sequence[str], tables: Tables
) -> tuple[RecipeOutput, ...]:
    """Return the outputs of the recipe in a directory; those for any platform are of the first."""
    drafts: list[_Draft] = []
    for platform in platforms:
        row = tables.platforms.get(platform)
        made = render_recipe(Path(folder), row.conda_subdir) if row else []
        drafts += _drafts(platform, made, tables, noarch=platform == platforms[0])
    if not drafts:
        msg = f"the recipe in `{folder}` has no output for {', '.join(platforms) or 'no platform'}"
        raise ConfigError(msg, hint="its `skip` or its variants leave none")
    keys = _naming_keys(drafts)
    named = [
        draft._replace(cell=draft.cell._replace(variant=_variant(draft.used, keys)))
        for draft in drafts
    ]
    if len({draft.cell for draft in named}) < len(named):
        msg = f"two outputs of the recipe in `{folder}` have equal variants, and differ"
        raise ConfigError(msg, hint="torchyard names cells by the values of keys of variants")
    return tuple(_output(draft, named) for draft in named)


def with_recipe_outputs(tables: Tables, outputs: Sequence[RecipeOutput]) -> Tables:
    """Return tables in which the outputs of a recipe are the kinds of packages."""
    kinds: dict[str, PackageKind] = {}
    for output in outputs:
        _, _, _, python, name = output.cell
        kind = PackageKind(
            title=f"{name} {output.version}",
            format=CONDA_FORMAT,
            per_python=python != ANY_PYTHON,
            pinned=False,
        )
        if kinds.setdefault(name, kind).per_python != kind.per_python:
            msg = f"the output `{name}` has a Python in some variants only"
            raise ConfigError(msg, hint="torchyard can't run such a recipe")
    variants = dict.fromkeys(output.cell.variant for output in outputs)
    return replace(tables, packages=kinds, variants=tuple(variants))


def _drafts(
    platform: str, made: Sequence["RenderedVariant"], tables: Tables, *, noarch: bool
) -> Iterator[_Draft]:
    used: dict[str, dict[str, str]] = {}
    for rendered in made:
        name = output_name(rendered)
        own = {key: str(value) for key, value in rendered.recipe.used_variant.items()}
        pinned = (used.get(f"{n} {value}", {}) for n, value in rendered.variant.items())
        own = {key: value for keys in (*pinned, own) for key, value in keys.items()}
        used[f"{name.name} {name.version} {name.build}"] = own
        if rendered.recipe.build.noarch is None or noarch:
            cell = Cell(platform, _compute(own, tables), "", _python(own, tables), name.name)
            yield _Draft(platform, name, rendered, own, cell)


def _compute(used: Mapping[str, str], tables: Tables) -> str:
    """Return the compute platform: CUDA in the version of its compiler, if there is one."""
    name = f"cu{used.get(_CUDA, '').replace('.', '')}"
    return name if name in tables.compute else PLAIN


def _python(used: Mapping[str, str], tables: Tables) -> str:
    found = _TAG.match(used.get(_PYTHON, ""))
    if found is None:
        return ANY_PYTHON
    tag = f"cp{found[1]}{found[2]}{found[3] or ''}"
    if tag not in tables.pythons:
        msg = f"the recipe has a variant for Python {used[_PYTHON]}, which torchyard does not know"
        raise ConfigError(
            msg, hint=f'add [tables.pythons.{tag}] with version = "{found[1]}.{found[2]}"'
        )
    return tag


def _naming_keys(drafts: Sequence[_Draft]) -> list[str]:
    """Return the fewest keys that tell all outputs apart, rather words than numbers."""
    values: dict[str, set[str]] = {}
    for draft in drafts:
        for key, value in draft.used.items():
            values.setdefault(key, set()).add(value)
    keys = sorted(key for key in values if len(values[key]) > 1)

    def worth(key: str) -> tuple[bool, bool]:
        return key not in _OF_ALL, any(value[:1].isalpha() for value in values[key])

    for key in sorted(keys, key=worth):
        fewer = [other for other in keys if other != key]
        if _count(drafts, fewer) == _count(drafts, keys):
            keys = fewer
    return keys


def _count(drafts: Iterable[_Draft], keys: Collection[str]) -> int:
    return len({(draft.cell, *(draft.used.get(key) for key in keys)) for draft in drafts})


def _variant(used: Mapping[str, str], keys: Iterable[str]) -> str:
    """Return the name of a variant: its values, with their key where they are no words."""
    parts = []
    for key in keys:
        value = used.get(key, "")
        is_word = value[:1].isalpha() and value.lower() not in ("true", "false", "none")
        parts += [value if is_word else f"{key}{value}"] if value else []
    return _OTHER.sub("_", "_".join(parts)).strip("_.") or DEFAULT_VARIANT


def _output(draft: _Draft, drafts: Sequence[_Draft]) -> RecipeOutput:
    recipe = draft.rendered.recipe
    own, name = build_scope(draft.cell), draft.name
    needs = {build_scope(other.cell) for other in _beside(draft, drafts, _built_with(recipe))}
    used, left = {draft.cell: draft}, [draft]
    while left:
        last = left.pop()
        required = {
            *_built_with(last.rendered.recipe),
            *_names(last.rendered.recipe.requirements.run),
        }
        left += (new := [d for d in _beside(last, drafts, required) if d.cell not in used])
        used |= {other.cell: other for other in new}
    channels = draft.used.get(_CHANNELS, CONDA_FORGE).split(",")
    sources = [source.to_dict() for source in recipe.sources]
    sources += (s for cache in recipe.staging_caches for s in cache.to_dict().get("source", ()))
    return RecipeOutput(
        cell=draft.cell,
        version=name.version,
        build=name.build,
        variant=draft.used,
        channels=tuple(channel.strip() for channel in channels),
        fetches=any("path" not in source for source in sources),
        rattler_build=version("py-rattler-build"),
        needs=tuple(sorted(needs - {own})),
        uses=tuple(sorted({build_scope(cell) for cell in used})),
    )


def _built_with(recipe: "Stage1Recipe") -> set[str]:
    """Return the names of what an output, and staging builds for it, are built with."""
    parts = (recipe.requirements, *(cache.requirements for cache in recipe.staging_caches))
    return {name for part in parts for name in _names((*part.build, *part.host))}


def _beside(draft: _Draft, drafts: Sequence[_Draft], names: Collection[str]) -> list[_Draft]:
    """Return the other outputs with these names that an output can use."""
    return [d for d in drafts if d is not draft and d.name.name in names and _fits(d, draft)]


def _names(requirements: Iterable[object]) -> Iterator[str]:
    """Yield the names of required packages; those of pins are in a table."""
    for requirement in requirements:
        if isinstance(requirement, dict):
            yield from (str(pin["name"]) for pin in requirement.values())
        else:
            yield str(requirement).split()[0]


def _fits(other: _Draft, draft: _Draft) -> bool:
    """Return whether an output can be used by another: as it pins it, or in an equal variant."""
    pinned = draft.rendered.variant.get(other.name.name)
    if pinned == f"{other.name.version} {other.name.build}":
        return True
    shared = other.used.keys() & draft.used.keys() - {_TARGET}
    is_near = draft.platform == other.platform or other.rendered.recipe.build.noarch is not None
    return pinned is None and is_near and all(other.used[k] == draft.used[k] for k in shared)
