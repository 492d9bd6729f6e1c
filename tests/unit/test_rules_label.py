"""Rules that compare a package's label with what is inside, and what a label promises."""

import msgspec
import pytest
from tests.support.contents import (
    ABOUT,
    INDEX,
    LIBRARY,
    METADATA,
    MODULE,
    SITE,
    VERSION,
    WHEEL,
    WHEEL_NAME,
    conda,
    contents,
    findings,
    found_by,
    wheel,
)

from torchyard.checks.expected import Expected, expected_of
from torchyard.checks.rule import Severity
from torchyard.model.job_spec import JobSpec, Task
from torchyard.model.recipe import Stage
from torchyard.package.contents import Binary, Fault, FaultKind

ARM = Binary(format="elf", machine="aarch64")
MAC = Binary(format="mach-o", machine="arm64", minimum_system="14.0")
ZIP = "libtorch-shared-with-deps-2.13.0+cu130.zip"


def _wheel_for(platform: str) -> str:
    return WHEEL_NAME.replace("manylinux_2_28_x86_64", platform)


@pytest.mark.parametrize(
    ("platform", "binary", "why"),
    [
        ("manylinux_2_28_x86_64", ARM, "an ELF file for aarch64, not an ELF file for x86_64"),
        ("manylinux_2_28_x86_64", MAC, "not an ELF file for x86_64"),
        ("win_amd64", LIBRARY, "not a PE file for x86_64"),
        ("macosx_11_0_arm64", MAC, "needs macOS 14.0, but the tag says 11.0"),
        ("macosx_14_0_universal2", MAC, "not a Mach-O file for aarch64 and x86_64"),
    ],
)
def test_label_platform(platform: str, binary: Binary, why: str) -> None:
    (found,) = found_by("label-platform", wheel({MODULE: binary}, name=_wheel_for(platform)))
    assert why in found


@pytest.mark.parametrize(
    ("platform", "binary"),
    [
        ("manylinux_2_28_x86_64.manylinux2014_x86_64", LIBRARY),
        ("musllinux_1_2_aarch64", ARM),
        ("macosx_14_0_arm64", MAC),
        ("macosx_14_0_arm64", msgspec.structs.replace(MAC, machine="x86_64,arm64")),
        ("win_amd64", Binary(format="pe", machine="x86_64")),
        ("manylinux_2_28_x86_64", Binary(format="elf", machine="cuda")),
        ("strange_system", ARM),
    ],
)
def test_programs_that_fit_the_platform(platform: str, binary: Binary) -> None:
    assert found_by("label-platform", wheel({MODULE: binary}, name=_wheel_for(platform))) == []


def test_a_package_for_any_machine_may_have_launchers() -> None:
    launcher = {MODULE: None, "tiny/cli-64.exe": Binary(format="pe", machine="x86_64")}
    about = {f"{ABOUT}/WHEEL": b"Wheel-Version: 1.0\nRoot-Is-Purelib: true\n"}
    for rule in ("label-any", "label-platform", "wheel-file"):
        assert found_by(rule, wheel({**launcher, **about}, name=_wheel_for("any"))) == []
    assert found_by("wheel-purelib", wheel({**launcher, **about})) == []
    assert len(found_by("label-platform", wheel(launcher))) == 1


def test_label_any() -> None:
    """Told once, and not also as a wrong platform, a wrong Python or a wrong folder."""
    helper = "tiny/helper.cp39-win_amd64.pyd"
    about = WHEEL.replace(b"false", b"true").replace(b"manylinux_2_28_x86_64", b"any")
    changes = {MODULE: None, helper: Binary(format="pe", machine="x86_64"), f"{ABOUT}/WHEEL": about}
    [found] = findings(wheel(changes, name=_wheel_for("any")))
    assert (found.rule, found.severity, found.member) == ("label-any", Severity.WARNING, helper)
    assert found.what == "a PE file, in a package for any machine"
    assert found_by("label-any", wheel()) == []


