"""The pages of a simple index say what PEP 503, 592, 691, 700, 714, 740 and 792 ask for."""

import json
import os
import re
import subprocess
import sys
from html.parser import HTMLParser
from typing import NamedTuple, TypedDict
from urllib.parse import unquote, urldefrag

import msgspec
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from packaging.utils import canonicalize_name, parse_wheel_filename
from tests.support.examples import examples

from torchyard.index.entry import WHOLE, Entry, State
from torchyard.index.page import Media
from torchyard.index.simple.write import ProjectIndex, root_pages

SITE = "https://example.org/nightly"
WHEEL = Entry(
    file="torch-2.14.0+cu130-cp312-cp312-manylinux_2_28_x86_64.whl",
    version="2.14.0+cu130",
    variant="cu130",
    sha256="ab" * 32,
    size=180_000_000,
    uploaded="2026-11-15T14:20:00Z",
    requires_python=">=3.10",
    metadata="cd" * 32,
)

words = st.text(st.characters(exclude_categories=["Cs", "Cc"]), min_size=1, max_size=20)
digests = st.from_regex(r"[0-9a-f]{64}", fullmatch=True)
odd = st.sampled_from(
    ["<b>", '"', "'", "&amp;", "a+b", "%2B", "#sha256=0", "?", "ü", "-", ">=3,<4"]
)
texts = st.lists(words | odd, min_size=1, max_size=4).map("".join)
files = texts.filter(lambda text: "/" not in text and text not in (".", ".."))
entries = st.builds(
    Entry,
    file=files,
    version=texts,
    variant=st.sampled_from(["cpu", "cu130"]),
    sha256=digests,
    size=st.integers(0, 2**40),
    uploaded=st.just(WHEEL.uploaded),
    requires_python=st.just("") | texts,
    metadata=st.just("") | digests,
    yanked=st.none() | st.just("") | texts,
    provenance=st.booleans(),
)
states = st.builds(
    State,
    status=st.sampled_from(["active", "archived", "deprecated"]),
    status_reason=st.just("") | texts,
    entries=st.lists(entries, max_size=5, unique_by=lambda entry: entry.file).map(tuple),
    serials=st.fixed_dictionaries({WHOLE: st.integers(0, 9)}),
)


class Link(NamedTuple):
    """A file as either page tells it."""

    file: str
    url: str
    sha256: str
    requires_python: str | None
    metadata: str | None
    yanked: str | None
    provenance: str | None


class ToldFile(TypedDict):
    filename: str
    url: str
    hashes: dict[str, str]
    size: int


class Reader(HTMLParser):
    """What an HTML page says, read by Python's own parser."""

    def __init__(self, page: bytes) -> None:
        super().__init__()
        self.meta: dict[str, str | None] = {}
        self.anchors: list[tuple[dict[str, str | None], str]] = []
        self._open: dict[str, str | None] | None = None
        self.feed(page.decode())
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        told = dict(attrs)
        if tag == "meta" and told.get("name"):
            self.meta[str(told["name"])] = told["content"]
        if tag == "a":
            self.anchors.append((told, ""))
            self._open = told

    def handle_data(self, data: str) -> None:
        if self._open is not None:
            told, text = self.anchors[-1]
            self.anchors[-1] = told, text + data

    def handle_endtag(self, tag: str) -> None:
        if tag == "a":
            self._open = None

    @property
    def links(self) -> list[Link]:
        return [_link_of_anchor(told, text) for told, text in self.anchors]


def _link_of_anchor(told: dict[str, str | None], text: str) -> Link:
    url, fragment = urldefrag(str(told["href"]))
    metadata = told.get("data-core-metadata")
    assert told.get("data-dist-info-metadata") == metadata  # PEP 714: never another value
    return Link(
        file=text,
        url=url,
        sha256=fragment.removeprefix("sha256="),
        requires_python=told.get("data-requires-python"),
        metadata=metadata.removeprefix("sha256=") if metadata else None,
        yanked=told.get("data-yanked"),
        provenance=told.get("data-provenance"),
    )


def _links_of_json(data: bytes) -> list[Link]:
    return [
        Link(
            file=told["filename"],
            url=told["url"],
            sha256=told["hashes"]["sha256"],
            requires_python=told.get("requires-python"),
            metadata=told.get("core-metadata", {}).get("sha256"),
            yanked={True: "", False: None}.get(told.get("yanked", False), told.get("yanked")),
            provenance=told.get("provenance"),
        )
        for told in json.loads(data)["files"]
    ]


def _pages(state: State) -> tuple[bytes, bytes]:
    html, told = ProjectIndex("torch", state).pages(WHOLE, state.entries)
    assert (html.path, html.media) == ("simple/torch/index.html", Media.HTML)
    assert (told.path, told.media) == ("simple/torch/index.json", Media.SIMPLE_JSON)
    return html.data, told.data


@given(states)
@example(State(entries=(WHEEL,)))
def test_both_pages_say_what_the_state_says(state: State) -> None:
    html, told = _pages(state)
    wanted = [
        Link(
            file=entry.file,
            url=f"../../packages/{entry.sha256[:2]}/{entry.sha256[2:]}/{entry.file}",
            sha256=entry.sha256,
            requires_python=entry.requires_python or None,
            metadata=entry.metadata or None,
            yanked=entry.yanked,
            provenance=f"../../packages/{entry.sha256[:2]}/{entry.sha256[2:]}/{entry.file}.provenance"
            if entry.provenance
            else None,
        )
        for entry in state.entries
    ]
    for links in (Reader(html).links, _links_of_json(told)):
        plain = [
            link._replace(
                url=unquote(link.url),
                provenance=link.provenance and unquote(link.provenance),
            )
            for link in links
        ]
        assert plain == wanted
        assert all(re.fullmatch(r"[\w./%~-]+", link.url, re.ASCII) for link in links)


