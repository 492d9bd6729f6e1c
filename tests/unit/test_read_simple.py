"""Reading pages of anybody: what they say, and that nothing in them makes the reader raise."""

import json
import time
from hashlib import sha256

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.support.channels import wheel

from torchyard.host.zstd import compress
from torchyard.index.conda.read import (
    LARGEST_SHARD,
    Record,
    read_packed,
    read_repodata,
    read_shard,
    read_shard_index,
)
from torchyard.index.entry import State
from torchyard.index.simple.read import FileLink, Listing, read_listing
from torchyard.index.simple.write import ProjectIndex, root_pages

URL = "https://example.org/simple/thing/"
WHEEL = "thing-1.0-py3-none-any.whl"


def html(body: str, head: str = "") -> Listing:
    text = f"<!DOCTYPE html><html><head>{head}</head><body>{body}</body></html>"
    return read_listing(text.encode(), URL, "text/html")


def link(body: str, head: str = "") -> FileLink:
    listing = html(body, head)
    assert not listing.faults
    (found,) = listing.files
    return found


def test_a_link_with_everything() -> None:
    said = [
        f'href="../../files/{WHEEL}#sha256=AB12"',
        'data-requires-python="&gt;=3.11"',
        'data-yanked="bad &amp; worse"',
        'data-core-metadata="sha256=CD34"',
        f'data-provenance="/p/{WHEEL}"',
    ]
    found = link(f"<a {' '.join(said)}>\n{WHEEL} </a>")
    assert found == FileLink(
        file=WHEEL,
        url=f"https://example.org/files/{WHEEL}",
        written=f"../../files/{WHEEL}#sha256=AB12",
        hashes={"sha256": "ab12"},
        requires_python=">=3.11",
        metadata={"sha256": "cd34"},
        yanked="bad & worse",
        provenance=f"https://example.org/p/{WHEEL}",
    )


@pytest.mark.parametrize(
    ("href", "url"),
    [
        (WHEEL, f"{URL}{WHEEL}"),
        (f"/x/{WHEEL}", f"https://example.org/x/{WHEEL}"),
        (f"//cdn.example.org/{WHEEL}", f"https://cdn.example.org/{WHEEL}"),
        (f"http://other.example.org/{WHEEL}?a=b", f"http://other.example.org/{WHEEL}?a=b"),
    ],
)
def test_addresses_are_relative_to_the_page(href: str, url: str) -> None:
    assert link(f'<a href="{href}">{WHEEL}</a>').url == url


def test_a_base_changes_where_links_lead() -> None:
    base = '<base href="/mirror/"><base href="/second/">'
    assert link(f'<a href="{WHEEL}">{WHEEL}</a>', base).url == f"https://example.org/mirror/{WHEEL}"


def test_names_are_read_as_people_write_them() -> None:
    found = link('<a href="thing-1.0%2Bcpu-py3-none-any.whl">thing-1.0+cpu-py3-none-any.whl</a>')
    assert found.file == "thing-1.0+cpu-py3-none-any.whl"
    assert found.url.endswith("thing-1.0%2Bcpu-py3-none-any.whl")


def test_hashes_of_other_kinds_and_among_other_things() -> None:
    found = link(f'<a href="{WHEEL}#egg=thing&sha512=aa&md5=bb">{WHEEL}</a>')
    assert found.hashes == {"sha512": "aa", "md5": "bb"}


@pytest.mark.parametrize(
    ("said", "metadata"),
    [
        ("", None),
        ('data-core-metadata="false"', None),
        ('data-core-metadata="true"', {}),
        ('data-dist-info-metadata="sha256=ab"', {"sha256": "ab"}),
        ('data-core-metadata="sha256=cd" data-dist-info-metadata="sha256=ab"', {"sha256": "cd"}),
    ],
)
def test_sidecars_may_be_promised_without_a_hash(
    said: str, metadata: dict[str, str] | None
) -> None:
    assert link(f'<a href="{WHEEL}" {said}>{WHEEL}</a>').metadata == metadata


def test_a_list_of_projects() -> None:
    listing = html('<a href="../">up</a><a href="a-b/">A.B</a><a href="/simple/c">c</a>')
    assert [(one.name, one.url) for one in listing.projects] == [
        ("a-b", f"{URL}a-b/"),
        ("c", "https://example.org/simple/c"),
    ]


