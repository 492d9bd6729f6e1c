"""Package URLs: names that vulnerability databases know packages by."""

import re
from urllib.parse import quote

from packaging.utils import canonicalize_name

from torchyard.host.git import is_commit

_GITHUB = re.compile(
    r"(?:https?://|git@|ssh://git@)github\.com[/:]([\w.-]+)/([\w.-]+?)(?:\.git)?/?"
)


def purl(kind: str, name: str, version: str = "", **qualifiers: str) -> str:
    """Return a package URL; `name` includes the namespace, as `debian/libgomp1`."""
    at = f"@{quote(version, safe=':')}" if version else ""
    known = {key: value for key, value in sorted(qualifiers.items()) if value}
    pairs = "&".join(f"{key}={quote(value, safe=':/')}" for key, value in known.items())
    return f"pkg:{kind}/{quote(name, safe='/')}{at}{'?' if pairs else ''}{pairs}"


def pypi_purl(name: str, version: str = "") -> str:
    """Return the package URL of a Python project."""
    return purl("pypi", canonicalize_name(name), version)


def git_purl(address: str, revision: str, name: str) -> str:
    """Return the package URL of a commit or tag; without an address, that of only a name."""
    if found := _GITHUB.fullmatch(address):
        return purl("github", f"{found[1]}/{found[2]}".lower(), revision)
    is_public = "://" in address and not address.startswith("file:")
    at = f"git+{address}@{revision}" if is_public and is_commit(revision) else ""
    return purl("generic", name, revision, vcs_url=at)
