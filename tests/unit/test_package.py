"""Packages without compilers: names, policies, archives, and what a wheel says about itself."""

import csv
import io
import os
import stat
import tempfile
import threading
import zipfile
from base64 import urlsafe_b64encode
from hashlib import sha256
from pathlib import Path, PurePosixPath

import pytest
from hypothesis import given
from hypothesis import strategies as st
from packaging.metadata import Metadata
from packaging.utils import parse_wheel_filename

from torchyard.compute.cuda.table import CudaRow
from torchyard.compute.table import parse_compute_table
from torchyard.errors import BuildError, CheckError, ConfigError, DataError, HostError
from torchyard.host.files import link_or_copy, read_data
from torchyard.index.libtorch.platform import zip_platform
from torchyard.package.assemble.vendor import vendored_name
from torchyard.package.elf.file import read_elf, section_names, symbols
from torchyard.package.libtorch.write import ZipLabel, lacks_deps, write_libtorch
from torchyard.package.policy import parse_layouts, policy_for
from torchyard.package.versions import local_version, package_folder
from torchyard.package.wheel.manylinux import parse_manylinux, true_tag
from torchyard.package.wheel.name import WheelTags, wheel_name, wheel_tags
from torchyard.package.wheel.write import metadata, write_wheel
from torchyard.package.zip.unpack import unpack_zip
from torchyard.package.zip.writer import Member, ZipWriter, members_of, writing

METADATA = """\
Metadata-Version: 2.4
Name: Tiny.Torch
Version: 0.0.0
Requires-Dist: sympy >= 1.13
Requires-Dist: filelock
Platform: linux
Summary: Größe zählt
Classifier: Topic :: B
Classifier: Topic :: A
Author: First
        and second
Requires-Python: >=3.10
X-Special: kept

# tinytorch

Text: with a colon.
"""


# ------------------------------------------------------------------------------------ versions


@pytest.mark.parametrize(
    ("version", "compute", "expected"),
    [
        ("2.13.0", "cu130", "2.13.0+cu130"),
        ("2.13.0", "rocm7.2", "2.13.0+rocm7.2"),
        ("2.14.0.dev20261114", "cpu", "2.14.0.dev20261114+cpu"),
    ],
)
def test_local_versions(version: str, compute: str, expected: str) -> None:
    assert local_version(version, compute) == expected


@pytest.mark.parametrize(
    ("tag", "versions", "expected"),
    [
        ("manylinux_2_28_x86_64", ["GLIBC_2.2.5", "GLIBC_2.17"], "manylinux_2_28_x86_64"),
        ("manylinux_2_28_x86_64", ["GLIBC_2.4", "GLIBC_2.34"], "manylinux_2_34_x86_64"),
        ("manylinux_2_28_x86_64", ["GLIBC_2.17", "GLIBCXX_3.4.24"], "manylinux_2_28_x86_64"),
        ("manylinux_2_28_x86_64", ["GLIBC_2.17", "GLIBCXX_3.4.30"], "manylinux_2_35_x86_64"),
        ("manylinux_2_28_aarch64", ["CXXABI_1.3.15", "GLIBCXX_3.4.9"], "manylinux_2_39_aarch64"),
        ("manylinux_2_28_x86_64", ["ZLIB_1.2.9", "GCC_12.0.0"], "manylinux_2_35_x86_64"),
        ("manylinux_2_28_x86_64", ["GLIBC_2.33"], "manylinux_2_34_x86_64"),
        ("manylinux_2_28_x86_64", ["GLIBC_ABI_DT_RELR"], "manylinux_2_36_x86_64"),
        ("manylinux_2_34_x86_64", ["GLIBC_2.2.5", "CXXABI_TM_1"], "manylinux_2_34_x86_64"),
        ("manylinux_2_28_x86_64", ["OMP_1.0", "libcudart.so.13"], "manylinux_2_28_x86_64"),
        ("macosx_14_0_arm64", ["GLIBC_2.34"], "macosx_14_0_arm64"),
    ],
)
def test_tags_tell_the_truth(tag: str, versions: list[str], expected: str) -> None:
    assert true_tag(tag, versions) == expected


