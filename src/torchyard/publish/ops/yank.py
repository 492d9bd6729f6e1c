"""Marks in indexes: yanked files (PEP 592), archived or quarantined projects (PEP 792)."""

from msgspec.structs import replace

from torchyard.errors import SelectionError
from torchyard.index.entry import Entry, State, Status
from torchyard.index.simple.section import SimpleSection
from torchyard.model.suggest import did_you_mean
from torchyard.publish.channel.channel import Channel
from torchyard.publish.channel.draft import ChangeReason, Edit
from torchyard.publish.channel.head import Head
from torchyard.publish.channel.layout import PartName, parse_part
from torchyard.publish.select import Chosen, Selection, choose


def yank(
    channel: Channel, selection: Selection, note: str | None, reason: ChangeReason
) -> tuple[Head, list[Chosen]]:
    """Yank files with a reason, or undo that with None; return the changed files.

    Yanked files stay available to users who pin the exact version. Parts change in reverse order of
    publishing: dependents first. Files that can't be installed without yanked ones follow them.
    """
    head = channel.head()
    choose(channel, head, selection)
    changed: dict[str, list[Chosen]] = {}

    def edit_of(name: str) -> Edit:
        part = parse_part(name)

        def marked(entry: Entry) -> Entry:
            return replace(entry, yanked=note) if selection.matches(part, entry) else entry

        def edit(state: State) -> State:
            entries = part.rules.follow_yanks(tuple(map(marked, state.entries)))
            pairs = zip(state.entries, entries, strict=True)
            changed[name] = [Chosen(name, old) for old, new in pairs if old.yanked != new.yanked]
            return replace(state, entries=entries) if changed[name] else state

        return edit

    parts = selection.parts(head)
    done = channel.commit(
        {name: edit_of(name) for name in (parts if note is None else reversed(parts))}, reason
    )
    return done, [entry for name in parts for entry in changed[name]]


def set_status(
    channel: Channel, project: str, status: Status, note: str, reason: ChangeReason
) -> Head:
    """Set the status of a project of the simple index."""
    name = str(PartName(SimpleSection.NAME, project))
    known = channel.head().parts
    if name not in known:
        msg = f"`{channel.url}` has no project `{project}`"
        names = [
            part.partition("/")[2] for part in known if part.startswith(f"{SimpleSection.NAME}/")
        ]
        hint = did_you_mean(project, names) if names else "it has none at all"
        raise SelectionError(msg, hint=hint)

    def edit(state: State) -> State:
        if (state.status, state.status_reason) == (status, note):
            return state
        return replace(state, status=status, status_reason=note)

    return channel.commit({name: edit}, reason)
