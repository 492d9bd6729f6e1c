"""`farm.toml`: where the master listens, and its machines."""

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
"""The master's directory of passwords of machines and users."""

_MOST_CAPABILITIES = 6
"""Limits the classes of jobs, one for each subset of a machine's capabilities, to 64."""

_DATABASES = ("postgresql://", "sqlite://")

_GB = 10**9
_ADDRESS = re.compile(r"(?:\[([0-9A-Fa-f:.]+)\]|([^\s:\[\]/@]+)):([0-9]{1,5})")
_LAST_PORT = 65535

T = TypeVar("T")


class WorkerSpec(Value, kw_only=True):
    """A machine of the farm; its name has letters, digits, `_` and `.`."""

    platform: Annotated[
        str, Meta(description="The platform that it builds for, such as `linux-x86_64`.")
    ]
    memory: Annotated[str, Meta(description="Memory for jobs, by their `needs`, such as `64 GB`.")]
    disk: Annotated[str, Meta(description="Disk for jobs, in the same way.")]
    copies: Annotated[
        str | None,
        Meta(description="Size of its local cache of the store, such as `50 GB`."),
    ] = None
    slots: Annotated[int, Meta(description="Number of concurrent jobs.")] = 1
    capabilities: Annotated[
        tuple[str, ...],
        Meta(description="What jobs may require in `needs`, such as `cuda`; at most six."),
    ] = ()
    publish: Annotated[
        bool, Meta(description="It runs publish jobs only, which other machines never run.")
    ] = False
    start: Annotated[
        tuple[str, ...],
        Meta(
            description="Command that starts it when there is work for it, with its name in "
            "`MACHINE`; it shuts itself down."
        ),
    ] = ()


class FarmSpec(Value, kw_only=True):
    """Where the master listens, and its time limits. It is read when the master starts."""

    file: Annotated[
        str, Meta(description="The `torchyard.toml` of the project, relative to this file.")
    ]
    database: Annotated[
        str,
        Meta(
            description="Database of the queue and the history: `postgresql://USER@HOST/NAME`; "
            "SQLite is for trials."
        ),
    ] = "sqlite:///state.sqlite"
    listen: Annotated[str, Meta(description="Interface and port for workers.")] = "127.0.0.1:9989"
    web: Annotated[str, Meta(description="Interface and port of the web page.")] = "127.0.0.1:8010"
    url: Annotated[
        str, Meta(description="Address of the web page, if a proxy with TLS is in front of it.")
    ] = ""
    tls: Annotated[
        bool | None,
        Meta(
            description="Whether workers use TLS; the default is yes unless `listen` is loopback."
        ),
    ] = None
    names: Annotated[
        tuple[str, ...],
        Meta(description="Names and addresses by which workers reach it, for its certificate."),
    ] = ()
    certificate: Annotated[
        str,
        Meta(description="PEM file with a certificate chain, instead of a generated certificate."),
    ] = ""
    key: Annotated[str, Meta(description="PEM file with the key of `certificate`.")] = ""
    heartbeat: Annotated[
        str, Meta(description="Interval between two status polls of each worker.")
    ] = "20 s"
    patience: Annotated[str, Meta(description="Time limit for the answer to a poll.")] = "40 s"
    attempts: Annotated[
        int, Meta(description="Maximum attempts of a job whose failures are not its own fault.")
    ] = 3
    pause: Annotated[
        str,
        Meta(description="Pause before a job's second attempt; it doubles with each further one."),
    ] = "15 s"
    keep: Annotated[
        str, Meta(description="How long jobs of ended plans are kept, with their logs.")
    ] = "90 d"
    shared: Annotated[
        bool, Meta(description="Whether other masters use the same PostgreSQL database.")
    ] = False
    worker: Annotated[
        dict[str, WorkerSpec], Meta(description="The machines, each in a table with its name.")
    ] = {}
    user: Annotated[
        dict[str, UserSpec], Meta(description="Users who may change something on the web page.")
    ] = {}
    nightly: Annotated[
        dict[str, NightlySpec], Meta(description="Builds that start each night, or each week.")
    ] = {}
    daily: Annotated[dict[str, DailySpec], Meta(description="Channels to test each day.")] = {}