@pytest.mark.parametrize("version", ["GLIBCXX_3.4.99", "GLIBC_2.99", "GLIBC_PRIVATE"])
def test_a_system_that_no_policy_has_is_told(version: str) -> None:
    with pytest.raises(BuildError, match=f"need {version}, which no manylinux policy has"):
        true_tag("manylinux_2_28_x86_64", ["GLIBC_2.17", version])


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('glibc = "2.31"', 'glibc = "2.27"', "the policy for glibc 2.27 after that for 2.28"),
        ('GLIBCXX = "3.4.28"', 'GLIBCXX = "3.4.2"', "2.31 that allows less than that for 2.28"),
        ('GLIBCXX = "3.4.28", ', "", "for different libraries"),
        ('GLIBCXX = "3.4.28"', 'GLIBCXX = "new"', "not a number: `new`"),
        ('GLIBCXX = "3.4.28"', "GLIBCXX = 3", "malformed"),
    ],
)
def test_a_bad_table_of_policies_is_refused(old: str, new: str, message: str) -> None:
    text = read_data("manylinux.toml")
    assert old in text
    with pytest.raises(DataError, match=message):
        parse_manylinux(text.replace(old, new))


@pytest.mark.parametrize(
    ("version", "message"), [("2.13.0+cpu", "a local part already"), ("new", "is not a version")]
)
def test_bad_versions_are_refused(version: str, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        local_version(version, "cu130")


def test_names_are_those_of_the_specification() -> None:
    for project in ("tiny-torch", "tiny.torch", "tiny_torch", "tiny--torch"):
        assert package_folder(project) == "tiny_torch"
    assert wheel_tags("cp313t") == ("cp313", "cp313t")
    name = wheel_name("Tiny.Torch", "1.2.0+cpu", wheel_tags("cp312"), "manylinux_2_28_x86_64")
    assert name == "tiny_torch-1.2.0+cpu-cp312-cp312-manylinux_2_28_x86_64.whl"
    project, version, _, tags = parse_wheel_filename(name)
    assert (project, str(version)) == ("tiny-torch", "1.2.0+cpu")
    assert {str(tag) for tag in tags} == {"cp312-cp312-manylinux_2_28_x86_64"}


@pytest.mark.parametrize(
    ("platform", "kind", "file"),
    [
        ("linux-x86_64", "libtorch", "libtorch-shared-with-deps-2.13.0+cpu.zip"),
        (
            "linux-x86_64",
            "libtorch-shared-without-deps",
            "libtorch-shared-without-deps-2.13.0+cpu.zip",
        ),
        ("linux-aarch64", "libtorch", "libtorch-linux-aarch64-shared-with-deps-2.13.0+cpu.zip"),
        ("windows-x86_64", "libtorch", "libtorch-win-shared-with-deps-2.13.0+cpu.zip"),
        ("windows-arm64", "libtorch", "libtorch-win-arm64-shared-with-deps-2.13.0+cpu.zip"),
        ("macos-arm64", "libtorch", "libtorch-macos-arm64-shared-with-deps-2.13.0+cpu.zip"),
    ],
)
def test_zips_are_named_by_platform_and_kind(platform: str, kind: str, file: str) -> None:
    label = ZipLabel("torch", "2.13.0+cpu", platform, kind)
    assert label.file_name == file
    assert label.has_deps != lacks_deps(file)
    assert zip_platform(file) == platform


# -------------------------------------------------------------------------------------- policy


def test_libraries_of_other_wheels_are_asked_for() -> None:
    policy = policy_for("wheel", "cu130", "torch")
    needed = ["libc.so.6", "libcudart.so.13", "libcudnn.so.9", "libnccl.so.2"]
    pins = {"cudnn": "9.24.0.43", "triton": "3.8.0"}
    assert policy.requirements(needed, pins, "13.0") == [
        'nvidia-cudnn-cu13==9.24.0.43; platform_system == "Linux"',
        'nvidia-nccl-cu13; platform_system == "Linux"',
        'cuda-toolkit[cudart]==13.0.*; platform_system == "Linux"',
        'triton==3.8.0; platform_system == "Linux"',
    ]
    assert policy_for("zip", "cu130", "").requirements(needed, {}, "13.0") == []


def test_libraries_are_as_old_as_the_toolkit() -> None:
    """A newer nvidia-nvtx-cu12 lacks libnvToolsExt.so.1, and one is compiled with one cuDNN."""
    policy = policy_for("wheel", "cu124", "torch")
    needed = ["libnvToolsExt.so.1", "libcudnn.so.9", "libcudart.so.12"]
    pins = {"cudnn": "9.1.0.70", "nvidia-cudnn-cu12": "9.27.0.42"}
    assert policy.requirements(needed, pins, "12.4") == [
        'nvidia-cudnn-cu12==9.27.0.42; platform_system == "Linux"',
        'cuda-toolkit[cudart,nvtx]==12.4.*; platform_system == "Linux"',
    ]


NEW = "nvidia/cudnn/lib nvidia/nvshmem/lib nvidia/nccl/lib nvidia/cusparselt/lib nvidia/cu13/lib"


@pytest.mark.parametrize(
    ("layout", "compute", "file", "expected"),
    [
        ("wheel", "cpu", "torch/_C.so", "$ORIGIN:$ORIGIN/lib"),
        ("wheel", "cpu", "torch/lib/libtorch.so", "$ORIGIN"),
        ("wheel", "rocm7.2", "torch/lib/libtorch.so", "$ORIGIN"),
        ("wheel", "cpu", "torch/a/b/x.so", "$ORIGIN:$ORIGIN/../../lib"),
        ("wheel", "cpu", "torch/bin/tool", "$ORIGIN:$ORIGIN/../lib"),
        ("wheel", "cpu", "functorch/_C.so", "$ORIGIN:$ORIGIN/../torch/lib"),
        ("zip", "cu130", "lib/libtorch.so", "$ORIGIN"),
        ("zip", "cu130", "bin/tool", "$ORIGIN:$ORIGIN/../lib"),
    ],
)
def test_rpath(layout: str, compute: str, file: str, expected: str) -> None:
    assert policy_for(layout, compute, "torch").rpath(PurePosixPath(file)) == expected


def test_rpath_of_cuda_wheels_names_the_wheels_first() -> None:
    policy = policy_for("wheel", "cu130", "torch")
    deep = [f"$ORIGIN/../../{folder}" for folder in NEW.split()]
    assert policy.rpath(PurePosixPath("torch/lib/libtorch.so")) == ":".join([*deep, "$ORIGIN"])
    flat = [f"$ORIGIN/../{folder}" for folder in NEW.split()]
    own = ["$ORIGIN", "$ORIGIN/lib"]
    assert policy.rpath(PurePosixPath("torch/_C.so")) == ":".join([*flat, *own])
    assert policy.force_rpath
    old = policy_for("wheel", "cu126", "torch").rpath(PurePosixPath("torch/lib/x.so"))
    assert old.count("/lib:") == 15
    assert "cu13" not in old
    assert not policy_for("zip", "cu130", "").force_rpath
    assert not policy_for("wheel", "cpu", "torch").force_rpath


def test_rpath_of_rocm_wheels_leads_to_amd_s_wheels_since_they_exist() -> None:
    policy = policy_for("wheel", "rocm7.14", "torch")
    deep = "$ORIGIN/../../_rocm_sdk_core/lib:$ORIGIN/../../_rocm_sdk_libraries/lib:$ORIGIN"
    assert policy.rpath(PurePosixPath("torch/lib/libtorch_hip.so")) == deep
    needed = ["libamdhip64.so.7", "librocblas.so.5", "libMIOpen.so.1", "librocm_sysdeps_zstd.so.1"]
    assert all(map(policy.is_outside, needed))
    (requirement,) = policy.requirements(needed, {}, "7.14")
    assert requirement == 'rocm[libraries]==7.14.*; platform_system == "Linux"'
    older = policy_for("wheel", "rocm7.2", "torch")
    assert [name for name in needed if older.is_outside(name)] == ["libamdhip64.so.7"]


def test_rpath_of_conda_packages_leads_to_the_prefix() -> None:
    site = "lib/python3.12/site-packages/torch"
    policy = policy_for("conda", "cu130", site)
    assert policy.rpath(PurePosixPath(f"{site}/_C.so")) == "$ORIGIN:$ORIGIN/lib:$ORIGIN/../../.."
    assert policy.rpath(PurePosixPath(f"{site}/lib/x.so")) == "$ORIGIN:$ORIGIN/../../../.."
    without_python = policy_for("conda", "cu130", "")
    assert without_python.rpath(PurePosixPath("lib/libtorch.so")) == "$ORIGIN"


def test_what_may_be_outside() -> None:
    wheel = policy_for("wheel", "cu130", "torch")
    for library in ("libc.so.6", "ld-linux-x86-64.so.2", "libcuda.so.1", "libcudart.so.13"):
        assert wheel.is_outside(library)
    for library in ("libcudart.so.12", "libgomp.so.1", "libtorch.so"):
        assert not wheel.is_outside(library)
    assert not policy_for("wheel", "cpu", "torch").is_outside("libcuda.so.1")
    assert not policy_for("zip", "cu130", "").is_outside("libcudart.so.13")


def test_names_of_vendored_libraries(tmp_path: Path) -> None:
    policy = policy_for("wheel", "cpu", "torch")
    digest = sha256(b"x").hexdigest()[:8]
    for name, expected in [
        ("libfoo.so.1.2", f"libfoo-{digest}.so.1.2"),
        ("libfoo.so", f"libfoo-{digest}.so"),
        ("libgomp.so.1", "libgomp.so.1"),
        ("libnvrtc-builtins.so.13.0", "libnvrtc-builtins.so.13.0"),
    ]:
        (tmp_path / name).write_bytes(b"x")
        assert vendored_name(tmp_path / name, policy) == expected


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("[layout.conda]", "[layout.cake]", "malformed"),
        ('"libc.so.6", "libdl.so.2"', '"libdl.so.2", "libc.so.6"', "not sorted"),
        ('[layout.conda]\nlibraries = ["{package}/lib", "lib"]', "", "lacks the layout `conda`"),
    ],
)
def test_a_bad_table_is_refused(old: str, new: str, message: str) -> None:
    text = read_data("layouts.toml")
    assert old in text
    with pytest.raises(DataError, match=message):
        parse_layouts(text.replace(old, new))


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("force_rpath = true", "force_rpath = 1", "malformed"),
        ('folder = "nvidia/nccl/lib"', 'folder = "../nccl/lib"', "outside of site-packages"),
        ('libraries = ["libnccl.so.2"]', 'libraries = ["*"]', "or all of them by"),
        ('toolkit = "cuda-toolkit"\n', "", "no `toolkit` with extras"),
    ],
)
def test_bad_rules_for_libraries_are_refused(old: str, new: str, message: str) -> None:
    text = read_data("compute/cuda.toml")
    assert old in text
    with pytest.raises(DataError, match=message):
        parse_compute_table(text.replace(old, new), CudaRow, "data/compute/cuda.toml")


