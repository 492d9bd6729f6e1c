"""What is in packages: archives in links, third-party trees, and documents about them."""

import json
import re
import sys
import sysconfig
import zipfile
from pathlib import Path

import msgspec
import pytest
from cyclonedx.schema import SchemaVersion
from cyclonedx.validation.json import JsonStrictValidator
from packageurl import PackageURL
from tests.support.helpers import Command, plan_of
from tests.support.made_elf import Made, make_elf
from tests.support.made_wheel import make_wheel
from tests.support.planted_archives import PLANTED, build_planted, make_archive, run

from torchyard.errors import CheckError
from torchyard.insight.inventory import take_inventory
from torchyard.insight.static_links import LINKS, LinkLine
from torchyard.insight.vendored_trees import vendored_trees
from torchyard.model.job_spec import JobSpec
from torchyard.model.recipe import Stage
from torchyard.package.sbom.bill import bill_of, package_sbom
from torchyard.package.sbom.component import FACTS, SBOM_FILE, Bill, Component, ComponentKind, Facts
from torchyard.package.sbom.cyclonedx import decode_bill, encode_bill
from torchyard.package.sbom.license_text import license_of_texts
from torchyard.package.sbom.purl import git_purl, purl, pypi_purl
from torchyard.plan.job_specs import make_job_spec
from torchyard.toolchain.compilers import library_folders
from torchyard.toolchain.python_project import BuildSystem, build_wheel_program

BUNDLED, STATIC, VENDORED = ComponentKind.BUNDLED, ComponentKind.STATIC, ComponentKind.VENDORED
RUNTIME = {"libgcc.a", "libc_nonshared.a"}
"""What each compiler adds itself."""

COMMIT = "704754640b09a082545e24a58c2425d9a1c18427"
TOML = f"""\
[project]
name = "tinytorch"
version = "1.2.0"
release = "none"
[source]
git = "https://github.com/Tiny/Torch.git"
commit = "{COMMIT}"
[[source.also]]
git = "/mirrors/deep.git"
commit = "{COMMIT[::-1]}"
[[source.also]]
archive = "https://example.org/data%20set.tar.gz"
sha256 = "{"5" * 64}"
[toolchain]
compiler = "gcc"
[build]
requires = ["cmake==3.31.10", "setuptools[core]==84.2.1"]
[matrix]
platform = ["linux-x86_64"]
compute = ["cpu"]
blas = ["openblas"]
python = ["cp312"]
package = ["wheel", "conda", "libtorch"]
"""
FMT = Component(kind=VENDORED, name="fmt", version="1", license="MIT", path="third_party/fmt")
PARTS = (
    FMT,
    Component(kind=BUNDLED, name="libgomp.so.1", digest="ab" * 32, license="GPL-3+"),
    Component(kind=BUNDLED, name="libidle.so.1", digest="cd" * 32),
    Component(
        kind=STATIC,
        name="libfmt.a",
        path="build/libfmt.a",
        made_of="third_party/fmt",
        license="Apache-2.0 with LLVM-exception",
        files=("libtt_c10.so", "libtt_python.so"),
    ),
    Component(kind=STATIC, name="libz.a", digest="ef" * 32, files=("libtt_gone.so",)),
)


def spec_of(cell: str) -> JobSpec:
    plan = plan_of(TOML)
    return make_job_spec(plan, plan.find(Stage.PACKAGE, f"linux-x86_64/cpu-openblas/{cell}"))


def filled(folder: Path, facts: Facts | None) -> Bill:
    for stage in ("core", "bindings") if facts else ():
        (folder / stage).mkdir(parents=True)
        (folder / stage / FACTS).write_bytes(msgspec.json.encode(facts))
    return bill_of(spec_of("cp312/wheel"), folder)


def test_all_archives_that_the_linker_takes_are_found_by_name(tmp_path: Path) -> None:
    output = build_planted(tmp_path)
    library = tmp_path / "build/libplanted.so"
    (tmp_path / "out/lib").mkdir(parents=True)
    for name in ("libplanted.so", "libplain.so"):
        (tmp_path / "out/lib" / name).write_bytes((library.parent / name).read_bytes())
    (tmp_path / "out/lib/libforeign.so").write_bytes(library.read_bytes())
    (tmp_path / "outside/libpath.a").rename(tmp_path / "outside/gone")
    folders = library_folders("gcc", "")
    facts = take_inventory(
        tmp_path, tmp_path / "out", None, None, find=lambda _name: None, folders=folders
    )
    found = {part.name: part for part in facts.components if part.kind is STATIC}
    (tmp_path / "outside/gone").rename(tmp_path / "outside/libpath.a")
    traced = (tmp_path / "build" / path for path in re.findall(r"^(\S+\.a)$", output, re.MULTILINE))
    taken = {path.name for path in traced if path.stat().st_size > len("!<arch>\n")}
    assert found.keys() == taken - RUNTIME
    assert len(taken - RUNTIME) == len(PLANTED) + 3
    assert {part.files for part in found.values()} == {("libplanted.so",)}
    assert facts.unseen == ("libforeign.so",)
    assert found["libtinyfmt.a"] == Component(
        kind=STATIC,
        name="libtinyfmt.a",
        version="1.2.3",
        license="BSL-1.0",
        purl="pkg:generic/tinyfmt@1.2.3",
        path="build/libtinyfmt.a",
        made_of="third_party/tinyfmt",
        files=("libplanted.so",),
    )
    assert found["libown.a"].made_of == ""


