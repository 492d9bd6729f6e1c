"""What the file plans for a channel."""

from pathlib import Path
from typing import TYPE_CHECKING

from torchyard.app.locations import is_same, place_of
from torchyard.errors import PublishError
from torchyard.model.config import Channel, Config

if TYPE_CHECKING:
    from torchyard.plan.graph import Plan


def config_of(file: str, changes: tuple[str, ...]) -> Config | None:
    """What the file says, if there is one."""
    from torchyard.config.load import load_config

    return load_config(file, changes) if Path(file).exists() else None


def channel_of(config: Config | None, place: str, file: str) -> Channel | None:
    """The channel of the file that a name or an address means."""
    url = place_of(place, file)
    for channel in config.channels.values() if config else ():
        if channel.name == place or is_same(place_of(channel.name, file), url):
            return channel
    return None


def check_origin(channel: Channel | None, source: str | None, file: str) -> None:
    """Refuse what does not come from the channel that another one takes its packages from."""
    wanted = channel.promote_from if channel else None
    if channel is None or not wanted:
        return
    if source is None or not is_same(place_of(wanted, file), place_of(source, file)):
        msg = f"`{channel.name}` takes packages from channel {wanted} only"
        hint = f"`torchyard promote {wanted} {channel.name} …` brings them there"
        raise PublishError(msg, hint=hint)


def subset_of(config: Config, channel: Channel | None) -> str | None:
    """The subset that is published in a channel, or in that which it takes packages from."""
    while channel and channel.promote_from:
        channel = config.channels[channel.promote_from]
    return channel.subset if channel else None


def plan_of(config: Config, channel: Channel) -> "Plan":
    from torchyard.config.tables import load_tables
    from torchyard.plan.build import make_plan
    from torchyard.plan.select import Selection

    return make_plan(config, load_tables(), Selection(subset_of(config, channel)))


def cells_of(plan: "Plan") -> frozenset[str]:
    return frozenset(f"{plan.label}/{cell.path}" for cell in plan.cells())
