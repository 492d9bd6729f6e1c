"""What a file says about conda packages, `[conda.outputs]`, and the packages made of it."""

import json
from pathlib import Path

import msgspec
import pytest
from rattler import MatchSpec, Version
from rattler.package import IndexJson
from rattler_build import Package
from tests.support.conda import SUBDIR, index, solve_and_install
from tests.support.helpers import SMALL, config_of, plan_of

from torchyard.checks.cell import cell_mismatches
from torchyard.config.load import load_config
from torchyard.errors import BuildError, ConfigError, HostError
from torchyard.model.conda_output import (
    CondaAbout,
    CondaOutput,
    CondaTests,
    outputs_of,
    outputs_setting,
)
from torchyard.model.recipe import Stage
from torchyard.package.conda.about import About, about
from torchyard.package.conda.metadata import CondaBuild, CondaKind, CondaMetadata, describe
from torchyard.package.conda.write import write_conda
from torchyard.package.read import read_package
from torchyard.publish.evidence import NO_EVIDENCE
from torchyard.publish.package_gates import refused_packages
from torchyard.publish.staged import read_staged
from torchyard.smoke.conda import index_channel
from torchyard.smoke.recipe_tests import read_recipe_tests

BUILD = CondaBuild(
    name="demo",
    version="1.2.3",
    compute="cpu",
    blas="openblas",
    subdir="linux-64",
    build_hash="bbbbbbb",
    core_hash="ccccccc",
    python="cp312",
    needed=frozenset({"libstdc++.so.6", "libz.so.1"}),
    host={"numpy": "2.3.1"},
)
FILE = SMALL.replace('["wheel", "libtorch"]', '["conda", "conda-libtorch"]')


def made(kind: CondaKind, build: CondaBuild = BUILD, /, **outputs: CondaOutput) -> CondaMetadata:
    """Return the metadata of a package; outputs are given by the last word of their kinds."""
    named = {f"conda-{name}".removesuffix("-conda"): output for name, output in outputs.items()}
    return describe(kind, msgspec.structs.replace(build, outputs=named))


def test_what_is_left_out_is_as_without_outputs() -> None:
    for kind in (CondaKind.PACKAGE, CondaKind.LIBRARIES, CondaKind.TESTS, CondaKind.META):
        assert made(kind, conda=CondaOutput(), libtorch=CondaOutput()) == describe(kind, BUILD)


def test_packages_require_others_by_their_names_versions_and_builds() -> None:
    outputs = {
        "conda": CondaOutput(name="mydemo", build_string="{python}_{hash}_{number}"),
        "libtorch": CondaOutput(name="mylib", version="2.0", build_offset=5),
        "meta": CondaOutput(name="mydemo-{device}", version="9"),
    }
    package = made(CondaKind.PACKAGE, **outputs)
    assert (package.name, package.version, package.build) == ("mydemo", "1.2.3", "py312_hbbbbbbb_0")
    libraries = made(CondaKind.LIBRARIES, **outputs)
    assert (libraries.name, libraries.version, libraries.number) == ("mylib", "2.0", 5)
    assert f"mylib ==2.0 {libraries.build}" in package.depends
    assert package.run_exports == ("mydemo >=1.2.3,<1.3.0a0", "mylib >=2.0,<2.1.0a0")
    assert "mydemo ==1.2.3 *_0" in libraries.constrains
    meta = made(CondaKind.META, **outputs)
    assert (meta.name, meta.version, meta.depends) == ("mydemo-cpu", "9", ("mydemo ==1.2.3 *_0",))
    assert {"mydemo-cpu ==9", "mydemo-gpu <0.0a0"} <= {*package.constrains}
    assert "mydemo ==1.2.3 py312_*_0" in made(CondaKind.TESTS, **outputs).depends


