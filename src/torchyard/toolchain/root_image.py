"""Roots from tar archives or images: unpacked once, under their digest.

They are not trusted: members are written through handles, and no link is followed.
"""

import os
import re
from collections.abc import Iterator, Sequence
from hashlib import file_digest, sha256
from pathlib import Path
from typing import BinaryIO, NamedTuple, TypeVar

import msgspec

from torchyard.errors import HostError
from torchyard.host.archive import ArchiveMember, archive_members, refused_by_name
from torchyard.host.locks import locked, report_full_disk
from torchyard.host.machine import platform_name
from torchyard.host.system_view import NO_PART
from torchyard.host.untrusted_tree import EntryKind, UntrustedTree, remove_tree
from torchyard.model.toolchain import REGISTRY
from torchyard.model.values import UNDECODABLE
from torchyard.toolchain.digests import DIGESTS, Digests
from torchyard.toolchain.registry import locked_digest, pulled
from torchyard.toolchain.root import add_compilers, add_environments, check_root, identify_root
from torchyard.toolchain.variables import IMAGE

ROOTS = "roots"
"""The directory of unpacked roots, beside the directories of jobs."""

_OCI = "oci:"
_LAYOUT = "oci-layout"
_DIGEST = re.compile(r"sha256:([0-9a-f]{64})")
_ARCHITECTURES = {"x86_64": "amd64", "aarch64": "arm64"}
"""The names of machines in OCI images, where they differ from Linux's."""

_HIDES = ".wh."
_HIDES_ALL = ".wh..wh..opq"


_LARGEST_ROOT, _MOST_FILES = 64 << 30, 2_000_000
"""Limits the size of a root: an archive of a few megabytes could fill any disk."""

_LARGEST_DOCUMENT = 16 << 20
"""Registries take manifests of 4 MiB."""


Json = TypeVar("Json", bound=msgspec.Struct)


class Layer(NamedTuple):
    """A tar archive to unpack over earlier layers, and its sha256."""

    path: Path
    sha256: str


class _Room:
    """Counts unpacked bytes and files, and refuses more than any system has."""

    def __init__(self) -> None:
        self.size = self.files = 0

    def members(self, file: BinaryIO) -> Iterator[ArchiveMember]:
        """Yield the members of an archive that belong to a root."""
        for member in archive_members(file):
            self.add(member.size)
            if member.path.partition("/")[0] not in NO_PART:
                yield member

    def add(self, size: int) -> None:
        self.size += size
        self.files += 1
        if self.size > _LARGEST_ROOT or self.files > _MOST_FILES:
            msg = f"it is larger than any system: {self.size:,} bytes in {self.files:,} files"
            raise HostError(msg)


class _Platform(msgspec.Struct):
    architecture: str
    os: str


class _Descriptor(msgspec.Struct):
    digest: str
    platform: _Platform | None = None


class _Document(msgspec.Struct):
    """An index with manifests, or a manifest with layers and a configuration."""

    manifests: tuple[_Descriptor, ...] = ()
    layers: tuple[_Descriptor, ...] = ()
    config: _Descriptor | None = None


class _Variables(msgspec.Struct):
    Env: tuple[str, ...] | None = None


class _Configuration(msgspec.Struct):
    """The configuration of an image: the variables of its containers."""

    config: _Variables | None = None


def find_root(source: str, base: Path, work: Path) -> str:
    """Return the directory of a root, or of one unpacked below the directory of jobs.

    `source` is an image (`docker://NAME@sha256:…`) or relative to `base`: a directory, a tar
    archive, or an OCI layout, which may have the prefix `oci:`.
    """
    path = base / source.removeprefix(_OCI)
    layers: list[Layer] = []
    if source.startswith(REGISTRY):
        digest = locked_digest(source)
    elif source.startswith(_OCI) or (path / _LAYOUT).is_file():
        digest, layers = read_layout(path)
    elif path.is_file():
        digest = Digests(work / DIGESTS).of_file(path)
        layers = [Layer(path, digest)]
    else:
        return str(path)
    folder = work / ROOTS / digest
    if not folder.is_dir():
        with locked(folder.with_name(f"{digest}.lock"), wait=True), report_full_disk(work):
            if not folder.is_dir() and not layers:
                with pulled(source, folder.with_name(f"{digest}.pulled")) as layout:
                    _unpack(read_layout(layout)[1], source, folder, _search_path(layout))
            elif not folder.is_dir():
                _unpack(layers, str(path), folder)
    return str(folder)


def root_identity(source: str, root: str) -> str:
    """Return the identity of the root found for a source; for an image, its digest."""
    if source.startswith(REGISTRY):
        return f"image sha256:{locked_digest(source)}"
    return identify_root(root)


def own_image(source: str | None) -> str:
    """Return the identity of a root's image if this machine is its container, else ""."""
    image = os.environ.get(IMAGE)
    if not image or source is None or not source.startswith(REGISTRY):
        return ""
    if locked_digest(source) != locked_digest(image):
        msg = f"this is a container of `{image}` ({IMAGE}), but jobs run in `{source}`"
        hint = "`torchyard ci generate` writes files with the image of the lock"
        raise HostError(msg, hint=hint)
    return root_identity(source, "/")


def read_layout(layout: Path) -> tuple[str, list[Layer]]:
    """Return the digest and layers of the image for this machine in an OCI layout."""
    digest, image = _image_in(layout)
    names = [layer.digest for layer in image.layers]
    layers = [Layer(layout / _blob(layout, name), _hex(layout, name)) for name in names]
    return _hex(layout, digest), layers


