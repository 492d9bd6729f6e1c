"""Archives of sources are unpacked without trusting them."""

import bz2
import gzip
import io
import lzma
import os
import stat
import tarfile
import zipfile
from collections.abc import Callable
from hashlib import sha256
from pathlib import Path

import pytest
from tests.support.made_tar import member, tar_of
from tests.support.web import FileServer

from torchyard.errors import HostError
from torchyard.host.snapshot import EPOCH, unpack_archive
from torchyard.host.zstd import compress

FILES = {"torch-1/setup.py": b"import torch\n", "torch-1/bin/run": b"#!/bin/sh\n"}


def release(files: dict[str, bytes] = FILES) -> bytes:
    """Return the tar archive of a release."""
    infos = {name: member(name) for name in files}
    for name, info in infos.items():
        info.mode = 0o775 if "/bin/" in name else 0o600
    return tar_of(*((info, files[name]) for name, info in infos.items()))


def zip_of(files: dict[str, bytes] = FILES, links: dict[str, str] | None = None) -> bytes:
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w") as zipped:
        for name, content in files.items():
            info = zipfile.ZipInfo(name)
            info.external_attr = (0o755 if "/bin/" in name else 0o644) << 16
            zipped.writestr(info, content)
        for name, target in (links or {}).items():
            info = zipfile.ZipInfo(name)
            info.external_attr = (stat.S_IFLNK | 0o777) << 16
            zipped.writestr(info, target)
    return made.getvalue()


def unpacked(data: bytes, folder: Path, name: str = "torch-1.tar") -> Path:
    (folder / name).write_bytes(data)
    unpack_archive(str(folder / name), sha256(data).hexdigest(), folder / "out")
    return folder / "out"


def plain(data: bytes) -> bytes:
    return data


@pytest.mark.parametrize(
    "pack",
    [plain, gzip.compress, bz2.compress, lzma.compress, compress],
    ids=lambda f: f.__module__,
)
def test_every_compression_of_a_release_is_unpacked_without_its_directory(
    pack: Callable[[bytes], bytes], tmp_path: Path
) -> None:
    out = unpacked(pack(release()), tmp_path)
    check_release(out)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["out", "torch-1.tar"]


def check_release(out: Path) -> None:
    assert (out / "setup.py").read_bytes() == b"import torch\n"
    assert stat.S_IMODE((out / "bin/run").stat().st_mode) == 0o755
    assert stat.S_IMODE((out / "setup.py").stat().st_mode) == 0o644
    assert {path.lstat().st_mtime for path in out.rglob("*")} == {EPOCH}


def test_a_zip_has_modes_and_links(tmp_path: Path) -> None:
    out = unpacked(zip_of(links={"torch-1/lib/run": "../bin/run"}), tmp_path)
    check_release(out)
    assert (out / "lib/run").readlink() == Path("../bin/run")


def test_several_directories_at_the_top_are_kept(tmp_path: Path) -> None:
    out = unpacked(release({"a/one": b"", "b/two": b""}), tmp_path)
    assert sorted(path.name for path in out.iterdir()) == ["a", "b"]


def test_a_hard_link_is_a_file_with_the_same_bytes(tmp_path: Path) -> None:
    both = (member("t/a"), b"x"), member("t/b", tarfile.LNKTYPE, "t/a")
    assert (unpacked(tar_of(*both), tmp_path) / "b").read_bytes() == b"x"


def test_of_two_members_with_one_path_the_last_one_is_kept(tmp_path: Path) -> None:
    link = member("t/a", tarfile.SYMTYPE, "b")
    out = unpacked(tar_of((member("t/b"), b"old"), link, (member("t/a"), b"new")), tmp_path)
    assert (out / "a").read_bytes() == b"new"
    assert (out / "b").read_bytes() == b"old", "no link is written through"


def test_a_link_that_climbs_later_can_not_leave(tmp_path: Path) -> None:
    """Where `d` is `.`, the link `e` would be three directories above the archive."""
    links = member("t/d", tarfile.SYMTYPE, "."), member("t/e", tarfile.SYMTYPE, "d/d/d/../../../f")
    out = unpacked(tar_of((member("t/f"), b"inside"), *links), tmp_path)
    assert (out / "e").readlink() == Path("f")


@pytest.mark.parametrize(
    ("members", "why"),
    [
        ((member("../evil"),), "`..` can't be part of a path"),
        ((member("t/../../evil"),), "`..` can't be part of a path"),
        ((member("/etc/evil"),), "`/etc/evil` is an absolute path"),
        ((member("t/null", tarfile.CHRTYPE),), "`t/null` is a device, socket or fifo"),
        ((member("t/pipe", tarfile.FIFOTYPE),), "`t/pipe` is a device, socket or fifo"),
        ((member("t/l", tarfile.SYMTYPE, "/etc"),), "the link `l` leads out of it, to `/etc`"),
        ((member("t/l", tarfile.SYMTYPE, "../x"),), "the link `l` leads out of it, to `../x`"),
        ((member("t/l", tarfile.LNKTYPE, "../../x"),), "`..` can't be part of a path"),
        ((member("t/l", tarfile.LNKTYPE, "/etc/passwd"),), "is an absolute path"),
        (
            (member("t/l", tarfile.SYMTYPE, "/tmp"), member("t/l/evil")),
            "leads through a link or file, not a directory",
        ),
    ],
)
def test_what_leads_out_of_an_archive_is_refused(
    members: tuple[tarfile.TarInfo, ...], why: str, tmp_path: Path
) -> None:
    with pytest.raises(HostError) as refused:
        unpacked(tar_of((member("t/a"), b""), *members), tmp_path)
    assert str(refused.value).startswith("`torch-1.tar` is not unpacked: ")
    assert why in str(refused.value)
    assert not list(tmp_path.rglob("evil"))


def test_a_link_of_a_zip_does_not_lead_out(tmp_path: Path) -> None:
    with pytest.raises(HostError, match=r"leads out of it, to `\.\./\.\./x`"):
        unpacked(zip_of(links={"torch-1/l": "../../x"}), tmp_path)


@pytest.mark.parametrize(
    "data", [b"", b"no archive", gzip.compress(release())[:-20], zip_of()[:-9]], ids=len
)
def test_what_is_damaged_is_no_archive(data: bytes, tmp_path: Path) -> None:
    with pytest.raises(HostError, match=r"`torch-1\.tar` can't be unpacked: "):
        unpacked(data, tmp_path)


def test_another_archive_than_the_planned_one_is_not_unpacked(tmp_path: Path) -> None:
    (tmp_path / "a.tar").write_bytes(release())
    with pytest.raises(HostError, match=r"has the sha256 .*, not 0000"):
        unpack_archive(str(tmp_path / "a.tar"), "0" * 64, tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_any_name_of_a_file_is_unpacked(tmp_path: Path) -> None:
    name = os.fsdecode(b"t/\xff")
    out = unpacked(tar_of((member("t/a"), b""), (member(name), b"")), tmp_path)
    assert len(list(out.iterdir())) == 2


def test_an_archive_is_fetched_from_its_address(tmp_path: Path) -> None:
    (tmp_path / "web").mkdir()
    (tmp_path / "web/torch-1.tar").write_bytes(release())
    digest = sha256(release()).hexdigest()
    with FileServer(tmp_path / "web") as server:
        unpack_archive(f"{server.url}/torch-1.tar", digest, tmp_path / "out")
        with pytest.raises(HostError, match="there is no archive at http"):
            unpack_archive(f"{server.url}/torch-2.tar", digest, tmp_path / "out")
    check_release(tmp_path / "out")
