"""The rpath of a repaired library: the policy's, and what the library needs besides."""

from pathlib import PurePosixPath

import pytest

from torchyard.package.elf.file import Elf
from torchyard.package.policy import policy_for
from torchyard.package.repair.rpaths import InstalledFiles, resolving_rpath

FILES = (
    "tiny/mod.so",
    "tiny/sub/deep.so",
    "tiny/lib/libown.so",
    "tiny.libs/libz-1.so",
    "tiny/a/libtwice.so",
    "tiny/lib/libtwice.so",
    "tiny/plug/libinner.so",
    "../../../bin/tool",
)


def rpath_of(file: str, needed: str, *, runpath: str = "", rpath: str = "") -> str:
    elf = Elf(
        is_64=True,
        machine="x86_64",
        dynamic=True,
        soname="",
        needed=(needed,),
        rpath=rpath,
        runpath=runpath,
        build_id="",
        versions=(),
    )
    installed = InstalledFiles(map(PurePosixPath, FILES))
    return resolving_rpath(PurePosixPath(file), elf, installed, policy_for("wheel", "cpu", "tiny"))


MOD, DEEP = "$ORIGIN:$ORIGIN/lib", "$ORIGIN:$ORIGIN/../lib"


@pytest.mark.parametrize(
    ("file", "needed", "runpath", "expected"),
    [
        ("tiny/mod.so", "libown.so", "$ORIGIN/lib", MOD),
        ("tiny/mod.so", "libown.so", "/opt/build/lib", MOD),
        ("tiny/mod.so", "libc.so.6", "$ORIGIN/../tiny.libs", MOD),
        ("tiny/mod.so", "libz-1.so", "$ORIGIN/../tiny.libs", f"{MOD}:$ORIGIN/../tiny.libs"),
        (
            "tiny/mod.so",
            "libz-1.so",
            "${ORIGIN}/lib/../../tiny.libs",
            f"{MOD}:$ORIGIN/../tiny.libs",
        ),
        (
            "tiny/sub/deep.so",
            "libz-1.so",
            "$ORIGIN/../../tiny.libs",
            f"{DEEP}:$ORIGIN/../../tiny.libs",
        ),
        # by the RPATH of what loads it, or where it was built
        ("tiny/sub/deep.so", "libz-1.so", "", f"{DEEP}:$ORIGIN/../../tiny.libs"),
        ("tiny/sub/deep.so", "libinner.so", "/opt/build/lib", f"{DEEP}:$ORIGIN/../plug"),
        # the policy's folders have another file of that name
        ("tiny/mod.so", "libtwice.so", "$ORIGIN/a", f"$ORIGIN/a:{MOD}"),
        # in another wheel, or in the environment's lib
        ("tiny/mod.so", "libarrow.so.1", "$ORIGIN/../pyarrow", f"{MOD}:$ORIGIN/../pyarrow"),
        ("tiny/mod.so", "libmkl.so.2", "$ORIGIN/../../..", f"{MOD}:$ORIGIN/../../.."),
        # nothing that it could find there
        ("tiny/mod.so", "libarrow.so.1", "$ORIGIN/gone:/usr/lib", MOD),
        ("tiny/mod.so", "libarrow.so.1", "$ORIGIN/../../../../../etc", MOD),
        # installed into bin, from which the package can't be reached
        ("../../../bin/tool", "libown.so", "$ORIGIN/../lib", "$ORIGIN/../lib"),
    ],
)
def test_entries_that_are_needed_stay(file: str, needed: str, runpath: str, expected: str) -> None:
    assert rpath_of(file, needed, runpath=runpath) == expected
    assert rpath_of(file, needed, rpath=runpath) == expected
