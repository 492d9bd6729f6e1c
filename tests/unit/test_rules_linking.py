import msgspec
import pytest
from tests.support.made import EXPECTED, hits, library, package, subject_of

from torchyard.checks.loader.resolve import How, folders, links_of
from torchyard.checks.policy import CheckPolicy
from torchyard.package.contents import Binary, Contents

CONDA_INDEX = (
    b'{"name": "thing", "version": "1.0", "build": "0", "subdir": "linux-64", "depends": ["other"]}'
)
SPEC = {"thing-1.0.dist-info/torchyard-spec.json": b'{"tasks": []}'}
LINKS = ("linking-unresolved", "linking-environment")
MODULE = "thing/_C.cpython-312-x86_64-linux-gnu.so"


def wheel(**libraries: Binary) -> Contents:
    """A wheel with an extension module that needs libthing.so, and its other libraries."""
    files: dict[str, Binary | str] = {MODULE: library("libthing.so", runpath="$ORIGIN/lib")}
    files["thing/lib/libthing.so"] = library("libc.so.6")
    files |= {f"thing/lib/{name}.so": binary for name, binary in libraries.items()}
    return package(files)


# ------------------------------------------------------------------------ how libraries are found


@pytest.mark.parametrize(
    ("path", "directories", "expected"),
    [
        ("a/b/c.so", "$ORIGIN", ("a/b",)),
        ("a/b/c.so", "${ORIGIN}/../lib/", ("a/lib",)),
        ("a/b/c.so", "$ORIGIN:$ORIGIN/../../nvidia/cu13/lib", ("a/b", "nvidia/cu13/lib")),
        ("c.so", "$ORIGIN/lib", ("lib",)),
        ("a/b/c.so", "/usr/lib:lib::$ORIGINAL/lib", ()),
        ("a/c.so", "$ORIGIN/../../lib", ("../lib",)),
        ("a/c.so", "$ORIGIN/../../..", ("../../../lib",)),
        ("a/c.so", "$ORIGIN/../../../../x", ("../../../x",)),
    ],
)
def test_directories_are_relative_to_where_a_file_lies(
    path: str, directories: str, expected: tuple[str, ...]
) -> None:
    assert folders(path, directories) == expected


def found(contents: Contents) -> dict[tuple[str, str], How]:
    links = links_of(subject_of(contents))
    return {(link.file.rpartition("/")[2], link.library): link.how for link in links}


def test_an_rpath_holds_for_what_is_loaded_further_on_but_a_runpath_does_not() -> None:
    files: dict[str, Binary | str] = {
        "thing/m.so": library("liba.so", rpath="$ORIGIN/lib"),
        "thing/lib/liba.so": library("libb.so", runpath=""),
        "thing/lib/libb.so": library("libc.so.6"),
    }
    assert found(package(files))["liba.so", "libb.so"] == How.PACKAGE
    files["thing/m.so"] = library("liba.so", runpath="$ORIGIN/lib")
    assert found(package(files))["liba.so", "libb.so"] == How.ELSEWHERE
    files["thing/m.so"] = library("liba.so", rpath="$ORIGIN/lib")
    files["thing/lib/liba.so"] = library("libb.so", runpath="$ORIGIN/other")
    assert found(package(files))["liba.so", "libb.so"] == How.ELSEWHERE


def test_what_is_in_the_process_already_is_not_looked_for() -> None:
    files: dict[str, Binary | str] = {
        "thing/m.so": library("liba.so", "libb.so", runpath="$ORIGIN/lib"),
        "thing/lib/liba.so": library("libb.so", runpath=""),
        "thing/lib/libb.so": library("libc.so.6"),
    }
    assert found(package(files))["liba.so", "libb.so"] == How.LOADED


def test_a_library_is_known_by_its_soname() -> None:
    files: dict[str, Binary | str] = {
        "thing/m.so": library("liba.so", "libuser.so", runpath="$ORIGIN/lib"),
        "thing/lib/liba.so": library(soname="liba.so.1"),
        "thing/lib/libuser.so": library("liba.so.1", runpath=""),
    }
    assert found(package(files))["libuser.so", "liba.so.1"] == How.LOADED


def test_links_are_followed() -> None:
    files: dict[str, Binary | str] = {
        "bin/program": library("liba.so.1", runpath="$ORIGIN/../lib"),
        "lib/liba.so.1": "liba.so.1.2",
        "lib/liba.so.1.2": library("libc.so.6"),
    }
    contents = package(files, kind="zip", name="libthing.zip")
    assert found(contents)["program", "liba.so.1"] == How.PACKAGE
    del files["lib/liba.so.1.2"]
    contents = package(files, kind="zip", name="libthing.zip")
    assert found(contents)["program", "liba.so.1"] == How.MISSING


