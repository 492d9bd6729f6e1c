"""Schedules: nightly builds, and daily trials of published packages."""

from collections.abc import Callable, Iterable, Mapping
from typing import Annotated, Literal, TypeVar

from msgspec import Meta

from torchyard.errors import SelectionError
from torchyard.model.suggest import did_you_mean
from torchyard.model.values import Value
from torchyard_farm.settings.dates import ScheduleTimes, parse_times
from torchyard_farm.settings.names import invalid_names

_AT = "Time of day, in UTC: `02:00`."
_DAYS = "Days of the week: `mon`, `tue` …; every day if empty."


class NightlySpec(Value, kw_only=True):
    """A nightly build of one commit."""

    at: Annotated[str, Meta(description=_AT)]
    days: Annotated[tuple[str, ...], Meta(description=_DAYS)] = ()
    subset: Annotated[str | None, Meta(description="Subset of the matrix; default: all of it.")] = (
        None
    )
    select: Annotated[
        tuple[str, ...],
        Meta(description="Only these, as in `submit`; then nothing is published."),
    ] = ()
    skip: Annotated[tuple[str, ...], Meta(description="Without these, as in `submit --skip`.")] = ()


class DailySpec(Value, kw_only=True):
    """A daily trial of a channel's packages."""

    at: Annotated[str, Meta(description=_AT)]
    days: Annotated[tuple[str, ...], Meta(description=_DAYS)] = ()
    channel: Annotated[
        str, Meta(description="Channel of the project's file, or the URL of another one.")
    ]
    url: Annotated[str, Meta(description="Address at which users find it: `https://…`.")]
    select: Annotated[
        tuple[str, ...],
        Meta(description="Packages to test, as requirements, in the newest version."),
    ] = ("*",)
    extra_index_urls: Annotated[
        tuple[str, ...], Meta(description="Further indexes, for dependencies of wheels.")
    ] = ()


class Nightly(Value, kw_only=True):
    """A nightly build of a part of the matrix."""

    name: str
    times: ScheduleTimes
    subset: str | None
    select: tuple[str, ...]
    skip: tuple[str, ...]


class Daily(Value, kw_only=True):
    """A daily trial: packages of a channel, installed as by users."""

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
"""Name of the builder of scheduled runs, and of its worker on the master's machine."""


def schedule_command(schedule: Schedule) -> Literal["nightly", "daily"]:
    """Return the command of a schedule, which is also its table in farm.toml."""
    match schedule:
        case Nightly():
            return "nightly"
        case Daily():
            return "daily"


def schedule_page(schedule: Schedule) -> str:
    """Return the history page of a schedule."""
    return f"{schedule_command(schedule)} {schedule.name}"


def run_name(name: str, due: str) -> str:
    """Return the unique external name of a run."""
    return f"{SCHEDULE_BUILDER}:{name}@{due}"


def read_schedules(
    nightlies: Mapping[str, NightlySpec],
    dailies: Mapping[str, DailySpec],
    fault: Callable[[str, str, str], None],
) -> tuple[tuple[Nightly, ...], tuple[Daily, ...]]:
    """Check schedules; call `fault` with the table, the name, and the problem."""

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
        fault(
            "daily",
            name,
            f"`{name}` is also the name of a nightly: history pages need unique names",
        )
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


def find_schedule(name: str, schedules: Iterable[T], table: str) -> T:
    """Return the schedule of a name; `table` is that of farm.toml."""
    by_name = {schedule.name: schedule for schedule in schedules}
    if name not in by_name:
        msg = f"farm.toml has no [{table}.{name}]"
        raise SelectionError(msg, hint=did_you_mean(name, by_name) if by_name else None)
    return by_name[name]