def test_requirements_are_added_replaced_and_ignored() -> None:
    assert {"libstdcxx", "libzlib"} < {*made(CondaKind.LIBRARIES).depends}
    output = CondaOutput(
        depends=("libstdcxx >=13", "numpy-base"),
        constrains=("demo-gpu <1.0a0",),
        ignore_run_exports=("libzlib",),
        pin_compatible={"numpy": "x"},
        track_features=("slow",),
    )
    found = made(CondaKind.LIBRARIES, libtorch=output)
    depends = ("__glibc >=2.28,<3.0.a0", "numpy >=2.3.1,<3.0a0", "libstdcxx >=13", "numpy-base")
    assert found.depends == depends
    assert "demo-gpu <1.0a0" in found.constrains
    assert "demo-gpu <0.0a0" not in found.constrains
    assert found.track_features == ("slow",)
    with pytest.raises(BuildError, match="`scipy` can't be pinned"):
        made(CondaKind.META, meta=CondaOutput(pin_compatible={"scipy": "x"}))


@pytest.mark.parametrize(
    ("version", "pin", "export"),
    [
        ("1.2.3", "x", "demo >=1.2.3,<2.0a0"),
        ("1.2.3", "x.x.x", "demo >=1.2.3,<1.2.4.0a0"),
        ("1.2rc1", "x.x.x", "demo >=1.2rc1,<1.2.1.0a0"),
        ("1", "x.x", "demo >=1,<1.1.0a0"),
    ],
)
def test_run_exports_keep_the_parts_of_a_version(version: str, pin: str, export: str) -> None:
    output = msgspec.convert({"pin": pin, "version": version}, CondaOutput)
    (first, *_) = made(CondaKind.PACKAGE, conda=output).run_exports
    assert first == export
    bound = MatchSpec(export).version
    assert bound is not None
    assert f"<{Version(export.rpartition('<')[2])}" in str(bound)


def test_run_exports_can_be_exact_and_of_other_packages() -> None:
    exact = made(CondaKind.LIBRARIES, libtorch=CondaOutput(pin="exact"))
    assert exact.run_exports == (f"libdemo ==1.2.3 {exact.build}",)
    meta = made(CondaKind.META, meta=CondaOutput(pin="x"))
    assert made(CondaKind.META).run_exports == ()
    assert meta.run_exports == ("demo-cpu >=1.2.3,<2.0a0",)


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    (tmp_path / "tree/lib").mkdir(parents=True)
    (tmp_path / "tree/lib/libdemo.so.1").write_bytes(b"demo")
    (tmp_path / "spec.json").write_text("{}", encoding="utf-8")
    return tmp_path / "tree"


def written(tree: Path, tests: CondaTests, given: CondaAbout, *features: str) -> Path:
    return write_conda(
        tree,
        tree.parent / "out",
        metadata=msgspec.structs.replace(made(CondaKind.META), track_features=features, depends=()),
        description=about(None, None, (), given=given),
        spec=tree.parent / "spec.json",
        tests=tests,
    )


def test_a_package_says_what_it_was_given(tree: Path) -> None:
    tests = CondaTests(
        imports=("demo",),
        commands=("demo --version", "demo-config"),
        requires=("python",),
        contents=("lib/libdemo.so*",),
    )
    given = CondaAbout(
        summary="S",
        description="D",
        homepage="https://example.org/h",
        documentation="https://example.org/d",
        repository="https://example.org/r",
        license="MIT",
        license_family="MIT",
    )
    path = written(tree, tests, given, "slow", "old")
    before = path.read_bytes()
    assert written(tree, tests, given, "slow", "old").read_bytes() == before
    found = read_package(path)
    assert found.faults == ()
    fields = json.loads(found.texts["info/about.json"])
    assert fields == {
        "summary": "S",
        "description": "D",
        "home": "https://example.org/h",
        "doc_url": "https://example.org/d",
        "dev_url": "https://example.org/r",
        "license": "MIT",
        "license_family": "MIT",
    }
    index = json.loads(found.texts["info/index.json"])
    assert (index["track_features"], index["name"]) == ("slow old", "demo-cpu")
    assert IndexJson.from_package_archive(path).track_features == ["slow", "old"]
    (script,) = read_recipe_tests(path)
    assert script.required == ["python"]
    assert "import demo" in str(script.script)
    assert "demo --version" in str(script.script)
    assert found.files["lib/libdemo.so.1"].size == len(b"demo")


