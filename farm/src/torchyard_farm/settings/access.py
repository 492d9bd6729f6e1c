"""Who gets in: users and their roles, and what goes through a network that others can hear."""

import re
from collections.abc import Iterable, Iterator, Mapping
from ipaddress import ip_address
from typing import Annotated

from msgspec import Meta

from torchyard.model.values import Value
from torchyard_farm.settings.names import invalid_names
from torchyard_farm.settings.roles import ADMIN, ROLES, Role

_HOST = re.compile(r"[A-Za-z0-9*_][A-Za-z0-9._-]*")


class UserSpec(Value, kw_only=True):
    """Somebody who may change something on the web page; `torchyard farm user` adds one."""

    roles: Annotated[
        tuple[Role, ...],
        Meta(description="`force`: begin jobs; `stop`: end them; `publish`: begin those, too."),
    ]


def user_roles(users: Mapping[str, UserSpec]) -> dict[str, tuple[Role, ...]]:
    """What each user may do, and the one whom every farm has."""
    return {ADMIN: ROLES} | {name: user.roles for name, user in users.items()}


def is_loopback(host: str) -> bool:
    """Whether a name or an address is this machine's own, so that nobody else can listen."""
    return host == "localhost" or (_is_address(host) and ip_address(host).is_loopback)


def _is_address(host: str) -> bool:
    try:
        ip_address(host)
    except ValueError:
        return False
    return True


def uses_tls(host: str, certificate: str, *, tls: bool | None) -> bool:
    """Whether a master that listens there speaks TLS with its workers."""
    return not is_loopback(host) or bool(certificate) if tls is None else tls


def invalid_tls(certificate: str, key: str, *, tls: bool | None) -> Iterator[tuple[str, str]]:
    """What is wrong with how the master shows who it is: a key of the file, and what."""
    if bool(certificate) != bool(key):
        yield "certificate" if certificate else "key", "it takes both `certificate` and `key`"
    if tls is False and certificate:
        yield "tls", "`tls = false` leaves no use for a certificate"


def invalid_host_names(names: Iterable[str]) -> Iterator[tuple[str, str]]:
    """What is wrong with the names by which workers reach the master."""
    for name in names:
        if not (_HOST.fullmatch(name) or _is_address(name)):
            yield "names", f"`{name}` is neither the name of a host, in ASCII, nor an address"


def invalid_web(host: str, url: str, *, tls: bool | None) -> Iterator[tuple[str, str]]:
    """What is wrong with how people reach the web page."""
    if not (is_loopback(host) or url.startswith("https://") or tls is False):
        what = (
            "passwords would go through the network as they are: put a proxy with TLS in front of "
            'it, and write where that is, `url = "https://…"`; `tls = false` does without'
        )
        yield "web", what


def invalid_users(users: Iterable[str], workers: Iterable[str]) -> Iterator[tuple[str, str]]:
    """What is wrong with names of users, who have a file with a password as workers have."""
    machines = set(workers)
    for name in users:
        yield from ((name, what) for what in invalid_names([name]))
    for name in sorted(machines & {ADMIN, *users}):
        yield name, f"`{name}` is a worker: its password can't be a user's, too"
