"""Corrections of records in a conda channel: what solvers see of a package, never the package.

They have the form of conda's own patch instructions.
"""

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Literal, NamedTuple

import msgspec
from msgspec import UNSET, UnsetType

from torchyard.errors import UsageError
from torchyard.index.conda.record import conda_record, listed_record
from torchyard.index.entry import NOT_PATCHED, Entry
from torchyard.model.canonical import canonical_json
from torchyard.model.values import UNDECODABLE, Value
from torchyard.package.conda.name import required_name

INSTRUCTIONS = "patch_instructions.json"
"""The file with the corrections of a subdir, in a folder of its name."""


class RecordPatch(Value, kw_only=True):
    """The fields of a record to replace; null removes a field."""

    depends: tuple[str, ...] | UnsetType = UNSET
    constrains: tuple[str, ...] | UnsetType = UNSET
    track_features: str | UnsetType | None = UNSET
    features: str | UnsetType | None = UNSET
    license: str | UnsetType | None = UNSET
    license_family: str | UnsetType | None = UNSET


class _Instructions(Value, kw_only=True):
    """A file of patch instructions."""

    patch_instructions_version: Literal[1]
    tars: dict[str, RecordPatch] = msgspec.field(name="packages", default_factory=dict)
    condas: dict[str, RecordPatch] = msgspec.field(name="packages.conda", default_factory=dict)
    remove: tuple[str, ...] = ()
    revoke: tuple[str, ...] = ()


_PATCH = msgspec.json.Decoder(RecordPatch | None)
_RECORD = msgspec.json.Decoder(dict[str, object])


class Correction(NamedTuple):
    """New requirements in place of others of the same name, and requirements to remove."""

    depends: tuple[str, ...] = ()
    constrains: tuple[str, ...] = ()
    dropped: tuple[str, ...] = ()
    license: str | None = None

    def applied(self, entry: Entry) -> Entry:
        """Return an entry with these changes in addition to earlier ones."""
        record = conda_record(entry)
        patch = msgspec.structs.replace(
            _PATCH.decode(entry.patch) or RecordPatch(),
            depends=self._changed(record.depends, self.depends),
            constrains=self._changed(record.constrains, self.constrains),
        )
        if self.license is not None:
            patch = msgspec.structs.replace(patch, license=self.license)
        return patched(entry, patch)

    def _changed(self, specs: Iterable[str], new: Iterable[str]) -> tuple[str, ...]:
        by_name = {required_name(spec): spec for spec in new}
        kept = [by_name.pop(required_name(spec), spec) for spec in specs]
        both = (*kept, *by_name.values())
        return tuple(spec for spec in both if required_name(spec) not in self.dropped)


def patched(entry: Entry, patch: RecordPatch) -> Entry:
    """Return an entry with this correction only; fields that are the package's own are left out."""
    own = _RECORD.decode(entry.record)
    fields = msgspec.json.decode(msgspec.json.encode(patch), type=dict[str, object])
    empty: dict[str, object] = {"depends": [], "constrains": []}
    differing = {key: new for key, new in fields.items() if new != own.get(key, empty.get(key))}
    raw = msgspec.Raw(canonical_json(differing)) if differing else NOT_PATCHED
    return entry if raw == entry.patch else msgspec.structs.replace(entry, patch=raw)


def record_fields(entry: Entry) -> dict[str, tuple[str, ...]]:
    """Return what can be corrected in a package's record, and whether it is yanked, as texts."""
    known = _RECORD.decode(listed_record(entry))
    yanked = () if entry.yanked is None else (entry.yanked,)
    texts = {name: _texts(known.get(name)) for name in RecordPatch.__struct_fields__}
    return {**texts, "yanked": yanked}


def _texts(value: object) -> tuple[str, ...]:
    if isinstance(value, list):
        return tuple(map(str, value))
    return (str(value),) if value else ()


def read_instructions(folder: Path) -> Mapping[str, Mapping[str, RecordPatch]]:
    """Return the corrections in a directory: by subdir, then by file name."""
    found = {path.parent.name: _read(path) for path in sorted(folder.glob(f"*/{INSTRUCTIONS}"))}
    if not found:
        msg = f"`{folder}` has no file SUBDIR/{INSTRUCTIONS}"
        raise UsageError(msg, hint="name the unpacked directory of a package of patches")
    return found


def _read(path: Path) -> dict[str, RecordPatch]:
    try:
        read = msgspec.json.decode(path.read_bytes(), type=_Instructions)
    except (OSError, *UNDECODABLE) as error:
        msg = f"`{path}` can't be read as patch instructions: {error}"
        hint = f"a record can get {', '.join(RecordPatch.__struct_fields__)}"
        raise UsageError(msg, hint=hint) from error
    if read.remove or read.revoke:
        msg = f"`{path}` removes or revokes packages"
        raise UsageError(msg, hint="yank them with `torchyard channel yank`")
    return {**read.tars, **read.condas}
