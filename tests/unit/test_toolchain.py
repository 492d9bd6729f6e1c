"""What compiles: the parts that need no program."""

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from torchyard.errors import ConfigError, ElsewhereError, PlanError
from torchyard.toolchain.equip import compare
from torchyard.toolchain.pypi import Lock, locks, pinned, read_lock
from torchyard.toolchain.variables import LISTS, compose

NAMES = st.sampled_from([*sorted(LISTS), "CC", "BLAS"])
VALUES = st.lists(st.sampled_from(["/a", "/b/bin", "/c", ""]), max_size=4).map(":".join)
VARIABLES = st.dictionaries(NAMES, VALUES)


@given(VARIABLES, VARIABLES)
def test_composing_twice_changes_nothing(base: dict[str, str], additions: dict[str, str]) -> None:
    once = compose(base, additions)
    assert compose(once, additions) == once


@given(VARIABLES, VARIABLES)
def test_additions_come_first_and_nothing_is_lost(
    base: dict[str, str], additions: dict[str, str]
) -> None:
    for name, value in compose(base, additions).items():
        if name not in LISTS or name not in additions:
            assert value == additions.get(name, base.get(name))
            continue
        folders = value.split(":") if value else []
        first = list(dict.fromkeys(filter(None, additions[name].split(":"))))
        assert folders[: len(first)] == first
        assert set(folders) == {*first, *filter(None, base.get(name, "").split(":"))}


@pytest.mark.parametrize(
    "text", ["cmake", "cmake>=3", "cmake==3.*", "cmake>=3,==3.1", "cmake @ https://x/y.whl", "!"]
)
def test_a_requirement_without_a_version_is_refused(text: str) -> None:
    with pytest.raises(ConfigError):
        pinned(["ninja==1.13.0", text])


def test_the_order_of_requirements_does_not_matter() -> None:
    assert pinned(["b==1", "a==2", "b==1"]) == ["a==2", "b==1"]


def test_every_package_of_every_lock_has_a_version_and_hashes() -> None:
    assert {"mkl", "openblas", "cuda-13.0"} <= set(locks())
    for name in locks():
        blocks = [block for block in _blocks(read_lock(name)) if block]
        assert blocks
        for block in blocks:
            assert len(pinned([block[0].removesuffix("\\")])) == 1
            assert block[1:]
            assert all(line.startswith("--hash=sha256:") for line in block[1:])


def _blocks(lock: Lock) -> list[list[str]]:
    blocks: list[list[str]] = []
    for line in lock.text.splitlines():
        if line.startswith(" "):
            blocks[-1].append(line.strip().removesuffix("\\"))
        else:
            blocks.append([line.strip()])
    return blocks


def test_a_lock_knows_its_versions() -> None:
    lock = Lock(name="x", text="one==1.2 \\\n    --hash=sha256:00\ntwo==3\n")
    assert lock.version_of("one") == "1.2"
    assert lock.version_of("two") == "3"
    assert msgspec.structs.replace(lock, text="one==1.3").digest != lock.digest


def test_another_toolchain_is_refused() -> None:
    compare({"compiler": "gcc 12"}, {"compiler": "gcc 12"})
    with pytest.raises(ElsewhereError, match=r"this machine has gcc 13, but .* for gcc 12"):
        compare({"compiler": "gcc 12"}, {"compiler": "gcc 13"})
    with pytest.raises(PlanError, match="which compute"):
        compare({}, {"compute": "cuda 13.0"})
