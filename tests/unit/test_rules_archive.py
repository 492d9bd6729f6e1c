"""Rules about the archive, its list of files, and what it says about itself."""

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.support.contents import (
    ABOUT,
    GOOD_WHEEL,
    LIBRARY,
    METADATA,
    MODULE,
    WHEEL,
    WHEEL_NAME,
    conda,
    contents,
    findings,
    found_by,
    member,
    wheel,
)
from tests.support.examples import examples

from torchyard.checks.policy import CheckPolicy
from torchyard.checks.registry import RULES
from torchyard.checks.rule import Severity
from torchyard.checks.table import parse_rule_table
from torchyard.errors import DataError
from torchyard.host.files import read_data
from torchyard.package.contents import Binary, Contents, Fault, FaultKind, PackageFile
from torchyard.package.wheel.dist_info import parse_record

RECORD = f"{ABOUT}/RECORD"


def test_every_rule_has_a_page_and_a_reason() -> None:
    for rule in RULES.values():
        assert rule.reason, rule.id
        assert not rule.reason.endswith("."), rule.id
        paragraphs = rule.page.split("\n\n")
        assert len(paragraphs) >= 3, f"{rule.id}: what is wrong, why it matters, what to do"


def test_good_packages_have_no_findings() -> None:
    assert findings(wheel()) == ()
    assert findings(conda()) == ()
    members: dict[str, bytes | Binary] = {"libtiny/build-version": b"1.2.0+cpu"}
    assert findings(contents("libtiny-shared-with-deps-1.2.0+cpu.zip", "zip", members)) == ()


@pytest.mark.parametrize(
    ("rule", "kind"),
    [
        ("archive-structure", FaultKind.STRUCTURE),
        ("archive-names", FaultKind.NAME),
        ("archive-bomb", FaultKind.BOMB),
        ("archive-content", FaultKind.CONTENT),
        ("archive-binary", FaultKind.BINARY),
    ],
)
def test_faults_are_told_by_the_rule_for_their_kind(rule: str, kind: FaultKind) -> None:
    found = findings(wheel(faults=(Fault(kind, "tiny/x", "it is bad"),)))
    assert [(f.rule, f.member, f.what) for f in found] == [(rule, "tiny/x", "it is bad")]


@settings(max_examples=examples(30))
@given(st.binary() | st.text().map(str.encode))
def test_no_text_breaks_a_rule(text: bytes) -> None:
    for name in ("METADATA", "WHEEL", "RECORD", "top_level.txt", "torchyard-spec.json"):
        findings(wheel({f"{ABOUT}/{name}": text}), wheel())
    for place in (
        "info/index.json",
        "info/paths.json",
        "lib/python3.12/site-packages/a/version.py",
    ):
        package = conda()
        findings(msgspec.structs.replace(package, texts={**package.texts, place: text}))


# ---------------------------------------------------------------------------- RECORD


def test_record_missing() -> None:
    assert found_by("record-missing", wheel({RECORD: None})) == [
        f"{RECORD}: the wheel has no RECORD"
    ]
    (short,) = found_by("record-missing", wheel(listed=b"tiny/__init__.py,sha256=abcd\n"))
    assert "line 1 of RECORD is malformed: it has 2 columns" in short
    (unreadable,) = found_by("record-missing", wheel(listed=b"\xff,,\n"))
    assert "not UTF-8" in unreadable
    assert found_by("record-missing", wheel()) == []


def test_record_complete() -> None:
    listed = wheel().texts[RECORD]
    more = wheel({"tiny/more.py": b"x"}, listed=listed)
    assert found_by("record-complete", more) == ["tiny/more.py: the file is not in RECORD"]
    (lost,) = found_by("record-complete", wheel({"tiny/__init__.py": None}, listed=listed))
    assert lost == "tiny/__init__.py: RECORD lists the file, which is missing"
    (twice,) = found_by("record-complete", wheel(listed=listed + listed.splitlines(True)[0]))
    assert twice == "tiny/__init__.py: RECORD lists the file 2 times"
    assert len(found_by("record-complete", wheel(listed=b""))) == len(GOOD_WHEEL)