SETUP = """\
from setuptools import Extension, setup
more = {{"extra_objects": ["{0}/libpath.a"], "library_dirs": ["{0}"], "libraries": ["named", "m"]}}
modules = [Extension("plain", ["plain.c"]), Extension("planted", ["planted.c"], **more)]
setup(name="x", version="1", ext_modules=modules)
"""
MODULE = "int {0}, path(void), named(void); int both(void) {{ return path() + named(); }}"


def test_archives_that_setuptools_links_are_found(tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    for name in ("path", "named"):
        make_archive(outside, name)
    source = tmp_path / "source"
    source.mkdir()
    (source / "setup.py").write_text(SETUP.format(outside), encoding="utf-8")
    (source / "plain.c").write_text("int plain;", encoding="utf-8")
    (source / "planted.c").write_text(MODULE.format("planted"), encoding="utf-8")
    links = tmp_path / LINKS
    program = build_wheel_program(BuildSystem(), str(tmp_path / "dist"), str(links))
    run(sys.executable, "-c", program, cwd=source)
    facts = take_inventory(
        source, source / "build", None, links, find=lambda _name: None, folders=[]
    )
    suffix = sysconfig.get_config_var("EXT_SUFFIX")
    assert {part.name: part.files for part in facts.components} == {
        "libnamed.a": (f"planted{suffix}",),
        "libpath.a": (f"planted{suffix}",),
    }
    assert facts.unseen == ()


def test_libraries_that_the_compiler_links_statically_are_found() -> None:
    line = LinkLine(Path("/"), library_folders("gcc", ""), "-shared -static-libgcc -lgcc -lm -lx_y")
    assert {path.name for path in line.archives()} == {"libgcc.a"}


def test_third_party_trees_have_commit_version_license_and_purl(tmp_path: Path) -> None:
    tree = tmp_path / "third_party"
    for name in ("fmt/deps/json", "miniz-3.0.2", "own"):
        (tree / name).mkdir(parents=True)
    (tmp_path / "torchyard-submodules.txt").write_text(
        f"{COMMIT} third_party/fmt\n{COMMIT[::-1]} third_party/fmt/deps/json\n", encoding="utf-8"
    )
    module = '[submodule "{0}"]\n\tpath = {0}\n\turl = {1}\n'
    for folder, path, url in (
        (tmp_path, "third_party/fmt", "git@github.com:fmtlib/fmt.git"),
        (tmp_path, "../outside", "https://example.org/outside"),
        (tree / "fmt", "deps/json", "https://gitlab.com/x/json.git"),
    ):
        with (folder / ".gitmodules").open("a", encoding="utf-8") as file:
            file.write(module.format(path, url))
    (tree / "fmt/CMakeLists.txt").write_text("project(FMT CXX)\n", encoding="utf-8")
    (tree / "own/VERSION").write_text("v2.7\n", encoding="utf-8")
    (tree / "own/LICENSE").write_text("SPDX-License-Identifier: MIT OR Zlib\n", encoding="utf-8")
    found = {part.path.removeprefix("third_party/"): part for part in vendored_trees(tmp_path)}
    nested = f"pkg:generic/json@{COMMIT[::-1]}?vcs_url=git%2Bhttps://gitlab.com/x/json.git"
    assert {path: (part.version, part.purl) for path, part in found.items()} == {
        "fmt": (COMMIT, f"pkg:github/fmtlib/fmt@{COMMIT}"),
        "fmt/deps/json": (COMMIT[::-1], f"{nested}%40{COMMIT[::-1]}"),
        "miniz-3.0.2": ("3.0.2", "pkg:generic/miniz-3.0.2@3.0.2"),
        "own": ("2.7", "pkg:generic/own@2.7"),
    }
    assert found["own"].license == "MIT OR Zlib"
    assert found["fmt"].license == ""


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Apache License\n  Version 2.0, January 2004\n", "Apache-2.0"),
        ("/* Redistribution and use in source\n * and binary forms, with", "BSD-2-Clause"),
        ("Redistribution and use in source and binary forms\nNeither the name", "BSD-3-Clause"),
        ("GNU GENERAL PUBLIC LICENSE\n  Version 3, 29 June 2007", "GPL-3.0"),
        ("GNU LESSER GENERAL PUBLIC LICENSE\n  Version 2.1, February 1999", "LGPL-2.1"),
        ("All rights reserved.", ""),
    ],
)
def test_licenses_by_their_texts(tmp_path: Path, text: str, expected: str) -> None:
    (tmp_path / "LICENSE").write_text(text, encoding="utf-8")
    assert license_of_texts([tmp_path / "LICENSE"]) == expected


