"""Requirements that only extras of a wheel have."""

from packaging.markers import Marker
from packaging.requirements import Requirement


def is_for_extra(requirement: Requirement) -> bool:
    """Return whether a requirement applies only to installations with an extra.

    All conditions of other kinds are taken to be met, so that a requirement which applies on some
    machine without an extra is not left out: `sys_platform == "linux" or extra == "gpu"`.
    """
    return requirement.marker is not None and not _holds(requirement.marker._markers)  # noqa: SLF001 - it has no other form


def _holds(parts: object) -> bool:
    """Return whether a marker without extras may be true; `and` binds closer than `or`."""
    if isinstance(parts, tuple):
        words = [part.serialize() for part in parts]
        if "extra" not in words or words[1] not in ("==", "!="):  # installers disagree on others
            return True
        return Marker(" ".join(words)).evaluate({"extra": ""})
    if not isinstance(parts, list):
        msg = f"a marker has the part {parts!r}"
        raise TypeError(msg)
    choices = [True]
    for part in parts:
        if part == "or":
            choices.append(True)
        elif part != "and":
            choices[-1] = choices[-1] and _holds(part)
    return any(choices)