@pytest.mark.parametrize(
    "sign", ["<a ", "<a x='", "<!--", "<!", "</", "<?", "<a href=x ", "<![", "&", "<a>", "<script>"]
)
def test_no_page_takes_hours(sign: str) -> None:
    start = time.process_time()
    body = f'<a href="{WHEEL}">{WHEEL}</a>{sign * 30_000}'
    for listing in (html(body), read_listing(body.encode(), URL, "text/html")):
        assert [one.file for one in listing.files] == [WHEEL]
    assert time.process_time() - start < 30


def test_json_may_list_projects_as_people_call_them() -> None:
    page = {"meta": {"api-version": "1.0"}, "projects": [{"name": "A.B"}]}
    listing = read_listing(json.dumps(page).encode(), URL, "application/json")
    assert [(one.name, one.url) for one in listing.projects] == [("a-b", f"{URL}a-b/")]


def test_links_for_people_are_no_projects() -> None:
    strange = ("https://example.com/", "/", ".", "./", "/help", "mailto:me@example.org", "#top")
    links = "".join(f'<a href="{href}">Our home</a>' for href in strange)
    listing = html(f'{links}<a href="https://other.example.org/a-b/#x">A_B</a><a href="c/">C!</a>')
    assert [one.url for one in listing.projects] == [
        "https://other.example.org/a-b/",
        f"{URL}c/",
    ]


@pytest.mark.parametrize("said", ["../../x", "", "0x12", "g" * 64, "ab\n"])
def test_a_hash_is_made_of_digits(said: str) -> None:
    row = {"filename": WHEEL, "url": WHEEL, "hashes": {"sha256": said, "MD5": "AB"}}
    page = {"meta": {"api-version": "1.0"}, "files": [{**row, "core-metadata": {"sha256": said}}]}
    listing = read_listing(json.dumps(page).encode(), URL, "application/json")
    assert (listing.files[0].hashes, listing.files[0].metadata) == ({"md5": "ab"}, {})
    assert len(listing.faults) == 2


@pytest.mark.parametrize(
    ("said", "sound"),
    [
        ("2026-11-15T14:20:00Z", True),
        ("2026-11-15T14:20:00.123456Z", True),
        ("2026-11-15T14:20:00+02:00", False),
        ("2026-13-15T14:20:00Z", False),
        ("yesterday", False),
    ],
)
def test_a_moment_is_one(said: str, sound: bool) -> None:
    row = {"filename": WHEEL, "url": WHEEL, "upload-time": said}
    page = {"meta": {"api-version": "1.0"}, "files": [row]}
    listing = read_listing(json.dumps(page).encode(), URL, "application/json")
    assert listing.files[0].uploaded == (said if sound else "")
    assert bool(listing.faults) != sound


@pytest.mark.parametrize(
    ("page", "media", "fault"),
    [
        (b"<html></html>", "text/html", "<!DOCTYPE html>"),
        (b"<!DOCTYPE html>", "text/plain", "calls it text/plain"),
        (b"<!DOCTYPE html>\xff", "text/html", "not UTF-8"),
        (b"<!DOCTYPE html><a>x</a>", "", "leads nowhere"),
        (b'<!DOCTYPE html><a href="http://[x/a.whl">a.whl</a>', "", "not an address"),
        (b'<!DOCTYPE html><a href="a%2Fb.whl">a/b.whl</a>', "", "not a valid file name"),
        (b'<!DOCTYPE html><a href="a.whl">b.whl</a>', "", "is called `b.whl`"),
        (b'{"meta": {}, "files": [', "application/json", "can't be read"),
        (b'{"files": [{"filename": "a.whl"}], "meta": {"api-version": "1.0"}}', "", "files[0]"),
        (b'{"files": []}', "", "api-version"),
        (b"[" * 100_000, "application/json", "can't be read"),
    ],
)
def test_faults_are_told_and_do_not_raise(page: bytes, media: str, fault: str) -> None:
    listing = read_listing(page, URL, media)
    assert any(fault in one for one in listing.faults), listing.faults


def test_both_forms_of_our_own_pages_say_the_same() -> None:
    entries = [wheel("thing").entry, wheel("thing", variant="cu130").entry]
    yanked = msgspec.structs.replace(
        entries[0], yanked="", requires_python=">=3.11", provenance=True
    )
    first, second = (
        read_listing(page.data, URL, page.media.partition(";")[0])
        for page in ProjectIndex("thing", State(entries=(yanked, entries[1]))).pages(
            "simple", (yanked, entries[1])
        )
    )
    assert (first.faults, second.faults) == ((), ())
    assert (first.api, second.api, first.status) == ("1.4", "1.4", second.status)
    plain = [
        msgspec.structs.replace(one, size=None, uploaded="", written="") for one in second.files
    ]
    assert [msgspec.structs.replace(one, written="") for one in first.files] == plain
    roots = [
        read_listing(page.data, URL, page.media.partition(";")[0])
        for page in root_pages("simple", ["a", "b"], 1)
    ]
    assert roots[0].projects == roots[1].projects != ()


