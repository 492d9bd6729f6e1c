"""What a farm does by itself, day after day: nightlies, and trying what is published."""

from collections.abc import Callable, Iterable, Mapping
from typing import Annotated, Literal, TypeVar

from msgspec import Meta

from torchyard.errors import SelectionError
from torchyard.model.suggest import did_you_mean
from torchyard.model.values import Value
from torchyard_farm.settings.dates import ScheduleTimes, parse_times
from torchyard_farm.settings.names import invalid_names

_AT = "Time of the day, in UTC: `02:00`."
_DAYS = "On these days of the week only: `mon`, `tue` …"


class NightlySpec(Value, kw_only=True):
    """A commit a night, and what is built from it."""

    at: Annotated[str, Meta(description=_AT)]
    days: Annotated[tuple[str, ...], Meta(description=_DAYS)] = ()
    subset: Annotated[
        str | None, Meta(description="Subset of the matrix; all of it if unnamed.")
    ] = None
    select: Annotated[
        tuple[str, ...],
        Meta(description="Only these, as `submit` takes them: then none is published."),
    ] = ()
    skip: Annotated[tuple[str, ...], Meta(description="Not these, as `submit --skip`.")] = ()


class DailySpec(Value, kw_only=True):
    """What a channel has, tried every day."""

    at: Annotated[str, Meta(description=_AT)]
    days: Annotated[tuple[str, ...], Meta(description=_DAYS)] = ()
    channel: Annotated[
        str, Meta(description="Channel of the project's file, or the place of another one.")
    ]
    url: Annotated[str, Meta(description="Where users find it: `https://…`.")]
    select: Annotated[
        tuple[str, ...], Meta(description="What of it, as requirements; the newest of each.")
    ] = ("*",)
    extra_index_urls: Annotated[
        tuple[str, ...], Meta(description="Where wheels find what the channel does not have.")
    ] = ()


class Nightly(Value, kw_only=True):
    """One commit, and a part of the matrix that is built from it."""

    name: str
    times: ScheduleTimes
    subset: str | None
    select: tuple[str, ...]
    skip: tuple[str, ...]


class Daily(Value, kw_only=True):
    """What a channel has, installed as users do, from where they find it."""

    name: str
    times: ScheduleTimes
    channel: str
    url: str
    select: tuple[str, ...]
    extra_index_urls: tuple[str, ...]


Schedule = Nightly | Daily
T = TypeVar("T", Nightly, Daily)
_SOME_TIME = "00:00"

SCHEDULE_BUILDER = "calendar"
"""The builder, and the worker beside the master, that do what is due."""


def schedule_command(occasion: Schedule) -> Literal["nightly", "daily"]:
    """The command of the farm that does it, which is also its table in farm.toml."""
    match occasion:
        case Nightly():
            return "nightly"
        case Daily():
            return "daily"


def schedule_page(occasion: Schedule) -> str:
    """Where the history of its runs is."""
    return f"{schedule_command(occasion)} {occasion.name}"


def run_name(name: str, due: str) -> str:
    """What Buildbot calls a run: no two are called the same."""
    return f"{SCHEDULE_BUILDER}:{name}@{due}"


def read_schedules(
    nightlies: Mapping[str, NightlySpec],
    dailies: Mapping[str, DailySpec],
    fault: Callable[[str, str, str], None],
) -> tuple[tuple[Nightly, ...], tuple[Daily, ...]]:
    """Check what is written; `fault` is told the table, the name, and what is wrong with it."""

    def times(table: str, name: str, spec: NightlySpec | DailySpec) -> ScheduleTimes:
        try:
            return parse_times(spec.at, spec.days)
        except ValueError as error:
            fault(table, name, f"`{name}`: {error}")
            return parse_times(_SOME_TIME)

    for table, names in (("nightly", nightlies), ("daily", dailies)):
        for name in names:
            for what in invalid_names((name,)):
                fault(table, name, what)
    for name in sorted(nightlies.keys() & dailies.keys()):
        fault("daily", name, f"`{name}` is the name of a nightly, too: history pages are by name")
    return tuple(
        Nightly(
            name=name,
            times=times("nightly", name, spec),
            subset=spec.subset,
            select=spec.select,
            skip=spec.skip,
        )
        for name, spec in nightlies.items()
    ), tuple(
        Daily(
            name=name,
            times=times("daily", name, spec),
            channel=spec.channel,
            url=spec.url.rstrip("/"),
            select=spec.select,
            extra_index_urls=spec.extra_index_urls,
        )
        for name, spec in dailies.items()
    )


def find_schedule(name: str, known: Iterable[T], table: str) -> T:
    """The one of a name; `table` is where farm.toml has them."""
    by_name = {one.name: one for one in known}
    if name not in by_name:
        msg = f"farm.toml has no [{table}.{name}]"
        raise SelectionError(msg, hint=did_you_mean(name, by_name) if by_name else None)
    return by_name[name]