def test_tests_without_requirements_are_of_imports_and_scripts(tree: Path) -> None:
    path = written(tree, CondaTests(imports=("demo",), commands=("demo",)), CondaAbout())
    imports, script = read_recipe_tests(path)
    assert (imports.imports, imports.required, script.required) == (["demo"], [], [])


@pytest.mark.parametrize(
    ("line", "passes"), [("test -f $PREFIX/lib/libdemo.so.1", True), ("false", False)]
)
def test_rattler_build_runs_the_tests_in_a_package(
    tree: Path, tmp_path: Path, line: str, *, passes: bool
) -> None:
    (tmp_path / "channel").mkdir()
    index_channel(tmp_path / "channel")
    path = written(tree, CondaTests(commands=("true", line)), CondaAbout())
    channel = (tmp_path / "channel").as_uri()  # or it would ask conda-forge
    (result,) = Package.from_file(path).run_tests(channel=[channel])
    assert result.success is passes, result.output


def test_rattler_installs_it(tree: Path, tmp_path: Path) -> None:
    channel = tmp_path / "channel"
    (channel / SUBDIR).mkdir(parents=True)
    path = written(tree, CondaTests(commands=("true",)), CondaAbout(), "slow")
    path.rename(channel / SUBDIR / path.name)
    index(channel)
    solve_and_install(channel, ["demo-cpu"], tmp_path / "prefix")
    assert (tmp_path / "prefix/lib/libdemo.so.1").read_bytes() == b"demo"


def test_nothing_is_added_that_is_not_said(tree: Path) -> None:
    found = read_package(written(tree, CondaTests(), CondaAbout()))
    assert "info/tests/tests.yaml" not in found.files
    assert "track_features" not in json.loads(found.texts["info/index.json"])


def test_a_package_without_the_files_that_its_tests_name_is_not_written(tree: Path) -> None:
    with pytest.raises(BuildError, match=r"no file `bin/demo`"):
        written(tree, CondaTests(contents=("lib/*", "bin/demo")), CondaAbout())