def test_an_unknown_compute_is_refused() -> None:
    with pytest.raises(DataError, match="`abacus`"):
        policy_for("wheel", "abacus", "torch")


# ------------------------------------------------------------------------------------- archive

names = st.text(
    st.characters(exclude_categories=["Cs"], exclude_characters="\0"), min_size=1, max_size=60
)
contents = st.one_of(
    st.binary(max_size=2000), st.builds(bytes.__mul__, st.binary(max_size=20), st.integers(0, 500))
)


@given(st.dictionaries(names, st.tuples(contents, st.booleans()), max_size=20))
def test_any_members_round_trip(files: dict[str, tuple[bytes, bool]]) -> None:
    members = [Member(name, data, executable) for name, (data, executable) in files.items()]
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "some.zip")
        with writing(path) as archive:
            written = archive.add(members)
        assert [(w.name, w.size, w.digest) for w in written] == [
            (name, len(data), sha256(data).digest()) for name, (data, _) in files.items()
        ]
        with zipfile.ZipFile(path) as read:
            assert read.testzip() is None
            assert read.namelist() == list(files)
            for info in read.infolist():
                data, executable = files[info.filename]
                assert read.read(info) == data
                assert info.compress_size <= info.file_size
                assert info.date_time == (1980, 1, 1, 0, 0, 0)
                expected = 0o755 if executable else 0o644
                assert info.external_attr >> 16 == stat.S_IFREG | expected