def test_label_platform_of_conda_packages() -> None:
    assert found_by("label-platform", conda()) == []
    assert len(found_by("label-platform", conda({"lib/libx.so": ARM}))) == 1
    assert len(found_by("label-any", conda(index={**INDEX, "subdir": "noarch"}))) == 1


@pytest.mark.parametrize(
    ("tags", "module", "is_right"),
    [
        ("cp312-cp312", "_C.cpython-312-x86_64-linux-gnu.so", True),
        ("cp312-cp312", "_C.cpython-311-x86_64-linux-gnu.so", False),
        ("cp312-cp312", "_C.abi3.so", True),
        ("cp312-cp312", "_C.so", True),
        ("cp312-cp312", "_C.cp312-win_amd64.pyd", True),
        ("cp312-cp312", "_C.cp313-win_amd64.pyd", False),
        ("cp313-cp313t", "_C.cpython-313t-x86_64-linux-gnu.so", True),
        ("cp313-cp313t", "_C.cpython-313-x86_64-linux-gnu.so", False),
        ("cp313-cp313t", "_C.abi3.so", False),
        ("cp310-abi3", "_C.abi3.so", True),
        ("cp310-abi3", "_C.cpython-310-x86_64-linux-gnu.so", False),
        ("py3-none", "_C.cpython-312-x86_64-linux-gnu.so", False),
        ("py3-none", "_C.abi3.so", False),
    ],
)
def test_label_python(tags: str, module: str, is_right: bool) -> None:
    name = WHEEL_NAME.replace("cp312-cp312", tags)
    package = wheel({MODULE: None, f"tiny/{module}": LIBRARY}, name=name)
    assert bool(found_by("label-python", package)) is not is_right


def test_label_python_leaves_libraries_alone_that_code_opens_by_path() -> None:
    """torchao has _C_mxfp8.cpython-310-….so in an abi3 wheel, and loads it with torch.ops."""
    name = WHEEL_NAME.replace("cp312-cp312", "cp310-abi3")
    operators = msgspec.structs.replace(LIBRARY, exports=b"")
    files = {MODULE: None, "tiny/_C_ops.cpython-310-x86_64-linux-gnu.so": operators}
    assert not found_by("label-python", wheel(files, name=name))


def test_label_python_of_conda_packages() -> None:
    other = {**INDEX, "depends": ["python_abi 3.13.* *_cp313"]}
    assert found_by("label-python", conda()) == []
    assert len(found_by("label-python", conda(index=other))) == 1
    assert found_by("label-python", conda(index={**INDEX, "depends": []})) == []


@pytest.mark.parametrize(
    ("text", "why"),
    [
        (VERSION.replace(b"+cpu", b"+cu130"), "`__version__` is 1.2.0+cu130"),
        (VERSION.replace(b"1.2.0", b"1.3.0"), "`__version__` is 1.3.0+cpu"),
        (b'__version__: str = "0.0.0"', "`__version__` is 0.0.0"),
        (b"__version__ = version = '0.1'", "`__version__` is 0.1"),
        (b"__version__ = '" + b"1" * 5000 + b"'", "`__version__` is 1111"),
        (b"git_version = 'Unknown'\n", "`git_version` is not a commit: 'Unknown'"),
        (b"git_version: str | None = None  # none\n", "`git_version` is not a commit: None"),
    ],
)
def test_label_version(text: bytes, why: str) -> None:
    (found,) = found_by("label-version", wheel({"tiny/version.py": text}))
    assert why in found


def test_versions_that_agree() -> None:
    assert found_by("label-version", wheel()) == []
    assert found_by("label-version", wheel({"other/version.py": b"__version__ = '9'"})) == []
    assert found_by("label-version", wheel({"tiny/a/version.py": b"__version__ = '9'"})) == []
    plain = {f"{ABOUT}/METADATA": METADATA.replace(b"+cpu", b"")}
    assert found_by("label-version", wheel(plain)) == []
    assert found_by("label-version", wheel({"tiny/version.py": b"__version__ = '1.2.0'"})) == []
    assert found_by("label-version", conda()) == []


