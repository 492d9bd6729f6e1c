"""Who may change what on the web page. Everybody may look."""

from collections.abc import Mapping
from typing import Literal, get_args

ADMIN = "admin"
"""The user whom every farm has; `[user.admin]` can take roles away."""

Role = Literal["force", "stop", "publish"]
"""What a user may do: let jobs begin again; end them, pause workers and schedulers, and
let them go on; let jobs begin again that publish, which `force` does not allow."""

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
    """The role that somebody needs to do this to a build, a worker …; None if nobody may."""
    role = _NEEDED.get((kind, verb))
    return "publish" if role == "force" and publishes else role