def test_files_below_a_directory(tmp_path: Path) -> None:
    (tmp_path / "b").mkdir()
    (tmp_path / "b/tool").write_bytes(b"1")
    (tmp_path / "b/tool").chmod(0o700)
    (tmp_path / "a").symlink_to("b/tool")
    (tmp_path / "b-c").write_bytes(b"")
    listed = [(member.name, member.executable) for member in members_of(tmp_path, "top/")]
    assert listed == [("top/a", True), ("top/b-c", False), ("top/b/tool", True)]
    (tmp_path / "out").symlink_to(__file__)
    with pytest.raises(BuildError, match="out` is a link that leads out of"):
        members_of(tmp_path)
    (tmp_path / "out").unlink()
    (tmp_path / "nowhere").symlink_to("gone")
    with pytest.raises(BuildError, match="nowhere` is neither a file"):
        members_of(tmp_path)
    (tmp_path / "link").symlink_to("b")
    with pytest.raises(BuildError, match="link to a directory"):
        members_of(tmp_path)


def test_unpacking_leaves_nothing_else(tmp_path: Path) -> None:
    archive, folder = tmp_path / "some.whl", tmp_path / "image"
    (folder / "old").mkdir(parents=True)
    (folder / "old/file").touch()
    with writing(archive) as writer:
        writer.add([Member("b/tool", b"1", executable=True), Member("a", b"2")])
    unpack_zip(archive, folder)
    found = {m.name: (m.executable, (folder / m.name).read_bytes()) for m in members_of(folder)}
    assert found == {"a": (False, b"2"), "b/tool": (True, b"1")}
    link = zipfile.ZipInfo("link")
    link.external_attr = (stat.S_IFLNK | 0o777) << 16
    with zipfile.ZipFile(archive, "a") as zipped:
        zipped.writestr(link, "/etc")
    with pytest.raises(CheckError, match=r"some\.whl` has a link or special file, `link`"):
        unpack_zip(archive, folder)
    archive.write_bytes(archive.read_bytes()[:-30])
    with pytest.raises(CheckError, match=r"some\.whl` can't be unpacked: the archive has no end"):
        unpack_zip(archive, folder)


