"""Platform tags and texts that PyPI takes, and those that it refuses."""

import re

import pytest

from torchyard.checks.policies import load_policy, parse_policy
from torchyard.checks.rules.upload import _EMAIL, _is_url
from torchyard.checks.uploads import load_uploads, parse_uploads
from torchyard.errors import ConfigError, DataError
from torchyard.host.files import read_data

TAKEN = """
any win32 win_amd64 win_arm64 manylinux1_x86_64 manylinux2010_i686 manylinux2014_aarch64
manylinux_2_17_x86_64 manylinux_2_28_aarch64 manylinux_2_31_riscv64 manylinux_2_17_ppc64
musllinux_1_2_x86_64 linux_armv6l linux_armv7l macosx_10_9_x86_64 macosx_10_13_universal2
macosx_11_0_arm64 macosx_14_0_arm64 macosx_26_0_arm64 ios_13_0_arm64_iphoneos
ios_13_0_x86_64_iphonesimulator android_21_arm64_v8a pyemscripten_2024_0_wasm32
"""
REFUSED = """
linux_x86_64 linux_aarch64 linux_s390x manylinux1_aarch64 manylinux2010_aarch64
manylinux2014_riscv64 manylinux2015_x86_64 manylinux_2_28 manylinux_2_28_x86_64x
manylinux_x86_64 manylinux_2_38_loongarch64 musllinux_1_2_ppc64 Linux_armv7l macosx_9_0_x86_64
macosx_11_1_arm64 macosx_14_0_aarch64 macosx_16_0_arm64 win_x86 win64 ios_13_0_arm64 android_x86
emscripten_3_1_58_wasm32 freebsd_14_0_amd64
"""


@pytest.mark.parametrize(
    ("tag", "taken"),
    [*((tag, True) for tag in TAKEN.split()), *((tag, False) for tag in REFUSED.split())],
)
def test_platform_tags(tag: str, taken: bool) -> None:
    patterns = load_uploads()["pypi"].platforms
    assert any(re.fullmatch(pattern, tag) for pattern in patterns) is taken


@pytest.mark.parametrize(
    "url", ["file:///etc/passwd", "here", "https://", "http://[", "https://a b.org", ""]
)
def test_no_urls(url: str) -> None:
    assert not _is_url(url)
    assert _is_url("https://example.org/a?b#c")


@pytest.mark.parametrize("address", ["me at home", "me@home", "@example.org", "a b@example.org"])
def test_no_addresses(address: str) -> None:
    assert not _EMAIL.fullmatch(address)
    assert _EMAIL.fullmatch("dr.müller+x@mail.example.org")


def test_only_the_policy_of_an_index_has_its_limits() -> None:
    assert [name for name in ("default", "strict", "pypi") if load_policy(name).index] == ["pypi"]
    assert parse_policy("p.toml", 'base = "pypi"').index == "pypi"
    with pytest.raises(ConfigError, match="the limits of the index `pipy` are unknown"):
        parse_policy("p.toml", 'index = "pipy"')


@pytest.mark.parametrize(
    ("old", "new", "what"),
    [('"any"', '"an(y"', "is not a pattern"), ('"67.1 MB"', '"much"', "much")],
)
def test_a_table_that_is_wrong_is_refused(old: str, new: str, what: str) -> None:
    with pytest.raises(DataError, match=what):
        parse_uploads(read_data("uploads.toml").replace(old, new))
