"""Cells → jobs, each with its inputs and its fingerprint.

A fingerprint is the sha256 of the canonical JSON of `Plan.payload`. Encoding that afresh for each
of a million jobs would cost more than everything else, so the bytes are put together from parts
that were encoded once; a property test compares them with the plain way.
"""

import gc
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from hashlib import sha256

from torchyard.errors import PlanError
from torchyard.model.identifier import ANY_PYTHON, Cell, scope_path
from torchyard.model.recipe import Stage
from torchyard.model.tables import Tables
from torchyard.model.yard import Yard
from torchyard.plan.expand import Block, Expansion, Head, Pair, expand
from torchyard.plan.graph import Columns, Plan, Scope
from torchyard.plan.narrow import select_jobs
from torchyard.plan.select import EVERYTHING, Selection, select_blocks
from torchyard.plan.settings import Settings, SettingsMaker

_CELL_STAGES = (Stage.PACKAGE, Stage.CHECK, Stage.SMOKE)
SOURCE = 0
"""The index of the source job: it comes first in every plan."""


def make_plan(yard: Yard, tables: Tables, selection: Selection = EVERYTHING) -> Plan:
    """Plan a yard, or the part of it that is selected."""
    expansion = expand(yard, tables)
    builder = _Builder(expansion)
    with _uncollected():
        builder.add_source()
        for block in select_blocks(expansion, selection):
            builder.add_block(block)
    partial = bool(selection.select or selection.skip)
    if not partial:
        builder.add_publish(selection.subset)
    plan = Plan(expansion, builder.columns, subset=selection.subset, partial=partial)
    return select_jobs(plan, selection)


@contextmanager
def _uncollected() -> Iterator[None]:
    """Keep the garbage collector from walking millions of tuples again and again.

    They hold no cycles, so it could not find anything; it costs a quarter of the time.
    """
    collecting = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if collecting:
            gc.enable()


