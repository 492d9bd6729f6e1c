"""The parts that recipes use, each by itself: what CMake and ninja say, and what is collected."""

import json
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path

import msgspec
import pytest

from torchyard.compute.cuda.toolkit import CudaToolkit
from torchyard.compute.registry import compute_platforms, platform_for
from torchyard.compute.rocm.toolkit import RocmToolkit
from torchyard.config.tables import load_tables
from torchyard.errors import BuildError
from torchyard.package.assemble.collect import collect
from torchyard.package.policy import policy_for
from torchyard.package.sbom.owner import OwningPackage, owner_of
from torchyard.toolchain.cmake import (
    Configured,
    Fragment,
    Link,
    cache_script,
    install_script,
    repoint,
    request_file_api,
)
from torchyard.toolchain.compilers import find_compiler
from torchyard.toolchain.ninja import Bound, is_compiled, read_log
from torchyard.toolchain.summary import RequestedBuild, check_bindings, check_summary

TABLES = load_tables()

# --------------------------------------------------------------------------------- CMake

RECORDED = Path(__file__).with_name("cmake_replies.json")
"""What CMake 3.31.10 said of a project with nvcc 13.0, without what nobody reads.

`core` (which is made with `gen`, and links OpenBLAS) and `gpu` are installed; so is `_C`, which
includes Python's headers and needs `core` and `helper`; `user` needs `_C`, and nobody needs `test`.
"""


def recorded(folder: Path, cache: Mapping[str, str | None] | None = None) -> Configured:
    """Lay the replies out, with other entries in the cache; None leaves one out."""
    text = RECORDED.read_text("utf-8").replace("/PYTHON", str(folder / "python"))
    (folder / "python").mkdir()
    (folder / "python/Python.h").touch()
    replies = folder / "build/.cmake/api/v1/reply"
    replies.mkdir(parents=True)
    for name, reply in json.loads(text).items():
        if name.startswith("cache-") and cache is not None:
            entries = {e["name"]: e["value"] for e in reply["entries"]} | dict(cache)
            kept = [{"name": n, "value": v} for n, v in entries.items() if v is not None]
            reply["entries"] = kept
        (replies / name).write_text(json.dumps(reply), encoding="utf-8")
    return Configured(folder / "build")


def test_cmake_is_asked_before_it_configures(tmp_path: Path) -> None:
    request_file_api(tmp_path / "build")
    request_file_api(tmp_path / "build")
    asked = (tmp_path / "build/.cmake/api/v1/query").iterdir()
    assert sorted(path.name for path in asked) == ["cache-v2", "codemodel-v2"]
    (tmp_path / "build/CMakeCache.txt").touch()
    with pytest.raises(BuildError, match="of an earlier configuration"):
        request_file_api(tmp_path / "build")


def test_targets_of_the_core_are_those_that_python_has_no_part_in(tmp_path: Path) -> None:
    configured = recorded(tmp_path)
    names = {configured.targets[identity].name for identity in configured.per_python}
    assert names == {"_C", "user"}
    assert configured.core_targets() == ["core", "gen", "gpu", "helper"]
    assert configured.core_directories() == ["."]


def test_without_the_headers_nothing_is_pythons(tmp_path: Path) -> None:
    """The top directory is the last one: torch 2.15 wraps headers that others have installed."""
    configured = recorded(tmp_path)
    (tmp_path / "python/Python.h").unlink()
    assert not configured.per_python
    assert configured.core_targets() == ["_C", "core", "gen", "gpu", "helper"]
    assert configured.core_directories() == ["csrc", "."]


def test_device_code_of_custom_commands(tmp_path: Path) -> None:
    """PyTorch compiles for ROCm by scripts of FindHIP, which no target lists as units."""
    configured = recorded(tmp_path)
    configured.targets.clear()
    assert configured.device_code() == []
    script = tmp_path / "build/caffe2/CMakeFiles/torch_hip.dir/a/torch_hip_generated_b.hip.o.cmake"
    script.parent.mkdir(parents=True)
    flags = "-fno-gpu-rdc;--offload-arch=gfx90a;--offload-arch=gfx1100"
    script.write_text(f"set(HIP_CLANG_FLAGS {flags})\n", encoding="utf-8")
    assert configured.device_code() == ["gfx1100", "gfx90a"]


