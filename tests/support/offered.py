"""A channel with tinytorch's matrix of packages: pages without files, for tests that read."""

import functools
import http.server
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from hashlib import md5, sha256
from pathlib import Path
from typing import NamedTuple

import msgspec

from torchyard.index.conda.repodata import record_of
from torchyard.index.entry import Entry, State, sort_key
from torchyard.model.identifier import Cell
from torchyard.publish.channel.channel import Channel
from torchyard.publish.channel.draft import ChangeReason

AT = "2026-11-15T14:20:00Z"
PYTHONS = ("cp310", "cp311", "cp312", "cp313")
PLATFORMS = {
    "linux-x86_64": ("manylinux_2_34_x86_64", "linux-64"),
    "macos-arm64": ("macosx_14_0_arm64", "osx-arm64"),
}
CONDA_COMPUTE = {"cpu": "cpu", "cu130": "cuda130"}


class Published(NamedTuple):
    """A file of the channel, and the part that it is in."""

    cell: Cell
    part: str
    entry: Entry


def cells() -> Iterator[Cell]:
    """CPU everywhere, GPUs on Linux; CUDA for one Python; no conda for ROCm; zips on Linux."""
    for compute, blas in (
        ("cpu", "mkl"),
        ("cpu", "openblas"),
        ("cu130", "openblas"),
        ("rocm5.2", "openblas"),
    ):
        for platform in PLATFORMS:
            if platform == "macos-arm64" and (compute, blas) != ("cpu", "openblas"):
                continue
            pythons = ("cp312",) if compute == "cu130" else PYTHONS
            kinds = ("wheel",) if compute == "rocm5.2" else ("wheel", "conda")
            yield from (Cell(platform, compute, blas, py, kind) for py in pythons for kind in kinds)
            if platform == "linux-x86_64" and compute != "rocm5.2":
                yield Cell(platform, compute, blas, "any", "libtorch")


def published(cell: Cell, version: str, name: str = "tinytorch") -> Published:
    """The file of a cell, as torchyard would call it."""
    tag, subdir = PLATFORMS[cell.platform]
    local = f"{version}+{cell.compute}"
    variant = f"{cell.compute}-{cell.variant}"
    match cell.package:
        case "wheel":
            part, file = f"simple/{name}", f"{name}-{local}-{cell.python}-{cell.python}-{tag}.whl"
        case "conda":
            compute = CONDA_COMPUTE[cell.compute]
            build = f"{compute}_{cell.variant}_py{cell.python[2:]}_h93a9a1d_100"
            part, file = f"conda/{subdir}", f"{name}-{version}-{build}.conda"
        case _:
            part, file = f"libtorch/{name}", f"lib{name}-{cell.platform}-{local}.zip"
    digest = sha256(f"{file} {variant}".encode()).hexdigest()
    entry = Entry(
        file=file,
        version=version if cell.package == "conda" else local,
        variant=variant,
        sha256=digest,
        size=1000,
        uploaded=AT,
        cell=f"{name}-{version}/{cell.path}",
        record=_record(file, subdir, digest) if cell.package == "conda" else msgspec.Raw(b"null"),
    )
    return Published(cell, part, entry)


def _record(file: str, subdir: str, digest: str) -> msgspec.Raw:
    name, version, build = file.removesuffix(".conda").rsplit("-", maxsplit=2)
    index = {"name": name, "version": version, "build": build, "build_number": 100}
    index |= {"depends": [], "subdir": subdir}
    md5_ = md5(file.encode(), usedforsecurity=False).hexdigest()
    return record_of(msgspec.json.encode(index), sha256=digest, md5=md5_, size=1000)


def add(files: Sequence[Published]) -> dict[str, Callable[[State], State]]:
    """The edits that publish files."""

    def put(part: str) -> Callable[[State], State]:
        new = [file.entry for file in files if file.part == part]
        return lambda state: msgspec.structs.replace(
            state, entries=tuple(sorted((*state.entries, *new), key=sort_key))
        )

    return {part: put(part) for part in sorted({file.part for file in files})}


def offer(folder: Path, version: str = "1.2.0", name: str = "tinytorch") -> list[Published]:
    """Publish every cell into a channel at a directory."""
    files = [published(cell, version, name) for cell in cells()]
    Channel.at(folder.as_uri(), make=True).commit(
        add(files),
        ChangeReason("a test", AT),
        lambda head: msgspec.structs.replace(head, name="tiny nightly", grouping="compute-blas"),
    )
    return files


def offer_extension(folder: Path, upstream: tuple[str, ...] = ()) -> None:
    """Publish an extension for three torches into a channel that has no torch."""
    tag = PLATFORMS["linux-x86_64"][0]
    files = []
    for torch in ("2.9", "2.12", "2.13"):
        for compute in ("cpu", "cu130") if torch != "2.9" else ("cpu",):
            for python in PYTHONS[1:3]:
                version = f"1.0+pt{torch.replace('.', '')}{compute}"
                cell = Cell("linux-x86_64", compute, f"torch{torch}", python, "wheel")
                entry = Entry(
                    file=f"tinyext-{version}-{python}-{python}-{tag}.whl",
                    version=version,
                    variant=compute,
                    sha256=sha256(f"{version} {python}".encode()).hexdigest(),
                    size=1000,
                    uploaded=AT,
                    cell=f"tinyext-1.0/{cell.path}",
                    torch=f"=={torch}.*",
                )
                files.append(Published(cell, "simple/tinyext", entry))
    Channel.at(folder.as_uri(), make=True).commit(
        add(files),
        ChangeReason("a test", AT),
        lambda head: msgspec.structs.replace(
            head, name="tiny extension", external=("torch",), upstream=upstream
        ),
    )


class _Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - as it is called there
        pass


@contextmanager
def served(folder: Path) -> Iterator[str]:
    """Serve a directory over HTTP for a while; give its address."""
    handler = functools.partial(_Quiet, directory=str(folder))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}/"
        finally:
            server.shutdown()
            thread.join()
