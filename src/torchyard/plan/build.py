"""Cells → jobs, each with its inputs and its fingerprint.

A fingerprint is the sha256 of the canonical JSON of `Task.payload`. Encoding that afresh for each
of a million jobs would cost more than everything else, so the bytes are put together from parts
that were encoded once; a property test compares them with the plain way.
"""

import gc
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from hashlib import sha256

from torchyard.model.config import Config
from torchyard.model.identifier import ANY_PYTHON, Identifier, scope_path
from torchyard.model.recipe import CELL_STAGES, Stage
from torchyard.model.tables import Tables
from torchyard.plan.constraints import Head
from torchyard.plan.expand import Block, Expansion, expand
from torchyard.plan.graph import Columns, Plan, Scope
from torchyard.plan.select import EVERYTHING, Selection, select_blocks
from torchyard.plan.select_jobs import select_jobs
from torchyard.plan.settings import Settings, SettingsMaker

SOURCE = 0
"""The number of the source job: it comes first in every plan."""

Profile = tuple[str | None, tuple[int, ...]]
"""What tells the settings of a block's cells apart: package format and matching overrides."""

Row = tuple[str, str, int, Profile]
"""A cell of a block: Python, package, and its profile, with a number that is quick to look up."""

Endings = tuple[tuple[Settings, ...], list[str]]
"""The settings of some stages' jobs, and how the JSON of their payloads ends."""


def make_plan(config: Config, tables: Tables, selection: Selection = EVERYTHING) -> Plan:
    """Plan a config, or the part of it that is selected."""
    expansion = expand(config, tables)
    builder = _Builder(expansion)
    with _uncollected():
        builder.add_source()
        for block in select_blocks(expansion, selection):
            builder.add_block(block)
        if not selection.narrows_cells:
            builder.add_publish(selection.subset)
    partial = bool(selection.select or selection.skip)
    plan = Plan(expansion, builder.columns, subset=selection.subset, partial=partial)
    return select_jobs(plan, selection)