def test_the_document_is_valid_by_the_official_schema(tmp_path: Path) -> None:
    bill = filled(tmp_path, Facts(components=PARTS, unseen=("libtt_c10.so",)))
    (tmp_path / "lib").mkdir()
    for name in ("libtt_c10.so", "libgomp-abababab.so.1"):
        (tmp_path / "lib" / name).touch()
    text = package_sbom(bill, tmp_path, {"libgomp.so.1": "libgomp-abababab.so.1"})
    assert JsonStrictValidator(SchemaVersion.V1_6).validate_str(text.decode()) is None
    document = json.loads(text)
    for entry in (document["metadata"]["component"], *document["components"]):
        if "purl" in entry:
            assert PackageURL.from_string(entry["purl"]).to_string() == entry["purl"]
    known = {entry["bom-ref"] for entry in document["components"]}
    refs = [ref for row in document["dependencies"] for ref in (row["ref"], *row["dependsOn"])]
    assert known == {*refs} - {bill.purl}
    assert "timestamp" not in document["metadata"]
    assert package_sbom(bill, tmp_path, {"libgomp.so.1": "libgomp-abababab.so.1"}) == text


def test_a_document_says_what_is_in_the_package_and_nothing_else(tmp_path: Path) -> None:
    bill = filled(tmp_path, Facts(components=PARTS, unseen=("libtt_c10.so", "libtt_gone.so")))
    (tmp_path / "lib").mkdir()
    for name in ("libtt_c10.so", "g.so", "a.so"):
        (tmp_path / "lib" / name).touch()
    beside = {"libidle.so.1": "idle.so"}  # in a package that is installed with this one
    bundled = {"libgomp.so.1": "g.so", "liba.so": "a.so", **beside}
    read = decode_bill(package_sbom(bill, tmp_path, bundled), "x")
    found = {part.ref: part for part in read.components}
    assert found["bundled:libgomp.so.1@abababab"].files == ("g.so",)
    assert found["bundled:liba.so"].files == ("a.so",)  # of a core without facts
    assert found["static:build/libfmt.a"].files == ("libtt_c10.so",)
    assert found["static:build/libfmt.a"].made_of == "third_party/fmt"
    assert not [ref for ref in found if "idle" in ref or "libz" in ref]
    assert read.unseen == ("libtt_c10.so",)
    assert encode_bill(read) == encode_bill(decode_bill(encode_bill(read), "x"))


def test_sources_and_the_toolchain_are_those_of_the_spec(tmp_path: Path) -> None:
    bill = filled(tmp_path, None)
    assert (bill.version, bill.purl) == ("1.2.0+cpu", "pkg:pypi/tinytorch@1.2.0%2Bcpu")
    assert bill.unseen == ("*",)
    assert {part.ref: part.purl for part in bill.components} == {
        "source:tinytorch": f"pkg:github/tiny/torch@{COMMIT}",
        "source:deep": f"pkg:generic/deep@{COMMIT[::-1]}",
        "source:data%20set.tar.gz@55555555": "pkg:generic/data%2520set.tar.gz"
        f"?checksum=sha256:{'5' * 64}&download_url=https://example.org/data%2520set.tar.gz",
        "toolchain:cmake": "pkg:pypi/cmake@3.31.10",
        "toolchain:setuptools": "pkg:pypi/setuptools@84.2.1",
    }
    others = [bill_of(spec_of(cell), tmp_path) for cell in ("cp312/conda", "any/libtorch")]
    assert [encode_bill(other) for other in others] == [encode_bill(bill)] * 2