def test_files_get_second_names_and_are_never_replaced(tmp_path: Path) -> None:
    old, new, link = tmp_path / "old", tmp_path / "new", tmp_path / "link"
    old.write_bytes(b"old")
    link.symlink_to("old")
    link_or_copy(str(link), str(new))
    assert new.samefile(old)
    assert not new.is_symlink()
    with pytest.raises(BuildError, match=r"link` would replace the existing `.*new`"):
        link_or_copy(str(link), str(new))
    memory = Path("/dev/shm")
    if memory.is_dir() and memory.stat().st_dev != tmp_path.stat().st_dev:
        old.chmod(0o750)
        with tempfile.TemporaryDirectory(dir=memory) as folder:
            copy = Path(folder, "copy")
            link_or_copy(str(link), str(copy))
            assert (copy.read_bytes(), stat.S_IMODE(copy.stat().st_mode)) == (b"old", 0o750)
            with pytest.raises(BuildError, match="would replace the existing"):
                link_or_copy(str(link), str(copy))
    with pytest.raises(FileNotFoundError):
        link_or_copy(str(tmp_path / "gone"), str(tmp_path / "other"))


def test_two_writers_of_one_archive_do_not_mix(tmp_path: Path) -> None:
    path = tmp_path / "x.zip"

    def write(name: str) -> None:
        with writing(path) as archive:
            archive.add([Member(name, b"1")])

    other = threading.Thread(target=write, args=("second",))
    with writing(path) as archive:
        other.start()
        other.join(0.2)
        assert other.is_alive()
        archive.add([Member("first", bytes(100))])
    other.join()
    assert zipfile.ZipFile(path).namelist() == ["second"]
    assert path.stat().st_mode & 0o111 == 0
    assert [file.name for file in tmp_path.iterdir()] == ["x.zip"]


