"""`farm.toml`: where the master listens, and which machines work for it."""

import re
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Annotated, NamedTuple, TypeVar

from msgspec import Meta

from torchyard.config.decode import decode_as
from torchyard.config.document import Document
from torchyard.config.tables import load_tables
from torchyard.errors import ConfigError, Diagnostic, HostError
from torchyard.index.address import parse_index_url
from torchyard.model.quantity import parse_duration, parse_size
from torchyard.model.suggest import did_you_mean
from torchyard.model.values import Value
from torchyard_farm.settings.access import (
    UserSpec,
    invalid_host_names,
    invalid_tls,
    invalid_users,
    invalid_web,
    is_loopback,
    user_roles,
    uses_tls,
)
from torchyard_farm.settings.names import invalid_names
from torchyard_farm.settings.roles import Role
from torchyard_farm.settings.schedules import (
    SCHEDULE_BUILDER,
    Daily,
    DailySpec,
    Nightly,
    NightlySpec,
    Schedule,
    read_schedules,
)

FILE = "farm.toml"
SECRETS = "secrets"
"""The directory of the master in which the passwords of machines and users are."""

_MOST_CAPABILITIES = 6
"""Every set of a machine's capabilities is a kind of job that it takes: 64 of them are enough."""

_DATABASES = ("postgresql://", "sqlite://")

_GB = 10**9
_ADDRESS = re.compile(r"(?:\[([0-9A-Fa-f:.]+)\]|([^\s:\[\]/@]+)):([0-9]{1,5})")
_LAST_PORT = 65535

T = TypeVar("T")


class WorkerSpec(Value, kw_only=True):
    """A machine that works for the farm; its name has letters, digits, `_` and `.`."""

    platform: Annotated[str, Meta(description="What it builds for, such as `linux-x86_64`.")]
    memory: Annotated[str, Meta(description="Booked for jobs by their `needs`, as `64 GB`.")]
    disk: Annotated[str, Meta(description="Booked for jobs in the same way.")]
    copies: Annotated[
        str | None,
        Meta(description="How much of the store stays there for its next jobs, such as `50 GB`."),
    ] = None
    slots: Annotated[int, Meta(description="How many jobs it runs at one time.")] = 1
    capabilities: Annotated[
        tuple[str, ...],
        Meta(description="What jobs may ask for in their `needs`, such as `cuda`; up to six."),
    ] = ()
    publish: Annotated[
        bool, Meta(description="It publishes, is among the only ones that may, and does only that.")
    ] = False
    start: Annotated[
        tuple[str, ...],
        Meta(
            description="A command that starts it when there is work for it, with its name in "
            "`MACHINE`; it ends itself."
        ),
    ] = ()


class FarmSpec(Value, kw_only=True):
    """Where the master listens, and how patient it is. It is read when the master starts."""

    file: Annotated[
        str, Meta(description="The `torchyard.toml` of the project, relative to this file.")
    ]
    database: Annotated[
        str,
        Meta(
            description="Where the queue and the history are: `postgresql://USER@HOST/NAME`; "
            "SQLite is for trials."
        ),
    ] = "sqlite:///state.sqlite"
    listen: Annotated[str, Meta(description="Interface and port for workers.")] = "127.0.0.1:9989"
    web: Annotated[str, Meta(description="Interface and port for people.")] = "127.0.0.1:8010"
    url: Annotated[
        str, Meta(description="Where people find it, if a proxy with TLS is in front of it.")
    ] = ""
    tls: Annotated[
        bool | None,
        Meta(description="Whether workers have to use TLS: if `listen` is no loopback, they do."),
    ] = None
    names: Annotated[
        tuple[str, ...],
        Meta(description="Names and addresses by which workers reach it: for its certificate."),
    ] = ()
    certificate: Annotated[
        str, Meta(description="A PEM file, with its chain, in place of a certificate of its own.")
    ] = ""
    key: Annotated[str, Meta(description="The PEM file with the key of `certificate`.")] = ""
    heartbeat: Annotated[
        str, Meta(description="How often each worker is asked for a sign of life.")
    ] = "20 s"
    patience: Annotated[str, Meta(description="How long it has to give one.")] = "40 s"
    attempts: Annotated[
        int, Meta(description="How often a job is tried whose failures are not its own fault.")
    ] = 3
    pause: Annotated[
        str,
        Meta(
            description="How long a job waits for its second attempt; each further wait is twice "
            "as long."
        ),
    ] = "15 s"
    keep: Annotated[
        str, Meta(description="How long jobs of plans that are over are remembered, with logs.")
    ] = "90 d"
    shared: Annotated[
        bool, Meta(description="Other masters work with the same database, a PostgreSQL.")
    ] = False
    worker: Annotated[
        dict[str, WorkerSpec], Meta(description="The machines, each in a table with its name.")
    ] = {}
    user: Annotated[
        dict[str, UserSpec], Meta(description="Who may change something on the web page.")
    ] = {}
    nightly: Annotated[
        dict[str, NightlySpec], Meta(description="What is built each night, or each week.")
    ] = {}
    daily: Annotated[
        dict[str, DailySpec], Meta(description="Which channels are tried each day.")
    ] = {}


