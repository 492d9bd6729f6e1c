"""`torchyard channel check` on a good channel, and on copies of it that were broken on purpose."""

import json
import os
import pty
import re
import shutil
import subprocess
from collections.abc import Callable
from hashlib import sha256
from pathlib import Path
from typing import NamedTuple

import pytest
from tests.support import made_wheel
from tests.support.forked import TORCHYARD
from tests.support.helpers import Command
from tests.support.indexes import WHEELS, ZIPS, Kind, good_channel, make_channel, make_wheel
from tests.support.web import FileServer

from torchyard.checks.registry import INDEX_RULES
from torchyard.errors import UsageError
from torchyard.host.zstd import compress
from torchyard.index.conda.read import read_shard_index

pytestmark = pytest.mark.integration

THING = "thing-1.0+cpu-cp312-cp312-manylinux_2_28_x86_64.whl"
OTHER = "other-1.0-py3-none-any.whl"
LOW = "low-1.0-0.conda"
HIGH = "high-1.0-0.conda"
ZIP = "libthing-1.0+cpu.zip"
OWN = {
    "simple": 5,
    "simple/thing": 3,
    "cpu": 4,
    "cu130": 3,
    "conda": 2,
    "conda/linux-64": 2,
    "libtorch/thing": 3,
    "libtorch/thing/cpu": 2,
}
"""Places of a good channel, and how many files each has."""