class _Builder:
    """Appends jobs to the columns of a plan. An input is known by its index."""

    def __init__(self, expansion: Expansion) -> None:
        self.yard = expansion.yard
        self.tables = expansion.tables
        self.pairs = expansion.pairs
        self.columns = Columns([], [], [], [], [])
        self._settings = SettingsMaker(self.yard, self.tables)
        self._overrides = [expansion.matcher(o.pattern) for o in self.yard.overrides]
        self._matching: dict[tuple[int, ...], dict[Pair, tuple[int, ...]]] = {}
        self._recipe = f'"],"recipe":"{self.yard.project.recipe.label}","scope":"'
        self._has_core = Stage.CORE in self.yard.project.recipe.stages

    def add_source(self) -> None:
        self._add(Stage.SOURCE, (), (), self._settings.of_source())

    def add_publish(self, subset: str | None) -> None:
        """Add a job for each channel that receives exactly this plan."""
        for channel in self.yard.channels.values():
            if channel.promote_from is None and channel.subset == subset:
                stages = enumerate(self.columns.stages)
                proven = tuple(index for index, stage in stages if stage in _CELL_STAGES)
                settings = self._settings.of_publish(channel)
                self._add(Stage.PUBLISH, (channel.name,), proven, settings)

    def add_block(self, block: Block) -> None:
        """Add the core of a block, its bindings for each Python, and its packages."""
        self._check_pins(block)
        overrides = tuple(
            i for i, matcher in enumerate(self._overrides) if matcher.reaches(block.head)
        )
        core = SOURCE
        if self._has_core:
            (settings,), _ = self._endings((Stage.CORE,), block.head, overrides)
            core = self._add(Stage.CORE, block.head, (SOURCE,), settings)
        by_pair = self._overrides_by_pair(overrides)
        parents = self._add_bindings(block, core, by_pair)
        self._add_cells(block, parents, by_pair)

    def _add_bindings(
        self, block: Block, core: int, by_pair: dict[Pair, tuple[int, ...]]
    ) -> dict[str, int]:
        """Bind a core to each of its Pythons, and say which job that Python's packages need."""
        stages, scopes, fingerprints, inputs, settings = self.columns
        needed = (SOURCE, core) if self._has_core else (SOURCE,)
        listed = '","'.join([fingerprints[index] for index in needed])
        opening = f'{{"inputs":["{listed}{self._recipe}{scope_path(block.head)}/'
        endings: dict[tuple[int, ...], tuple[tuple[Settings, ...], list[str]]] = {}
        parents = {ANY_PYTHON: core}
        for pair in block.pairs:
            python = pair[0]
            if python in parents:
                continue
            ending = endings.get(by_pair[pair])
            if ending is None:
                ending = self._endings((Stage.BINDINGS,), block.head, by_pair[pair])
                endings[by_pair[pair]] = ending
            made, (end,) = ending
            parents[python] = len(fingerprints)
            fingerprints.append(sha256(f"{opening}{python}{end}".encode()).hexdigest())
            stages.append(Stage.BINDINGS)
            scopes.append((*block.head, python))
            inputs.append(needed)
            settings += made
        return parents

    def _add_cells(
        self, block: Block, parents: dict[str, int], by_pair: dict[Pair, tuple[int, ...]]
    ) -> None:
        """Package, check and smoke every cell of a block. This is the hot loop."""
        stages, scopes, fingerprints, inputs, settings = self.columns
        head, recipe, start = block.head, self._recipe, scope_path(block.head)
        parent_of = {
            python: (f'{{"inputs":["{fingerprints[index]}{recipe}{start}/{python}/', (index,))
            for python, index in parents.items()
        }
        endings: dict[tuple[int, ...], tuple[tuple[Settings, ...], list[str]]] = {}
        index = len(stages)
        for pair in block.pairs:
            python, package = pair
            ending = endings.get(by_pair[pair])
            if ending is None:
                ending = self._endings(_CELL_STAGES, head, by_pair[pair])
                endings[by_pair[pair]] = ending
            made, (package_end, check_end, smoke_end) = ending
            opening, parent = parent_of[python]
            packed = sha256(f"{opening}{package}{package_end}".encode()).hexdigest()
            opening = f'{{"inputs":["{packed}{recipe}{start}/{python}/{package}'
            fingerprints += (
                packed,
                sha256(f"{opening}{check_end}".encode()).hexdigest(),
                sha256(f"{opening}{smoke_end}".encode()).hexdigest(),
            )
            scope = (*head, python, package)
            own = (index,)
            scopes += (scope, scope, scope)
            inputs += (parent, own, own)
            settings += made
            index += 3
        stages += _CELL_STAGES * len(block.pairs)

    def _endings(
        self, stages: Sequence[Stage], head: Head, overrides: Sequence[int]
    ) -> tuple[tuple[Settings, ...], list[str]]:
        """The settings of jobs of these stages, and how the JSON of their payloads ends."""
        made = []
        for stage in stages:
            matching = tuple(i for i in overrides if stage in self.yard.overrides[i].stages)
            made.append(self._settings.of(stage, *head, matching))
        return tuple(made), [_end(s, stage) for s, stage in zip(made, stages, strict=True)]

    def _add(self, stage: Stage, scope: Scope, inputs: tuple[int, ...], settings: Settings) -> int:
        columns = self.columns
        known = columns.fingerprints
        listed = '","'.join([known[index] for index in inputs])
        quoted = f'{{"inputs":["{listed}' if inputs else '{"inputs":['
        recipe = self._recipe if inputs else self._recipe[1:]
        payload = f"{quoted}{recipe}{scope_path(scope)}{_end(settings, stage)}"
        columns.fingerprints.append(sha256(payload.encode()).hexdigest())
        columns.stages.append(stage)
        columns.scopes.append(scope)
        columns.inputs.append(inputs)
        columns.settings.append(settings)
        return len(known) - 1

    def _overrides_by_pair(self, outer: tuple[int, ...]) -> dict[Pair, tuple[int, ...]]:
        """Which of a block's overrides match each of its pairs."""
        found = self._matching.get(outer)
        if found is None:
            masks = [(index, self._overrides[index].mask) for index in outer]
            found = self._matching[outer] = {
                pair: tuple(index for index, mask in masks if mask >> bit & 1)
                for bit, pair in enumerate(self.pairs)
            }
        return found

    def _check_pins(self, block: Block) -> None:
        """Fail early if a package would have to declare libraries of unknown versions."""
        platform, compute, variant = block.head
        if compute not in self.tables.cuda:
            return
        name = self._settings.release_of(variant)
        release = self.tables.releases.get(name)
        if release is not None and compute in release.cuda:
            return
        for python, package in block.pairs:
            if self.tables.packages[package].format != "conda":
                cell = Cell(platform, compute, variant, python, package)
                msg = f"torch {name} has no cuDNN and NCCL pins for {compute}: {cell.path}"
                known = ", ".join(n for n, r in self.tables.releases.items() if compute in r.cuda)
                hint = f'exclude these cells, or take other pins: [project] release = "…" ({known})'
                raise PlanError(msg, hint=hint)


def _end(settings: Settings, stage: Stage) -> str:
    return f'","settings":{settings.encoded},"stage":"{stage.value}"}}'
