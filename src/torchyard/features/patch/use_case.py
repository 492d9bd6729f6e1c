"""Correct what solvers see of conda packages in a channel."""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

from torchyard.errors import HostError, SelectionError, UsageError
from torchyard.features.patch.report import CorrectedFile, PatchReport, Solved, SolverAnswer
from torchyard.index.conda.patch import (
    Correction,
    RecordPatch,
    patched,
    read_instructions,
    record_fields,
)
from torchyard.index.entry import Entry, State
from torchyard.publish.channel.draft import ChangeReason
from torchyard.publish.channel.layout import PartName
from torchyard.publish.ops.patch import (
    Correct,
    Corrected,
    conda_parts,
    corrected_state,
    differences,
    patch,
    write_channel,
)
from torchyard.publish.select import Selection, choose, parse_selection
from torchyard.smoke.conda import UNSOLVABLE
from torchyard.smoke.conda import solve as solve_conda
from torchyard.toolchain.conda_lock import channel_address
from torchyard.workspace.clock import current_moment
from torchyard.workspace.locations import open_channel


def patch_records(
    channel: str,
    selectors: Sequence[str] = (),
    *,
    variants: Sequence[str] = (),
    files: Sequence[str] = (),
    depends: Sequence[str] = (),
    constrains: Sequence[str] = (),
    drop: Sequence[str] = (),
    license_: str | None = None,
    instructions: str | None = None,
    undo: bool = False,
    reason: str | None = None,
    dry_run: bool = False,
    solve: Sequence[str] = (),
    channels: Sequence[str] = (),
    virtual: Sequence[str] = (),
    file: str = "torchyard.toml",
) -> PatchReport:
    """Correct the records of conda packages in a channel; the packages stay as they are.

    Args:
        channel: The channel: its name in the file, its address or its directory.
        selectors: Requirements that name the packages, such as `pytorch==2.14.0`.
        variants: Only packages of these variants.
        files: Only packages of these file names.
        depends: Requirements, each instead of those of the same name.
        constrains: Constraints, each instead of those of the same name.
        drop: Names that are neither required nor constrained any more.
        license_: The licence.
        instructions: A directory with patch instructions, instead of all these.
        undo: Remove all corrections of the packages.
        reason: The reason, for the log; needed unless something is only shown.
        dry_run: Only show what would be done.
        solve: Requirements to solve for before and after.
        channels: More channels to solve with.
        virtual: Virtual packages to solve with, such as `__cuda=13.0`.
        file: The configuration that names channels.
    """
    if reason is None and not dry_run:
        msg = "a reason is missing"
        raise UsageError(msg, hint="give it by --reason TEXT: `torchyard channel log` shows it")
    change = Correction(tuple(depends), tuple(constrains), tuple(map(str.lower, drop)), license_)
    if [any(change), bool(instructions), undo].count(True) != 1 or bool(selectors) == bool(
        instructions
    ):
        msg = "there is nothing to correct, or too much at once"
        hint = "name packages and --depends, --constrains, --drop, --license or --undo; or --from"
        raise UsageError(msg, hint=hint)
    opened = open_channel(channel, file)
    head = opened.head()
    if instructions:
        correct, what = _instructed(Path(instructions)), f"as {instructions} says"
    else:
        selection = parse_selection(selectors, variants, files)
        if not {file.part for file in choose(opened, head, selection)} & {*conda_parts(head)}:
            msg = f"`{opened.url}` has no conda packages of `{selection}`"
            raise SelectionError(msg, hint="wheels have their requirements in themselves")
        correct, what = _selected(selection, None if undo else change), str(selection)
    parts = conda_parts(head) if dry_run or solve else ()
    before = {name: opened.state(head, name) for name in parts}
    after = {name: corrected_state(name, state, correct) for name, state in before.items()}
    sources, system = [*map(channel_address, channels)], dict(map(_virtual, virtual))
    solved = [
        Solved(
            spec=spec,
            before=_answer(spec, before, sources, system),
            after=_answer(spec, after, sources, system),
        )
        for spec in solve
    ]
    if dry_run:
        changed = [file for name in parts for file in differences(name, before[name], after[name])]
    else:
        why = ChangeReason(f"correct {what}: {reason}", current_moment())
        head, changed = patch(opened, correct, why)
    return PatchReport(
        channel=opened.url,
        generation=head.generation,
        dry_run=dry_run,
        files=[row for file in changed for row in _corrected(file)],
        solved=solved,
    )


def _instructed(folder: Path) -> Correct:
    found = read_instructions(folder)

    def correct(part: PartName, entry: Entry) -> Entry:
        patch = found.get(part.name, {}).get(entry.file)
        return patched(entry, patch) if patch else entry

    return correct


def _selected(selection: Selection, change: Correction | None) -> Correct:
    """Return what applies a change to selected packages, or removes all changes of these."""

    def correct(part: PartName, entry: Entry) -> Entry:
        if not selection.matches(part, entry):
            return entry
        return change.applied(entry) if change else patched(entry, RecordPatch())

    return correct


def _virtual(text: str) -> tuple[str, str]:
    name, _, version = text.partition("=")
    if not (name.startswith("__") and version):
        msg = f"`{text}` is not a virtual package"
        raise UsageError(msg, hint="write __cuda=13.0 or __glibc=2.28")
    return name, version


def _corrected(file: Corrected) -> Iterator[CorrectedFile]:
    """Yield the fields of a record that differ."""
    fields = [record_fields(entry) for entry in (file.before, file.after)]
    for name in sorted(fields[0].keys() | fields[1].keys()):
        old, new = (found.get(name, ()) for found in fields)
        if old != new:
            yield CorrectedFile(
                part=file.part,
                file=file.after.file,
                field=name,
                removed=tuple(text for text in old if text not in new),
                added=tuple(text for text in new if text not in old),
            )


def _answer(
    spec: str, states: Mapping[str, State], channels: Sequence[str], system: Mapping[str, str]
) -> SolverAnswer:
    """Solve for a requirement with a channel in these states."""
    with TemporaryDirectory(prefix="channel-") as folder:
        own = write_channel(Path(folder, "channel"), states)
        try:
            found = solve_conda([own, *channels], [spec], None, Path(folder, "cache"), system)
        except HostError as error:
            if error.reason != UNSOLVABLE:
                raise
            return SolverAnswer(packages={}, error=str(error))
    return SolverAnswer(packages={name: " ".join(chosen) for name, chosen in found.items()})
