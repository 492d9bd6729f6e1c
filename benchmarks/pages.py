"""A channel of many files: its pages written by torchyard, or by a program that does nothing else.

python pages.py make CHANNEL FILES     a channel of 50 projects, published one by one
python pages.py all CHANNEL            write every page of it that is not there
python pages.py bare-all CHANNEL OUT   the same bytes, written to OUT by a loop
python pages.py one CHANNEL N          publish one more file, the Nth
python pages.py bare-one CHANNEL N OUT the same pages, written to OUT
python pages.py list FILES             the same files, as dumb-pypi wants them listed
"""

import sys
from bisect import insort
from collections.abc import Iterator
from hashlib import sha256
from html import escape
from pathlib import Path
from tempfile import TemporaryDirectory

import msgspec

from torchyard.host.zstd import decompress

PROJECTS = tuple(f"project-{number:02}" for number in range(50))
VARIANTS = ("cpu", "cu126", "cu128", "cu130", "cu132", "rocm7.1", "rocm7.2", "xpu")
PYTHONS = ("cp310", "cp311", "cp312", "cp313", "cp314")
PLATFORM = "manylinux_2_28_x86_64"
GROWING = "project-07"
AT = "2026-11-15T14:20:00Z"


def fields(project: str, variant: str, day: int, python: str) -> list[object]:
    """Return the metadata of a nightly wheel, in the field order of an entry."""
    version = f"2.14.0.dev{20250101 + day}+{variant}"
    name = project.replace("-", "_")
    file = f"{name}-{version}-{python}-{python}-{PLATFORM}.whl"
    digest = sha256(file.encode()).hexdigest()
    metadata = sha256(version.encode()).hexdigest()
    cell = f"{project}-{version}/linux-x86_64/{variant}-openblas/{python}/wheel"
    commit = sha256(str(day).encode()).hexdigest()[:40]
    size = 180_000_000 + day
    known = [file, version, variant, digest, size, AT, ">=3.10", metadata]
    return [*known, None, False, cell, commit]