def test_files_and_flags_of_targets(tmp_path: Path) -> None:
    configured = recorded(tmp_path)
    assert configured.artifact("gpu") == tmp_path / "build/libgpu.so"
    assert configured.device_code() == ["compute_90", "sm_80", "sm_90"]
    assert configured.linked() == ["-ldl", "/BLAS/lib/libopenblas.so"]
    assert configured.cache["BLAS"] == "OpenBLAS"
    with pytest.raises(BuildError, match="no target `magma`"):
        configured.artifact("magma")


def test_the_latest_answer_counts(tmp_path: Path) -> None:
    configured = recorded(tmp_path)
    replies = tmp_path / "build/.cmake/api/v1/reply"
    (replies / "index-2099-01-01T00-00-00-0000.json").write_text('{"reply": {}}', encoding="utf-8")
    assert configured.targets
    with pytest.raises(BuildError, match="without the query `codemodel-v2`"):
        Configured(tmp_path / "build").core_targets()


def test_a_directory_that_was_not_configured(tmp_path: Path) -> None:
    with pytest.raises(BuildError, match="CMake has not configured"):
        Configured(tmp_path)


def test_the_script_installs_directories_of_the_core_only(tmp_path: Path) -> None:
    text = install_script(recorded(tmp_path), "/out")
    assert text.splitlines() == [
        'set(CMAKE_INSTALL_PREFIX "/out")',
        "set(CMAKE_INSTALL_LOCAL_ONLY TRUE)",
        f'include("{tmp_path}/build/cmake_install.cmake")',
        'file(GLOB others "/out/*")',
        'list(FILTER others EXCLUDE REGEX "/(bin|cmake|include|lib|lib64|share|test)$")',
        "foreach(other IN LISTS others)",
        '  file(REMOVE_RECURSE "${other}")',
        "endforeach()",
    ]


@pytest.mark.skipif(not shutil.which("cmake"), reason="needs CMake")
def test_stubs_are_no_part_of_the_core(tmp_path: Path) -> None:
    """Torch 2.15 installs those of its Python package beside its libraries."""
    out = tmp_path / "out"
    for name in ("lib/libcore.so", "include/core.h", "_C/_VariableFunctions.pyi", "py.typed"):
        (out / name).parent.mkdir(parents=True, exist_ok=True)
        (out / name).touch()
    configured = recorded(tmp_path)
    (tmp_path / "build/cmake_install.cmake").touch()
    script = tmp_path / "install.cmake"
    script.write_text(install_script(configured, str(out)), encoding="utf-8")
    for _ in range(2):
        subprocess.run(["cmake", "-P", script], check=True)
        assert sorted(path.name for path in out.iterdir()) == ["include", "lib"]


def test_cmake_forgets_a_python_and_takes_another() -> None:
    argv = repoint(Path("build"), "/env/bin/python", "/py/include", "/py")
    assert argv[:7] == ["cmake", "-U", "Python*", "-U", "_Python*", "-U", "PYTHON_*"]
    assert argv[-1] == "build"
    assert "-DPython_EXECUTABLE=/env/bin/python" in argv
    assert "-DPython3_INCLUDE_DIR=/py/include" in argv


# ------------------------------------------------------------------------------- summary

ARCHS = ("8.0", "9.0+PTX")


def mismatches(
    configured: Configured,
    compute: str = "cu130",
    blas: str = "openblas",
    archs: tuple[str, ...] = ARCHS,
    *,
    blas_root: str = "",
    cmake: dict[str, str] | None = None,
    env: dict[str, str] | None = None,
    parts: dict[str, str] | None = None,
) -> list[str]:
    asked = RequestedBuild(
        compute=compute,
        blas=blas,
        blas_root=blas_root,
        archs=archs,
        cmake=cmake or {},
        env=env or {},
        parts=parts or {},
    )
    try:
        check_summary(configured, asked, platform_for(compute), compute_platforms())
    except BuildError as error:
        first, *found = str(error).splitlines()
        assert first == "the build is not configured as its cell asks:"
        return found
    return []


def test_a_build_that_is_what_its_cell_asks_for(tmp_path: Path) -> None:
    assert mismatches(recorded(tmp_path)) == []