def test_record_need_not_list_itself_or_its_signatures() -> None:
    listed = wheel().texts[RECORD]
    unlisted = listed.replace(f"{RECORD},,\n".encode(), b"")
    assert findings(wheel({f"{RECORD}.jws": b"{}", f"{RECORD}.p7s": b"x"}, listed=listed)) == ()
    assert findings(wheel(listed=unlisted)) == ()


def test_record_digest() -> None:
    listed = wheel({"tiny/a.py": b"1"}).texts[RECORD]
    (other,) = found_by("record-digest", wheel({"tiny/a.py": b"2"}, listed=listed))
    assert other == "tiny/a.py: the file's SHA-256 is not the one in RECORD"
    sizes = found_by("record-digest", wheel({"tiny/a.py": b"12"}, listed=listed))
    assert "tiny/a.py: RECORD says 1 bytes, but the file has 2" in sizes
    (weak,) = found_by("record-digest", wheel(listed=b"tiny/__init__.py,md5=1B2M2Y8AsgTpgAmY,0\n"))
    assert "weak or unknown kind: md5" in weak
    (none,) = found_by("record-digest", wheel(listed=b"tiny/__init__.py,,\n"))
    assert "no digest" in none
    assert found_by("record-digest", wheel()) == []


@pytest.mark.parametrize(
    ("line", "why"),
    [
        ("a,sha256=ab,-1", "`-1` is not a size"),
        ("a,sha256=ab," + "9" * 5000, "is not a size"),
        ("a,sha256,1", "`sha256` is not a digest"),
        ("a,sha256=ab!d,1", "line 1"),
        (",sha256=abcd,1", "has no file name"),
        ('"a,,', "can't be read"),
    ],
)
def test_rows_of_record_that_are_none(line: str, why: str) -> None:
    rows, problems = parse_record(line)
    assert rows == []
    assert len(problems) == 1
    assert why in problems[0]


@given(st.text())
def test_any_text_is_read_as_record(text: str) -> None:
    rows, problems = parse_record(text)
    assert len(rows) + len(problems) <= text.count("\n") + text.count("\r") + 1


def test_conda_paths() -> None:
    def rows(*more: dict[str, object], without: int = 0) -> bytes:
        listed = msgspec.json.decode(conda().texts["info/paths.json"])["paths"]
        given = sorted((*listed[without:], *more), key=lambda row: str(row["_path"]))
        return msgspec.json.encode({"paths": given})

    def told(paths: bytes) -> str:
        return "\n".join(found_by("conda-paths", conda(paths=paths)))

    assert told(rows()) == ""
    assert ".so: the file is not listed" in told(rows(without=1))
    assert "lost: the file is listed, but missing" in told(rows({"_path": "lost"}))
    assert told(rows({"_path": "empty", "path_type": "directory"})) == ""
    module = f"lib/python3.12/site-packages/{MODULE}"
    wrong = {"_path": module, "sha256": "00", "size_in_bytes": 1}
    assert "SHA-256 is not the one" in told(rows(wrong))
    assert "listed with 1 bytes" in told(rows(wrong))
    assert "listed 2 times" in told(rows(wrong))
    assert "listed as one" in told(rows({"_path": module, "path_type": "softlink"}))
    assert "without a SHA-256" in told(rows({"_path": module}))
    assert "can't be read" in told(b"[[[")
    assert found_by("conda-paths", contents("x-1-0.conda", "conda", {})) == [
        "info/paths.json: the package has no list of its files"
    ]


def test_links_of_a_conda_package_have_no_digest_to_compare() -> None:
    package = conda()
    listed = msgspec.json.decode(package.texts["info/paths.json"])["paths"]
    row = {"_path": "lib/b", "path_type": "softlink", "sha256": "00", "size_in_bytes": 7}
    linked = msgspec.structs.replace(
        package,
        files={**package.files, "lib/b": PackageFile(name="lib/b", size=0, link="python3.12")},
        texts={
            **package.texts,
            "info/paths.json": msgspec.json.encode({"paths": [row, *listed]}),
        },
    )
    assert findings(linked) == ()


# ---------------------------------------------------------------------------- dist-info