def test_bad_members_leave_no_archive(tmp_path: Path) -> None:
    path = tmp_path / "some.zip"
    with pytest.raises(BuildError, match="two files `a`"), writing(path) as archive:
        archive.add([Member("a", b"1"), Member("a", b"2")])
    with pytest.raises(HostError, match="is not UTF-8"), writing(path) as archive:
        archive.add([Member(os.fsdecode(b"\xff"), b"1")])
    assert list(tmp_path.iterdir()) == []


def test_members_beyond_the_first_4_gib(tmp_path: Path) -> None:
    path = tmp_path / "far.zip"
    with path.open("wb") as file:
        file.seek((4 << 30) - 30)  # takes no room on the disk
        archive = ZipWriter(file)
        archive.add([Member("before", b"1"), Member("after", b"2" * 99)])
        archive.close()
    with zipfile.ZipFile(path) as read:
        assert [info.header_offset > 0xFFFF_FFFF for info in read.infolist()] == [False, True]
        assert (read.read("before"), read.read("after")) == (b"1", b"2" * 99)


# --------------------------------------------------------------------------------------- wheel


def make_image(folder: Path) -> Path:
    """Make the unpacked wheel of a package without libraries."""
    image = folder / "image"
    for name, text in {
        "tiny_torch/__init__.py": "answer = 42\n",
        "tiny_torch/bin/tool": "#!/bin/sh\n",
        "tiny_torch/py.typed": "",
        "tiny_torch-0.0.0.dist-info/METADATA": METADATA,
        "tiny_torch-0.0.0.dist-info/RECORD": "wrong\n",
        "tiny_torch-0.0.0.dist-info/WHEEL": "wrong\n",
        "tiny_torch-0.0.0.dist-info/entry_points.txt": "[console_scripts]\n",
        "tiny_torch-0.0.0.dist-info/licenses/LICENSE, too": "free\n",
        "tiny_torch-0.0.0.data/data/share/x": "x",
    }.items():
        path = image / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    (image / "tiny_torch/bin/tool").chmod(0o755)
    return image


def make_wheel(image: Path, out: Path, tags: WheelTags | None = None) -> Path:
    spec = out.parent / "torchyard-spec.json"
    spec.write_text("{}", encoding="utf-8")
    return write_wheel(
        image,
        out,
        name="tiny-torch",
        version="1.2.0+cpu",
        tags=tags or wheel_tags("cp312"),
        platform_tag="manylinux_2_17_x86_64.manylinux2014_x86_64",
        requires=["typing-extensions>=4.10 ; python_version < '3.13'", "filelock"],
        spec=spec,
    )


