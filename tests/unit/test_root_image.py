"""Roots that are archives or OCI images are unpacked once, and nothing in them is trusted."""

import gzip
import io
import json
import sys
import tarfile
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from hashlib import sha256
from pathlib import Path
from threading import Barrier

import pytest
from tests.support.made_tar import member, tar_of
from tests.support.roots import make_debian

from torchyard.errors import HostError
from torchyard.host.machine import platform_name
from torchyard.host.untrusted_tree import UntrustedTree
from torchyard.host.zstd import compress
from torchyard.model.config import Sandbox
from torchyard.run.conditions import sandbox_here
from torchyard.toolchain import root_image
from torchyard.toolchain.root import add_compilers, identify_root, own_python
from torchyard.toolchain.root_image import ROOTS, find_root, own_image, root_identity
from torchyard.toolchain.variables import IMAGE

OURS = {"linux-x86_64": "amd64", "linux-aarch64": "arm64"}.get(platform_name(), "")
needs_known = pytest.mark.skipif(not OURS, reason="this machine has another name in images")
LINK, FOLDER = tarfile.SYMTYPE, tarfile.DIRTYPE


def put(layout: Path, data: bytes) -> str:
    """Add a blob to a layout, and return its digest."""
    digest = sha256(data).hexdigest()
    (layout / "blobs/sha256").mkdir(parents=True, exist_ok=True)
    (layout / "blobs/sha256" / digest).write_bytes(data)
    return f"sha256:{digest}"


def put_json(layout: Path, document: object) -> str:
    return put(layout, json.dumps(document).encode())


def add_image(layout: Path, *layers: bytes) -> str:
    """Add an image to a layout, and return the digest of its manifest."""
    return put_json(layout, {"layers": [{"digest": put(layout, layer)} for layer in layers]})


def finish(layout: Path, *manifests: Mapping[str, object]) -> Path:
    (layout / "oci-layout").write_text('{"imageLayoutVersion": "1.0.0"}', encoding="utf-8")
    (layout / "index.json").write_text(json.dumps({"manifests": manifests}), encoding="utf-8")
    return layout


def make_layout(layout: Path, *layers: bytes) -> Path:
    return finish(layout, {"digest": add_image(layout, *layers)})


def files_in(root: str) -> dict[str, str]:
    """Return what is in a root: texts of files, targets of links."""
    found = {}
    for path in sorted(Path(root).rglob("*")):
        name = path.relative_to(root).as_posix()
        if path.is_symlink():
            found[name] = f"-> {path.readlink()}"
        elif path.is_file():
            found[name] = path.read_text(encoding="utf-8")
    return found


@pytest.fixture
def archive(tmp_path: Path) -> Path:
    """A root of Debian as an archive, with the directory that it was made of beside it."""
    make_debian(tmp_path / "root")
    with tarfile.open(tmp_path / "root.tar.gz", "w:gz") as tar:
        tar.add(tmp_path / "root", ".")
    return tmp_path / "root.tar.gz"


def test_a_directory_is_taken_as_it_is(tmp_path: Path) -> None:
    assert find_root("root", tmp_path, tmp_path / "work") == str(tmp_path / "root")
    assert not (tmp_path / "work").exists()


def test_an_archive_is_unpacked_once_and_is_the_same_root(archive: Path, tmp_path: Path) -> None:
    root = find_root("root.tar.gz", tmp_path, tmp_path / "work")
    digest = sha256(archive.read_bytes()).hexdigest()
    assert root == str(tmp_path / "work" / ROOTS / digest)
    assert identify_root(root) == identify_root(str(tmp_path / "root"))
    assert (Path(root) / "bin").readlink() == Path("usr/bin")
    (Path(root) / "usr/mark").touch()
    archive.rename(tmp_path / "moved")
    assert find_root(str(tmp_path / "moved"), Path("/"), tmp_path / "work") == root
    assert (Path(root) / "usr/mark").exists()