@pytest.mark.parametrize(
    ("cache", "expected"),
    [
        ({"USE_CUDA": "OFF"}, "USE_CUDA should be on for cu130, and is `OFF`"),
        ({"USE_CUDA": "CUDA-NOTFOUND"}, "USE_CUDA should be on for cu130, and is `CUDA-NOTFOUND`"),
        ({"USE_CUDA": None}, "USE_CUDA should be on for cu130, and is `NOTFOUND`"),
        ({"USE_ROCM": "1"}, "USE_ROCM should be off for cu130, and is `1`"),
        ({"USE_OPENMP": "0"}, "USE_OPENMP should be on for cu130, and is `0`"),
        ({"BLAS": "Eigen"}, "BLAS should be openblas, and is `Eigen`"),
        ({"BLAS_INFO": "none"}, "BLAS_INFO should be openblas, and is `none`"),
    ],
)
def test_each_mismatch_is_told(tmp_path: Path, cache: dict[str, str | None], expected: str) -> None:
    assert mismatches(recorded(tmp_path, cache)) == [f"- {expected}"]


def test_entries_that_tell_the_same_in_other_words(tmp_path: Path) -> None:
    same = {
        "USE_OPENMP": None,
        "BLAS_INFO": "open",
        "USE_CUDA": "1",
    }
    assert mismatches(recorded(tmp_path, same)) == []


@pytest.mark.parametrize(
    ("archs", "wanted"),
    [
        (("8.0", "9.0"), "sm_80 sm_90"),
        (("9.0+PTX",), "compute_90 sm_90"),
        (("8.0", "9.0+PTX", "10.0a"), "compute_90 sm_100a sm_80 sm_90"),
    ],
)
def test_code_for_other_devices(tmp_path: Path, archs: tuple[str, ...], wanted: str) -> None:
    lines = "the compile lines make code for compute_90 sm_80 sm_90"
    found = mismatches(recorded(tmp_path), archs=archs)
    assert found == [f"- device code should be {wanted}; {lines}"]


def test_a_cell_without_cuda_has_none(tmp_path: Path) -> None:
    found = mismatches(recorded(tmp_path), "cpu", "mkl", ())
    assert found == [
        "- USE_CUDA should be off for cpu, and is `ON`",
        "- BLAS should be mkl, and is `OpenBLAS`",
        "- no link line names a library of mkl",
    ]


FEATURES = platform_for("cu130").table().machine.features.values()
PARTS = {one.switch: one.libraries[0] for one in FEATURES if one.switch}
SWITCHES = {"USE_CUDNN": "cudnn", "USE_NCCL": "nccl", "USE_MAGMA": "magma"}


def linking(configured: Configured, *fragments: str) -> Configured:
    """Add libraries to the link lines."""
    more = tuple(Fragment(fragment=one, role="libraries") for one in fragments)
    for target in configured.targets.values():
        target.link = Link(fragments=(*target.link.fragments, *more))
    return configured


@pytest.mark.parametrize(("switch", "name"), SWITCHES.items())
def test_a_part_that_cmake_did_not_find_stops_the_build(
    tmp_path: Path, switch: str, name: str
) -> None:
    """PyTorch turns its entry off, or leaves an entry on that has no effect."""
    assert PARTS.keys() >= SWITCHES.keys()
    cache = dict.fromkeys(SWITCHES, "ON")
    found = [f"/opt/{name}/lib/lib{one}.so" for one in SWITCHES.values() if one != name]
    lost = linking(recorded(tmp_path, {**cache, switch: "OFF"}), *found)
    (what,) = mismatches(lost, parts=PARTS)
    assert what == f"- {switch} should be on for cu130, and is `OFF`"
    assert mismatches(lost, parts=PARTS, env={switch: "0"}) == []
    assert mismatches(lost, parts=PARTS, cmake={f"{switch}:BOOL": "OFF"}) == []
    lost.cache[switch] = "ON"
    (what,) = mismatches(lost, parts=PARTS)
    assert what == f"- {switch} is on for cu130, but link lines name no library of {name}"
    assert mismatches(linking(lost, f"third_party/lib{name}_static.a"), parts=PARTS) == []
    del lost.cache[switch]
    assert mismatches(lost, parts=PARTS) == [], "the project has no such part"


def test_a_magma_whose_own_test_has_failed_stops_the_build(tmp_path: Path) -> None:
    """With MAGMA 2.9, PyTorch 2.6 says "Compiling with MAGMA support" after it."""
    configured = linking(recorded(tmp_path, {"USE_MAGMA": "ON"}), "/usr/lib/libmagma.so")
    parts = {"USE_MAGMA": "libmagma.so"}
    assert mismatches(configured, parts=parts) == []
    configured.cache["MAGMA_V2"] = "1"
    assert mismatches(configured, parts=parts) == []
    configured.cache["MAGMA_V2"] = ""
    (what,) = mismatches(configured, parts=parts)
    assert what.startswith("- USE_MAGMA is on, but CMake's test MAGMA_V2 has failed")