@given(st.binary(), st.sampled_from(["", "text/html", "application/json"]))
def test_no_bytes_make_it_raise(data: bytes, media: str) -> None:
    read_listing(data, URL, media)
    read_listing(b"<!DOCTYPE html><a href=" + data, URL, media)
    read_repodata(data)
    read_packed(data)
    read_shard_index(data)
    read_shard(data, sha256(data).hexdigest())
    read_shard(compress(data), sha256(compress(data)).hexdigest())


_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text(), inner, max_size=2),
    max_leaves=4,
)


@given(
    st.fixed_dictionaries({}, optional=dict.fromkeys(("files", "meta", "name", "versions"), _JSON))
)
def test_no_json_makes_it_raise(page: dict[str, object]) -> None:
    read_listing(json.dumps(page).encode(), URL, "application/json")
    rows = {"meta": {"api-version": "1.4"}, "files": [{"filename": "a.whl", "url": "a", **page}]}
    read_listing(json.dumps(rows).encode(), URL, "application/json")


@given(st.text(), st.text())
def test_no_address_makes_it_raise(href: str, base: str) -> None:
    for data in (
        f'<base href="{base}"><a href="{href}">x</a><a href="{href}.whl">x</a>',
        json.dumps({"files": [{"filename": "a.whl", "url": href, "provenance": base}]}),
    ):
        read_listing(data.encode(errors="replace"), URL, "")


RECORD = {"name": "low", "version": "1", "build": "0", "sha256": "AB", "size": 3}


def test_repodata_and_its_shards_say_the_same() -> None:
    text = json.dumps({"info": {"subdir": "noarch"}, "packages.conda": {"low-1-0.conda": RECORD}})
    plain = read_repodata(text.encode())
    assert plain.subdir == "noarch"
    assert plain.records["low-1-0.conda"].hashes == {"sha256": "ab"}
    assert read_packed(compress(text.encode())) == plain
    shard = {"packages": {}, "packages.conda": {"low-1-0.conda": {**RECORD, "sha256": b"\xab"}}}
    data = compress(msgspec.msgpack.encode(shard))
    read = read_shard(data, sha256(data).hexdigest())
    assert read.records["low-1-0.conda"] == Record(
        name="low", version="1", build="0", sha256="ab", size=3
    )
    assert read_shard(data, "0" * 64).faults


def test_several_frames_are_one_document_and_half_a_frame_is_none() -> None:
    frames = compress(b'{"packages":') + compress(b"{}}")
    assert read_packed(frames).faults == ()
    assert read_packed(frames[:-3]).faults == ("it is cut off",)
    assert read_packed(b"").faults


@pytest.mark.parametrize("name", ["../up.conda", "/tmp/x.conda", "a/b.conda", "..", "x" * 300])
def test_no_package_is_called_by_a_path(name: str) -> None:
    good = {"low-1-0.conda": RECORD}
    plain = read_repodata(json.dumps({"packages": {name: RECORD}, "packages.conda": good}).encode())
    data = compress(msgspec.msgpack.encode({"packages": {name: {**RECORD, "sha256": b"\xab"}}}))
    for read in (plain, read_shard(data, sha256(data).hexdigest())):
        assert name not in read.records
        assert "not a valid file name" in read.faults[0]
    assert plain.records.keys() == good.keys()


def test_a_shard_that_unpacks_to_too_much_is_not_read() -> None:
    data = compress(bytes(LARGEST_SHARD + 1))
    assert len(data) < 10_000
    assert read_shard(data, sha256(data).hexdigest()).faults
    assert read_shard_index(data).faults


def test_many_frames_take_no_time() -> None:
    frames = compress(b"") * 200_000
    start = time.process_time()
    assert read_packed(frames).faults
    assert time.process_time() - start < 60


@pytest.mark.parametrize(
    ("written", "base"), [(None, ""), ("", ""), ("../files", "../files/"), ("/x/", "/x/")]
)
def test_where_packages_are_is_a_folder(written: str | None, base: str) -> None:
    text = json.dumps({"info": {"subdir": "noarch", "base_url": written}})
    assert read_repodata(text.encode()).base == base
    index = {"info": {"shards_base_url": written or ""}, "shards": {}}
    assert read_shard_index(compress(msgspec.msgpack.encode(index))).shards_base == base
