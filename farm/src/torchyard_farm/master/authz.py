"""Who may change what: Buildbot asks before it looks at any path of its web API."""

import hmac
from collections.abc import Collection, Generator, Mapping
from typing import Any

from buildbot.data.base import EndpointKind
from buildbot.data.exceptions import InvalidPathError
from buildbot.www.auth import CustomAuth
from buildbot.www.authz import Authz, Forbidden
from twisted.internet import defer

from torchyard_farm.scheduling.job_classes import may_publish
from torchyard_farm.settings.roles import Role, needed_role

_LOOKS = ("get", "head")


class PasswordAuth(CustomAuth):
    """Knows the users by their passwords."""

    def __init__(self, passwords: Mapping[str, str]) -> None:
        super().__init__()
        self._passwords = {name.encode(): text.encode() for name, text in passwords.items()}

    def check_credentials(self, username: bytes, password: bytes) -> bool:
        known = self._passwords.get(username)
        return known is not None and hmac.compare_digest(known, password)


class RoleAuthz(Authz):
    """Lets everybody look, and those with the right role change something.

    Buildbot's own rules let pass what none of them names, do not know of `cancel`, and take a
    job's history page for its builder.
    """

    def __init__(self, users: Mapping[str, Collection[Role]]) -> None:
        super().__init__()
        self._users = users

    @defer.inlineCallbacks
    def assertUserAllowed(
        self, ep: Any, action: str, options: dict[str, Any], userDetails: dict[str, Any]
    ) -> Generator[Any, Any, None]:
        if action.lower() in _LOOKS:  # no path has a verb of this name
            return
        role = yield self._role(ep, action)
        if role is None:
            msg = b"nobody may do this"
            raise Forbidden(msg)
        if role not in self._users.get(userDetails.get("username", ""), ()):
            raise Forbidden(f"you need to have role '{role}'".encode())

    @defer.inlineCallbacks
    def _role(self, path: Any, verb: str) -> Generator[Any, Any, Role | None]:
        try:
            endpoint, names = self.master.data.getEndpoint(path)
        except InvalidPathError:
            return None
        if endpoint.kind != EndpointKind.SINGLE:
            return None
        kind = endpoint.rtype.name
        publishes = kind == "build" and (yield self._publishes(endpoint, names))
        return needed_role(kind, verb, publishes=publishes)

    @defer.inlineCallbacks
    def _publishes(self, endpoint: Any, names: dict[str, Any]) -> Generator[Any, Any, bool]:
        """Whether a build publishes. Its own builder is the page of its cell: its request knows."""
        build = yield endpoint.get({}, names)
        if build is None:
            return False
        request = yield self.master.data.get(("buildrequests", build["buildrequestid"]))
        builder = yield self.master.data.get(("builders", request["builderid"]))
        return may_publish(builder["name"])