def test_dist_info() -> None:
    two = wheel({"tiny-1.1.0.dist-info/METADATA": METADATA})
    (found,) = found_by("dist-info", two)
    assert "has tiny-1.1.0.dist-info, tiny-1.2.0+cpu.dist-info" in found
    (found,) = found_by("dist-info", contents(WHEEL_NAME, "wheel", {"tiny/x.py": b""}))
    assert "has none" in found
    (found,) = found_by("dist-info", wheel(name=WHEEL_NAME.replace("1.2.0", "1.3.0")))
    assert "not that of tiny 1.3.0+cpu" in found
    assert found_by("dist-info", wheel()) == []


def test_wheel_file() -> None:
    def told(text: bytes | None) -> str:
        return "\n".join(found_by("wheel-file", wheel({f"{ABOUT}/WHEEL": text})))

    assert told(WHEEL) == ""
    assert "no readable WHEEL" in told(None)
    assert "malformed line" in told(b"nonsense")
    assert "Wheel-Version should be 1.0, not 2.0" in told(WHEEL.replace(b"1.0", b"2.0"))
    assert "not missing" in told(WHEEL.replace(b"Wheel-Version: 1.0\n", b""))
    assert "should be true or false" in told(WHEEL.replace(b"false", b"maybe"))


def test_wheel_purelib() -> None:
    pure = {f"{ABOUT}/WHEEL": WHEEL.replace(b"false", b"True")}
    (found,) = findings(wheel(pure))
    assert (found.rule, found.severity) == ("wheel-purelib", Severity.WARNING)
    assert found.what == f"Root-Is-Purelib is true, but there is {MODULE}"
    assert found_by("wheel-purelib", wheel({**pure, MODULE: None})) == []
    assert found_by("wheel-purelib", wheel()) == []


def test_wheel_tags() -> None:
    def told(text: bytes, name: str = WHEEL_NAME) -> str:
        return "\n".join(found_by("wheel-tags", wheel({f"{ABOUT}/WHEEL": text}, name=name)))

    both = WHEEL_NAME.replace("manylinux_2_28", "manylinux_2_28_x86_64.manylinux_2_34")
    assert told(WHEEL) == ""
    assert "lacks tags of the file's name: cp312-cp312-manylinux_2_34_x86_64" in told(WHEEL, both)
    assert told(WHEEL + b"Tag: cp312-cp312-manylinux_2_34_x86_64\n", both) == ""
    other = told(WHEEL.replace(b"_28", b"_39"))
    assert "the file's name lacks tags of WHEEL: cp312-cp312-manylinux_2_39" in other
    assert "WHEEL lacks tags of the file's name" in other
    assert "this is not a tag: cp312" in told(WHEEL + b"Tag: cp312\n")
    bomb = b"-".join([b".".join(b"%d" % n for n in range(5000))] * 3)
    assert "more than 10000 tags" in told(WHEEL + b"Tag: " + bomb + b"\n")


def test_metadata_valid() -> None:
    def told(text: bytes | None) -> str:
        return "\n".join(found_by("metadata-valid", wheel({f"{ABOUT}/METADATA": text})))

    assert told(METADATA) == ""
    assert "no readable METADATA" in told(None)
    assert "'9.9' is not a valid metadata version" in told(METADATA.replace(b"2.4", b"9.9"))
    assert "'version' is a required field" in told(METADATA.replace(b"Version: 1.2.0+cpu\n", b""))
    assert "'numpy>>2' is invalid" in told(METADATA.replace(b">=", b">>"))
    assert "not UTF-8" in told(b"Name: \xff\n\n")
    licensed = METADATA.replace(b"Name:", b"License-File: /x\nName:")
    assert "license-file" in told(licensed)
    assert told(licensed.replace(b"2.4", b"2.1")) == ""
    assert "not valid" in told(METADATA.replace(b"1.2.0", b"1" * 5000))


def test_metadata_name() -> None:
    def told(name: str) -> str:
        return "\n".join(found_by("metadata-name", wheel(name=name)))

    assert told(WHEEL_NAME) == ""
    assert "METADATA says `tiny`, but the file's name `huge`" in told(
        WHEEL_NAME.replace("tiny", "huge")
    )
    assert "METADATA says version 1.2.0+cpu, but the file's name 1.2.0" in told(
        WHEEL_NAME.replace("+cpu", "")
    )
    assert "not that of a wheel" in told("tiny.whl")
    assert "not that of a wheel" in told(WHEEL_NAME.replace("+", "%2B"))


