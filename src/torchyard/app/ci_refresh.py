"""Bring the matrix of a file up to date with the torch releases of an index."""

from collections.abc import Callable, Sequence
from typing import NamedTuple

from torchyard.config.document import Document
from torchyard.config.load import config_of, load_config, read_document
from torchyard.config.lock import build_lock_path
from torchyard.config.positions import locate
from torchyard.config.tables import load_tables, toml_value
from torchyard.errors import ConfigError
from torchyard.host.files import exists, write_text
from torchyard.model.config import Config, own_release
from torchyard.model.recipe import Dimension
from torchyard.model.tables import TORCH_PREFIX
from torchyard.model.version import version_numbers
from torchyard.plan.build import make_plan
from torchyard.plan.diff import PlanDiff, diff_plans
from torchyard.workspace.progress import Meter, no_meter
from torchyard.workspace.torch_releases import TorchRange, find_releases

_MACHINE = "x86_64"


class RefreshedMatrix(NamedTuple):
    """The values that a matrix should have, and what that does to its packages.

    `diff` is None if a release is not known yet: locking describes it by its wheels.
    """

    text: str
    changes: dict[str, tuple[tuple[str, ...], tuple[str, ...]]]
    """Old and new values of each dimension that changes."""
    diff: PlanDiff | None


def refresh_matrix(
    file: str = "torchyard.toml",
    *,
    write: bool = False,
    meter: Meter = no_meter,
    say: Callable[[str], object] = lambda _: None,
) -> RefreshedMatrix:
    """Ask the index for the newest torch releases, and return the matrix by the file's rule.

    Args:
        file: The configuration, whose `[ci.refresh]` is the rule.
        write: Edit the file, and lock new environments.
        meter: Shows progress.
        say: Is told what is locked.
    """
    document = read_document(file)
    config = config_of(file, document)
    wanted = _wanted(config, meter)
    changes = {
        dimension: (old, new)
        for dimension, new in wanted.items()
        if (old := _listed(document, dimension)) != new
    }
    text = _edited(document, {dimension: new for dimension, (_, new) in changes.items()})
    known = set(load_tables().releases) | set(config.lock.releases)
    torches = wanted.get(Dimension.TORCH.value, ())
    is_known = all(torch.removeprefix(TORCH_PREFIX) in known for torch in torches)
    if write and changes:
        write_text(file, text, replace=True)
        if not is_known or exists(build_lock_path(file)):
            from torchyard.app.lock import lock_environments

            lock_environments(file, say=say)
        is_known = True
    if not is_known:
        return RefreshedMatrix(text, changes, None)
    after = load_config(file) if write else config_of(file, Document(document.name, text))
    return RefreshedMatrix(text, changes, diff_plans(make_plan(config), make_plan(after)))


def _wanted(config: Config, meter: Meter) -> dict[str, tuple[str, ...]]:
    """Return the values that dimensions should have, by the file's rule."""
    rule = config.ci.refresh
    if not rule.torch and not rule.python:
        msg = "the file has no rule for how many releases to build for"
        hint = "write [ci.refresh] with torch = 3, for the newest three releases"
        raise ConfigError(msg, hint=hint)
    if rule.torch and not config.project.recipe.is_extension:
        msg = f"recipe `{config.project.recipe.name}` is not built against torch releases"
        raise ConfigError(msg, hint="leave `torch` of [ci.refresh] out")
    python = config.tables.pythons[_listed_pythons(config)[0]].version
    found = find_releases(TorchRange(), python, _MACHINE, max(rule.torch, 1), meter)
    wanted: dict[str, tuple[str, ...]] = {}
    if rule.torch:
        minors = [own_release(wheel.version) for wheel in found[: rule.torch]]
        ordered = sorted(dict.fromkeys(minors), key=version_numbers)
        wanted[Dimension.TORCH.value] = tuple(f"{TORCH_PREFIX}{minor}" for minor in ordered)
    if rule.python:
        served = _pythons_of(found[0].version, python, config)
        wanted[Dimension.PYTHON.value] = tuple(served[-rule.python :])
    return wanted


def _listed_pythons(config: Config) -> Sequence[str]:
    return config.matrix.values[-2]


def _pythons_of(version: str, python: str, config: Config) -> list[str]:
    """Return the Pythons that a torch release has wheels for, but for free-threaded ones."""
    from torchyard.package.wheel.name import WheelName
    from torchyard.toolchain.index_wheels import release_wheels

    tags = {WheelName.parse(w.file).abi for w in release_wheels(f"torch=={version}", python)}
    return [
        name
        for name, row in config.tables.pythons.items()
        if name in tags and not row.free_threaded
    ]


def _listed(document: Document, dimension: str) -> tuple[str, ...]:
    values = document.raw["matrix"].get(dimension)
    if values is None:
        msg = f"[matrix] does not list `{dimension}` itself, so it can't be edited"
        raise ConfigError(msg, hint="a couple says it: leave it out of [ci.refresh]")
    return tuple(values)


def _edited(document: Document, values: dict[str, tuple[str, ...]]) -> str:
    """Return the text of a document with other lists in [matrix]; all else stays as it is."""
    text = document.text
    places = locate(text)
    spans = {places["matrix", dimension].value: new for dimension, new in values.items()}
    for (start, end), new in sorted(spans.items(), reverse=True):
        text = f"{text[:start]}{toml_value(new)}{text[end:]}"
    return text