def test_files_of_the_data_folder_go_elsewhere() -> None:
    files: dict[str, Binary | str] = {
        "thing-1.0.data/platlib/thing/m.so": library("liba.so", runpath="$ORIGIN/lib"),
        "thing/lib/liba.so": library(),
    }
    assert not hits("linking-unresolved", subject_of(package(files)))
    files["thing-1.0.data/scripts/run"] = library("libb.so")
    [hit] = hits("linking-unresolved", subject_of(package(files)))
    assert hit.member == "thing-1.0.data/scripts/run"


# ----------------------------------------------------------------------------------------- rules


def test_linking_unresolved() -> None:
    assert not hits("linking-unresolved", subject_of(wheel()))
    [hit] = hits("linking-unresolved", subject_of(wheel(libmore=library("libquadmath.so.0"))))
    assert hit.member == "thing/lib/libmore.so"
    assert "needs `libquadmath.so.0`, which is not in `thing/lib`" in hit.what


def test_linking_unresolved_is_told_once_for_all_files_of_a_folder() -> None:
    libraries = {f"lib{i}": library("libquadmath.so.0") for i in range(3)}
    [hit] = hits("linking-unresolved", subject_of(wheel(**libraries)))
    assert hit.what.endswith("so do 2 others")


def test_linking_unresolved_says_in_which_process() -> None:
    contents = package(
        {
            "thing/m.so": library("liba.so", runpath="$ORIGIN/lib"),
            "thing/lib/liba.so": library("libmissing.so", runpath=""),
        }
    )
    [hit] = hits("linking-unresolved", subject_of(contents))
    assert "any folder, as no folder of its rpath exists (when `thing/m.so` loads it)" in hit.what


def test_files_that_differ_in_a_number_may_need_more_of_the_system() -> None:
    """As torchcodec, which has libraries for each FFmpeg and opens the one that fits."""
    files: dict[str, Binary | str] = {
        "thing/libcore6.so": library("libavutil.so.58"),
        "thing/libops6.so": library("libcore6.so", runpath=""),
    }
    assert not any(one.is_mild for rule in LINKS for one in hits(rule, subject_of(package(files))))
    files |= {"thing/libcore7.so": library(), "thing/libops7.so": library()}
    found = [one for rule in LINKS for one in hits(rule, subject_of(package(files)))]
    assert [one.is_mild for one in found] == [True, True]
    files["thing/_C.so"] = library("libavutil.so.58")
    found = hits("linking-unresolved", subject_of(package(files)))
    assert [one.is_mild for one in found] == [False]  # so does one without an alternative


def test_a_policy_may_add_to_the_system() -> None:
    contents = wheel(libmore=library("libmlx5.so.1"))
    assert hits("linking-unresolved", subject_of(contents))
    policy = CheckPolicy(system=("libmlx*",))
    assert not hits("linking-unresolved", subject_of(contents, policy=policy))


def test_linking_undeclared() -> None:
    files: dict[str, Binary | str] = {
        "thing/lib/liba.so": library("libcublas.so.13", rpath="$ORIGIN/../../nvidia/cu13/lib")
    }
    declared = package(files, requires=["cuda-toolkit[cublas,cudart]==13.0.*"])
    assert not hits("linking-undeclared", subject_of(declared))
    for requires in ([], ["cuda-toolkit[cudart]==13.0.*"], ['nvidia-cublas; extra == "gpu"']):
        contents = package(files, requires=requires)
        [hit] = hits("linking-undeclared", subject_of(contents))
        assert "needs `libcublas.so.13` of `nvidia-cublas`" in hit.what
        assert not hits("linking-unresolved", subject_of(contents))


def test_a_required_wheel_that_is_not_at_hand_may_have_what_is_looked_for_in_its_folder() -> None:
    user: dict[str, Binary | str] = {
        "thing/m.so": library("libother.so.1", runpath="$ORIGIN/../other")
    }
    other = package({"other/libelse.so": library()}, name="other-1.0-py3-none-any.whl")
    assert not hits("linking-unresolved", subject_of(package(user, requires=["Other>=1"])))
    assert hits("linking-unresolved", subject_of(package(user, requires=["another"])))
    together = subject_of(package(user, requires=["other"]), others=(other,))
    assert hits("linking-unresolved", together), "it is at hand, and has no such library"
    conda = package(
        {"other/bin/tool": library("libother.so.1", runpath="$ORIGIN/..")},
        kind="conda",
        name="thing-1.0-0.conda",
        texts={"info/index.json": CONDA_INDEX},
    )
    assert hits("linking-unresolved", subject_of(conda)), "folders of a prefix are nobody's"


