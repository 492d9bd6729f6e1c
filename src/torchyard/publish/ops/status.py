"""The status of a project (PEP 792): active, archived, deprecated or quarantined."""

from msgspec.structs import replace

from torchyard.errors import SelectionError
from torchyard.index.entry import State, Status
from torchyard.index.simple.section import SimpleSection
from torchyard.model.suggest import did_you_mean
from torchyard.publish.channel.channel import Channel
from torchyard.publish.channel.draft import ChangeReason
from torchyard.publish.channel.head import Head
from torchyard.publish.channel.layout import PartName


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