def test_openmp_that_the_file_turns_off_is_not_missed(tmp_path: Path) -> None:
    configured = recorded(tmp_path, {"USE_OPENMP": "0"})
    assert mismatches(configured, env={"USE_OPENMP": "0"}) == []


def test_the_abi_of_the_compile_lines(tmp_path: Path) -> None:
    configured = recorded(tmp_path)
    target = next(iter(configured.targets.values()))
    (group,) = (group for group in target.groups if group.language == "CXX")
    name = "GLIBCXX_USE_CXX11_ABI"
    wrong = "- {0} should be {1}; the compile lines have -D_{0}={2}"
    for abi, other in (("1", "0"), ("0", "1")):
        group.fragments = (Fragment(fragment=f"-O2 -D_{name}={abi} -fPIC"),)
        assert mismatches(configured, env={name: abi}) == []
        assert mismatches(configured, env={name: other}) == [wrong.format(name, other, abi)]
    assert mismatches(configured) == [wrong.format(name, 1, 0)]


def test_another_blas_of_the_right_name(tmp_path: Path) -> None:
    configured = recorded(tmp_path)
    assert mismatches(configured, blas_root="/BLAS") == []
    strays = "link lines name /BLAS/lib/libopenblas.so"
    found = mismatches(configured, blas_root="/BLA")
    assert found == [f"- openblas should come from /BLA; {strays}"]


@pytest.mark.parametrize(
    ("blas", "fragment"),
    [
        ("mkl", "/mkl/lib/libmkl_intel_lp64.a"),
        ("mkl", "-lmkl_rt"),
        ("openblas", "/env/scipy_openblas32/lib/libscipy_openblas.so"),
        ("generic", "/usr/lib/x86_64-linux-gnu/libblas.so"),
        ("generic", "-lcblas"),
    ],
)
def test_every_blas_is_known_by_its_libraries(tmp_path: Path, blas: str, fragment: str) -> None:
    configured = recorded(tmp_path, {"BLAS": blas})
    for target in configured.targets.values():
        target.link = Link(fragments=(Fragment(fragment=fragment, role="libraries"),))
    assert mismatches(configured, blas=blas) == []
    others = {"mkl", "openblas", "generic"} - {blas}
    assert all("no link line names" in mismatches(configured, blas=other)[-1] for other in others)


def test_entries_of_the_file_have_to_arrive(tmp_path: Path) -> None:
    configured = recorded(tmp_path, {"USE_NUMA": "ON", "USE_MAGMA": "False", "CXX_FLAGS": "-O2 -g"})
    same = {"USE_NUMA:BOOL": "1", "USE_MAGMA": "OFF", "CXX_FLAGS": "-O2 -g"}
    assert mismatches(configured, cmake=same) == []
    assert mismatches(configured, cmake={"USE_NUMA": "OFF", "CXX_FLAGS": "", "OWN": "x y"}) == [
        "- USE_NUMA should be `OFF` by the file, and is `ON`",
        "- CXX_FLAGS should be `` by the file, and is `-O2 -g`",
        "- OWN should be `x y` by the file, and is not set in CMake",
    ]


def test_hipcc_gets_the_compiler_the_headers_and_the_openmp_of_the_table() -> None:
    root, compiler = "/opt/rocm-7.2", find_compiler("gcc")
    kit = RocmToolkit(version="7.2.1", digest="", root=root, clang=f"{root}/lib/llvm/bin/clang-20")
    env = kit.variables("", compiler=compiler, archs=["gfx90a"])
    gcc = Path(compiler.query("-print-libgcc-file-name").strip()).parent
    assert (gcc / "libgcc.a").is_file()
    assert env["HIPCC_COMPILE_FLAGS_APPEND"] == f"--gcc-install-dir={gcc} -isystem{root}/include"
    assert env["HIPCC_LINK_FLAGS_APPEND"] == f"--gcc-install-dir={gcc}"
    assert env["CPLUS_INCLUDE_PATH"] == f"{root}/include"
    assert env["OpenMP_ROOT"] == f"{root}/lib/llvm"
    old = msgspec.structs.replace(kit, version="5.2.3", root="/usr", clang="/usr/bin/clang-15")
    assert "OpenMP_ROOT" not in old.variables("", compiler=compiler, archs=["gfx90a"])