def test_bills_are_shown_and_inferred_for_foreign_packages(
    torchyard: Command, tmp_path: Path
) -> None:
    spec = spec_of("cp312/wheel")
    own = make_wheel(tmp_path / "own", "tinytorch", "1.2.0", spec=spec)
    library = make_elf(Made(soname="libgomp.so.1"))
    foreign = tmp_path / "foreign-1.0-py3-none-any.whl"
    with zipfile.ZipFile(foreign, "w") as archive:
        archive.writestr("foreign.libs/libgomp-01234567.so.1.0.0", library)
        archive.writestr("foreign-1.0.dist-info/METADATA", "Requires-Dist: torch==2.1\n\n")
    done = torchyard("sbom", own, foreign, "--write", tmp_path / "to", "--json")
    assert done.code == 0, done.err
    made, inferred = json.loads(done.out)["packages"]
    assert (made["bill"]["inferred"], inferred["bill"]["inferred"]) == (False, True)
    parts = inferred["bill"]["components"]
    assert [(part["kind"], part["name"], part["version"]) for part in parts] == [
        ("bundled", "libgomp.so.1", "1.0.0"),
        ("required", "torch", "2.1"),
    ]
    for path in sorted((tmp_path / "to").iterdir()):
        text = path.read_text("utf-8")
        assert JsonStrictValidator(SchemaVersion.V1_6).validate_str(text) is None
        assert ("post-build" in text) == path.name.startswith("foreign")
        assert decode_bill(text.encode(), "x").inferred == path.name.startswith("foreign")
    shown = torchyard("sbom", foreign).out
    assert "foreign-1.0-py3-none-any.whl: inferred from its files" in shown
    assert "not known: what was linked statically into *" in shown


def test_a_requirement_that_no_parser_takes_is_left_out(torchyard: Command, tmp_path: Path) -> None:
    deep = f"a; {'(' * 5000}python_version > '3'{')' * 5000}"
    wheel = tmp_path / "foreign-1.0-py3-none-any.whl"
    with zipfile.ZipFile(wheel, "w") as archive:
        text = f"Requires-Dist: {deep}\nRequires-Dist: torch==2.1\n\n"
        archive.writestr("foreign-1.0.dist-info/METADATA", text)
    done = torchyard("sbom", wheel, "--json")
    assert done.code == 0, done.err
    (package,) = json.loads(done.out)["packages"]
    assert [part["name"] for part in package["bill"]["components"]] == ["torch"]


def test_a_damaged_package_has_no_bill(torchyard: Command, tmp_path: Path) -> None:
    wheel = make_wheel(tmp_path)
    wheel.write_bytes(wheel.read_bytes()[:-30])
    done = torchyard("sbom", wheel)
    assert done.code == 13
    assert "is damaged, so that files may be missing" in done.err


def test_a_license_can_be_denied(torchyard: Command, tmp_path: Path) -> None:
    facts = Facts(components=PARTS, license="MIT")
    bill = filled(tmp_path / "inputs", facts)
    wheel = tmp_path / "x-1-py3-none-any.whl"
    with zipfile.ZipFile(wheel, "w") as archive:
        archive.writestr(f"x-1.dist-info/sboms/{SBOM_FILE}", encode_bill(bill))
    for globs, denied in ((["AGPL-*"], ""), (["BSD*", "LLVM-*"], "libfmt.a"), (["MIT"], "fmt")):
        options = [word for glob in globs for word in ("--deny", glob)]
        done = torchyard("sbom", wheel, *options)
        assert done.code == (13 if denied else 0)
        assert f"`{denied}` in {wheel.name}" in done.err or not denied


def test_package_urls() -> None:
    assert purl("deb", "debian/libstdc++6", "1:2+b1", arch="amd64", other="") == (
        "pkg:deb/debian/libstdc%2B%2B6@1:2%2Bb1?arch=amd64"
    )
    assert pypi_purl("Flash_Attn", "2") == "pkg:pypi/flash-attn@2"
    assert git_purl("file:///home/me/x", "c0ffee", "x") == "pkg:generic/x@c0ffee"


def test_a_document_can_not_take_all_memory() -> None:
    """Every component of the same reference is made of a long path, many times."""
    part = {
        "type": "library",
        "name": "a",
        "bom-ref": "r",
        "properties": [
            {"name": "torchyard:kind", "value": "vendored"},
            {"name": "torchyard:path", "value": "x" * (1 << 20)},
        ],
    }
    document = {
        "bomFormat": "CycloneDX",
        "metadata": {"component": {"type": "library", "name": "a"}},
        "components": [part],
        "dependencies": [{"ref": "r", "dependsOn": ["r"] * 100}],
    }
    (made,) = decode_bill(json.dumps(document).encode(), "x").components
    assert len(made.made_of) == 1 << 20


def test_a_malformed_document_is_refused() -> None:
    for text in (b"{}", b"\xff", b'{"bomFormat": "SPDX", "specVersion": "1.6"}'):
        with pytest.raises(CheckError, match="`x` is no document of torchyard"):
            decode_bill(text, "x")
