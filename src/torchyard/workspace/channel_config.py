"""A channel's configuration in the file, and plans for it."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from torchyard.errors import PublishError
from torchyard.model.config import ChannelConfig, Config
from torchyard.workspace.locations import channel_url, is_same

if TYPE_CHECKING:
    from torchyard.plan.graph import Plan


def load_if_present(file: str, changes: Sequence[str] = ()) -> Config | None:
    """Load a configuration, or return None if there is no such file."""
    from torchyard.config.load import load_config

    return load_config(file, tuple(changes)) if Path(file).exists() else None


def channel_named(config: Config | None, name: str, file: str) -> ChannelConfig | None:
    """Return the file's channel with a name or an address, or None."""
    url = channel_url(name, file)
    for channel in config.channels.values() if config else ():
        if channel.name == name or is_same(channel_url(channel.name, file), url):
            return channel
    return None


def check_origin(channel: ChannelConfig | None, source: str | None, file: str) -> None:
    """Refuse packages for a channel that takes only promotions from another channel."""
    wanted = channel.promote_from if channel else None
    if channel is None or not wanted:
        return
    if source is None or not is_same(channel_url(wanted, file), channel_url(source, file)):
        msg = f"`{channel.name}` takes packages from channel {wanted} only"
        hint = f"`torchyard channel promote {wanted} {channel.name} …` brings them there"
        raise PublishError(msg, hint=hint)


def channel_subset(config: Config, channel: ChannelConfig | None) -> str | None:
    """Return the subset published to a channel, or to the channel it is promoted from."""
    while channel and channel.promote_from:
        channel = config.channels[channel.promote_from]
    return channel.subset if channel else None


def plan_channel(config: Config, channel: ChannelConfig) -> "Plan":
    """Plan the packages of a channel."""
    from torchyard.plan.build import make_plan
    from torchyard.plan.select import PlanSelection

    return make_plan(config, PlanSelection(channel_subset(config, channel)))


def planned_cells(plan: "Plan") -> frozenset[str]:
    """Return the names of all cells of a plan."""
    return frozenset(f"{plan.label}/{cell.path}" for cell in plan.cells())