def test_a_cuda_in_usr_does_not_bring_the_system_s_ninja() -> None:
    """CMake searches CMAKE_PREFIX_PATH before PATH, so it took /usr/bin/ninja for the job's."""
    compiler = find_compiler("gcc")
    for root, paths in (("/usr", set()), ("/usr/local/cuda", {"/usr/local/cuda"})):
        kit = CudaToolkit(version="12.4.131", origin="system", digest="", root=root)
        env = kit.variables("", compiler=compiler, archs=["8.0"])
        assert {env[name] for name in ("CMAKE_PREFIX_PATH",) if name in env} == paths
        assert env["CUDA_HOME"] == root


def test_a_rocm_in_usr_does_not_move_the_system_s_headers(tmp_path: Path) -> None:
    """As Debian has it: before C++'s own headers, those of C are not found from there."""
    clang = tmp_path / "lib/llvm-21/bin/clang-21"
    device = tmp_path / "lib/llvm-21/lib/clang/21/amdgcn/bitcode"
    for folder in (clang.parent, device):
        folder.mkdir(parents=True)
    clang.touch()
    kit = RocmToolkit(version="6.4.3", digest="", root="/usr", clang=str(clang))
    env = kit.variables("", compiler=find_compiler("gcc"), archs=["gfx90a"])
    assert "CPLUS_INCLUDE_PATH" not in env
    (flag,) = env["HIPCC_COMPILE_FLAGS_APPEND"].split()
    assert flag.startswith("--gcc-install-dir=")
    assert env["HIP_DEVICE_LIB_PATH"] == str(device)


def test_architectures_of_rocm_are_in_the_cache(tmp_path: Path) -> None:
    cache = {"USE_CUDA": "0", "USE_ROCM": "1", "PYTORCH_ROCM_ARCH": "gfx906;gfx90a"}
    configured = recorded(tmp_path, cache)
    for target in configured.targets.values():
        target.groups = ()  # as if hipcc were called by rules of the project's own
    assert mismatches(configured, "rocm5.2", archs=("gfx90a", "gfx906")) == []
    (found,) = mismatches(configured, "rocm5.2", archs=("gfx90a",))
    assert found.endswith("should be gfx90a; PYTORCH_ROCM_ARCH has gfx906 gfx90a")


# --------------------------------------------------------------------------------- ninja

LOG = """\
# ninja log v7
0	194	1794733768710700630	src/a.cpp.o	4b40935e1beda9b8
1	206	1794733768715445600	lib/libcore.so	114ff88a99c51e45
2	210	1794733768715445601	gen/version.h	214ff88a99c51e45
"""


def bound(folder: Path, *explained: str) -> Bound:
    (folder / "log").write_text(LOG, encoding="utf-8")
    listening = Bound(folder / "log")
    for line in explained:
        assert listening.listen(f"ninja explain: {line}")
    return listening


@pytest.mark.parametrize("version", [5, 6, 7])
def test_logs_of_all_versions_are_read_and_the_last_word_counts(
    tmp_path: Path, version: int
) -> None:
    again = "5\t9\t1794733768710700999\tsrc/a.cpp.o\tffff935e1beda9b8\n"
    text = LOG.replace("v7", f"v{version}") + again
    (tmp_path / "log").write_text(text, encoding="utf-8")
    log = read_log(tmp_path / "log")
    assert list(log) == ["src/a.cpp.o", "lib/libcore.so", "gen/version.h"]
    assert log["src/a.cpp.o"] == tuple(again.strip().split("\t"))


def test_bindings_are_built_by_the_ninja_that_the_build_was_configured_with(tmp_path: Path) -> None:
    (tmp_path / "CMakeLists.txt").write_text(
        "cmake_minimum_required(VERSION 3.20)\nproject(p NONE)\n"
        "add_custom_command(OUTPUT made COMMAND ${CMAKE_COMMAND} -E touch made)\n"
        "add_custom_target(all_made ALL DEPENDS made)\n"
    )
    build, wrapper, calls = tmp_path / "build", tmp_path / "other-ninja", tmp_path / "calls"
    wrapper.write_text(f'#!/bin/sh\necho "$@" >> {calls}\nexec {shutil.which("ninja")} "$@"\n')
    wrapper.chmod(0o755)
    configure = ["cmake", "-G", "Ninja", f"-DCMAKE_MAKE_PROGRAM={wrapper}", "-B", str(build)]
    subprocess.run([*configure, "-S", str(tmp_path)], check=True, capture_output=True)
    calls.unlink()
    (tmp_path / "log").write_text(LOG, encoding="utf-8")
    bound = Bound(tmp_path / "log")
    assert bound.build(build, print) == 0
    assert (build / "made").is_file()
    assert any("doesn't exist" in line for line in bound.explained)
    assert [" -n" in f" {call}" for call in calls.read_text().splitlines()] == [True, False]