def _search_path(layout: Path) -> list[str]:
    """Return the directories on PATH of the image in a layout."""
    about = _image_in(layout)[1].config
    if about is None:
        return []
    text = _read(layout, _blob(layout, about.digest))
    found = _decoded(layout, text, _Configuration).config or _Variables()
    paths = (entry.removeprefix("PATH=") for entry in found.Env or () if entry.startswith("PATH="))
    return [folder for path in paths for folder in path.split(":")]


def _image_in(layout: Path) -> tuple[str, _Document]:
    """Return the digest and manifest of the only image for this machine."""
    _, _, machine = platform_name().partition("-")
    wanted = _Platform(_ARCHITECTURES.get(machine, machine), "linux")
    waiting = [*_decoded(layout, _read(layout, "index.json"), _Document).manifests]
    images = {}
    seen: set[str] = set()
    while waiting:
        named = waiting.pop()
        if named.platform not in (None, wanted) or named.digest in seen:
            continue
        seen.add(named.digest)
        data = _read(layout, _blob(layout, named.digest))
        if sha256(data).hexdigest() != _hex(layout, named.digest):
            raise _damaged(layout, f"{named.digest} does not match its digest")
        document = _decoded(layout, data, _Document)
        waiting += document.manifests
        if document.layers:
            images[named.digest] = document
    if len(images) != 1:
        what = f"{len(images)} images" if images else "no image"
        msg = f"`{layout}` has {what} for {wanted.os}/{wanted.architecture}"
        hint = "copy one image into a separate layout: `skopeo copy … oci:DIR`"
        raise HostError(msg, hint=hint)
    ((digest, image),) = images.items()
    return digest, image


def _read(layout: Path, name: str) -> bytes:
    try:
        with (layout / name).open("rb") as file:
            data = file.read(_LARGEST_DOCUMENT + 1)
    except OSError as error:
        msg = f"`{layout}` is not a complete OCI layout: {error}"
        raise HostError(msg, hint="`skopeo copy docker://… oci:DIR` creates one") from error
    if len(data) > _LARGEST_DOCUMENT:
        raise _damaged(layout, f"{name} has more than {_LARGEST_DOCUMENT:,} bytes")
    return data


def _decoded(layout: Path, data: bytes, kind: type[Json]) -> Json:
    try:
        return msgspec.json.decode(data, type=kind)
    except UNDECODABLE as error:
        raise _damaged(layout, str(error)) from error


def _damaged(source: Path | str, what: str) -> HostError:
    return HostError(f"`{source}` is damaged: {what}", hint="get it again")


def _blob(layout: Path, digest: str) -> str:
    return f"blobs/sha256/{_hex(layout, digest)}"


def _hex(layout: Path, digest: str) -> str:
    found = _DIGEST.fullmatch(digest)
    if found is None:
        raise _damaged(layout, f"`{digest}` is not a sha256")
    return found[1]


def _unpack(layers: Sequence[Layer], source: str, folder: Path, path: Sequence[str] = ()) -> None:
    """Unpack layers into a new directory, completely or not at all; its programs are on `path`."""
    part = folder.with_name(f"{folder.name}.part")
    remove_tree(part)  # left by a killed process
    part.mkdir()
    room = _Room()
    try:
        for layer in layers:
            _add_layer(layer, source, part, room)
        check_root(str(part), source)
        with UntrustedTree(part) as tree:
            add_environments(tree)
            add_compilers(tree, path)
        os.sync()  # files are on the disk before the directory gets its name
        part.rename(folder)
    finally:
        remove_tree(part)


def _add_layer(layer: Layer, source: str, folder: Path, room: _Room) -> None:
    """Unpack a layer over those below it; raise HostError if its digest is wrong."""
    try:
        file = layer.path.open("rb")
    except OSError as error:
        raise _damaged(source, str(error)) from error
    with file:
        if file_digest(file, "sha256").hexdigest() != layer.sha256:
            raise _damaged(source, f"{layer.path.name} does not match its digest")
        with refused_by_name(source), UntrustedTree(folder) as tree:
            _hide(file, tree)
            _add(file, tree, room)


def _hide(file: BinaryIO, tree: UntrustedTree) -> None:
    """Remove files of lower layers that a layer hides: single names, or whole directories."""
    for member in _Room().members(file):
        folder, _, name = member.path.rpartition("/")
        if not name.startswith(_HIDES) or not _is_folder(tree, folder):
            continue
        hidden = f"{folder}/{name.removeprefix(_HIDES)}".lstrip("/")
        gone = [hidden] if name != _HIDES_ALL else [entry.path for entry in tree.entries(folder)]
        for path in gone:
            tree.remove(path)


def _is_folder(tree: UntrustedTree, path: str) -> bool:
    """Return whether a path is a directory, without following links."""
    names = path.split("/") if path else []
    above = ("/".join(names[:count]) for count in range(1, len(names) + 1))
    found = (tree.find(path) for path in above)
    return all(entry is not None and entry.kind is EntryKind.FOLDER for entry in found)


def _add(file: BinaryIO, tree: UntrustedTree, room: _Room) -> None:
    for member in room.members(file):
        if member.path.rpartition("/")[2].startswith(_HIDES):
            continue
        if member.is_same and (same := tree.find(member.target)):
            room.add(same.status.st_size)  # links are copied
        member.write_to(tree)