def files(project: str, count: int) -> Iterator[list[object]]:
    """Yield the files of a project in a channel with this number of files."""
    for day in range(count // (len(PROJECTS) * len(VARIANTS) * len(PYTHONS))):
        for variant in VARIANTS:
            for python in PYTHONS:
                yield fields(project, variant, day, python)


def one_more(number: int) -> list[object]:
    return fields(GROWING, "cu130", 90_000 + number, "cp312")


def make(url: str, count: int) -> None:
    from torchyard.index.entry import Entry, State, sort_key  # noqa: PLC0415 - not what is timed
    from torchyard.publish.channel.channel import Channel  # noqa: PLC0415
    from torchyard.publish.channel.draft import ChangeReason  # noqa: PLC0415

    channel = Channel.at(url, make=True)
    for project in PROJECTS:
        entries = (msgspec.convert(known, Entry) for known in files(project, count))
        state = State(entries=tuple(sorted(entries, key=sort_key)))

        def publish(_: State, state: State = state) -> State:
            return state

        channel.commit({f"simple/{project}": publish}, ChangeReason("made", AT))


def write_all(url: str) -> None:
    from torchyard.publish.channel.channel import Channel  # noqa: PLC0415
    from torchyard.publish.channel.draft import ROOTS  # noqa: PLC0415

    channel = Channel.at(url)
    channel.mend([*channel.head().parts, ROOTS])


def add_one(url: str, number: int) -> None:
    from torchyard.index.entry import Entry  # noqa: PLC0415
    from torchyard.publish.channel.channel import Channel  # noqa: PLC0415
    from torchyard.publish.channel.draft import ChangeReason  # noqa: PLC0415
    from torchyard.publish.publish import publish  # noqa: PLC0415
    from torchyard.publish.staged import Package  # noqa: PLC0415

    entry = msgspec.convert(one_more(number), Entry)
    with TemporaryDirectory() as folder:
        path = Path(folder, entry.file)
        path.write_text(entry.file)  # a small one: uploading bytes costs the same for every program
        package = Package(
            path=path,
            part=f"simple/{GROWING}",
            entry=entry,
            name=GROWING,
            requires=(),
            findings=(),
            metadata=b"Metadata-Version: 2.4",
        )
        channel = Channel.at(url, make=True)
        publish(channel, channel.head(), [package], ChangeReason("one more", AT))


class BareEntry(msgspec.Struct, array_like=True):
    """The data of a file on its pages; no file is yanked."""

    file: str
    version: str
    variant: str
    sha256: str
    size: int
    uploaded: str
    requires_python: str
    metadata: str


class BareState(msgspec.Struct):
    """The files of a project, from which its pages are rendered."""

    entries: list[BareEntry]
    serials: dict[str, int]


class BarePart(msgspec.Struct):
    """The reference to a project's state."""

    state: str


class BareHead(msgspec.Struct):
    """The references to all states."""

    generation: int
    parts: dict[str, BarePart]
    serials: dict[str, int]


encode = msgspec.json.Encoder().encode


def bare_row(entry: BareEntry) -> tuple[str, bytes]:
    digest, metadata, file = entry.sha256, entry.metadata, entry.file
    url = f"../../packages/{digest[:2]}/{digest[2:]}/{file.replace('+', '%2B')}"
    html = (
        f'<a href="{url}#sha256={digest}" data-requires-python="{escape(entry.requires_python)}"'
        f' data-core-metadata="sha256={metadata}" data-dist-info-metadata="sha256={metadata}">'
        f"{file}</a><br>\n"
    )
    told = {
        "filename": file,
        "url": url,
        "hashes": {"sha256": digest},
        "size": entry.size,
        "upload-time": entry.uploaded,
        "requires-python": entry.requires_python,
        "core-metadata": {"sha256": metadata},
    }
    return html, encode(told)


def bare_document(title: str, status: str, body: str, serial: int) -> bytes:
    return (
        f'<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta name="pypi:repository-version" content="1.4">\n{status}<title>{title}</title>\n'
        f"</head>\n<body>\n<h1>{title}</h1>\n{body}</body>\n</html>\n<!--SERIAL {serial}-->\n"
    ).encode()


def bare_project(project: str, state: BareState, views: list[str], out: str) -> None:
    rows = list(map(bare_row, state.entries))
    status = '<meta name="pypi:project-status" content="active">\n'
    for view in views:
        serial = state.serials[view]
        shown = [
            row
            for entry, row in zip(state.entries, rows, strict=True)
            if view in ("simple", entry.variant)
        ]
        versions = {entry.version for entry in state.entries if view in ("simple", entry.variant)}
        html = bare_document(
            f"Links for {project}", status, "".join([html for html, _ in shown]), serial
        )
        head = {
            "meta": {"api-version": "1.4", "_last-serial": serial},
            "name": project,
            "project-status": {"status": "active"},
            "versions": sorted(versions),
        }
        files = b",".join([told for _, told in shown])
        write(f"{out}/{view}/{project}", html, encode(head)[:-1] + b',"files":[' + files + b"]}")


def write(folder: str, html: bytes, told: bytes) -> None:
    Path(folder).mkdir(parents=True, exist_ok=True)
    Path(folder, "index.html").write_bytes(html)
    Path(folder, "index.json").write_bytes(told)


def bare_head(channel: str) -> BareHead:
    return msgspec.json.decode(Path(channel, "channel.json").read_bytes(), type=BareHead)


def bare_state(channel: str, digest: str) -> BareState:
    data = Path(channel, f"states/{digest[:2]}/{digest}.json.zst").read_bytes()
    return msgspec.json.decode(decompress(data), type=BareState)


def bare_all(channel: str, out: str) -> None:
    head = bare_head(channel)
    projects = [name.removeprefix("simple/") for name in head.parts]
    for project in projects:
        state = bare_state(channel, head.parts[f"simple/{project}"].state)
        bare_project(project, state, list(state.serials), out)
    links = "".join(f'<a href="{name}/">{name}</a><br>\n' for name in projects)
    for view, serial in head.serials.items():
        html = bare_document("Simple index", "", links, serial)
        meta = {"api-version": "1.4", "_last-serial": serial}
        listing = {"meta": meta, "projects": [{"name": name} for name in projects]}
        write(f"{out}/{view}", html, encode(listing))


def bare_one(channel: str, number: int, out: str) -> None:
    head = bare_head(channel)
    state = bare_state(channel, head.parts[f"simple/{GROWING}"].state)
    new = msgspec.convert(one_more(number), BareEntry)
    insort(state.entries, new, key=lambda entry: (entry.file, entry.variant))
    state.serials |= dict.fromkeys([new.variant, "simple"], head.generation + 1)
    bare_project(GROWING, state, [new.variant, "simple"], out)


def list_files(count: int) -> None:
    for project in PROJECTS:
        for file, _, _, digest, _, _, requires, metadata, *_ in files(project, count):
            told = {
                "filename": file,
                "hash": f"sha256={digest}",
                "requires_python": requires,
                "core_metadata": f"sha256={metadata}",
                "upload_timestamp": 1_763_000_000,
            }
            print(encode(told).decode())


def main() -> None:
    match sys.argv[1:]:
        case ["make", url, count]:
            make(url, int(count))
        case ["all", url]:
            write_all(url)
        case ["bare-all", url, out]:
            bare_all(url, out)
        case ["one", url, number]:
            add_one(url, int(number))
        case ["bare-one", url, number, out]:
            bare_one(url, int(number), out)
        case ["list", count]:
            list_files(int(count))
        case _:
            sys.exit(__doc__)


if __name__ == "__main__":
    main()