def test_what_a_compiler_makes() -> None:
    for name in ("a.o", "b.cpp.o", "libx.so", "libx.so.1.2", "libx.a", "x.pyd", "x.dll"):
        assert is_compiled(name), name
    for name in ("version.h", "a.cpp", "x.so.txt", "auto", "cmake_install.cmake"):
        assert not is_compiled(name), name


@pytest.mark.parametrize(
    "line",
    [
        "output src/a.cpp.o older than most recent input /x/a.cpp (1794 vs 1795)",
        "restat of output src/a.cpp.o older than most recent input /x/a.cpp (1794 vs 1795)",
        "recorded mtime of src/a.cpp.o older than most recent input /x/a.cpp (1794 vs 1795)",
        "output lib/libcore.so doesn't exist",
        "command line changed for lib/libcore.so",
        "command line not found in log for src/a.cpp.o",
        "deps for 'src/a.cpp.o' are missing",
        "stored deps info out of date for 'src/a.cpp.o' (1794 vs 1795)",
    ],
)
def test_a_core_that_would_be_compiled_again_is_refused(tmp_path: Path, line: str) -> None:
    listening = bound(tmp_path, "output csrc/bind.cpp.o doesn't exist", line)
    assert listening.cause() == line
    with pytest.raises(BuildError, match="the core would be compiled again") as caught:
        listening.refuse()
    assert line in str(caught.value)


def test_what_is_no_reason_to_refuse(tmp_path: Path) -> None:
    listening = bound(
        tmp_path,
        "output csrc/bind.cpp.o doesn't exist",
        "command line changed for gen/version.h",
        "lib/libcore.so is dirty",
        "src/a.cpp.o is dirty",
    )
    assert listening.cause() is None
    listening.refuse()
    assert not listening.listen("[1/2] Building CXX object src/a.cpp.o")


def test_the_log_shows_what_was_made_again(tmp_path: Path) -> None:
    listening = bound(tmp_path)
    now = tmp_path / ".ninja_log"
    now.write_text(LOG + "1\t2\t3\tcsrc/bind.cpp.o\tff\n1\t2\t3\tgen/version.h\tff\n", "utf-8")
    listening.check(tmp_path)
    now.write_text(LOG + "1\t2\t3\tlib/libcore.so\tff\n", "utf-8")
    with pytest.raises(BuildError, match=r"`lib/libcore\.so` was made again"):
        listening.check(tmp_path)


# ------------------------------------------------------------------------------- collect


def link(path: Path, *needed: Path) -> Path:
    path.parent.mkdir(exist_ok=True)
    soname = f"-Wl,-soname,{path.name}"
    shared = ["gcc", "-shared", "-nostdlib", soname, "-Wl,--no-as-needed", "-x", "c", "/dev/null"]
    call = [*shared, "-x", "none", *map(str, needed), "-o", str(path)]
    subprocess.run(call, check=True)
    return path


@pytest.mark.skipif(not shutil.which("gcc"), reason="there is no gcc")
def test_libraries_of_others_are_collected_with_what_they_need(tmp_path: Path) -> None:
    system = link(tmp_path / "system/libm.so.6")
    deep = link(tmp_path / "tools/libdeep.so.1")
    near = link(tmp_path / "tools/libnear.so.2", deep, system)
    own = link(tmp_path / "install/libown.so", near)
    user = link(tmp_path / "install/libuser.so", own, near, system)
    text = tmp_path / "install/readme"
    text.write_text("no library\n", encoding="utf-8")
    policy = policy_for("zip", "cpu", "")

    def find(name: str) -> Path | None:
        path = tmp_path / "tools" / name
        return path if path.exists() else None

    found = collect([own, user, text], tmp_path / "vendor", policy, find)
    assert sorted(path.name for path in found) == ["libdeep.so.1", "libnear.so.2"]
    assert sorted((tmp_path / "vendor").iterdir()) == sorted(found)
    assert (tmp_path / "vendor" / deep.name).read_bytes() == deep.read_bytes()

    deep.unlink()
    with pytest.raises(BuildError, match=r"`libnear\.so\.2` needs `libdeep\.so\.1`"):
        collect([own], tmp_path / "other", policy, find)
    assert collect([text], tmp_path / "none", policy, find) == []
    assert not (tmp_path / "none").exists()