class Address(NamedTuple):
    """A network interface and a port."""

    host: str
    port: int

    @property
    def endpoint(self) -> str:
        """As Twisted writes it."""
        return f"tcp:{self.port}:interface={escaped(self.host)}"

    @property
    def is_loopback(self) -> bool:
        """Whether nobody else can listen to what goes through it."""
        return is_loopback(self.host)

    @property
    def url(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"http://{host}:{self.port}/"


def escaped(text: str) -> str:
    """A value in an endpoint of Twisted's."""
    return text.replace("\\", r"\\").replace(":", r"\:")


class FarmMachine(Value, kw_only=True):
    """A machine that works for the farm; memory and disk are in GB, as they are booked."""

    name: str
    platform: str
    memory: int
    disk: int
    copies: str | None = None
    slots: int = 1
    capabilities: tuple[str, ...] = ()
    publish: bool = False
    start: tuple[str, ...] = ()

    @property
    def agents(self) -> tuple[str, ...]:
        return worker_names(self.name, self.slots)


def worker_names(name: str, slots: int) -> tuple[str, ...]:
    """The names under which a machine connects: Buildbot gives one job of a kind to each."""
    if slots == 1:
        return (name,)
    return tuple(f"{name}-{number}" for number in range(1, slots + 1))


class Farm(Value, kw_only=True):
    """One `farm.toml`, checked. `file` is the project's; times are in seconds.

    `certificate` and `key` are files, and empty if the farm makes its own.
    """

    file: str
    database: str
    listen: Address
    web: Address
    heartbeat: int
    patience: int
    attempts: int
    pause: int
    keep: int
    shared: bool = False
    machines: tuple[FarmMachine, ...]
    url: str
    tls: bool
    names: tuple[str, ...] = ()
    certificate: str = ""
    key: str = ""
    users: dict[str, tuple[Role, ...]] = {}
    nightlies: tuple[Nightly, ...] = ()
    dailies: tuple[Daily, ...] = ()

    @property
    def occasions(self) -> tuple[Schedule, ...]:
        """All that is done by the clock."""
        return (*self.nightlies, *self.dailies)


def load_farm(folder: Path) -> Farm:
    """Read the farm that a directory is the master of."""
    try:
        text = (folder / FILE).read_text(encoding="utf-8")
    except FileNotFoundError as error:
        msg = f"`{folder}` is no farm: it has no {FILE}"
        raise HostError(msg, hint=f"`torchyard farm init {folder}` makes one") from error
    return parse_farm(text)


def _gaps(spec: FarmSpec, web: Address) -> Iterator[tuple[str, str]]:
    """Keys whose values do not go together, or can't be, and why."""
    yield from invalid_tls(spec.certificate, spec.key, tls=spec.tls)
    yield from invalid_host_names(spec.names)
    yield from invalid_web(web.host, spec.url, tls=spec.tls)
    if not spec.database.startswith(_DATABASES):
        yield "database", "`database` is neither a postgresql://… nor a sqlite:///…"
    if spec.attempts < 1:
        yield "attempts", "`attempts` must be 1 or more"
    if spec.shared and spec.database.startswith("sqlite"):
        yield "shared", "`shared`: several masters need a PostgreSQL as their `database`"


def parse_farm(text: str) -> Farm:
    """Read a text, or tell everything that is wrong with it."""
    document = Document(FILE, text)
    spec = decode_as(document, FarmSpec)
    faults: list[Diagnostic] = []

    def read(kind: Callable[[str], T], text: str, *path: str) -> T:
        """One value; a wrong one is noted, and replaced so that the others can be read."""
        try:
            return kind(text)
        except ValueError as error:
            faults.append(Diagnostic(f"`{'.'.join(path)}`: {error}", document.span(path)))
            return kind(_EXAMPLES[kind])

    machines = []
    for name, worker in spec.worker.items():
        faults += (
            Diagnostic(what, document.span(("worker", name), at_key=True))
            for what in _faults_of(name, worker)
        )
        if worker.copies is not None:
            read(parse_size, worker.copies, "worker", name, "copies")
        machines.append(
            FarmMachine(
                name=name,
                platform=worker.platform,
                memory=read(parse_size, worker.memory, "worker", name, "memory") // _GB,
                disk=read(parse_size, worker.disk, "worker", name, "disk") // _GB,
                copies=worker.copies,
                slots=worker.slots,
                capabilities=worker.capabilities,
                publish=worker.publish,
                start=worker.start,
            )
        )

    def wrong(table: str, name: str, what: str) -> None:
        faults.append(Diagnostic(what, document.span((table, name), at_key=True)))

    nightlies, dailies = read_schedules(spec.nightly, spec.daily, wrong)
    for name, daily in spec.daily.items():
        read(parse_index_url, daily.url, "daily", name, "url")
        for url in daily.extra_index_urls:
            read(parse_index_url, url, "daily", name, "extra_index_urls")
    listen = read(parse_address, spec.listen, "listen")
    web = read(parse_address, spec.web, "web")
    faults += (Diagnostic(what, document.span((key,))) for key, what in _gaps(spec, web))
    for name, what in invalid_users(spec.user, spec.worker):
        wrong("user" if name in spec.user else "worker", name, what)
    farm = Farm(
        file=spec.file,
        database=spec.database,
        listen=listen,
        web=web,
        url=spec.url.rstrip("/") + "/" if spec.url else web.url,
        tls=uses_tls(listen.host, spec.certificate, tls=spec.tls),
        names=spec.names,
        certificate=spec.certificate,
        key=spec.key,
        users=user_roles(spec.user),
        heartbeat=read(parse_duration, spec.heartbeat, "heartbeat"),
        patience=read(parse_duration, spec.patience, "patience"),
        attempts=spec.attempts,
        pause=read(parse_duration, spec.pause, "pause"),
        keep=read(parse_duration, spec.keep, "keep"),
        shared=spec.shared,
        machines=tuple(machines),
        nightlies=nightlies,
        dailies=dailies,
    )
    if faults:
        raise ConfigError.of(faults)
    return farm


def parse_address(text: str) -> Address:
    """Read `127.0.0.1:9989`, or `[::1]:9989`."""
    found = _ADDRESS.fullmatch(text)
    if found is None or int(found[3]) > _LAST_PORT:
        msg = f"`{text}` is not a host and a port, such as 127.0.0.1:9989 or [::1]:9989"
        raise ValueError(msg)
    return Address(found[1] or found[2], int(found[3]))


_EXAMPLES: Mapping[Callable[[str], object], str] = {
    parse_size: "1 GB",
    parse_duration: "1 s",
    parse_address: "127.0.0.1:1",
    parse_index_url: "https://example.org",
}


def _faults_of(name: str, worker: WorkerSpec) -> Iterator[str]:
    """What is wrong with a machine, apart from its amounts."""
    yield from invalid_names((name, *worker.capabilities))
    platforms = load_tables().platforms
    if worker.platform not in platforms:
        known = did_you_mean(worker.platform, platforms)
        yield f"`{name}` has the unknown platform `{worker.platform}`: {known}"
    if name == SCHEDULE_BUILDER:
        yield f"`{name}` is the name of a worker in the master itself"
    if worker.slots < 1:
        yield f"`{name}` needs at least one slot"
    if len(worker.capabilities) > _MOST_CAPABILITIES:
        yield f"`{name}` has more than {_MOST_CAPABILITIES} capabilities"
    if worker.publish and worker.capabilities:
        yield f"`{name}` publishes, and does nothing else: it can't have capabilities"