def test_label_version_of_other_packages() -> None:
    old = {f"{SITE}/tiny/version.py": VERSION.replace(b"1.2.0", b"1.1.0")}
    assert len(found_by("label-version", conda(old))) == 1
    files = {"libtorch/build-version": b"2.13.0+cu130\n", "libtorch/build-hash": b"7047546\n"}
    assert found_by("label-version", contents(ZIP, "zip", files)) == []
    wrong = {"libtorch/build-version": b"2.12.0\n", "libtorch/build-hash": b"\n"}
    assert found_by("label-version", contents(ZIP, "zip", wrong)) == [
        "libtorch/build-hash: this is not a commit: ",
        "libtorch/build-version: the file says 2.12.0, but the package is 2.13.0+cu130",
    ]


def test_label_name() -> None:
    assert found_by("label-name", conda()) == []
    (found,) = found_by("label-name", conda(name="tiny-1.3.0-0.conda"))
    assert "the index says tiny-1.2.0-cpu_openblas_py312_h964da31_0" in found
    (found,) = found_by("label-name", conda(index={**INDEX, "subdir": ""}))
    assert "no subdir" in found
    (found,) = found_by("label-name", conda(index={"name": "tiny"}))
    assert "no readable index" in found


# ---------------------------------------------------------------------------- expectations


def test_label_zip() -> None:
    def told(*names: str) -> list[str]:
        return found_by("label-zip", contents(ZIP, "zip", dict.fromkeys(names, b"")))

    assert told("libtorch/lib/libtorch.so.2", "libtorch/include/a.h") == []
    assert told("libtorch/lib/torch.lib") == []
    assert told("libtorch/build-version") == []
    assert told("code.py") == [": nothing identifies this as a libtorch zip"]
    (found,) = told("torch/lib/libtorch.so", "torch-2.13.0.dist-info/WHEEL")
    assert "this is a wheel under another name" in found
    torn = (Fault(FaultKind.STRUCTURE, "", "is cut off"),)
    assert found_by("label-zip", contents(ZIP, "zip", {}, torn)) == []


def test_what_a_torn_archive_lacks_is_not_told() -> None:
    torn = (Fault(FaultKind.STRUCTURE, "", "is cut off"),)
    for name, kind in ((WHEEL_NAME, "wheel"), ("tiny-1.2.0-0.conda", "conda")):
        rules = {found.rule for found in findings(contents(name, kind, {}, torn))}
        assert rules == {"archive-structure"}


def test_what_the_name_of_a_wheel_promises() -> None:
    assert expected_of(wheel()) == Expected(
        name="tiny",
        version="1.2.0+cpu",
        python="cp312",
        abi="cp312",
        platforms=("manylinux_2_28_x86_64",),
        compute="cpu",
    )
    assert expected_of(wheel(name="tiny.whl")) == Expected()


@pytest.mark.parametrize(
    ("local", "compute"),
    [("cu130", "cu130"), ("rocm7.2", "rocm7.2"), ("cpu.cxx11.abi", "cpu"), ("git123", "")],
)
def test_compute_by_the_local_version(local: str, compute: str) -> None:
    name = WHEEL_NAME.replace("+cpu", f"+{local}")
    assert expected_of(wheel(name=name)).compute == compute


@pytest.mark.parametrize(
    ("requires", "compute"),
    [
        ('cuda-toolkit[cublas]==13.2.2; platform_system == "Linux"', "cu132"),
        ("cuda-toolkit==13.0.*", "cu130"),
        ("nvidia-cuda-runtime-cu12==12.8.90", "cu128"),
        ("nvidia-cublas-cu12==12.6.4.1", "cu126"),
        ("nvidia-cublas-cu12", ""),
        ('cuda-toolkit==13.0.*; extra == "gpu"', ""),
        ("cuda-toolkit==" + "1" * 5000, ""),
        ("not a requirement", ""),
    ],
)
def test_compute_by_what_is_required(requires: str, compute: str) -> None:
    text = METADATA.replace(b"numpy>=2", requires.encode())
    package = wheel({f"{ABOUT}/METADATA": text}, name=WHEEL_NAME.replace("+cpu", ""))
    assert expected_of(package).compute == compute