def test_metadata_siblings() -> None:
    names = [WHEEL_NAME.replace("cp312", f"cp3{minor}") for minor in (11, 12, 13)]
    first, second, third = (wheel(name=name) for name in names)
    needy = METADATA.replace(b">=2", b">=3") + b"More."
    odd = wheel({f"{ABOUT}/METADATA": needy}, name=names[0])
    assert found_by("metadata-siblings", first, second, third) == []
    (found,) = found_by("metadata-siblings", odd, second, third)
    assert found.endswith(f"not that of {names[1]}: it differs in Description, Requires-Dist")
    assert found_by("metadata-siblings", second, odd, third) == []


def test_metadata_of_another_version_is_no_sibling() -> None:
    older = METADATA.replace(b"1.2.0", b"1.1.0").replace(b"numpy", b"scipy")
    assert found_by("metadata-siblings", wheel(), wheel({f"{ABOUT}/METADATA": older})) == []
    assert found_by("metadata-siblings", wheel(), wheel({f"{ABOUT}/METADATA": b"x"})) == []


def test_sbom_missing() -> None:
    bundled: dict[str, bytes | Binary] = {"tiny/lib/libgomp.so.1": LIBRARY}
    (found,) = found_by("sbom-missing", wheel(bundled))
    assert found.endswith("no bill of materials lists tiny/lib/libgomp.so.1")
    told = {**bundled, f"{ABOUT}/sboms/libgomp.cdx.json": b"{}"}
    assert found_by("sbom-missing", wheel(told)) == []
    assert found_by("sbom-missing", wheel()) == []


# ---------------------------------------------------------------------------- members


@pytest.mark.parametrize(
    "name",
    ["tests/test_a.py", "LICENSE", "setup.py", "lib/libtiny.so", "extra/notes.txt", ".gitignore"],
)
def test_top_level(name: str) -> None:
    (found,) = found_by("top-level", wheel({name: b"x"}))
    assert found.startswith(name.partition("/")[0])


@pytest.mark.parametrize(
    "name",
    [
        "tinygen/__init__.py",
        "single.py",
        "_fast.abi3.so",
        "tiny.libs/libz-12345678.so.1",
        "tiny-1.2.0+cpu.data/scripts/tiny",
        "nvidia/cublas/lib/libcublas.so.12",
        "listed/data.bin",
    ],
)
def test_what_may_be_at_the_root(name: str) -> None:
    changes: dict[str, bytes | Binary] = {f"{ABOUT}/top_level.txt": b"listed\ntiny\n"}
    changes[name] = LIBRARY if ".so" in name else b"x"
    assert found_by("top-level", wheel(changes)) == []


def test_a_distribution_may_have_a_general_name() -> None:
    named = {"build/__init__.py": b"", "build-1.0.dist-info/METADATA": b""}
    package = contents("build-1.0-py3-none-any.whl", "wheel", named)
    assert found_by("top-level", package) == []


def test_pth_file() -> None:
    assert len(found_by("pth-file", wheel({"tiny.pth": b"import os"}))) == 1
    assert len(found_by("pth-file", wheel({"tiny-1.2.0+cpu.data/purelib/a.pth": b"x"}))) == 1
    assert len(found_by("pth-file", conda({"lib/python3.12/site-packages/a.pth": b"x"}))) == 1
    assert found_by("pth-file", wheel({"tiny/weights.pth": b"x"})) == []
    assert found_by("pth-file", wheel({"tiny-1.2.0+cpu.data/data/a.pth": b"x"})) == []


@pytest.mark.parametrize(
    ("line", "path"),
    [
        ('set(DIR "/tmp/tmpsca3iapt/wheel/include")', "/tmp/tmpsca3iapt/wheel/include"),
        ("set(FLAGS -I/home/me/include)", "/home/me/include"),
        ("set(DIR /__w/a/b;/usr/include)", "/__w/a/b"),
        (r"set(DIR C:\Users\me\include)", r"C:\Users\me\include"),
        ('set(DIR "D:/a/tiny/tiny")', "D:/a/tiny/tiny"),
        ("libdir=/opt/_internal/cpython", "/opt/_internal/cpython"),
    ],
)
def test_leaked_path(line: str, path: str) -> None:
    text = f"# a\n{line}\n".encode()
    assert found_by("leaked-path", wheel({"tiny/share/x.cmake": text})) == [
        f"tiny/share/x.cmake: line 2: {path}"
    ]


