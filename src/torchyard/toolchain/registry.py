"""Images of container registries, read and pulled by skopeo.

It uses the same credentials, proxies, mirrors, certificates and policies as docker and podman,
and refuses bytes with a wrong digest.
"""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from hashlib import sha256
from pathlib import Path

from torchyard.errors import ElsewhereError, HostError, PlanError, TorchyardError
from torchyard.host.http import LARGEST_FILE
from torchyard.host.network_settings import fetching_environment
from torchyard.host.process import capture
from torchyard.host.secrets import redact, taken
from torchyard.host.untrusted_tree import remove_tree
from torchyard.model.toolchain import REGISTRY

_REFERENCE = re.compile(r"(.+?)(?::[\w.-]+)?@sha256:([0-9a-f]{64})")
_BOUNDED = ("prlimit", f"--fsize={LARGEST_FILE}")
"""Limits the size of a layer, in case a registry never ends it."""
_MESSAGE = re.compile(r'level=fatal msg="(.*)"')
_LOGIN = re.compile(r"\b(?:Basic|Bearer) [\w.~+/=-]+")
_SHOWN = 400


def find_digest(image: str) -> str:
    """Return the current digest of an image's name."""
    manifest = _skopeo(image, "inspect", "--raw", f"{REGISTRY}{image}")
    return f"sha256:{sha256(manifest.encode()).hexdigest()}"


def locked_digest(image: str) -> str:
    """Return the SHA-256 of a root's image; raise PlanError if it is unknown."""
    return _split(image)[1]


@contextmanager
def pulled(image: str, folder: Path) -> Iterator[Path]:
    """Pull the image of a root for this machine, and yield its temporary OCI layout."""
    name, digest = _split(image)
    remove_tree(folder)  # left by a killed process
    try:
        source = f"{REGISTRY}{name}@sha256:{digest}"
        _skopeo(image.removeprefix(REGISTRY), "copy", "--quiet", source, f"oci:{folder}")
        yield folder
    finally:
        remove_tree(folder)


def _split(image: str) -> tuple[str, str]:
    """Return the name of an image without its tag, and its SHA-256."""
    found = _REFERENCE.fullmatch(image.removeprefix(REGISTRY))
    if found is None:
        msg = f"the digest of `{image.removeprefix(REGISTRY)}` is unknown"
        raise PlanError(msg, hint="run `torchyard lock`, which records it")
    return found[1], found[2]


def _skopeo(image: str, *words: str) -> str:
    argv = [*_BOUNDED, "skopeo", *words]
    try:
        return capture(argv, cwd=Path("/"), env={**fetching_environment(), **taken()})
    except HostError as error:
        raise _refusal(image, str(error)) from error


def _refusal(image: str, output: str) -> TorchyardError:
    """Return the error for an unreadable image, with skopeo's message."""
    if "No such file" in output and "prlimit: failed to execute" in output:
        msg = f"`{image}` can't be pulled: skopeo is not on PATH"
        return HostError(msg, hint="install the package `skopeo`")
    found = _MESSAGE.search(output)
    why = found[1].replace('\\"', '"') if found else output
    why = _LOGIN.sub("***", redact(why))[:_SHOWN]
    host = image.partition("/")[0]
    msg = f"`{image}` can't be pulled: {why}"
    if "unauthorized" in why or "denied" in why:
        hint = f"log in with `docker login {host}`, `podman login {host}` or `skopeo login {host}`"
        return HostError(msg, hint=hint)
    hint = "is the name right, and the registry reachable?"
    return ElsewhereError(msg, hint=hint, reason="network")