def test_what_other_packages_promise() -> None:
    assert expected_of(conda()) == Expected(
        name="tiny",
        version="1.2.0",
        python="cp312",
        abi="cp312",
        platforms=("linux-64",),
        compute="cpu",
        words=("cpu", "openblas", "py312", "h964da31", "0"),
    )
    for name in (ZIP, ZIP.replace("+", "%2B"), ZIP.replace("shared", "win-shared")):
        expected = expected_of(contents(name, "zip", {}))
        assert expected == Expected(name="libtorch", version="2.13.0+cu130", compute="cu130")
    assert expected_of(contents("what.zip", "zip", {})) == Expected()
    cuda = expected_of(contents("pytorch-2.13.0-cuda130_mkl_py312_h1_300.conda", "conda", {}))
    assert (cuda.name, cuda.compute) == ("pytorch", "cu130")


def _spec(scope: str = "linux-x86_64/cu130-mkl/cp312/wheel") -> bytes:
    def task(stage: Stage, scope: str, **settings: str | tuple[str, ...]) -> Task:
        return Task(
            id=f"{stage}:tiny-1.2.0/{scope}",
            stage=stage,
            stage_revision=1,
            scope=scope,
            recipe="pytorch",
            fingerprint="0" * 64,
            settings=dict(settings),
        )

    core = task(Stage.CORE, "linux-x86_64/cu130-mkl", archs=("8.0", "9.0+PTX"), cudnn="9.20.0.48")
    package = task(Stage.PACKAGE, scope, nccl="2.29.7", format="wheel")
    return msgspec.json.encode(JobSpec(tasks=(core, package)))


def test_a_source_without_commits_gives_packages_without_one() -> None:
    spec, unknown = (
        _spec(),
        VERSION.replace(b"704754640b09a082545e24a58c2425d9a1c18427", b"Unknown"),
    )
    made = wheel({"tiny/version.py": unknown, f"{ABOUT}/torchyard-spec.json": spec})
    assert found_by("label-version", made) == []
    lower = unknown.replace(b"Unknown", b"unknown")  # as compressai's setup.py writes it
    made = wheel({"tiny/version.py": lower, f"{ABOUT}/torchyard-spec.json": spec})
    assert found_by("label-version", made) == []
    wrong = unknown.replace(b"Unknown", b"v1.2")
    made = wheel({"tiny/version.py": wrong, f"{ABOUT}/torchyard-spec.json": spec})
    assert len(found_by("label-version", made)) == 1
    files = {"libtorch/build-hash": b"\n", "libtorch/torchyard-spec.json": spec}
    assert found_by("label-version", contents(ZIP, "zip", files)) == []
    source = spec.replace(b'"stage":"core"', b'"stage":"source"').replace(
        b'"settings":{', b'"settings":{"commit":"704754640b09a082545e24a58c2425d9a1c18427",', 1
    )
    assert source != spec
    files = {"libtorch/build-hash": b"\n", "libtorch/torchyard-spec.json": source}
    assert len(found_by("label-version", contents(ZIP, "zip", files))) == 1
    sdist = source.replace(b'"commit"', b'"sha256"')  # an archive has a digest, and no commit
    made = wheel({"tiny/version.py": unknown, f"{ABOUT}/torchyard-spec.json": sdist})
    assert found_by("label-version", made) == []


@pytest.mark.parametrize("folder", [ABOUT, "libtorch"])
def test_what_a_spec_promises(folder: str) -> None:
    kind, name = ("wheel", WHEEL_NAME) if folder == ABOUT else ("zip", "what.zip")
    expected = expected_of(contents(name, kind, {f"{folder}/torchyard-spec.json": _spec()}))
    assert expected.compute == "cu130"
    assert expected.archs == ("8.0", "9.0+PTX")
    assert expected.pins == {"cudnn": "9.20.0.48", "nccl": "2.29.7"}
    assert expected.words == ("mkl",)