def test_processes_that_need_a_root_at_once_unpack_it_once(
    archive: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    unpack, count, together = root_image._unpack, [], Barrier(4)

    def counted(*args: object) -> None:
        count.append(1)
        unpack(*args)  # type: ignore[arg-type]

    def find(_: int) -> str:
        together.wait()
        return find_root(archive.name, tmp_path, tmp_path / "work")

    monkeypatch.setattr(root_image, "_unpack", counted)
    with ThreadPoolExecutor(4) as pool:
        assert len(set(pool.map(find, range(4)))) == 1
    assert len(count) == 1


def test_what_a_killed_process_left_is_no_root(archive: Path, tmp_path: Path) -> None:
    digest = sha256(archive.read_bytes()).hexdigest()
    left = tmp_path / "work" / ROOTS / f"{digest}.part"
    (left / "usr/half").mkdir(parents=True)
    root = find_root(archive.name, tmp_path, tmp_path / "work")
    assert not (Path(root) / "usr/half").exists()
    assert not left.exists()


LOWER = tar_of(
    (member("usr/kept"), b"lower"),
    (member("usr/gone"), b"lower"),
    (member("usr/folder/a"), b"lower"),
    (member("usr/opaque/old"), b"lower"),
    (member("usr/opaque/deep/old"), b"lower"),
    (member("usr/becomes-a-link/a"), b"lower"),
    member("usr/becomes-a-folder", LINK, "/nowhere"),
)
UPPER = tar_of(
    member("./", FOLDER),
    (member("./usr/opaque/new"), b"upper"),
    (member("./usr/opaque/deep/new"), b"upper"),
    member("./usr/opaque/.wh..wh..opq"),
    member("./usr/.wh.gone"),
    member("./usr/.wh.folder"),
    (member("./usr/folder/b"), b"upper"),
    member("./usr/never/.wh.was"),
    member("./usr/becomes-a-link", LINK, "../../usr/kept"),
    member("./usr/becomes-a-folder", FOLDER),
    (member("./usr/becomes-a-folder/a"), b"upper"),
)
"""Its marks hide what is below it, and nothing of its own, wherever they are in it."""


def test_layers_are_put_over_each_other(tmp_path: Path) -> None:
    last = tar_of((member("usr/kept"), b"last"))
    make_layout(tmp_path / "image", gzip.compress(LOWER), compress(UPPER), last)
    root = find_root("image", tmp_path, tmp_path / "work")
    assert root == find_root("oci:image", tmp_path, tmp_path / "work")
    assert files_in(root) == {
        "usr/kept": "last",
        "usr/folder/b": "upper",
        "usr/opaque/new": "upper",
        "usr/opaque/deep/new": "upper",
        "usr/becomes-a-link": "-> ../../usr/kept",
        "usr/becomes-a-folder/a": "upper",
    }


@needs_known
def test_the_image_for_this_machine_is_taken(tmp_path: Path) -> None:
    layout = tmp_path / "image"
    ours = add_image(layout, tar_of((member("usr/ours"), b"")))
    other = add_image(layout, tar_of((member("usr/other"), b"")))
    linux = {"digest": ours, "platform": {"architecture": OURS, "os": "linux", "variant": "v8"}}
    wrong = {"digest": other, "platform": {"architecture": "riscv64", "os": "linux"}}
    proof = {"digest": other, "platform": {"architecture": "unknown", "os": "unknown"}}
    index = put_json(layout, {"manifests": [wrong, linux, proof]})
    finish(layout, {"digest": index})
    assert "usr/ours" in files_in(find_root("image", tmp_path, tmp_path / "work"))
    finish(layout, wrong)
    with pytest.raises(HostError, match=f"has no image for linux/{OURS}"):
        find_root("image", tmp_path, tmp_path / "work")
    finish(layout, {"digest": ours}, {"digest": other})
    with pytest.raises(HostError, match="has 2 images for linux"):
        find_root("image", tmp_path, tmp_path / "work")


def test_an_image_with_other_bytes_is_refused(tmp_path: Path) -> None:
    layer = tar_of((member("usr/a"), b""))
    layout = make_layout(tmp_path / "image", layer)
    blob = layout / "blobs/sha256" / sha256(layer).hexdigest()
    blob.write_bytes(tar_of((member("usr/b"), b"")))
    with pytest.raises(HostError, match=r"is damaged: .* does not match its digest"):
        find_root("image", tmp_path, tmp_path / "work")
    blob.unlink()
    with pytest.raises(HostError, match=r"is damaged: .*No such file"):
        find_root("image", tmp_path, tmp_path / "work")
    assert not [path for path in (tmp_path / "work" / ROOTS).iterdir() if path.is_dir()]
    (layout / "index.json").write_text('{"manifests": [{"digest": "md5:1"}]}', encoding="utf-8")
    with pytest.raises(HostError, match="`md5:1` is not a sha256"):
        find_root("image", tmp_path, tmp_path / "work")


def test_links_of_a_system_are_kept_and_its_devices_are_not_made(tmp_path: Path) -> None:
    """A root is only looked at from within, where `/` is the root itself."""
    (tmp_path / "root.tar").write_bytes(
        tar_of(
            member("dev/null", tarfile.CHRTYPE),
            (member("tmp/left"), b"by somebody"),
            (member("usr/bin/gcc-14"), b"a compiler"),
            member("usr/bin/gcc", LINK, "/etc/alternatives/gcc"),
            member("etc/alternatives/gcc", LINK, "/usr/bin/gcc-14"),
        )
    )
    assert files_in(find_root("root.tar", tmp_path, tmp_path / "work")) == {
        "usr/bin/gcc-14": "a compiler",
        "usr/bin/gcc": "-> /etc/alternatives/gcc",
        "etc/alternatives/gcc": "-> /usr/bin/gcc-14",
    }


@pytest.mark.parametrize(
    ("members", "why"),
    [
        ((member("usr/../../evil"),), "`..` can't be part of a path"),
        ((member("usr/sda", tarfile.BLKTYPE),), "`usr/sda` is a device, socket or fifo"),
        ((member("usr/l", LINK, "/tmp"), member("usr/l/evil")), "leads through a link or file"),
        ((member("x/usr/a"),), "is not a root: it has no /usr"),
        ((member("usr", LINK, "/usr"),), "is not a root: it has no /usr"),
    ],
)
def test_a_root_that_leads_out_of_its_directory_is_refused(
    members: tuple[tarfile.TarInfo, ...], why: str, tmp_path: Path
) -> None:
    (tmp_path / "root.tar").write_bytes(tar_of(*members))
    (tmp_path / "work" / ROOTS).mkdir(parents=True)
    (tmp_path / "work/evil").touch()
    with pytest.raises(HostError) as refused:
        find_root("root.tar", tmp_path, tmp_path / "work")
    assert f"`{tmp_path}/root.tar`" in str(refused.value)
    assert why in str(refused.value)
    assert [path.name for path in tmp_path.rglob("*vil")] == ["evil"]
    assert not [path for path in (tmp_path / "work" / ROOTS).iterdir() if path.is_dir()]


def test_a_layer_hides_nothing_outside_of_the_root(tmp_path: Path) -> None:
    link, mark = member("usr/l", LINK, "../../.."), member("usr/l/.wh.precious")
    make_layout(tmp_path / "image", tar_of(link), tar_of(mark))
    (tmp_path / "work").mkdir()
    (tmp_path / "work/precious").touch()
    assert files_in(find_root("image", tmp_path, tmp_path / "work")) == {"usr/l": "-> ../../.."}
    assert (tmp_path / "work/precious").exists()
    make_layout(tmp_path / "other", tar_of(link), tar_of(member("usr/../.wh.usr")))
    with pytest.raises(HostError, match="can't be part of a path"):
        find_root("other", tmp_path, tmp_path / "work")


@pytest.mark.parametrize("below", [member("usr/x"), member("usr/x", LINK, "/etc")])
def test_a_directory_replaces_a_file_or_link_and_hides_all_below_it(
    below: tarfile.TarInfo, tmp_path: Path
) -> None:
    """As overlayfs, and so docker and buildkit, describe it."""
    upper = tar_of(member("usr/x", FOLDER), member("usr/x/.wh..wh..opq"), (member("usr/x/a"), b""))
    make_layout(tmp_path / "image", tar_of(below), upper)
    assert files_in(find_root("image", tmp_path, tmp_path / "work")) == {"usr/x/a": ""}


def test_a_hard_link_can_be_to_a_link(tmp_path: Path) -> None:
    link = member("usr/a", LINK, "/etc/passwd")
    (tmp_path / "root.tar").write_bytes(tar_of(link, member("usr/b", tarfile.LNKTYPE, "usr/a")))
    root = find_root("root.tar", tmp_path, tmp_path / "work")
    assert files_in(root) == {"usr/a": "-> /etc/passwd", "usr/b": "-> /etc/passwd"}


def sized(name: str, size: int, kind: bytes = tarfile.REGTYPE) -> bytes:
    """Return the header of a member that says it has this many bytes."""
    info = member(name, kind)
    info.size = size
    return info.tobuf(tarfile.GNU_FORMAT)


@pytest.mark.parametrize(
    "layer",
    [
        pytest.param(sized("usr/large", 65 << 30), id="one file"),
        pytest.param(sized("tmp/large", 65 << 30), id="a file that is left out"),
        pytest.param(sized("usr/.wh.large", 65 << 30), id="a mark"),
        pytest.param(sized("x", 65 << 30, tarfile.XHDTYPE), id="a header"),
        pytest.param(sized("x", 65 << 30, tarfile.GNUTYPE_LONGNAME), id="a long name"),
    ],
)
def test_an_archive_that_would_fill_the_disk_or_memory_is_refused(
    layer: bytes, tmp_path: Path
) -> None:
    (tmp_path / "root.tar.gz").write_bytes(gzip.compress(layer + bytes(2 << 20)))
    with pytest.raises(HostError, match=r"larger than any system|has a header of"):
        find_root("root.tar.gz", tmp_path, tmp_path / "work")


def described(headers: dict[str, str], content: bytes = b"", kind: bytes = b"0") -> bytes:
    """Return an archive with a member that has headers of pax."""
    made = io.BytesIO()
    with tarfile.open(fileobj=made, mode="w", format=tarfile.PAX_FORMAT) as tar:
        info = member("usr/a", kind)
        info.pax_headers, info.size = headers, len(content)
        tar.addfile(info, io.BytesIO(content))
    return made.getvalue()


HOLES = {"GNU.sparse.major": "1", "GNU.sparse.minor": "0", "GNU.sparse.realsize": "5"}


@pytest.mark.parametrize(
    ("headers", "content", "kind"),
    [
        pytest.param({"mtime": "nan"}, b"", b"0", id="a time that is no number"),
        pytest.param({"mtime": "1e400"}, b"", b"0", id="a time that has no end"),
        pytest.param({"size": "-2048"}, b"", b"0", id="less than nothing"),
        pytest.param({"GNU.sparse.map": "a,b"}, b"", b"0", id="holes without numbers"),
        pytest.param({"linkpath": "a\0b"}, b"", LINK, id="a link with NUL"),
        pytest.param(HOLES, b"abc", b"0", id="holes that are not described"),
        pytest.param(HOLES, b"9" * 9 + b"\n" + b"1\n" * 2_000_000, b"0", id="too many holes"),
    ],
)
def test_a_member_that_can_not_be_is_refused(
    headers: dict[str, str], content: bytes, kind: bytes, tmp_path: Path
) -> None:
    (tmp_path / "root.tar").write_bytes(described(headers, content, kind))
    with pytest.raises(HostError, match=r"root\.tar` (can't be|is not) unpacked|it has no /usr"):
        find_root("root.tar", tmp_path, tmp_path / "work")


def test_headers_for_all_members_are_bounded(tmp_path: Path) -> None:
    """Each is small, and all of them are kept in memory."""
    made = b""
    for number in range(3):
        headers = {f"comment{number}": "x" * (400 << 10)}
        made += tarfile.TarInfo.create_pax_global_header(headers) + member("usr/a").tobuf()
    (tmp_path / "root.tar").write_bytes(made)
    with pytest.raises(HostError, match="has a header of more than"):
        find_root("root.tar", tmp_path, tmp_path / "work")


def test_an_index_that_names_indexes_again_and_again_is_read_once(tmp_path: Path) -> None:
    """Otherwise 40 small files would be read 2**40 times."""
    layout = tmp_path / "image"
    digest = add_image(layout, tar_of((member("usr/a"), b"")))
    for _ in range(40):
        digest = put_json(layout, {"manifests": [{"digest": digest}] * 2})
    finish(layout, {"digest": digest})
    assert files_in(find_root("image", tmp_path, tmp_path / "work")) == {"usr/a": ""}


def test_a_manifest_that_never_ends_is_not_read_to_its_end(tmp_path: Path) -> None:
    finish(tmp_path, {"digest": f"sha256:{'0' * 64}"})
    (tmp_path / "index.json").unlink()
    (tmp_path / "index.json").symlink_to("/dev/zero")
    with pytest.raises(HostError, match=r"index\.json has more than 16,777,216 bytes"):
        find_root("oci:.", tmp_path, tmp_path / "work")


def test_copies_of_hard_links_count(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(root_image, "_LARGEST_ROOT", 10_000)
    links = [member(f"usr/{number}", tarfile.LNKTYPE, "usr/a") for number in range(9)]
    layer = tar_of((member("usr/a"), bytes(1000)), *links)
    make_layout(tmp_path / "image", layer)
    assert len(files_in(find_root("image", tmp_path, tmp_path / "work"))) == 10
    more = tar_of((member("usr/b"), b""), member("usr/c", tarfile.LNKTYPE, "usr/a"))
    make_layout(tmp_path / "larger", layer, more)
    with pytest.raises(HostError, match="larger than any system: 11,000 bytes in"):
        find_root("larger", tmp_path, tmp_path / "work")


def test_files_are_counted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(root_image, "_MOST_FILES", 10)
    (tmp_path / "root.tar").write_bytes(tar_of(*(member(f"usr/{n}") for n in range(11))))
    with pytest.raises(HostError, match="bytes in 11 files"):
        find_root("root.tar", tmp_path, tmp_path / "work")


def test_a_container_of_the_image_needs_no_root(monkeypatch: pytest.MonkeyPatch) -> None:
    digest, other = (f"sha256:{sha256(word).hexdigest()}" for word in (b"a", b"b"))
    place = f"docker://example.org/base:1@{digest}"
    assert own_image(place) == ""
    assert sandbox_here(Sandbox(kind="bwrap", root=place)).root == place
    monkeypatch.setenv(IMAGE, f"mirror.example.org/base@{digest}")
    assert own_image(place) == root_identity(place, "/") == f"image {digest}"
    assert own_image("root.tar") == own_image(None) == ""
    asked = Sandbox(kind="bwrap", root=place, readable=("data",))
    assert sandbox_here(asked) == Sandbox(readable=("data",))
    monkeypatch.setenv(IMAGE, f"example.org/base@{other}")
    with pytest.raises(HostError, match=r"this is a container of `example\.org/base@sha256"):
        own_image(place)


def test_the_pythons_of_an_image_see_our_packages(tmp_path: Path) -> None:
    """An image can have an older C library than our own Python needs."""
    own = f"cp{sys.version_info[0]}{sys.version_info[1]}"
    layer = tar_of(
        (member("usr/a"), b""),
        (member("opt/_internal/bin/python3"), b"a Python"),
        member(f"opt/python/{own}-{own}", LINK, "/opt/_internal"),
        member("opt/python/cp313-cp313t", LINK, "/opt/_internal"),
        member("opt/python/pp310-pypy310_pp73", LINK, "/opt/_internal"),
    )
    make_layout(tmp_path / "image", layer)
    root = find_root("image", tmp_path, tmp_path / "work")
    assert own_python(root) == f"/opt/torchyard/{own}/bin/python"
    found = files_in(root)
    version = f"python{sys.version_info[0]}.{sys.version_info[1]}"
    folder = f"opt/torchyard/{own}"
    assert found[f"{folder}/bin/python"] == f"-> /opt/python/{own}-{own}/bin/python3"
    assert found[f"{folder}/pyvenv.cfg"] == f"home = /opt/python/{own}-{own}/bin\n"
    assert found[f"{folder}/lib/{version}/site-packages"] == (
        f"-> /mnt/own/lib/{version}/site-packages"
    )
    assert "opt/torchyard/cp313t/lib/python3.13t/site-packages" in found
    assert not [name for name in found if name.startswith("opt/torchyard/pp")]


def test_a_root_without_our_python_is_run_with_ours(tmp_path: Path) -> None:
    make_layout(tmp_path / "image", tar_of((member("usr/a"), b""), member("opt", LINK, "/tmp")))
    assert own_python(find_root("image", tmp_path, tmp_path / "work")) == sys.executable


def test_compilers_on_the_path_of_an_image_are_found(tmp_path: Path) -> None:
    folder = tmp_path / "root"
    for name in ("opt/rh/bin/gcc", "opt/rh/bin/ld", "opt/cuda/bin/nvcc", "usr/local/bin/ld"):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).touch()
    (folder / "opt/out").symlink_to("/usr/bin")
    path = ["/opt/rh/bin", "/opt/out", "/opt/missing", "/opt/cuda/bin", "/../..", "/usr/bin", ""]
    with UntrustedTree(folder) as tree:
        add_compilers(tree, path)
    assert {one.name: one.is_symlink() for one in (folder / "usr/local/bin").iterdir()} == {
        "gcc": True,
        "ld": False,
    }
    assert (folder / "usr/local/bin/gcc").readlink() == Path("/opt/rh/bin/gcc")
