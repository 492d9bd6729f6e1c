"""Change the files that a channel shows and keeps: yank, roll back, pin, prune."""

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from pathlib import Path
from tempfile import TemporaryDirectory

from packaging.utils import canonicalize_name

from torchyard.errors import UsageError
from torchyard.features.channel.report import ChangedFile, ChangeReport, PinReport, PruneReport
from torchyard.model.quantity import parse_duration
from torchyard.package.versions import is_version
from torchyard.publish.channel.channel import Channel
from torchyard.publish.channel.draft import ChangeReason
from torchyard.publish.ops.pin import add_channel_pin, remove_channel_pin
from torchyard.publish.ops.promote import Route, gather_packages, head_for, promote
from torchyard.publish.ops.prune import prune
from torchyard.publish.ops.retention import Keep
from torchyard.publish.ops.rollback import rollback
from torchyard.publish.ops.yank import yank
from torchyard.publish.select import Chosen, Selection, What, parse_selection
from torchyard.workspace.channel_config import channel_named, check_origin, load_if_present
from torchyard.workspace.clock import current_moment
from torchyard.workspace.locations import open_channel

_LONG = timedelta(days=36_500)


def yank_files(
    channel: str,
    selectors: Sequence[str],
    *,
    variants: Sequence[str] = (),
    files: Sequence[str] = (),
    reason: str | None = None,
    undo: bool = False,
    file: str = "torchyard.toml",
) -> ChangeReport:
    """Yank files of a channel, or undo that.

    Args:
        channel: The channel: its name in the file, its address or its directory.
        selectors: Requirements that name the files, such as `torch==2.14.0`.
        variants: Only files of these variants.
        files: Only files of these names.
        reason: The reason, which readers see.
        undo: Offer the files again; without a reason.
        file: The configuration that names channels.
    """
    if undo and reason is not None:
        msg = "--undo needs no reason"
        raise UsageError(msg, hint="remove --reason")
    if not undo and reason is None:
        msg = "a reason is missing"
        raise UsageError(msg, hint="give it by --reason TEXT: all readers of the index see it")
    selection = parse_selection(selectors, variants, files)
    opened = open_channel(channel, file)
    why = f"offer {selection} again" if undo else f"yank {selection}: {reason}"
    head, changed = yank(opened, selection, reason, ChangeReason(why, current_moment()))
    return _change(opened, head.generation, {"offered" if undo else "yanked": changed})


def roll_back(
    channel: str,
    *,
    generation: int | None = None,
    last: bool = False,
    file: str = "torchyard.toml",
) -> ChangeReport:
    """Restore an earlier generation of a channel.

    Args:
        channel: The channel: its name in the file, its address or its directory.
        generation: The generation to go back to.
        last: Undo the last change.
        file: The configuration that names channels.
    """
    if last == (generation is not None):
        msg = "--last and --generation contradict each other" if last else "where to?"
        hint = "--last undoes the last change, --generation goes to one of `channel log`"
        raise UsageError(msg, hint=hint)
    opened = open_channel(channel, file)
    why = "rollback of the last change" if last else f"rollback to generation {generation}"
    done = rollback(opened, generation, ChangeReason(why, current_moment()))
    return _change(opened, done.head.generation, done.changes)


def _change(
    channel: Channel, generation: int, changed: Mapping[What, Sequence[Chosen]]
) -> ChangeReport:
    files = [_changed_file(entry, what) for what, found in changed.items() for entry in found]
    return ChangeReport(channel=channel.url, generation=generation, files=files)


def _changed_file(chosen: Chosen, what: What) -> ChangedFile:
    entry = chosen.entry
    return ChangedFile(
        part=chosen.part,
        file=entry.file,
        release=entry.version,
        variant=entry.variant,
        sha256=entry.sha256,
        bytes=entry.size,
        what=what,
    )


