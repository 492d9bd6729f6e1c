"""Who may change what: Buildbot asks before it looks at any path of its web API."""

import hmac
from collections.abc import Collection, Generator, Mapping
from typing import Any

from buildbot.data.base import EndpointKind
from buildbot.data.exceptions import InvalidPathError
from buildbot.www.auth import CustomAuth
from buildbot.www.authz import Authz, Forbidden
from twisted.internet import defer

from torchyard_farm.kinds import PUBLISH
from torchyard_farm.roles import Role, needed_role

_LOOKS = ("get", "head")


class Passwords(CustomAuth):
    """Knows the users by their passwords."""

    def __init__(self, passwords: Mapping[str, str]) -> None:
        super().__init__()
        self._passwords = {name.encode(): text.encode() for name, text in passwords.items()}

    def check_credentials(self, username: bytes, password: bytes) -> bool:
        known = self._passwords.get(username)
        return known is not None and hmac.compare_digest(known, password)


class Gate(Authz):
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
        role = yield self._role(ep, action, options)
        if role is None:
            msg = b"nobody may do this"
            raise Forbidden(msg)
        if role not in self._users.get(userDetails.get("username", ""), ()):
            raise Forbidden(f"you need to have role '{role}'".encode())

    @defer.inlineCallbacks
    def _role(
        self, path: Any, verb: str, options: dict[str, Any]
    ) -> Generator[Any, Any, Role | None]:
        try:
            endpoint, names = self.master.data.getEndpoint(path)
        except InvalidPathError:
            return None
        if endpoint.kind != EndpointKind.SINGLE:
            return None
        kind = endpoint.rtype.name
        if needed_role(kind, verb, publishes=True) != "publish":
            return needed_role(kind, verb, publishes=False)
        builders = yield self._builders(kind, endpoint, names, options)
        return needed_role(kind, verb, publishes=PUBLISH in builders)

    @defer.inlineCallbacks
    def _builders(
        self, kind: str, endpoint: Any, names: dict[str, Any], options: dict[str, Any]
    ) -> Generator[Any, Any, list[str]]:
        """What would be begun. A build's own builder is the page of its cell: its request knows."""
        if kind == "forcescheduler":
            scheduler = yield endpoint.findForceScheduler(names["schedulername"])
            return list(scheduler.builderNames) if scheduler is not None else []
        build = yield endpoint.get({}, names)
        if build is None:
            return []
        request = yield self.master.data.get(("buildrequests", build["buildrequestid"]))
        builder = yield self.master.data.get(("builders", request["builderid"]))
        return [builder["name"]]