@given(states)
def test_both_pages_say_the_same_of_the_project(state: State) -> None:
    html, data = _pages(state)
    meta, told = Reader(html).meta, json.loads(data)
    assert meta["pypi:repository-version"] == told["meta"]["api-version"] == "1.4"
    assert meta["pypi:project-status"] == told["project-status"]["status"] == state.status
    reason = told["project-status"].get("reason")
    assert meta.get("pypi:project-status-reason") == reason == (state.status_reason or None)
    assert told["name"] == "torch"
    assert set(told["versions"]) == {entry.version for entry in state.entries}
    assert len(told["versions"]) == len(set(told["versions"]))
    assert [file["size"] for file in told["files"]] == [entry.size for entry in state.entries]
    serial = state.serials[WHOLE]
    assert told["meta"]["_last-serial"] == serial
    assert html.endswith(f"<!--SERIAL {serial}-->\n".encode())


@given(states.filter(lambda state: not any("%" in entry.file for entry in state.entries)))
@example(State(entries=(WHEEL,)))
@settings(max_examples=examples(50))
def test_pip_reads_the_same_from_both_pages(state: State) -> None:
    """A per cent sign in a file name is more than pip itself copes with."""
    pip = pytest.importorskip("pip._internal.index.collector")
    found = []
    for data, media in zip(_pages(state), (Media.HTML, Media.SIMPLE_JSON), strict=True):
        content = pip.IndexContent(data, media, "utf-8", f"{SITE}/simple/torch/", False)
        links = pip.parse_links(content)
        told = [(link.requires_python, link.yanked_reason, link.hash) for link in links]
        metadata = [link.metadata_file_data for link in links]
        places = [(link.url_without_fragment, link.filename) for link in links]
        found.append((told, metadata, places))
    assert found[0] == found[1]
    places = found[0][2]
    assert [file for _, file in places] == [entry.file for entry in state.entries]
    assert all(url.startswith(f"{SITE}/packages/") for url, _ in places)


def test_every_file_belongs_to_a_version() -> None:
    told = json.loads(_pages(State(entries=(WHEEL,)))[1])
    (file,) = told["files"]
    name, version, _, _ = parse_wheel_filename(file["filename"])
    assert name == told["name"] == canonicalize_name(told["name"])
    assert [str(version)] == told["versions"]
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", file["upload-time"])


def test_json_has_no_key_that_old_versions_of_pip_fail_on() -> None:
    told = json.loads(_pages(State(entries=(WHEEL,)))[1])
    assert told["files"][0]["core-metadata"] == {"sha256": WHEEL.metadata}
    assert "dist-info-metadata" not in told["files"][0]


def test_nothing_in_quarantine_is_offered() -> None:
    html, data = _pages(State(entries=(WHEEL,), status="quarantined", status_reason="<haunted>"))
    told = json.loads(data)
    assert Reader(html).links == told["files"] == []
    assert told["versions"] == [WHEEL.version]
    assert told["project-status"] == {"status": "quarantined", "reason": "<haunted>"}


def test_a_file_is_the_same_in_every_view() -> None:
    other = msgspec.structs.replace(WHEEL, file="torch-1.whl", variant="cpu", version="1")
    state = State(entries=(other, WHEEL), serials={"cu130": 3, WHOLE: 7})
    index = ProjectIndex("torch", state)
    variant = [page.data for page in index.pages("cu130", [WHEEL])]
    whole = [page.data for page in index.pages(WHOLE, state.entries)]
    assert Reader(variant[0]).links == Reader(whole[0]).links[1:]
    assert _links_of_json(variant[1]) == _links_of_json(whole[1])[1:]
    assert [json.loads(page)["meta"]["_last-serial"] for page in (variant[1], whole[1])] == [3, 7]
    assert json.loads(variant[1])["versions"] == [WHEEL.version]


def test_projects_are_listed_by_name() -> None:
    html, told = root_pages("cu130", ["torchvision", "torch"], 4)
    assert (html.path, told.path) == ("cu130/index.html", "cu130/index.json")
    reader = Reader(html.data)
    assert [(anchor["href"], text) for anchor, text in reader.anchors] == [
        ("torch/", "torch"),
        ("torchvision/", "torchvision"),
    ]
    assert reader.meta["pypi:repository-version"] == "1.4"
    assert json.loads(told.data) == {
        "meta": {"api-version": "1.4", "_last-serial": 4},
        "projects": [{"name": "torch"}, {"name": "torchvision"}],
    }


SEEDED = """
from hashlib import sha256
from torchyard.index.entry import Entry, State
from torchyard.index.availability import offers
from torchyard.index.simple.write import ProjectIndex
entries = [
    Entry(file=f"a-{v}.whl", version=v, variant="cpu", sha256="0" * 64, size=1, uploaded="")
    for v in ("2.0", "2.0.0", "1", "2", "1.0", "1.1", "nonsense", "other")
]
pages = ProjectIndex("a", State(entries=tuple(entries))).pages("simple", entries)
print([sha256(page.data).hexdigest() for page in pages], offers("simple/a", entries))
"""


def test_pages_and_offers_do_not_depend_on_chance() -> None:
    printed = {
        subprocess.run(
            [sys.executable, "-c", SEEDED],
            env={**os.environ, "PYTHONHASHSEED": seed},
            check=True,
            capture_output=True,
        ).stdout
        for seed in ("1", "2", "3", "4")
    }
    assert len(printed) == 1
