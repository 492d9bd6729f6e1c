"""Authentication and authorization: Buildbot asks for each request to its web API."""

import hmac
from collections.abc import Collection, Mapping

from buildbot.data.base import Endpoint, EndpointKind
from buildbot.data.exceptions import InvalidPathError
from buildbot.www.auth import CustomAuth
from buildbot.www.authz import Authz, Forbidden

from torchyard_farm.scheduling.job_classes import may_publish
from torchyard_farm.settings.roles import Role, needed_role
from torchyard_farm.twisted_tools import async_to_deferred

_READING = ("get", "head")


class PasswordAuth(CustomAuth):
    """Authenticates users by their passwords."""

    def __init__(self, passwords: Mapping[str, str]) -> None:
        super().__init__()
        self._passwords = {name.encode(): text.encode() for name, text in passwords.items()}

    def check_credentials(self, username: bytes, password: bytes) -> bool:
        expected = self._passwords.get(username)
        return expected is not None and hmac.compare_digest(expected, password)


class RoleAuthz(Authz):
    """Allows reading to everyone, and changes to users with the required role.

    Buildbot's own rules allow everything unnamed, do not know `cancel`, and use a job's history
    page as its builder.
    """

    def __init__(self, users: Mapping[str, Collection[Role]]) -> None:
        super().__init__()
        self._users = users

    @async_to_deferred
    async def assertUserAllowed(
        self,
        ep: tuple[str, ...],
        action: str,
        options: Mapping[str, object],
        userDetails: Mapping[str, str],
    ) -> None:
        if action.lower() in _READING:  # no path has an action of this name
            return
        role = await self._role(ep, action)
        if role is None:
            msg = b"no role allows this"
            raise Forbidden(msg)
        if role not in self._users.get(userDetails.get("username", ""), ()):
            raise Forbidden(f"you need the role '{role}'".encode())

    async def _role(self, path: tuple[str, ...], verb: str) -> Role | None:
        """Return the role that an action requires, or None if no role allows it."""
        try:
            endpoint, names = self.master.data.getEndpoint(path)
        except InvalidPathError:
            return None
        if endpoint.kind != EndpointKind.SINGLE:
            return None
        kind = endpoint.rtype.name
        publishes = kind == "build" and await self._publishes(endpoint, names)
        return needed_role(kind, verb, publishes=publishes)

    async def _publishes(self, endpoint: Endpoint, names: dict[str, object]) -> bool:
        """Return whether a build publishes.

        The build's own builder is its history page; its request has the real one.
        """
        build = await endpoint.get({}, names)
        if build is None:
            return False
        request = await self.master.data.get(("buildrequests", build["buildrequestid"]))
        builder = await self.master.data.get(("builders", request["builderid"]))
        return may_publish(builder["name"])