def test_wheel(tmp_path: Path) -> None:
    wheel = make_wheel(make_image(tmp_path), tmp_path / "out")
    tag = "cp312-cp312-manylinux_2_17_x86_64.manylinux2014_x86_64"
    assert wheel.name == f"tiny_torch-1.2.0+cpu-{tag}.whl"
    home = "tiny_torch-1.2.0+cpu.dist-info"
    with zipfile.ZipFile(wheel) as archive:
        assert archive.namelist() == [
            "tiny_torch-1.2.0+cpu.data/data/share/x",
            "tiny_torch/__init__.py",
            "tiny_torch/bin/tool",
            "tiny_torch/py.typed",
            f"{home}/METADATA",
            f"{home}/WHEEL",
            f"{home}/entry_points.txt",
            f"{home}/licenses/LICENSE, too",
            f"{home}/torchyard-spec.json",
            f"{home}/RECORD",
        ]
        tags = [
            line.removeprefix("Tag: ")
            for line in archive.read(f"{home}/WHEEL").decode().splitlines()
            if line.startswith("Tag: ")
        ]
        assert tags == ["cp312-cp312-manylinux2014_x86_64", "cp312-cp312-manylinux_2_17_x86_64"]
        rows = list(csv.reader(io.StringIO(archive.read(f"{home}/RECORD").decode())))
        assert [row[0] for row in rows] == archive.namelist()
        assert rows[-1][1:] == ["", ""]
        for name, digest, size in rows[:-1]:
            data = archive.read(name)
            encoded = urlsafe_b64encode(sha256(data).digest()).decode().rstrip("=")
            assert (digest, size) == (f"sha256={encoded}", str(len(data)))


def test_metadata_is_the_same_for_all_wheels_of_a_version(tmp_path: Path) -> None:
    made = metadata(METADATA, "tiny-torch", "1.2.0+cpu", ["numpy>=2", "filelock"])
    parsed = Metadata.from_email(made.replace(b"X-Special: kept\n", b""))
    assert parsed.name == "tiny-torch"
    assert str(parsed.version) == "1.2.0+cpu"
    assert list(map(str, parsed.requires_dist or [])) == ["filelock", "numpy>=2", "sympy>=1.13"]
    assert parsed.classifiers == ["Topic :: A", "Topic :: B"]
    assert parsed.summary == "Größe zählt"
    assert parsed.description == "# tinytorch\n\nText: with a colon.\n"
    assert b"Platform" not in made
    assert b"Author: First\n        and second\n" in made
    assert b"\nX-Special: kept\n\n" in made
    head, _, body = METADATA.partition("\nRequires-Dist: sympy >= 1.13")
    shuffled = head + body.replace("\nX-Special", "\nRequires-Dist: sympy>=1.13\nX-Special")
    again = metadata(shuffled, "tiny-torch", "1.2.0+cpu", ["filelock", "numpy >=2"])
    assert again == made
    assert metadata(made.decode(), "tiny-torch", "1.2.0+cpu", []) == made


def test_metadata_does_not_tell_which_backend_wrote_it() -> None:
    """Backends differ in what they call dynamic, and wheels of two backends may be siblings."""
    by_setuptools = METADATA.replace("Platform: linux", "Dynamic: license-file\nDynamic: summary")
    made = [metadata(text, "tiny-torch", "1.2.0", []) for text in (METADATA, by_setuptools)]
    assert made[0] == made[1]


@pytest.mark.parametrize("text", ["Name: x\nnothing\n", "nothing"])
def test_metadata_that_is_none(text: str) -> None:
    with pytest.raises(BuildError, match="malformed line: `nothing`"):
        metadata(text, "x", "1", [])


def test_a_requirement_that_is_none() -> None:
    with pytest.raises(ConfigError, match="`numpy is nice` is not a requirement"):
        metadata("Name: x\n", "x", "1", ["numpy is nice"])