def test_linking_environment() -> None:
    assert not hits("linking-environment", subject_of(wheel()))
    contents = package({"thing/m.so": library("liba.so"), "thing/lib/liba.so": library()})
    [hit] = hits("linking-environment", subject_of(contents))
    assert hit.what == "needs `liba.so`, which is not in `thing` but at `thing/lib/liba.so`"


def test_what_another_module_would_load_is_luck() -> None:
    contents = package(
        {
            "thing/a.so": library("liba.so", runpath="$ORIGIN/lib"),
            "thing/b.so": library("liba.so", runpath=""),
            "thing/lib/liba.so": library(),
        }
    )
    [hit] = hits("linking-environment", subject_of(contents))
    assert hit.member == "thing/b.so"


def test_what_python_code_loads_first_is_no_luck() -> None:
    files: dict[str, Binary | str] = {
        "torch/b.so": library("libgomp.so.1", runpath=""),
        "torch/lib/libtorch_global_deps.so": library("libgomp.so.1"),
        "torch/lib/libgomp.so.1": library(),
    }
    assert not hits("linking-environment", subject_of(package(files)))
    files["torch/program"] = library("libgomp.so.1", runpath="")
    [hit] = hits("linking-environment", subject_of(package(files)))
    assert hit.member == "torch/program"
    files["torch/lib/libtorch_global_deps.so"] = library("liblost.so", runpath="")
    [hit] = hits("linking-unresolved", subject_of(package(files)))
    assert "no folder of its rpath exists: nothing" in hit.what  # in no other process than its own


def test_a_plugin_finds_the_module_that_opens_it() -> None:
    files: dict[str, Binary | str] = {
        "thing/_C/libthing.so": library(exports=["PyInit_libthing"]),
        "thing/plugins/libmore.so": library("libthing.so"),
    }
    assert not hits("linking-environment", subject_of(package(files)))
    files["thing/plugins/more.so"] = library("libthing.so")
    [hit] = hits("linking-environment", subject_of(package(files)))
    assert hit.member == "thing/plugins/more.so", "it may be imported first"
    files["thing/_C/libthing.so"] = library()
    assert len(links_missed(package(files))) == 2


def links_missed(contents: Contents) -> list[str]:
    return [link.file for link in links_of(subject_of(contents)) if link.how is How.ELSEWHERE]


@pytest.mark.parametrize(
    ("entry", "told"),
    [
        ("/opt/lib", "`/opt/lib`"),
        ("", "the current directory (an empty entry)"),
        (".", "`.`"),
        ("lib", "`lib`"),
        ("/a:/b:/a:/c:/d:/e", "`/a`, `/b`, `/c` and 2 more"),
    ],
)
def test_linking_rpath_outside(entry: str, told: str) -> None:
    good = package({"thing/m.so": library(runpath="$ORIGIN/../nvidia/lib")})
    assert not hits("linking-rpath-outside", subject_of(good))
    bad = package({"thing/m.so": library(runpath=f"$ORIGIN:{entry}")})
    [hit] = hits("linking-rpath-outside", subject_of(bad))
    assert hit.what == f"looks for libraries in {told}, outside of the installed packages"
    assert not hits("linking-rpath-above", subject_of(bad))


def test_linking_rpath_above() -> None:
    good = package({"thing/m.so": library(runpath="$ORIGIN/../nvidia/lib")})
    assert not hits("linking-rpath-above", subject_of(good))
    bad = package({"thing/m.so": library(runpath="$ORIGIN:$ORIGIN/../../lib")})
    [hit] = hits("linking-rpath-above", subject_of(bad))
    assert hit.what == (
        "looks for libraries in `$ORIGIN/../../lib` (`../lib`), above site-packages"
    )
    assert not hits("linking-rpath-outside", subject_of(bad))


@pytest.mark.parametrize(
    ("path", "failing"),
    [
        ("thing/more/_C.cpython-312-x86_64-linux-gnu.so", "; importing `thing.more._C` would fail"),
        ("thing/program", "; starting `thing/program` would fail"),
        ("thing/liba.so", ""),
    ],
)
def test_linking_unresolved_says_what_would_fail(path: str, failing: str) -> None:
    [hit] = hits("linking-unresolved", subject_of(package({path: library("libnobody.so")})))
    assert hit.what.endswith(f"and not every system has it{failing}")