def pin_files(
    channel: str,
    selectors: Sequence[str] = (),
    *,
    variants: Sequence[str] = (),
    files: Sequence[str] = (),
    name: str | None = None,
    reason: str = "",
    archive: str | None = None,
    remove: str | None = None,
    file: str = "torchyard.toml",
) -> PinReport:
    """Pin versions of a channel, so that they are never pruned; or remove a pin.

    Args:
        channel: The channel: its name in the file, its address or its directory.
        selectors: Versions, or requirements that name files.
        variants: Only files of these variants.
        files: Only files of these names.
        name: The name of the pin, instead of its version.
        reason: The reason, which readers see.
        archive: Another channel to copy the files into.
        remove: The name of a pin to remove.
        file: The configuration that names channels.
    """
    if bool(selectors) == (remove is not None):
        msg = "a pin can be made or removed, not both" if remove else "which version?"
        raise UsageError(msg, hint="write torch==2.14.0.dev20261115, or --remove NAME")
    opened = open_channel(channel, file)
    now = current_moment()
    if remove:
        head = remove_channel_pin(opened, remove, ChangeReason(f"unpin {remove}", now))
        return PinReport(channel=opened.url, generation=head.generation, name=remove, pin=None)
    if archive:
        check_origin(channel_named(load_if_present(file), archive, file), channel, file)
    words = [f"*=={text}" if is_version(text) else text for text in selectors]
    selection = parse_selection(words, variants, files)
    name = name or selectors[0].rpartition("=")[2]
    because = f": {reason}" if reason else ""
    change = ChangeReason(f"pin {selection} as {name}{because}", now)
    page = add_channel_pin(opened, selection, name, reason, change)
    if archive:
        kept = _archive(opened, selection, open_channel(archive, file, make=True), archive, change)
        add_channel_pin(kept, selection, name, reason, change)
    return PinReport(channel=opened.url, generation=opened.head().generation, name=name, pin=page)


def _archive(
    source: Channel, selection: Selection, target: Channel, name: str, change: ChangeReason
) -> Channel:
    """Copy files into an archive channel without checks; return the channel."""
    found = gather_packages(source, selection, change.at)
    with TemporaryDirectory(prefix="pin-") as scratch:
        route = Route(source, target, Path(scratch))
        promote(route, head_for(source, target, name), found, change)
    return target


def prune_files(
    channel: str,
    *,
    keep: int | None = None,
    keep_days: int | None = None,
    projects: Sequence[str] = (),
    grace: str = "7 d",
    orphans: bool = False,
    dry_run: bool = False,
    file: str = "torchyard.toml",
) -> PruneReport:
    """Hide old versions in a channel, and delete files hidden for a while.

    Args:
        channel: The channel: its name in the file, its address or its directory.
        keep: The number of newest versions of a project to keep.
        keep_days: Keep versions with a file uploaded within this many days.
        projects: Globs of the projects whose versions are hidden.
        grace: How long files stay hidden before they are deleted.
        orphans: Also look for leftovers of killed publishers.
        dry_run: Only report what would be done.
        file: The configuration that names channels.
    """
    if projects and not (keep or keep_days):
        msg = "--project has no effect without --keep or --keep-days"
        raise UsageError(msg, hint="say how many versions to keep")
    now = current_moment()
    wanted = Keep(
        versions=keep or 0,
        since=_days_before(now, keep_days) if keep_days else "",
        projects=tuple(map(canonicalize_name, projects)),
        grace=_period(grace),
    )
    opened = open_channel(channel, file)
    done = prune(opened, wanted, ChangeReason("prune", now), orphans=orphans, dry_run=dry_run)
    return PruneReport(
        channel=opened.url,
        dry_run=dry_run,
        hidden=[_changed_file(hidden, "hidden") for hidden in done.hidden],
        deleted=done.deleted,
        freed_bytes=done.freed,
        left=done.left,
        states=done.states,
        leftovers=len(done.orphans.leftovers),
        mended=done.mended,
    )


def _period(text: str) -> timedelta:
    try:
        seconds = 0 if text == "0" else parse_duration(text)
    except ValueError as error:
        raise UsageError(str(error)) from error
    return min(_LONG, timedelta(seconds=seconds))


def _days_before(moment: str, days: int) -> str:
    return f"{datetime.fromisoformat(moment) - timedelta(days=days):%Y-%m-%dT%H:%M:%SZ}"
