"""Yanking (PEP 592): files stay available to those who pin their exact version."""

from msgspec.structs import replace

from torchyard.index.entry import Entry, State
from torchyard.publish.channel.channel import Channel
from torchyard.publish.channel.draft import ChangeReason, Edit
from torchyard.publish.channel.head import Head
from torchyard.publish.channel.layout import parse_part
from torchyard.publish.select import Chosen, Selection, choose


def yank(
    channel: Channel, selection: Selection, note: str | None, reason: ChangeReason
) -> tuple[Head, list[Chosen]]:
    """Yank files with a note why, or undo that with None; return the changed files.

    Parts change in reverse order of publishing: dependents first.
    """
    head = channel.head()
    choose(channel, head, selection)
    changed: dict[str, list[Chosen]] = {}

    def edit_of(name: str) -> Edit:
        part = parse_part(name)

        def marked(entry: Entry) -> Entry:
            if entry.yanked == note or not selection.matches(part, entry):
                return entry
            changed[name].append(Chosen(name, entry))
            return replace(entry, yanked=note)

        def edit(state: State) -> State:
            changed[name] = []
            entries = tuple(map(marked, state.entries))
            return replace(state, entries=entries) if changed[name] else state

        return edit

    parts = selection.parts(head)
    done = channel.commit(
        {name: edit_of(name) for name in (parts if note is None else reversed(parts))}, reason
    )
    return done, [one for name in parts for one in changed[name]]