@pytest.mark.parametrize("entry", ["$ORIGIN/../../..", "$ORIGIN/../../../../lib"])
def test_the_lib_of_an_environment_is_not_above(entry: str) -> None:
    files: dict[str, Binary | str] = {"thing/m.so": library(runpath=f"$ORIGIN:{entry}")}
    assert not hits("linking-rpath-above", subject_of(package(files)))
    conda = package(files, kind="conda", name="thing-1.0-0.conda")
    assert hits("linking-rpath-above", subject_of(conda))


def test_linking_rpath() -> None:
    cpu = msgspec.structs.replace(EXPECTED, compute="cpu")
    files: dict[str, Binary | str] = {
        MODULE: library(runpath="$ORIGIN:$ORIGIN/lib"),
        "thing/lib/liba.so": library(),
    }
    assert not hits("linking-rpath", subject_of(package(files, texts=SPEC), cpu))
    files[MODULE] = library(runpath="$ORIGIN/lib")
    [hit] = hits("linking-rpath", subject_of(package(files, texts=SPEC), cpu))
    assert hit.what == "its rpath is `$ORIGIN/lib`, not `$ORIGIN:$ORIGIN/lib`"
    assert not hits("linking-rpath", subject_of(package(files), cpu)), "it is from elsewhere"


def test_linking_rpath_in_a_zip_and_a_prefix() -> None:
    cpu = msgspec.structs.replace(EXPECTED, compute="cpu")
    spec = {"libthing/torchyard-spec.json": b'{"tasks": []}'}
    files: dict[str, Binary | str] = {
        "libthing/bin/tool": library(runpath="$ORIGIN:$ORIGIN/../lib"),
        "libthing/lib/liba.so": library(),
    }
    contents = package(files, kind="zip", name="libthing.zip", texts=spec)
    assert not hits("linking-rpath", subject_of(contents, cpu))
    site = "lib/python3.12/site-packages/thing"
    files = {
        f"{site}/_C.so": library(runpath="$ORIGIN:$ORIGIN/lib:$ORIGIN/../../.."),
        f"{site}/lib/liba.so": library(runpath="$ORIGIN:$ORIGIN/../../../.."),
    }
    spec = {"info/torchyard-spec.json": b'{"tasks": []}'}
    contents = package(files, kind="conda", name="thing-1-0.conda", texts=spec)
    assert hits("linking-rpath", subject_of(contents, cpu)) == []


def test_linking_rpath_kind() -> None:
    both = package({"thing/lib/liba.so": library(rpath="$ORIGIN", runpath="$ORIGIN/..")})
    [hit] = hits("linking-rpath-kind", subject_of(both))
    assert "which its RUNPATH overrides" in hit.what
    mixed = package({"thing/liba.so": library(rpath="$ORIGIN"), "thing/libb.so": library()})
    [hit] = hits("linking-rpath-kind", subject_of(mixed))
    assert "has an RPATH, but `thing/libb.so` and others have a RUNPATH" in hit.what
    alike = package({"thing/liba.so": library(rpath="$ORIGIN"), "thing/program": library()})
    assert not hits("linking-rpath-kind", subject_of(alike))


def test_linking_rpath_kind_where_wheels_bring_libraries() -> None:
    wheels = "$ORIGIN/../nvidia/cu13/lib"
    weak = package({"thing/liba.so": library(runpath=wheels)})
    [hit] = hits("linking-rpath-kind", subject_of(weak))
    assert "looks for libraries of other wheels by a RUNPATH" in hit.what
    strong = package({"thing/liba.so": library(rpath=wheels)})
    assert not hits("linking-rpath-kind", subject_of(strong))


@pytest.mark.parametrize(("compute", "wrong"), [("cpu", "RPATH"), ("cu130", "RUNPATH")])
def test_linking_rpath_kind_of_our_own(compute: str, wrong: str) -> None:
    expected = msgspec.structs.replace(EXPECTED, compute=compute)
    binary = library(rpath="$ORIGIN") if wrong == "RPATH" else library()
    contents = package({"thing/liba.so": binary}, texts=SPEC)
    [hit] = hits("linking-rpath-kind", subject_of(contents, expected))
    assert f"{wrong} instead of" in hit.what


def test_linking_orphan() -> None:
    assert not hits("linking-orphan", subject_of(wheel()))
    [hit] = hits("linking-orphan", subject_of(wheel(libgfortran=library())))
    assert hit.member == "thing/lib/libgfortran.so"