def test_an_image_speaks_of_itself_once(tmp_path: Path) -> None:
    image = make_image(tmp_path)
    (image / "other-1.dist-info").mkdir()
    with pytest.raises(BuildError, match=r"`other-1.dist-info`, `tiny_torch-0.0.0.dist-info`"):
        make_wheel(image, tmp_path / "out")


def test_an_image_without_metadata(tmp_path: Path) -> None:
    image = make_image(tmp_path)
    (image / "tiny_torch-0.0.0.dist-info/METADATA").unlink()
    with pytest.raises(BuildError, match="METADATA` can't be read"):
        make_wheel(image, tmp_path / "out")


def test_wheels_depend_on_content_only(tmp_path: Path) -> None:
    first = make_wheel(make_image(tmp_path / "a"), tmp_path / "a/out").read_bytes()
    image = make_image(tmp_path / "b")
    (image / "tiny_torch/__init__.py").chmod(0o600)
    assert make_wheel(image, tmp_path / "b/out").read_bytes() == first
    (image / "tiny_torch/__init__.py").write_text("answer = 43\n", encoding="utf-8")
    assert make_wheel(image, tmp_path / "b/out").read_bytes() != first


def test_libtorch_says_what_it_is(tmp_path: Path) -> None:
    (tmp_path / "image/lib").mkdir(parents=True)
    (tmp_path / "image/lib/x").write_text("x", encoding="utf-8")
    spec = tmp_path / "torchyard-spec.json"
    spec.write_text("{}", encoding="utf-8")
    image, version = tmp_path / "image", "2.13.0+cpu"
    label = ZipLabel("torch", version, "linux-x86_64")
    path = write_libtorch(image, tmp_path, label, git_hash="c0ffee", spec=spec)
    assert path.name == "libtorch-shared-with-deps-2.13.0+cpu.zip"
    with zipfile.ZipFile(path) as archive:
        assert {name: archive.read(name) for name in archive.namelist()} == {
            "libtorch/build-hash": b"c0ffee\n",
            "libtorch/build-version": b"2.13.0+cpu\n",
            "libtorch/lib/x": b"x",
            "libtorch/torchyard-spec.json": b"{}",
        }


# ----------------------------------------------------------------------------------------- elf


@pytest.mark.parametrize("content", [b"", b"\x7fEL", b"#!/bin/sh\n" * 9])
def test_what_is_no_elf_file(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "x"
    path.write_bytes(content)
    assert read_elf(path) is None
    assert symbols(path) == set()
    assert section_names(path) == ()


@pytest.mark.parametrize("content", [b"\x7fELF", b"\x7fELF\2\1\1" + bytes(20), b"\x7fELF" * 99])
def test_a_damaged_elf_file_is_told(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "x.so"
    path.write_bytes(content)
    with pytest.raises(BuildError, match=r"x\.so` starts like an ELF file but is damaged"):
        read_elf(path)


@pytest.mark.parametrize(
    "line",
    [
        "Summary: x\rRequires-Dist: squat-me",
        "License: x\n\xa0of that",
        "License: x\n\x0cof that",
        "Li cense: x",
        ": x",
    ],
    ids=repr,
)
def test_what_ends_the_fields_for_installers_is_no_metadata(line: str) -> None:
    """For them, the requirements below would be a part of the description, or others appear."""
    with pytest.raises(BuildError, match="METADATA has"):
        metadata(f"Metadata-Version: 2.1\nName: x\n{line}\n", "x", "1", ["torch==2.13.*"])


def test_a_requirement_stays_on_its_line() -> None:
    text = "Metadata-Version: 2.1\nName: x\nRequires-Dist: a; os_name != 'y\\n\\n'\n"
    with pytest.raises(ConfigError, match="would end its line"):
        metadata(text, "x", "1", ["torch==2.13.*"])