def test_what_the_file_turns_off_is_not_promised() -> None:
    settings = b'"settings":{"env":{"USE_CUDNN":"0"},"cmake":{"USE_NCCL:BOOL":"OFF"},'
    spec = _spec().replace(b'"settings":{', settings, 1)
    assert spec != _spec()
    package = wheel({f"{ABOUT}/torchyard-spec.json": spec})
    assert expected_of(package).pins == {}


PLUGIN = "libtiny-linalg-1.2.0-cuda130_{}_{}_h964da31_0.conda"
CUDA = Binary(format="elf", machine="x86_64", needed=("libcudart.so.13",), build_id="0123")


def _with(**changes: bytes | tuple[str, ...]) -> Binary:
    return msgspec.structs.replace(CUDA, **changes)


@pytest.mark.parametrize(
    ("blas", "magma", "binary", "expected"),
    [
        ("mkl", "magma", _with(exports=b"magma_init\0"), ""),
        ("mkl", "magma", _with(imports=b"abort\0magma_dgesv\0"), ""),
        ("mkl", "magma", _with(needed=("libmagma.so", "libmkl_rt.so.2")), ""),
        ("mkl", "magma", CUDA, ": nothing in the package uses magma, and its label promises it"),
        (
            "mkl",
            "magma",
            _with(exports=b"tt_magma_version\0"),
            ": nothing in the package uses magma, and its label promises it",
        ),
        ("openblas", "nomagma", CUDA, ""),
        (
            "openblas",
            "nomagma",
            _with(exports=b"abort\0magma_init\0"),
            "uses `magma_init`, and its label says nomagma",
        ),
        (
            "openblas",
            "nomagma",
            _with(needed=("libmkl_rt.so.2",)),
            "uses `libmkl_rt.so.2`, and its label says openblas",
        ),
        (
            "mkl",
            "nomagma",
            _with(imports=b"scipy_cblas_dgemm\0"),
            "uses `scipy_cblas_dgemm`, and its label says mkl",
        ),
        ("generic", "nomagma", _with(needed=("libcblas.so.3", "libblas.so.3")), ""),
        (
            "generic",
            "nomagma",
            _with(needed=("libopenblas.so.0",)),
            "uses `libopenblas.so.0`, and its label says generic",
        ),
        ("other", "h1", _with(needed=("libopenblas.so.0", "libmkl_rt.so.2")), ""),
    ],
)
def test_label_libraries(blas: str, magma: str, binary: Binary, expected: str) -> None:
    name = PLUGIN.format(blas, magma)
    found = found_by("label-libraries", contents(name, "conda", {"lib/libtt_linalg.so": binary}))
    assert [one for one in found if one.endswith(expected)] == found
    assert len(found) == bool(expected)


def test_a_package_without_libraries_has_nothing_to_promise() -> None:
    assert found_by("label-libraries", contents(PLUGIN.format("mkl", "magma"), "conda", {})) == []


def test_libraries_that_a_spec_promises() -> None:
    """Not those of a package with a part of the project's libraries, nor of an extension."""
    carried = f"{ABOUT}/torchyard-spec.json"
    said: dict[str, bytes | Binary] = {carried: _spec(), MODULE: CUDA}
    assert found_by("label-libraries", wheel(said)) == [
        ": nothing in the package uses cudnn, and its label promises it",
        ": nothing in the package uses nccl, and its label promises it",
    ]
    used = _with(needed=("libcudnn.so.9",), imports=b"ncclAllReduce\0")
    assert found_by("label-libraries", wheel({**said, MODULE: used})) == []
    extension = _spec().replace(b"cu130-mkl", b"cu130-torch2.13")
    assert found_by("label-libraries", wheel({**said, carried: extension})) == []


@pytest.mark.parametrize("spec", [b"{", b'{"tasks":[]}', b"[" * 100_000, _spec("nonsense")])
def test_a_spec_that_makes_no_sense_promises_nothing_more(spec: bytes) -> None:
    package = wheel({f"{ABOUT}/torchyard-spec.json": spec})
    assert expected_of(package).compute == "cpu"