def test_what_is_opened_by_name_is_no_orphan() -> None:
    files: dict[str, Binary | str] = {
        MODULE: library("libtorch_cuda.so", runpath="$ORIGIN/lib"),
        "thing/program": library(),
        "thing/lib/libtorch_cuda.so": library(),
        "thing/lib/libtorch_cuda_linalg.so": library(),
        "thing/lib/libcaffe2_nvrtc.so": library(),
        "thing/lib/libtorch_global_deps.so": library(),
        "thing/lib/libmodule.so": library(exports=["PyInit_libmodule"]),
        "thing/lib/libops.abi3.so": library(),
    }
    assert not hits("linking-orphan", subject_of(package(files)))
    del files[MODULE], files["thing/lib/libtorch_cuda.so"]
    [hit] = hits("linking-orphan", subject_of(package(files)))
    assert hit.member == "thing/lib/libcaffe2_nvrtc.so"


def test_what_needs_others_of_the_package_is_no_orphan() -> None:
    assert not hits("linking-orphan", subject_of(wheel(libplugin=library("libthing.so"))))


def test_libraries_for_others_are_no_orphans() -> None:
    contents = package({"lib/liba.so": library()}, kind="zip", name="libthing.zip")
    assert not hits("linking-orphan", subject_of(contents))


def test_linking_opened() -> None:
    files: dict[str, Binary | str] = {
        "thing/lib/libcudnn.so.9": library(),
        "thing/lib/libcudnn_ops.so.9": library(),
    }
    assert not hits("linking-opened", subject_of(package(files)))
    del files["thing/lib/libcudnn_ops.so.9"]
    [hit] = hits("linking-opened", subject_of(package(files)))
    assert hit.what == "opens `libcudnn_*.so.9` while it runs, which the package lacks"


def test_linking_openmp() -> None:
    files: dict[str, Binary | str] = {
        "thing/lib/liba.so": library("libgomp.so.1"),
        "thing/lib/libgomp.so.1": library(exports=["GOMP_parallel"]),
    }
    assert not hits("linking-openmp", subject_of(package(files)))
    second = {**files, "thing/lib/libiomp5.so": library(exports=["__kmpc_fork_call"])}
    [hit] = hits("linking-openmp", subject_of(package(second)))
    assert "there are 2 OpenMP runtimes" in hit.what
    renamed = {**files, "thing/lib/libb.so": library("libgomp-a34b3233.so.1")}
    [hit] = hits("linking-openmp", subject_of(package(renamed)))
    assert "`libgomp-a34b3233.so.1` (thing/lib/libb.so)" in hit.what
    static = {**files, "thing/lib/libb.so": library(exports=["x", "__kmpc_fork_call"])}
    [hit] = hits("linking-openmp", subject_of(package(static)))
    assert "the one inside libb.so" in hit.what
    plain = {**files, "thing/lib/libb.so": library(exports=["wrap_GOMP_parallel"])}
    assert not hits("linking-openmp", subject_of(package(plain)))


def test_a_runtime_with_its_full_version_is_the_same_one() -> None:
    files: dict[str, Binary | str] = {
        "bin/program": library("libgomp.so.1", runpath="$ORIGIN/../lib"),
        "lib/libgomp.so.1": "libgomp.so.1.0.0",
        "lib/libgomp.so.1.0.0": library(soname="libgomp.so.1"),
        "lib/libgomp-plugin-nvptx.so.1": library("libgomp.so.1"),
    }
    contents = package(files, kind="zip", name="libthing.zip")
    assert not hits("linking-openmp", subject_of(contents))


def test_what_belongs_to_a_runtime_is_no_second_one() -> None:
    files: dict[str, Binary | str] = {
        "thing/lib/liba.so": library("libomp.so", "libomptarget.so"),
        "thing/lib/libomp.so": library(exports=["__kmpc_fork_call"]),
        "thing/lib/libomptarget.so": library("libomp.so"),
    }
    assert not hits("linking-openmp", subject_of(package(files)))


def test_musl_is_on_systems_that_a_musllinux_tag_is_for() -> None:
    contents = wheel(libmore=library("libc.musl-x86_64.so.1", "libz.so.1"))
    [hit] = hits("linking-unresolved", subject_of(contents))
    assert "libc.musl-x86_64.so.1" in hit.what
    expected = msgspec.structs.replace(EXPECTED, platforms=("musllinux_1_2_x86_64",))
    alone = package({"thing/m.so": library("libc.musl-x86_64.so.1", "libz.so.1")})
    assert not hits("linking-unresolved", subject_of(alone, expected))
    bare = package({"thing/m.so": library("libstdc++.so.6")})
    [hit] = hits("linking-unresolved", subject_of(bare, expected))
    assert "libstdc++.so.6" in hit.what