class Address(NamedTuple):
    """A network interface and a port."""

    host: str
    port: int

    @property
    def endpoint(self) -> str:
        """The endpoint in Twisted's syntax."""
        return f"tcp:{self.port}:interface={escaped(self.host)}"

    @property
    def is_loopback(self) -> bool:
        """Whether it is reachable from this machine only."""
        return is_loopback(self.host)

    @property
    def url(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"http://{host}:{self.port}/"


def escaped(text: str) -> str:
    """Return a value in the syntax of Twisted's endpoints."""
    return text.replace("\\", r"\\").replace(":", r"\:")


class FarmMachine(Value, kw_only=True):
    """A machine of the farm; memory and disk are in GB, as jobs reserve them."""

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
    def worker_names(self) -> tuple[str, ...]:
        return worker_names(self.name, self.slots)


def worker_names(name: str, slots: int) -> tuple[str, ...]:
    """Return the names of a machine's Buildbot workers, one for each slot."""
    if slots == 1:
        return (name,)
    return tuple(f"{name}-{number}" for number in range(1, slots + 1))


class Farm(Value, kw_only=True):
    """A checked `farm.toml`. `file` is the project's; times are in seconds.

    `certificate` and `key` are paths; empty if the farm generates its own.
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
    def schedules(self) -> tuple[Schedule, ...]:
        """All nightly and daily schedules."""
        return (*self.nightlies, *self.dailies)


def load_farm(folder: Path) -> Farm:
    """Read the `farm.toml` in a master's directory."""
    try:
        text = (folder / FILE).read_text(encoding="utf-8")
    except FileNotFoundError as error:
        msg = f"`{folder}` is not a farm: it has no {FILE}"
        raise HostError(msg, hint=f"`torchyard farm init {folder}` creates one") from error
    return parse_farm(text)


def _gaps(spec: FarmSpec, web: Address) -> Iterator[tuple[str, str]]:
    """Return faults of keys and of their combinations: the key, and the problem."""
    yield from invalid_tls(spec.certificate, spec.key, tls=spec.tls)
    yield from invalid_host_names(spec.names)
    yield from invalid_web(web.host, spec.url, tls=spec.tls)
    if not spec.database.startswith(_DATABASES):
        yield "database", "`database` is neither postgresql://… nor sqlite:///…"
    if spec.attempts < 1:
        yield "attempts", "`attempts` must be 1 or more"
    if spec.shared and spec.database.startswith("sqlite"):
        yield "shared", "`shared`: several masters need PostgreSQL as their `database`"


class _Reader:
    """Reads values of a `farm.toml`, and collects its faults."""

    def __init__(self, document: Document) -> None:
        self._document = document
        self.faults: list[Diagnostic] = []

    def read(self, kind: Callable[[str], T], text: str, *path: str) -> T:
        """Return a value; record and replace a wrong one, so that parsing can continue."""
        try:
            return kind(text)
        except ValueError as error:
            span = self._document.span(path)
            self.faults.append(Diagnostic(f"`{'.'.join(path)}`: {error}", span))
            return kind(_EXAMPLES[kind])

    def wrong_key(self, key: str, what: str) -> None:
        self.faults.append(Diagnostic(what, self._document.span((key,))))

    def wrong_table(self, table: str, name: str, what: str) -> None:
        self.faults.append(Diagnostic(what, self._document.span((table, name), at_key=True)))

    def machine(self, name: str, worker: WorkerSpec) -> FarmMachine:
        for what in _faults_of(name, worker):
            self.wrong_table("worker", name, what)
        if worker.copies is not None:
            self.read(parse_size, worker.copies, "worker", name, "copies")
        return FarmMachine(
            name=name,
            platform=worker.platform,
            memory=self.read(parse_size, worker.memory, "worker", name, "memory") // _GB,
            disk=self.read(parse_size, worker.disk, "worker", name, "disk") // _GB,
            copies=worker.copies,
            slots=worker.slots,
            capabilities=worker.capabilities,
            publish=worker.publish,
            start=worker.start,
        )


def parse_farm(text: str) -> Farm:
    """Parse `farm.toml`, or raise an error with all of its faults."""
    document = Document(FILE, text)
    spec = decode_as(document, FarmSpec)
    reader = _Reader(document)
    machines = tuple(reader.machine(name, worker) for name, worker in spec.worker.items())
    nightlies, dailies = read_schedules(spec.nightly, spec.daily, reader.wrong_table)
    for name, daily in spec.daily.items():
        reader.read(parse_index_url, daily.url, "daily", name, "url")
        for url in daily.extra_index_urls:
            reader.read(parse_index_url, url, "daily", name, "extra_index_urls")
    listen = reader.read(parse_address, spec.listen, "listen")
    web = reader.read(parse_address, spec.web, "web")
    for key, what in _gaps(spec, web):
        reader.wrong_key(key, what)
    for name, what in invalid_users(spec.user, spec.worker):
        reader.wrong_table("user" if name in spec.user else "worker", name, what)
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
        heartbeat=reader.read(parse_duration, spec.heartbeat, "heartbeat"),
        patience=reader.read(parse_duration, spec.patience, "patience"),
        attempts=spec.attempts,
        pause=reader.read(parse_duration, spec.pause, "pause"),
        keep=reader.read(parse_duration, spec.keep, "keep"),
        shared=spec.shared,
        machines=machines,
        nightlies=nightlies,
        dailies=dailies,
    )
    if reader.faults:
        raise ConfigError.of(reader.faults)
    return farm


def parse_address(text: str) -> Address:
    """Parse `127.0.0.1:9989`, or `[::1]:9989`."""
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
    """Return faults of a machine, apart from its sizes."""
    yield from invalid_names((name, *worker.capabilities))
    platforms = load_tables().platforms
    if worker.platform not in platforms:
        known = did_you_mean(worker.platform, platforms)
        yield f"`{name}` has the unknown platform `{worker.platform}`: {known}"
    if name == SCHEDULE_BUILDER:
        yield f"`{name}` is the name of the master's own worker"
    if worker.slots < 1:
        yield f"`{name}` needs at least one slot"
    if len(worker.capabilities) > _MOST_CAPABILITIES:
        yield f"`{name}` has more than {_MOST_CAPABILITIES} capabilities"
    if worker.publish and worker.capabilities:
        yield f"`{name}` runs publish jobs only: it can't have capabilities"
