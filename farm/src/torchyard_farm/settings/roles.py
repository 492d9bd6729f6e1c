"""Roles: the changes that users may make on the web page. Everyone may read it."""

from collections.abc import Mapping
from typing import Literal, get_args

ADMIN = "admin"
"""The user that every farm has; `[user.admin]` can remove roles."""

Role = Literal["force", "stop", "publish"]
"""`force`: rebuild jobs. `stop`: stop jobs, pause and resume workers and schedulers. `publish`:
rebuild publish jobs, which `force` does not allow."""

ROLES: tuple[Role, ...] = get_args(Role)

_END = (
    ("build", "stop"),
    ("buildrequest", "cancel"),
    ("scheduler", "enable"),
    *(("worker", verb) for verb in ("pause", "unpause", "stop", "kill")),
)
_NEEDED: Mapping[tuple[str, str], Role] = {
    ("build", "rebuild"): "force",
    **dict.fromkeys(_END, "stop"),
}


def needed_role(kind: str, verb: str, *, publishes: bool) -> Role | None:
    """Return the role that an action on a build, a worker … requires; None if no role allows it."""
    role = _NEEDED.get((kind, verb))
    return "publish" if role == "force" and publishes else role