def test_libraries_are_from_what_installed_them(tmp_path: Path) -> None:
    root = tmp_path.resolve()
    dpkg, docs, site = root / "var/lib/dpkg", root / "usr/share/doc", root / "site-packages"
    library, wheels = root / "usr/lib/libblas.so.3", site / "nvidia/lib/libcudnn.so.9"
    info = site / "cu-1.dist-info"
    for folder in (dpkg / "info", docs / "libblas3", root / "etc", library.parent, wheels.parent):
        folder.mkdir(parents=True)
    (info / "licenses").mkdir(parents=True)
    library.touch()
    wheels.touch()
    (root / "etc/os-release").write_text('NAME="U"\nID=ubuntu\n', encoding="utf-8")
    (dpkg / "info/libblas3:amd64.list").write_text("/.\n/lib/libblas.so.3\n", encoding="utf-8")
    (dpkg / "info/other.list").write_text("/usr/lib/libblas.so.3.4\n", encoding="utf-8")
    (dpkg / "status").write_text(
        "Package: libblas3\nArchitecture: i386\nVersion: 1\n\n"
        "Package: libblas3\nArchitecture: amd64\nVersion: 2:3.11+b1\nDepends: x\n\n",
        encoding="utf-8",
    )
    (docs / "libblas3/copyright").write_text(
        "Files: *\nCopyright: 2026 y\n z\nLicense: BSD-3-clause\n\nFiles: a\nLicense: X\n",
        encoding="utf-8",
    )
    (info / "RECORD").write_text("nvidia/lib/libcudnn.so.9,,\n", encoding="utf-8")
    (info / "METADATA").write_text("Name: nvidia_cudnn\nVersion: 9.1\nLicense: NVIDIA's\n", "utf-8")
    (info / "licenses/License.txt").write_text("Theirs\n", encoding="utf-8")
    (root / "libblas.so").symlink_to(library)
    assert owner_of(root / "libblas.so", root) == OwningPackage(
        "2:3.11+b1",
        "BSD-3-clause",
        "pkg:deb/ubuntu/libblas3@2:3.11%2Bb1?arch=amd64",
        (docs / "libblas3/copyright",),
    )
    assert owner_of(wheels, root) == OwningPackage(
        "9.1", "NVIDIA's", "pkg:pypi/nvidia-cudnn@9.1", (info / "licenses/License.txt",)
    )
    (root / "libown.so").touch()
    assert owner_of(root / "libown.so", root) is None


def test_a_switch_that_cmake_turned_off_is_found(tmp_path: Path) -> None:
    """The file asks for it by a variable, as PyTorch's setup.py takes them."""
    configured = recorded(tmp_path, {"USE_MKLDNN": "OFF", "USE_NUMA": "0"})
    assert mismatches(configured, env={"USE_NUMA": "OFF", "USE_SYSTEM_X": "1", "A": "1"}) == []
    assert mismatches(configured, env={"USE_MKLDNN": "1"}) == [
        "- USE_MKLDNN should be `1` by the file, and is `OFF`"
    ]


def test_bindings_that_cmake_leaves_out_are_missed(tmp_path: Path) -> None:
    """It does so silently if it finds the headers of another Python in its cache."""
    configured = recorded(tmp_path, {"BUILD_PYTHON": "OFF"})
    assert mismatches(configured) == ["- BUILD_PYTHON should be on, and is `OFF`"]
    with pytest.raises(BuildError, match="CMake leaves the Python bindings out"):
        check_bindings(configured)


def test_cache_entries_are_a_script_for_cmake() -> None:
    entries = {"HAVE_SOVERSION": "OFF", "NAME:PATH": 'a "b" $c \\d'}
    assert cache_script(entries).splitlines() == [
        'set(HAVE_SOVERSION "OFF" CACHE STRING "")',
        r'set(NAME "a \"b\" \$c \\d" CACHE PATH "")',
    ]