def make_plan_with(config: Config, tables: Tables, identifier: Identifier) -> Plan:
    """Make the plan that an identifier belongs to: a channel publishes the plan of its subset."""
    channel = config.channels.get(identifier.path) if identifier.stage is Stage.PUBLISH else None
    return make_plan(config, tables, Selection(channel.subset if channel else None))


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
    """Appends jobs to the columns of a plan. An input is known by its number."""

    def __init__(self, expansion: Expansion) -> None:
        self.config = expansion.config
        self.columns = Columns([], [], [], [], [])
        self._recipe = f'"],"recipe":"{self.config.project.recipe.name}","scope":"'
        self._has_core = Stage.CORE in self.config.project.recipe.stages
        self._split = {name for name, form in expansion.tables.formats.items() if form.split}
        self._smokes = Stage.SMOKE not in self.config.steps
        self._settings = SettingsMaker(self.config, expansion.tables)
        self._overrides = [expansion.matcher(o.pattern) for o in self.config.overrides]
        kinds = expansion.tables.packages
        self._formats = [(pair, kinds[pair[1]].format) for pair in expansion.pairs]
        self._profiles: dict[Profile, int] = {}
        self._rows_made: dict[tuple[int, tuple[int, ...]], list[Row]] = {}

    def add_source(self) -> None:
        self._add(Stage.SOURCE, (), (), self._settings.of_source())

    def add_publish(self, subset: str | None) -> None:
        """Add a job for each channel that receives exactly this plan."""
        channels = [c for c in self.config.channels.values() if c.receives(subset)]
        if channels:
            stages = enumerate(self.columns.stages)
            proven = tuple(number for number, stage in stages if stage in CELL_STAGES)
            for channel in channels:
                settings = self._settings.of_publish(channel)
                self._add(Stage.PUBLISH, (channel.name,), proven, settings)

    def add_block(self, block: Block) -> None:
        """Add the core of a block, its bindings for each Python, and its packages."""
        matchers = enumerate(self._overrides)
        overrides = tuple(index for index, matcher in matchers if matcher.reaches(block.head))
        needed: tuple[int, ...] = (SOURCE,)
        if self._has_core:
            (settings,), _ = self._endings((Stage.CORE,), block.head, (None, overrides))
            needed = (SOURCE, self._add(Stage.CORE, block.head, needed, settings))
        rows = self._rows(block, overrides)
        bound = self._add_bindings(block.head, needed, rows)
        self._add_cells(block.head, needed[-1], bound, rows)

    def _add_bindings(
        self, head: Head, needed: tuple[int, ...], rows: Sequence[Row]
    ) -> dict[str, int]:
        """Add a job for each Python of a block, and return their numbers."""
        stages, scopes, fingerprints, inputs, settings = self.columns
        opening = f"{self._opening(needed)}{self._recipe}{scope_path(head)}/"
        endings: dict[int, Endings] = {}
        bound: dict[str, int] = {}
        for python, _, key, profile in rows:
            if python == ANY_PYTHON or python in bound:
                continue
            ending = endings.get(key)
            if ending is None:
                ending = endings[key] = self._endings((Stage.BINDINGS,), head, profile)
            made, (end,) = ending
            bound[python] = len(fingerprints)
            fingerprints.append(sha256(f"{opening}{python}{end}".encode()).hexdigest())
            stages.append(Stage.BINDINGS)
            scopes.append((*head, python))
            inputs.append(needed)
            settings += made
        return bound

    def _add_cells(self, head: Head, core: int, bound: dict[str, int], rows: Sequence[Row]) -> None:
        """Package, check and smoke every cell of a block. This is the hot loop."""
        stages, scopes, fingerprints, inputs, settings = self.columns
        recipe, start = self._recipe, scope_path(head)
        needed: dict[str, tuple[int, ...]] = {ANY_PYTHON: (core,)}
        for python, number in bound.items():
            needed[python] = (core, number) if self._has_core else (number,)
        parents = {
            python: (f"{self._opening(numbers)}{recipe}{start}/{python}/", numbers)
            for python, numbers in needed.items()
        }
        made_from = {
            python: [fingerprints[number] for number in numbers]
            for python, numbers in needed.items()
        }
        endings: dict[int, Endings] = {}
        number = len(stages)
        for python, package, key, profile in rows:
            ending = endings.get(key)
            if ending is None:
                ending = endings[key] = self._endings(CELL_STAGES, head, profile)
            made, (package_end, check_end, smoke_end) = ending
            opening, parent = parents[python]
            packed = sha256(f"{opening}{package}{package_end}".encode()).hexdigest()
            scope_end = f"{recipe}{start}/{python}/{package}"
            opening = f'{{"inputs":["{packed}{scope_end}'
            checked = sha256(f"{opening}{check_end}".encode()).hexdigest()
            own: tuple[int, ...] = (number,)
            tried = own
            if self._smokes and profile[0] in self._split:
                # What it needs of the same build is in other packages, which it makes for itself.
                listed = '","'.join(sorted((packed, *made_from[python])))
                opening, tried = f'{{"inputs":["{listed}{scope_end}', (*parent, number)
            smoked = sha256(f"{opening}{smoke_end}".encode()).hexdigest()
            fingerprints += (packed, checked, smoked)
            scope = (*head, python, package)
            scopes += (scope, scope, scope)
            inputs += (parent, own, tried)
            settings += made
            number += 3
        stages += CELL_STAGES * len(rows)

    def _endings(self, stages: Sequence[Stage], head: Head, profile: Profile) -> Endings:
        form, overrides = profile
        made = []
        for stage in stages:
            matching = tuple(i for i in overrides if stage in self.config.overrides[i].stages)
            made.append(self._settings.of(stage, head, form, matching))
        return tuple(made), [self._end(s, stage) for s, stage in zip(made, stages, strict=True)]

    def _add(self, stage: Stage, scope: Scope, inputs: tuple[int, ...], settings: Settings) -> int:
        stages, scopes, fingerprints, all_inputs, all_settings = self.columns
        opening = self._opening(inputs) if inputs else '{"inputs":['
        recipe = self._recipe if inputs else self._recipe.removeprefix('"')
        payload = f"{opening}{recipe}{scope_path(scope)}{self._end(settings, stage)}"
        fingerprints.append(sha256(payload.encode()).hexdigest())
        stages.append(stage)
        scopes.append(scope)
        all_inputs.append(inputs)
        all_settings.append(settings)
        return len(stages) - 1

    def _opening(self, inputs: tuple[int, ...]) -> str:
        """How the JSON of a payload begins: with its inputs, in an order of their own."""
        listed = '","'.join(sorted([self.columns.fingerprints[number] for number in inputs]))
        return f'{{"inputs":["{listed}'

    def _end(self, settings: Settings, stage: Stage) -> str:
        revision = self.config.project.recipe.revision(stage)
        return (
            f'","settings":{settings.encoded},"stage":"{stage.value}","stage_revision":{revision}}}'
        )

    def _rows(self, block: Block, overrides: tuple[int, ...]) -> list[Row]:
        """The cells of a block with their profiles; most blocks have the same."""
        found = self._rows_made.get((block.mask, overrides))
        if found is None:
            masks = [(index, self._overrides[index].mask) for index in overrides]
            found = self._rows_made[block.mask, overrides] = []
            for bit, ((python, package), form) in enumerate(self._formats):
                if block.mask >> bit & 1:
                    profile = (form, tuple(index for index, mask in masks if mask >> bit & 1))
                    key = self._profiles.setdefault(profile, len(self._profiles))
                    found.append((python, package, key, profile))
        return found