def test_the_file_says_more_of_a_project(tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_text('[project]\ndescription = "D"\n', encoding="utf-8")
    more = {"NOTICE": tmp_path / "NOTICE"}
    found = about(None, tmp_path, (), "MIT", given=CondaAbout(homepage="https://h"), more=more)
    assert found == About(summary="D", homepage="https://h", license="MIT", licenses=more)


OUTPUTS = """
[conda.outputs.conda]
name = "mytorch"
depends = ["numpy >=2"]

[conda.outputs.conda-libtorch]
version = "3.0"
license_files = ["notices/*"]
"""


def test_jobs_that_pack_depend_on_outputs_and_those_that_compile_do_not(tmp_path: Path) -> None:
    (tmp_path / "notices").mkdir()
    (tmp_path / "notices/OpenBLAS").write_text("BSD", encoding="utf-8")
    (tmp_path / "torchyard.toml").write_text(FILE + OUTPUTS, encoding="utf-8")
    config = load_config(str(tmp_path / "torchyard.toml"))
    assert config.conda_license_texts == {"notices/OpenBLAS": "BSD"}
    before, after = plan_of(FILE), plan_of(FILE + OUTPUTS.replace("license_files", "# "))
    changed = {
        job.stage
        for job, other in zip(before.jobs, after.jobs, strict=True)
        if job.fingerprint != other.fingerprint
    }
    assert changed == {Stage.PACKAGE, Stage.CHECK, Stage.SMOKE, Stage.PUBLISH}
    settings = outputs_setting(config.conda_outputs)
    assert outputs_of(settings) == config.conda_outputs
    (tmp_path / "notices/OpenBLAS").unlink()
    with pytest.raises(HostError, match=r"no file `notices/\*`"):
        load_config(str(tmp_path / "torchyard.toml"))


@pytest.mark.parametrize(
    ("kind", "line", "what"),
    [
        ("conda-libs", "pin = 'x'", "there is no kind of conda package `conda-libs`"),
        ("conda", "name = 'MyTorch'", "`MyTorch` is not the name of a conda package"),
        ("conda", "name = 'a-{device}'", "only `conda-meta` has a name for each {device}"),
        (
            "conda",
            "name = 'a'\n[conda.outputs.conda-tests]\nname = 'a'",
            "two outputs are named `a`",
        ),
        ("conda-meta", "name = 'a'", "only `conda-meta` has a name for each {device}"),
        ("conda", "version = '1-2'", "`1-2` is not a version of conda"),
        ("conda", "build_string = '{hash}-{number}'", "is not a build string"),
        ("conda", "build_string = '{hash}_{numbers}'", "is not a build string"),
        ("conda", "build_string = '{python}_{number}'", "would be the same for different"),
        ("conda-linalg", "build_string = '{hash}'", "would be the same for different"),
        ("conda", "depends = ['numpy =>2']", "`numpy =>2` has `=>2` as a version"),
        ("conda", "tests = { requires = ['a b c d'] }", "is no name with a version"),
        ("conda", "pin_compatible = { numpy = 'x' }", "nothing says which numpy is pinned"),
        ("conda", "build_offset = -1", "a build number can't be negative"),
        ("conda", "summary = 1", "unknown key `summary`"),
    ],
)
def test_what_no_package_could_have_is_refused(kind: str, line: str, what: str) -> None:
    with pytest.raises(ConfigError) as caught:
        config_of(f"{FILE}\n[conda.outputs.{kind}]\n{line}\n")
    assert what in str(caught.value)


def test_a_package_to_pin_is_in_the_host_environment() -> None:
    toolchain = "\n[toolchain.conda]\nchannels = ['x']\nbuild = ['gcc']\nhost = ['openblas']\n"
    outputs = "\n[conda.outputs.conda]\npin_compatible = { numpy = 'x' }\n"
    text = FILE.replace(', "cu130"', "").replace('compute = "cu*"', 'compute = "cpu"')
    assert config_of(text + toolchain + outputs).conda_outputs


def test_packages_of_other_names_are_those_of_their_cells(tree: Path) -> None:
    path = written(tree, CondaTests(), CondaAbout())
    contents = read_package(path)
    cell = "demo-2.0/linux-x86_64/cpu-openblas/any/conda-meta"
    assert [*cell_mismatches(contents, cell.replace("2.0", "1.2.3"))] == []
    renamed = {"conda-meta": CondaOutput(name="other-{device}", version="1.2.3")}
    (wrong,) = cell_mismatches(contents, cell, renamed)
    assert wrong == "it is of `demo-cpu`, and the cell of `other-cpu`"
    assert [*cell_mismatches(contents, cell, {"conda-meta": CondaOutput(version="1.2.3")})] == []


def test_a_package_with_a_name_of_the_plan_must_be_of_the_plan(tree: Path) -> None:
    path = written(tree, CondaTests(), CondaAbout())
    (package,) = read_staged([path], "compute", "2026-11-15T10:00:00Z")
    cells = frozenset({"mine-7/linux-x86_64/cpu-openblas/any/conda-meta"})
    renamed = {"conda-meta": CondaOutput(name="demo-{device}", version="1.2.3")}
    assert [*refused_packages([package], cells, NO_EVIDENCE)] == []
    (refused,) = refused_packages([package], cells, NO_EVIDENCE, outputs=renamed)
    assert refused.what == f"the plan's cell of `{path.name}` is unknown"
