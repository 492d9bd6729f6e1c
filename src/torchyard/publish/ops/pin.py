"""Pins: versions that are never pruned, and pages with the hashes of their files."""

import re
from collections.abc import Iterable, Iterator
from urllib.parse import quote

import msgspec
from msgspec.structs import replace

from torchyard.errors import PublishError, SelectionError, UsageError
from torchyard.index.entry import Entry, State
from torchyard.index.page import Media, Page
from torchyard.index.sections import is_in_variants
from torchyard.model.suggest import did_you_mean
from torchyard.model.values import Value
from torchyard.publish.channel.channel import Channel
from torchyard.publish.channel.draft import ChangeReason, Edit
from torchyard.publish.channel.head import Head, Pin
from torchyard.publish.channel.layout import headers, key_of, parse_part
from torchyard.publish.select import Chosen, Selection, choose, project_of, public

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")
_FOLDER = "pins/"


class PinnedFile(Value, kw_only=True):
    """A pinned file; its address is relative to the page."""

    part: str
    project: str
    version: str
    variant: str
    file: str
    url: str
    sha256: str
    size: int
    commit: str = ""


class PinPage(Value, kw_only=True):
    """`pins/NAME.json`: the exact files of a pin."""

    version: int
    name: str
    at: str
    why: str
    files: tuple[PinnedFile, ...]


def add_channel_pin(
    channel: Channel, selection: Selection, name: str, why: str, reason: ChangeReason
) -> PinPage:
    """Pin the versions of files under a name, and write pages that list the files.

    A name always means the same versions, so repeating is safe.
    """
    if not _NAME.fullmatch(name):
        msg = f"a pin can't be called `{name}`"
        raise UsageError(msg, hint="letters, digits, dots and dashes: --as 2026-11-15")
    head = channel.head()
    choose(channel, head, selection)
    found: dict[str, list[Chosen]] = {}

    def edit_of(part: str) -> Edit:
        def look(state: State) -> State:
            parsed = parse_part(part)
            found[part] = [Chosen(part, e) for e in state.entries if selection.matches(parsed, e)]
            return state

        return look

    def amend(head: Head) -> Head:
        projects = _versions(chosen for part in found.values() for chosen in part)
        known = head.pins.get(name)
        if known and known.projects == projects:
            return head
        if known:
            msg = f"`{channel.url}` has a pin `{name}` already, of {show_projects(known)}"
            hint = "choose another name with --as, or remove the old pin with --remove"
            raise PublishError(msg, hint=hint)
        kept = Pin(projects=projects, at=reason.at, why=why)
        return replace(head, pins={**head.pins, name: kept})

    done = channel.commit({part: edit_of(part) for part in selection.parts(head)}, reason, amend)
    chosen = [entry for part in found.values() for entry in part]
    return _write(channel, name, done.pins[name], chosen)


def remove_channel_pin(channel: Channel, name: str, reason: ChangeReason) -> Head:
    """Remove a pin and its pages."""
    pins = channel.head().pins
    if name not in pins:
        msg = f"`{channel.url}` has no pin `{name}`"
        raise SelectionError(msg, hint=did_you_mean(name, pins) if pins else "it has none at all")

    def amend(head: Head) -> Head:
        kept = {known: pin for known, pin in head.pins.items() if known != name}
        return replace(head, pins=kept) if name in head.pins else head

    data = channel.objects.read(_json_key(name))
    page = msgspec.json.decode(data, type=PinPage) if data else None
    texts = [text.path for text in _texts(page)] if page else []
    channel.objects.delete([*texts, _json_key(name)])
    return channel.commit({}, reason, amend)


def show_projects(pin: Pin) -> str:
    """Return the projects and versions of a pin as requirements."""
    return ", ".join(f"{name}=={v}" for name, vs in pin.projects.items() for v in vs)


def _versions(chosen: Iterable[Chosen]) -> dict[str, tuple[str, ...]]:
    versions: dict[str, set[str]] = {}
    for part, entry in chosen:
        versions.setdefault(project_of(parse_part(part), entry), set()).add(public(entry.version))
    return {name: tuple(sorted(found)) for name, found in sorted(versions.items())}


def _write(channel: Channel, name: str, pin: Pin, chosen: Iterable[Chosen]) -> PinPage:
    """Write the pages unless they exist: a pin never changes."""
    files = tuple(_pinned(part, entry) for part, entry in chosen)
    page = PinPage(version=1, name=name, at=pin.at, why=pin.why, files=files)
    made = Page(_json_key(name), msgspec.json.format(msgspec.json.encode(page)), Media.JSON)
    if not channel.objects.create(made.path, made.data, headers(made.media, "page")):
        page = msgspec.json.decode(channel.objects.read(made.path) or b"", type=PinPage)
    for text in _texts(page):
        channel.objects.create(text.path, text.data, headers(text.media, "page"))
    channel.objects.sync()
    return page


def _json_key(name: str) -> str:
    return f"{_FOLDER}{name}.json"


def _pinned(part: str, entry: Entry) -> PinnedFile:
    name = parse_part(part)
    return PinnedFile(
        part=part,
        project=project_of(name, entry),
        version=entry.version,
        variant=entry.variant,
        file=entry.file,
        url=f"../{quote(key_of(name, entry))}",
        sha256=entry.sha256,
        size=entry.size,
        commit=entry.commit,
    )


def _texts(page: PinPage) -> Iterator[Page]:
    """Return the requirements file of each variant, for `pip install --require-hashes -r`."""
    wheels = [file for file in page.files if is_in_variants(file.part)]
    variants = sorted({file.variant for file in wheels})
    for variant in [v for v in variants if v] or variants:
        hashes: dict[str, list[str]] = {}
        for file in wheels:
            if file.variant in (variant, ""):
                wanted = f"{file.project}=={file.version}"
                hashes.setdefault(wanted, []).append(f"    --hash=sha256:{file.sha256}")
        lines = [" \\\n".join([wanted, *found]) for wanted, found in sorted(hashes.items())]
        text = "".join(f"{line}\n" for line in lines)
        yield Page(f"{_FOLDER}{page.name}/{variant or 'any'}.txt", text.encode(), Media.TEXT)
