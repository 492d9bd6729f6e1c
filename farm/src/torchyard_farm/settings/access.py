"""Users and their roles, and which connections are encrypted."""

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
    """A user who may change something on the web page; `torchyard farm user` adds one."""

    roles: Annotated[
        tuple[Role, ...],
        Meta(description="`force`: start jobs; `stop`: stop them; `publish`: start publish jobs."),
    ]


def user_roles(users: Mapping[str, UserSpec]) -> dict[str, tuple[Role, ...]]:
    """Return the roles of each user, including every farm's admin."""
    return {ADMIN: ROLES} | {name: user.roles for name, user in users.items()}


def is_loopback(host: str) -> bool:
    """Return whether a host name or address is a loopback one."""
    return host == "localhost" or (_is_address(host) and ip_address(host).is_loopback)


def _is_address(host: str) -> bool:
    try:
        ip_address(host)
    except ValueError:
        return False
    return True


def uses_tls(host: str, certificate: str, *, tls: bool | None) -> bool:
    """Return whether a master that listens at a host uses TLS with its workers."""
    return not is_loopback(host) or bool(certificate) if tls is None else tls


def invalid_tls(certificate: str, key: str, *, tls: bool | None) -> Iterator[tuple[str, str]]:
    """Return faults of the TLS settings: the key in farm.toml, and the problem."""
    if bool(certificate) != bool(key):
        yield "certificate" if certificate else "key", "`certificate` and `key` need each other"
    if tls is False and certificate:
        yield "tls", "`tls = false` does not use a certificate"


def invalid_host_names(names: Iterable[str]) -> Iterator[tuple[str, str]]:
    """Return faults of the names by which workers reach the master."""
    for name in names:
        if not (_HOST.fullmatch(name) or _is_address(name)):
            yield "names", f"`{name}` is neither an ASCII host name nor an address"


def invalid_web(host: str, url: str, *, tls: bool | None) -> Iterator[tuple[str, str]]:
    """Return faults of the web page's address."""
    if not (is_loopback(host) or url.startswith("https://") or tls is False):
        what = (
            "passwords would be sent unencrypted: put a proxy with TLS in front of it, and set "
            '`url = "https://…"` to its address; or set `tls = false`'
        )
        yield "web", what


def invalid_users(users: Iterable[str], workers: Iterable[str]) -> Iterator[tuple[str, str]]:
    """Return faults of user names; users share the directory of passwords with workers."""
    machines = set(workers)
    for name in users:
        yield from ((name, what) for what in invalid_names([name]))
    for name in sorted(machines & {ADMIN, *users}):
        yield name, f"`{name}` is a worker: a user can't have the same name"