@pytest.fixture(scope="module")
def good(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return good_channel(tmp_path_factory.mktemp("good"))


@pytest.fixture
def broken(good: Path, tmp_path: Path) -> Path:
    """A copy to break."""
    return shutil.copytree(good, tmp_path / "channel")


def found(out: str) -> dict[str, int]:
    return {rule["rule"]: rule["count"] for rule in json.loads(out)["rules"]}


def test_nothing_is_wrong_with_our_own(good: Path, torchyard: Command) -> None:
    for deep in ([], ["--deep"]):
        done = torchyard("channel", "check", good, "--json", *deep)
        assert (done.code, found(done.out), done.err) == (0, {}, "")
        document = json.loads(done.out)
        assert (document["sort"], document["files"]) == ("channel", len(WHEELS) + 2 + len(ZIPS))
        for place, files in OWN.items():
            done = torchyard("channel", "check", good / place, "--json", *deep)
            assert (done.code, found(done.out)) == (0, {}), place
            assert json.loads(done.out)["files"] == files, place


def test_nothing_is_wrong_with_our_own_over_the_web(good: Path, torchyard: Command) -> None:
    with FileServer(good) as server:
        for place in ("", "/simple", "/conda/", "/simple/thing/", "/libtorch/thing"):
            done = torchyard("channel", "check", f"{server.url}{place}", "--deep", "--json")
            assert (done.code, found(done.out)) == (0, {}), place


def large_index(folder: Path) -> Path:
    """An index that is not torchyard's, with a page of no files for each of 201 projects."""
    names = [f"p{number}" for number in range(201)]
    links = "".join(f'<a href="{name}/">{name}</a>' for name in names)
    pages = {"": links} | dict.fromkeys(names, "")
    for name, body in pages.items():
        (folder / name).mkdir(parents=True, exist_ok=True)
        text = f"<!DOCTYPE html><html><head><title>x</title></head><body>{body}</body></html>"
        (folder / name / "index.html").write_text(text, encoding="utf-8")
    return folder


def test_all_of_a_large_index_is_read_only_if_that_is_agreed_to(
    tmp_path: Path, torchyard: Command
) -> None:
    root = large_index(tmp_path)
    done = torchyard("channel", "check", root)
    assert done.code == UsageError.exit_code
    assert f"{root} has 201 projects" in done.err
    assert "choose projects with --project GLOB, or audit all with --yes" in done.err
    for words, projects in ((["--yes"], 201), (["--project", "p1?"], 10)):
        done = torchyard("channel", "check", root, "--json", *words)
        assert json.loads(done.out)["projects"] == projects


def test_on_a_terminal_it_is_asked(tmp_path: Path) -> None:
    root = large_index(tmp_path)
    argv = [*TORCHYARD, "channel", "check", str(root)]
    own, other = pty.openpty()
    with subprocess.Popen(argv, stdin=other, stderr=other, stdout=subprocess.PIPE) as child:
        os.close(other)
        said = b""
        while b"[y/N]" not in said:
            said += os.read(own, 1024)
        os.write(own, b"n\n")
        assert child.wait() == UsageError.exit_code
    os.close(own)
    assert b"Look at all 201 projects?" in said


# ---------------------------------------------------------------------------------- how to break


def change(root: Path, places: str, old: str, new: str, *, regex: bool = False) -> None:
    """Replace a text, which has to be there, in some files."""
    paths = sorted(root.glob(places))
    assert paths
    for path in paths:
        text = path.read_text()
        after = re.sub(old, new, text) if regex else text.replace(old, new)
        assert after != text, path
        path.write_text(after)


def package(root: Path, file: str) -> Path:
    (path,) = root.glob(f"packages/*/*/{file}")
    return path


def digest(path: Path) -> str:
    return sha256(path.read_bytes()).hexdigest()


def write_over(root: Path, project: str, path: Path, data: bytes) -> None:
    """Write other bytes, with pages that tell of them as they are."""
    before, size = digest(path), path.stat().st_size
    path.write_bytes(data)
    file = path.name.removesuffix(".metadata")
    for form, start in (("html", "<a "), ("json", '{"filename"')):
        page = root / f"simple/{project}/index.{form}"
        parts = page.read_text().split(start)
        (number,) = (i for i, part in enumerate(parts) if file in part)
        told = re.sub(rf"(sha256\W+){before}", rf"\g<1>{digest(path)}", parts[number])
        assert told != parts[number]
        parts[number] = told.replace(f'"size":{size},', f'"size":{len(data)},')
        page.write_text(start.join(parts))


def other_bytes(root: Path) -> None:
    path = package(root, OTHER)
    data = path.read_bytes()
    assert b"x = 1\n" in data
    path.write_bytes(data.replace(b"x = 1\n", b"x = 2\n"))


def no_sidecar(root: Path) -> None:
    package(root, f"{THING}.metadata").unlink()


def torn(root: Path) -> None:
    path = package(root, OTHER)
    path.write_bytes(path.read_bytes()[:-100])


def torn_before(root: Path) -> None:
    path = package(root, OTHER)
    write_over(root, "other", path, path.read_bytes()[:-100])


def gone(root: Path) -> None:
    package(root, THING).unlink()


def other_requirement(root: Path) -> None:
    path = package(root, f"{THING}.metadata")
    write_over(root, "thing", path, path.read_bytes() + b"Requires-Dist: two-words\n")


def other_sidecar(root: Path) -> None:
    path = package(root, f"{OTHER}.metadata")
    path.write_bytes(path.read_bytes() + b"License: BSD\n")


def sidecar_of_another(root: Path) -> None:
    path = package(root, f"{OTHER}.metadata")
    write_over(root, "other", path, path.read_bytes() + b"License: BSD\n")


def loud_name(root: Path) -> None:
    (root / "simple/two-words").rename(root / "simple/Two_Words")
    change(root, "simple/index.html", 'href="two-words/"', 'href="Two_Words/"')


def page_of_another(root: Path) -> None:
    shutil.rmtree(root / "simple/two-words")
    shutil.copytree(root / "simple/other", root / "simple/two-words")


def only_html_yanks(root: Path) -> None:
    change(
        root, "simple/other/index.html", " data-core-metadata", ' data-yanked="" data-core-metadata'
    )


def only_json_lists(root: Path) -> None:
    change(root, "simple/index.html", '<a href="two-words/">two-words</a><br>\n', "")


def nowhere(root: Path) -> None:
    shutil.rmtree(root / "simple/other")
    change(root, "simple/index.html", '<a href="other/">other</a><br>\n', "")
    change(root, "simple/index.json", '{"name":"other"},', "")


def other_size(root: Path) -> None:
    change(root, "simple/other/index.json", r'"size":\d+', '"size":7', regex=True)


def other_versions(root: Path) -> None:
    change(root, "simple/thing/index.json", '"versions":["1.0+cpu",', '"versions":[')


def strange_api(root: Path) -> None:
    change(root, "simple/other/index.html", 'content="1.4"', 'content="2.0"')


def no_doctype(root: Path) -> None:
    change(root, "simple/other/index.html", "<!DOCTYPE html>\n", "")


def other_python(root: Path) -> None:
    change(root, "simple/other/index.html", "&gt;=3.11", "&gt;=3.13")
    change(root, "simple/other/index.json", ">=3.11", ">=3.13")


def no_python(root: Path) -> None:
    change(root, "simple/other/index.html", ' data-requires-python="&gt;=3.11"', "")
    change(root, "simple/other/index.json", '"requires-python":">=3.11",', "")


def absolute(root: Path) -> None:
    change(root, "simple/other/index.*", "../../packages", f"{root.as_uri()}/packages")


def no_hash(root: Path) -> None:
    change(root, "simple/other/index.html", r"\.whl#sha256=\w+", ".whl", regex=True)
    change(root, "simple/other/index.json", r'"hashes":\{[^}]*\}', '"hashes":{}', regex=True)


def only_md5(root: Path) -> None:
    change(root, "simple/other/index.html", r"\.whl#sha256=\w+", ".whl#md5=00", regex=True)
    new = '"hashes":{"md5":"00"}'
    change(root, "simple/other/index.json", r'"hashes":\{[^}]*\}', new, regex=True)


def strange_hash(root: Path) -> None:
    """One of any length, which nobody can compare; the other is right."""
    change(root, "simple/other/index.json", '"hashes":{', '"hashes":{"shake_128":"abcd",')
    change(
        root, "simple/other/index.json", '"core-metadata":{', '"core-metadata":{"shake_128":"ab",'
    )


def no_provenance(root: Path) -> None:
    change(root, "simple/other/index.html", "<a ", '<a data-provenance="p" ')
    change(root, "simple/other/index.json", '"size":', '"provenance":"p","size":')


def strange_status(root: Path) -> None:
    change(root, "simple/other/index.json", '"status":"active"', '"status":"sleeping"')


def not_in_quarantine(root: Path) -> None:
    change(root, "simple/other/index.html", 'content="active"', 'content="quarantined"')


def half_yanked(root: Path) -> None:
    page = root / "simple/thing/index.html"
    page.write_text(
        page.read_text().replace(" data-core-metadata", ' data-yanked="bad" data-core-metadata', 1)
    )
    page = root / "simple/thing/index.json"
    page.write_text(page.read_text().replace('"size":', '"yanked":"bad","size":', 1))


def no_page(root: Path) -> None:
    shutil.rmtree(root / "simple/two-words")


def torn_json(root: Path) -> None:
    page = root / "simple/other/index.json"
    page.write_bytes(page.read_bytes()[:-20])


def no_sidecars(root: Path) -> None:
    pattern = r' data-(core|dist-info)-metadata="[^"]*"'
    change(root, "simple/other/index.html", pattern, "", regex=True)
    change(root, "simple/other/index.json", r',"core-metadata":\{[^}]*\}', "", regex=True)


def records(root: Path, edit: Callable[[dict[str, dict[str, object]]], None]) -> None:
    """Change what a conda channel says, in both forms, and take its shards away."""
    folder = root / "conda/linux-64"
    data = json.loads((folder / "repodata.json").read_bytes())
    edit(data["packages.conda"])
    text = json.dumps(data).encode()
    (folder / "repodata.json").write_bytes(text)
    (folder / "repodata.json.zst").write_bytes(compress(text))
    (folder / "repodata_shards.msgpack.zst").unlink()


def record_size(root: Path) -> None:
    records(root, lambda found: found[LOW].update(size=7))


def record_hash(root: Path) -> None:
    records(root, lambda found: found[LOW].update(sha256="0" * 64))


def record_no_hash(root: Path) -> None:
    records(root, lambda found: found[LOW].update(sha256=None, md5=None))


def record_depends(root: Path) -> None:
    records(root, lambda found: found[HIGH].update(depends=[]))


def record_build(root: Path) -> None:
    records(root, lambda found: found[LOW].update(build="7"))


def record_gone(root: Path) -> None:
    def edit(found: dict[str, dict[str, object]]) -> None:
        del found[LOW]

    records(root, edit)


def old_zst(root: Path) -> None:
    folder = root / "conda/linux-64"
    data = json.loads((folder / "repodata.json").read_bytes())
    del data["packages.conda"][HIGH]
    (folder / "repodata.json.zst").write_bytes(compress(json.dumps(data).encode()))


def torn_zst(root: Path) -> None:
    path = root / "conda/linux-64/repodata.json.zst"
    path.write_bytes(path.read_bytes()[:-9])


def _shard(root: Path, name: str) -> Path:
    folder = root / "conda/linux-64"
    index = read_shard_index((folder / "repodata_shards.msgpack.zst").read_bytes())
    return folder / f"shards/{index.shards[name]}.msgpack.zst"


def shard_gone(root: Path) -> None:
    _shard(root, "low").unlink()


def shard_torn(root: Path) -> None:
    path = _shard(root, "low")
    path.write_bytes(path.read_bytes()[:-9])


def index_of_another(root: Path) -> None:
    folder = root / "conda/linux-64"
    data = json.loads((folder / "repodata.json").read_bytes())
    data["info"]["subdir"] = "win-64"
    text = json.dumps(data).encode()
    (folder / "repodata.json").write_bytes(text)
    (folder / "repodata.json.zst").write_bytes(compress(text))


def no_noarch(root: Path) -> None:
    shutil.rmtree(root / "conda/noarch")


def conda_gone(root: Path) -> None:
    (root / "conda/linux-64" / LOW).unlink()


def zip_gone(root: Path) -> None:
    package(root, ZIP).unlink()


def zip_other_bytes(root: Path) -> None:
    path = package(root, ZIP)
    path.write_bytes(path.read_bytes().replace(b"1.0+cpu\n", b"1.1+cpu\n"))


def zip_torn(root: Path) -> None:
    path = package(root, ZIP)
    path.write_bytes(path.read_bytes()[:-10])


def zip_other_hash(root: Path) -> None:
    """A hash that all pages agree on, and the file has not."""
    pages = "libtorch/thing/**/*.*"
    change(root, pages, r'((?:sha256":"|<code>))[0-9a-f]{64}', rf"\g<1>{'0' * 64}", regex=True)


def zip_only_in_html(root: Path) -> None:
    page = "libtorch/thing/index.html"
    change(root, page, r"0\.9(%2B|\+)cpu\.zip", r"0.8\g<1>cpu.zip", regex=True)


def zip_no_hash_in_html(root: Path) -> None:
    change(root, "libtorch/thing/index.html", "<code>[0-9a-f]{64}", "<code>", regex=True)


def zip_old_pointer(root: Path) -> None:
    page = root / "libtorch/thing/latest.json"
    told = json.loads(page.read_bytes())
    page.write_text(json.dumps(told | {"files": told["files"][:1]}))


def zip_not_in_variant(root: Path) -> None:
    folder = root / "libtorch/thing"
    shutil.rmtree(folder / "cu130")
    shutil.copytree(folder / "cpu", folder / "cu130")


def zip_no_page(root: Path) -> None:
    (root / "libtorch/thing/cpu/index.html").unlink()


def zip_torn_json(root: Path) -> None:
    page = root / "libtorch/thing/cpu/index.json"
    page.write_bytes(page.read_bytes()[:-20])


def zip_name_of_a_path(root: Path) -> None:
    change(root, "libtorch/thing/latest.json", '"file":"', '"file":"../')


class Broken(NamedTuple):
    """What was done to a good index, and the one rule that should find it."""

    rule: str
    make: Callable[[Path], None]
    deep: bool = False
    place: str = "simple"


BROKEN = [
    Broken("index-hash-wrong", other_bytes, deep=True),
    Broken("index-sidecar-missing", no_sidecar),
    Broken("index-sidecar-missing", no_sidecar, deep=True),
    Broken("index-size", torn),
    Broken("index-package", torn_before, deep=True),
    Broken("index-link-broken", gone),
    Broken("index-link-broken", gone, deep=True),
    Broken("index-metadata-differs", other_requirement),
    Broken("index-sidecar-wrong", other_sidecar),
    Broken("index-sidecar-wrong", sidecar_of_another, deep=True),
    Broken("index-name", loud_name),
    Broken("index-name", page_of_another),
    Broken("index-json-html-differ", only_html_yanks),
    Broken("index-json-html-differ", only_json_lists),
    Broken("index-unresolved", nowhere),
    Broken("index-size", other_size),
    Broken("index-version", other_versions),
    Broken("index-version", strange_api),
    Broken("index-html", no_doctype),
    Broken("index-requires-python", other_python),
    Broken("index-requires-python-none", no_python),
    Broken("index-hash-missing", no_hash),
    Broken("index-hash-missing", only_md5),
    Broken("index-link-broken", no_provenance),
    Broken("index-version", strange_status),
    Broken("index-version", not_in_quarantine),
    Broken("index-yanked", half_yanked),
    Broken("index-page", no_page),
    Broken("index-page", torn_json),
    Broken("index-sidecar-none", no_sidecars),
    Broken("index-size", record_size, place="conda"),
    Broken("index-hash-wrong", record_hash, deep=True, place="conda"),
    Broken("index-hash-missing", record_no_hash, place="conda"),
    Broken("index-record", record_depends, deep=True, place="conda"),
    Broken("index-record", record_build, place="conda"),
    Broken("index-unresolved", record_gone, place="conda"),
    Broken("index-repodata-differs", old_zst, place="conda"),
    Broken("index-page", torn_zst, place="conda"),
    Broken("index-shard", shard_gone, place="conda"),
    Broken("index-shard", shard_torn, place="conda"),
    Broken("index-record", index_of_another, place="conda"),
    Broken("index-noarch", no_noarch, place="conda"),
    Broken("index-link-broken", conda_gone, place="conda"),
    Broken("index-link-broken", zip_gone, place=""),
    Broken("index-link-broken", zip_gone, deep=True, place=""),
    Broken("index-size", zip_torn, place="libtorch/thing"),
    Broken("index-hash-wrong", zip_other_bytes, deep=True, place=""),
    Broken("index-hash-wrong", zip_other_hash, deep=True, place="libtorch/thing"),
    Broken("index-json-html-differ", zip_only_in_html, place="libtorch/thing"),
    Broken("index-json-html-differ", zip_no_hash_in_html, place="libtorch/thing"),
    Broken("index-json-html-differ", zip_old_pointer, place="libtorch/thing"),
    Broken("index-json-html-differ", zip_not_in_variant, place="libtorch/thing"),
    Broken("index-page", zip_no_page, place="libtorch/thing"),
    Broken("index-page", zip_torn_json, place="libtorch/thing"),
    Broken("index-page", zip_name_of_a_path, place="libtorch/thing"),
]
HARMLESS = {
    "index-html",
    "index-hash-missing",
    "index-yanked",
    "index-sidecar-none",
    "index-requires-python-none",
}


def _id(case: Broken) -> str:
    return f"{case.make.__name__}{'-deep' * case.deep}"


@pytest.mark.parametrize("case", BROKEN, ids=_id)
def test_each_fault_is_named_by_its_rule_and_no_other(
    case: Broken, broken: Path, torchyard: Command
) -> None:
    case.make(broken)
    deep = ["--deep"] if case.deep else []
    done = torchyard("channel", "check", broken / case.place, "--json", *deep)
    assert set(found(done.out)) == {case.rule}
    assert done.code == (0 if case.rule in HARMLESS else 16)
    with FileServer(broken) as server:
        over_web = torchyard("channel", "check", f"{server.url}/{case.place}", "--json", *deep)
    assert found(over_web.out) == found(done.out)
    assert over_web.code == done.code


def test_hashes_that_nobody_can_compare_are_passed_over(broken: Path, torchyard: Command) -> None:
    strange_hash(broken)
    done = torchyard("channel", "check", broken / "simple", "--deep", "--json")
    assert (done.code, found(done.out)) == (0, {})


def test_a_file_without_an_end_is_not_read_to_it(broken: Path, torchyard: Command) -> None:
    path = package(broken, OTHER)
    size = path.stat().st_size
    path.write_bytes(path.read_bytes() + bytes(4 << 20))
    with FileServer(broken) as server:
        done = torchyard("channel", "check", f"{server.url}/simple", "--deep", "--json")
    assert (done.code, found(done.out)) == (16, {"index-size": 1, "index-package": 1})
    assert f"more bytes than the {size} that" in done.out


def test_a_record_never_writes_where_it_likes(broken: Path, torchyard: Command) -> None:
    target = broken / "precious.conda"
    target.write_bytes(b"kept")
    records(broken, lambda found: found.update({str(target): found[LOW]}))
    done = torchyard("channel", "check", broken / "conda", "--deep", "--json")
    assert (done.code, found(done.out)) == (16, {"index-page": 2})
    assert target.read_bytes() == b"kept"


def test_conda_packages_may_be_in_another_folder(broken: Path, torchyard: Command) -> None:
    folder = broken / "conda/linux-64"
    data = json.loads((folder / "repodata.json").read_bytes())
    data["info"]["base_url"] = "../files"  # CEP 15; it stands for a folder
    (broken / "conda/files").mkdir()
    for path in folder.glob("*.conda"):
        path.rename(broken / "conda/files" / path.name)
    text = json.dumps(data).encode()
    (folder / "repodata.json").write_bytes(text)
    (folder / "repodata.json.zst").write_bytes(compress(text))
    done = torchyard("channel", "check", broken / "conda", "--json")
    assert (done.code, found(done.out)) == (0, {})


def test_links_that_are_absolute_are_a_note(broken: Path, torchyard: Command) -> None:
    absolute(broken)
    done = torchyard("channel", "check", broken / "simple", "--json")
    assert (done.code, set(found(done.out))) == (0, {"index-absolute-link"})


def test_the_web_never_leads_to_a_file_of_this_machine(broken: Path, torchyard: Command) -> None:
    absolute(broken)  # file:// addresses of files that are there
    with FileServer(broken) as server:
        done = torchyard("channel", "check", f"{server.url}/simple/", "--json")
    assert set(found(done.out)) == {
        "index-absolute-link",
        "index-link-broken",
        "index-sidecar-missing",
    }


def test_what_comes_from_elsewhere_can_be_declared(broken: Path, torchyard: Command) -> None:
    nowhere(broken)
    done = torchyard("channel", "check", broken / "simple", "--external", "oth*", "--json")
    assert (done.code, found(done.out)) == (0, {})


def test_projects_can_be_chosen(broken: Path, torchyard: Command) -> None:
    gone(broken)
    done = torchyard("channel", "check", broken / "simple", "--project", "two-*", "--json")
    assert (done.code, json.loads(done.out)["files"]) == (0, 1)
    done = torchyard("channel", "check", broken / "simple", "--project", "three")
    assert done.code == 5
    assert "names no project" in done.err


def test_a_report_fits_narrow_terminals(
    broken: Path, torchyard: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    gone(broken)
    no_doctype(broken)
    for columns in (60, 80):
        monkeypatch.setenv("COLUMNS", str(columns))
        done = torchyard("channel", "check", broken / "simple")
        assert done.code == 16
        assert max(map(len, done.out.splitlines())) <= columns
        assert "failed: 1 error, 1 warning in 5 files of 3 projects" in " ".join(done.out.split())


def test_no_index_at_all(tmp_path: Path, torchyard: Command) -> None:
    assert torchyard("channel", "check", tmp_path).code == 5
    assert torchyard("channel", "check", tmp_path / "nothing").code == 2
    assert torchyard("channel", "check", "ftp://example.org/").code == 2


def test_a_server_out_of_reach_is_not_the_index_s_fault(torchyard: Command) -> None:
    done = torchyard("channel", "check", "http://me:secret@127.0.0.1:9/simple?token=secret")
    assert done.code == 75
    assert "secret" not in done.err


def test_hundreds_of_files_are_looked_at_a_few_at_a_time(
    tmp_path: Path, torchyard: Command
) -> None:
    """A page of plain links, as many small indexes have it, without anything but names."""
    for number in range(300):
        make_wheel(tmp_path / "many", Kind("many", f"1.{number}"))
    links = "".join(f'<a href="{p.name}">{p.name}</a>' for p in (tmp_path / "many").glob("*.whl"))
    (tmp_path / "many/index.html").write_text(f"<!DOCTYPE html>{links}")
    (tmp_path / "index.html").write_text('<!DOCTYPE html><a href="many/">many</a>')
    with FileServer(tmp_path) as server:
        done = torchyard("channel", "check", server.url, "--deep", "--json")
    rules = {"index-hash-missing": 300, "index-sidecar-none": 1, "index-requires-python-none": 300}
    assert (done.code, found(done.out)) == (0, rules)
    assert all(len(rule["findings"]) <= 100 for rule in json.loads(done.out)["rules"])


def test_all_names_that_resolve_nowhere_are_told(torchyard: Command, tmp_path: Path) -> None:
    names = [f"helper-{letter}" for letter in "abcdef"]
    place = tmp_path / "channel"
    make_channel(place, [made_wheel.make_wheel(tmp_path / "dist", requires=names)])
    found = torchyard("channel", "check", place)
    assert found.code == 16
    assert all(f"`{name}` is not in" in found.out for name in names)


def test_every_rule_has_an_index_that_breaks_it() -> None:
    by_test = {"index-absolute-link"}  # see test_links_that_are_absolute_are_a_note
    assert {case.rule for case in BROKEN} | by_test == set(INDEX_RULES)


ALLOWED = """\
[[allow]]
rule = "index-link-broken"
member = "thing-*"
reason = "the disk is being restored"
until = 2099-12-31
"""


def test_a_policy_allows_what_a_rule_finds(broken: Path, torchyard: Command) -> None:
    gone(broken)
    policy = broken.parent / "policy.toml"
    policy.write_text(ALLOWED, encoding="utf-8")
    done = torchyard("channel", "check", broken / "simple", "--policy", policy, "--json")
    (rule,) = json.loads(done.out)["rules"]
    assert (done.code, rule["rule"], rule["severity"]) == (0, "index-link-broken", "note")
    assert {one["allowed"] for one in rule["findings"]} == {"the disk is being restored"}
    told = torchyard("channel", "check", broken / "simple", "--policy", policy).out
    assert "allowed: the disk is being restored" in told


def test_an_allowance_of_a_policy_ends(broken: Path, torchyard: Command) -> None:
    gone(broken)
    policy = broken.parent / "policy.toml"
    policy.write_text(ALLOWED.replace("2099", "2020"), encoding="utf-8")
    done = torchyard("channel", "check", broken / "simple", "--policy", policy)
    assert done.code == 16
    assert "(allowed until 2020-12-31: the disk is being restored)" in " ".join(done.out.split())


def test_an_allowance_that_no_finding_needs_is_a_note(good: Path, torchyard: Command) -> None:
    policy = good.parent / "unused.toml"
    policy.write_text(ALLOWED, encoding="utf-8")
    done = torchyard("channel", "check", good / "simple", "--policy", policy, "--json")
    (rule,) = json.loads(done.out)["rules"]
    assert (done.code, rule["rule"], rule["severity"]) == (0, "index-link-broken", "note")
    assert "there is nothing to allow" in rule["findings"][0]["what"]


@pytest.mark.parametrize(
    ("policy", "code", "counts"),
    [
        ("", 0, {"index-html": "warning"}),
        ("strict = true", 16, {"index-html": "error"}),
        ('[severity]\nindex-html = "error"', 16, {"index-html": "error"}),
        ('[severity]\nindex-html = "off"', 0, {}),
    ],
)
def test_a_policy_changes_severities(
    broken: Path, torchyard: Command, policy: str, code: int, counts: dict[str, str]
) -> None:
    no_doctype(broken)
    file = broken.parent / "policy.toml"
    file.write_text(policy, encoding="utf-8")
    done = torchyard("channel", "check", broken / "simple", "--policy", file, "--json")
    rules = {rule["rule"]: rule["severity"] for rule in json.loads(done.out)["rules"]}
    assert (done.code, rules) == (code, counts)
