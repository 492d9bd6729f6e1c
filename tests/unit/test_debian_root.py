"""Roots of Debian: what apt is told."""

from pathlib import Path

import pytest

from torchyard.toolchain.debian_root import (
    RootRequest,
    _add_sources,
    _link_with_the_newest_libstdcxx,
)


@pytest.mark.parametrize(
    ("request_", "is_accepted"),
    [
        (RootRequest(suite="sid"), False),
        (RootRequest(suite="sid", expired=True), True),
        (RootRequest(suite="sid", exactly=("hipcc=6.4.3-1",)), True),
    ],
)
def test_lists_that_are_out_of_date_are_taken_if_asked_for_or_if_there_is_a_lock(
    request_: RootRequest, is_accepted: bool, tmp_path: Path
) -> None:
    (tmp_path / "etc/apt/sources.list.d").mkdir(parents=True)
    before = tmp_path / "etc/apt/sources.list"
    before.write_text("deb file:///mirror sid main\n", encoding="utf-8")
    _add_sources(tmp_path, request_)
    assert not before.exists()
    (written,) = (tmp_path / "etc/apt/sources.list.d").iterdir()
    lines = written.read_text(encoding="utf-8").splitlines()
    assert {"URIs: file:///mirror", "Suites: sid", "Components: main"} <= set(lines)
    assert ("Check-Valid-Until: no" in lines) is is_accepted


def test_compilers_link_with_the_libstdcxx_that_is_loaded(tmp_path: Path) -> None:
    loaded = tmp_path / "usr/lib/x86_64-linux-gnu/libstdc++.so.6"
    own, linked = (tmp_path / f"usr/lib/gcc/x86_64-linux-gnu/{n}/libstdc++.so" for n in (13, 14))
    foreign = tmp_path / "usr/lib/gcc/aarch64-linux-gnu/13/libstdc++.so"
    for path in (loaded, own, foreign):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(path.parent.name, encoding="utf-8")
    linked.parent.mkdir(parents=True)
    linked.symlink_to("../../../x86_64-linux-gnu/libstdc++.so.6")
    _link_with_the_newest_libstdcxx(tmp_path)
    assert own.readlink() == linked.readlink()
    assert own.read_text(encoding="utf-8") == "x86_64-linux-gnu"
    assert not foreign.is_symlink()