@pytest.mark.parametrize(
    "line",
    [
        "${PREFIX}/tmp/x",
        "@PREFIX@/home/x",
        "https://example.org/home/x",
        "../../build/x",
        "/usr/include/x",
        "/tmp",
        r"C:\Program Files\NVIDIA",
        r"message(STATUS:\nhome)",
    ],
)
def test_paths_that_are_no_leaks(line: str) -> None:
    assert found_by("leaked-path", wheel({"tiny/x.cmake": line.encode()})) == []


def test_a_path_that_leaks_often_is_told_once_for_a_file() -> None:
    text = b"/tmp/a/b\n\n/tmp/a/b\n" * 2
    (found,) = found_by("leaked-path", wheel({"tiny/x.pc": text}))
    assert found == "tiny/x.pc: line 1 and 3 more: /tmp/a/b"


def test_a_path_of_windows_is_told_once() -> None:
    text = b'set(A "C:/Users/me/lib")\nset(B "dir:/tmp/lib")\nset(C D:/Users/me/lib)\nC:/tmp/x\n'
    found = found_by("leaked-path", wheel({"tiny/x.cmake": text}))
    assert [one.rpartition(" ")[2] for one in found] == [
        "/tmp/lib",
        "C:/Users/me/lib",
        "D:/Users/me/lib",
        "C:/tmp/x",
    ]


def test_what_only_tells_how_a_package_was_built_is_a_note() -> None:
    text = b"a = '/tmp/build-env/bin'\nb = '/tmp/build-env/lib'\nc = '/tmp/build-env/lib'\n"
    (found,) = findings(wheel({"tiny/__config__.py": text}))
    assert (found.rule, found.severity) == ("leaked-config", Severity.NOTE)
    assert found.what == "line 1: /tmp/build-env/bin and 1 more"
    assert found_by("leaked-config", wheel({"tiny/__config__.py": b"a = '/usr/lib'\n"})) == []


def test_duplicate_file() -> None:
    def package(*files: PackageFile) -> Contents:
        return Contents(
            file_name=WHEEL_NAME, format="wheel", size=1, files={f.name: f for f in files}
        )

    first, copy = (member("x", b"x", size=5_000_000) for _ in range(2))
    copy = msgspec.structs.replace(copy, name="y")
    small = [msgspec.structs.replace(file, size=1_000_000) for file in (first, copy)]
    assert found_by("duplicate-file", package(first, copy)) == ["y: these 5 MB are also in x"]
    assert found_by("duplicate-file", package(*small)) == []
    assert found_by("duplicate-file", package(first, member("y", b"y", size=5_000_000))) == []


def test_size_budget() -> None:
    files = {f"f{n}": member(f"f{n}", b"%d" % n, size=n * 1_000_000) for n in range(1, 9)}
    package = Contents(file_name="a.zip", format="zip", size=36_000_000, files=files)
    policy = CheckPolicy(budget="35 MB", severity={"label-zip": "off"})
    (found,) = findings(package, policy=policy)
    assert found.rule == "size-budget"
    assert found.what == "the package has 36 MB, more than its budget of 35 MB"
    assert found.hint.endswith("f8 (8 MB), f7 (7 MB), f6 (6 MB), f5 (5 MB), f4 (4 MB)")
    assert findings(package, policy=msgspec.structs.replace(policy, budget="36 MB")) == ()


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ('"/tmp"', '"tmp"'),
        ('"2 MB"', '"2 megabytes"'),
        ('format = "elf"', ""),
        ("stray_files", "stray"),
    ],
)
def test_a_bad_table_is_refused(old: str, new: str) -> None:
    with pytest.raises(DataError, match=r"rules\.toml"):
        parse_rule_table(read_data("rules.toml").replace(old, new, 1))
