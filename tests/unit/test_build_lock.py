"""`torchyard.lock`: what is written is what is read, and anything else is refused."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.support.helpers import config_of

from torchyard.config.load import load_config
from torchyard.config.lock import (
    build_lock_path,
    build_lock_text,
    parse_build_lock,
    read_build_lock,
)
from torchyard.errors import ConfigError
from torchyard.model.lock import BuildLock
from torchyard.model.tables import Release

TORCH = "torch-2.13.0+cpu-cp311-cp311-manylinux_2_28_x86_64.whl"
TYPING = "typing_extensions-4.16.0-py3-none-any.whl"
DIGEST = "5" * 64

FILE = """\
[project]
name = "myext"
version = "1.0"
recipe = "extension"
[source]
path = "."
[matrix]
platform = ["linux-x86_64"]
compute = ["cpu"]
torch = ["torch2.13"]
python = ["cp311"]
package = ["wheel"]
"""

words = st.from_regex(r"[a-z0-9]{1,8}", fullmatch=True)
wheels = st.builds(
    lambda name, number: f"{name}-{number}.0-py3-none-any.whl", words, st.integers(0, 99)
)
numbers = st.from_regex(r"[0-9]{1,2}\.[0-9]{1,2}", fullmatch=True)
by_compute = st.sampled_from(["cu130", "rocm7.2"])
releases = st.builds(
    Release,
    libraries=st.dictionaries(by_compute, st.dictionaries(words, numbers, max_size=2)),
    triton=st.dictionaries(by_compute, numbers),
    pythons=st.lists(words, max_size=3).map(tuple),
    archs=st.dictionaries(
        by_compute,
        st.dictionaries(words, st.lists(numbers, max_size=3).map(tuple), max_size=2),
    ),
)
locks = st.builds(
    lambda requires, environments, digest, releases, images: BuildLock(
        requires=tuple(requires),
        releases=releases,
        images={f"example.org/{name}": f"sha256:{digest}" for name in images},
        environments={name: tuple(sorted(files)) for name, files in environments.items()},
        files={file: digest for files in environments.values() for file in files},
        sizes={file: len(file) for files in environments.values() for file in files},
    ),
    st.lists(words, max_size=2),
    st.dictionaries(words, st.sets(wheels, max_size=4), max_size=4),
    st.from_regex(r"[0-9a-f]{64}", fullmatch=True),
    st.dictionaries(numbers, releases, max_size=2),
    st.lists(words, max_size=2),
)


@given(locks)
def test_what_is_written_is_read_again(lock: BuildLock) -> None:
    assert parse_build_lock(build_lock_text(lock), "torchyard.lock") == lock


def test_wheels_become_requirements_with_hashes() -> None:
    lock = BuildLock(
        environments={"linux-x86_64/cpu-torch2.13/cp311": (TORCH, TYPING)},
        files={TORCH: DIGEST, TYPING: DIGEST},
    )
    assert lock.requirements("linux-x86_64/cpu-torch2.13/cp311") == (
        f"torch==2.13.0+cpu --hash=sha256:{DIGEST}",
        f"typing-extensions==4.16.0 --hash=sha256:{DIGEST}",
    )
    assert lock.requirements("linux-x86_64/cpu-torch2.13/cp312") == ()


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("version = 2\n", "can't be read"),
        ("version = [\n", "can't be read"),
        ('[environments]\na = ["x-1-py3-none-any.whl"]\n', "has no SHA-256 of"),
        (f'[files]\n"x-1-py3-none-any.whl --index-url x" = "{DIGEST}"\n', "no wheel and SHA-256"),
        ('[files]\n"x-1-py3-none-any.whl" = "5"\n', "no wheel and SHA-256"),
        (f'[images]\n"example.org/a" = "{DIGEST}"\n', "SHA-256 of the image `example.org/a`"),
        ('[releases."new"]\nlibraries = {}\n', "`new`, which is not a torch release"),
    ],
)
def test_what_is_no_lock_is_refused(text: str, why: str) -> None:
    with pytest.raises(ConfigError, match=why) as caught:
        parse_build_lock(text, "torchyard.lock")
    assert "torchyard lock" in str(caught.value.diagnostics[0].hint)


def test_a_lock_is_beside_its_file_and_no_part_of_the_source(tmp_path: Path) -> None:
    file = tmp_path / "my.toml"
    file.write_text(FILE, encoding="utf-8")
    assert build_lock_path(str(file)) == str(tmp_path / "my.lock")
    assert read_build_lock(str(file)) == BuildLock()
    before = load_config(str(file))
    lock = BuildLock(
        environments={"linux-x86_64/cpu-torch2.13/cp311": (TORCH,)}, files={TORCH: DIGEST}
    )
    (tmp_path / "my.lock").write_text(build_lock_text(lock), encoding="utf-8")
    after = load_config(str(file))
    assert after.source == before.source
    assert after.lock == lock


def test_the_image_of_a_root_is_that_of_the_lock(tmp_path: Path) -> None:
    file = tmp_path / "my.toml"
    file.write_text(f'{FILE}[root]\nimage = "example.org:5000/a/base:2"\n', encoding="utf-8")
    config = load_config(str(file))
    assert config.sandbox.root == "docker://example.org:5000/a/base:2"
    lock = BuildLock(images={"example.org:5000/a/base:2": f"sha256:{DIGEST}"})
    (tmp_path / "my.lock").write_text(build_lock_text(lock), encoding="utf-8")
    config = load_config(str(file))
    place = f"docker://example.org:5000/a/base:2@sha256:{DIGEST}"
    assert config.sandbox.root == place
    assert config.sandbox.kind == "bwrap"
    assert config.toolchain is not None
    assert config.toolchain.root == place


@pytest.mark.parametrize(
    "name",
    [
        "almalinux",
        "nvidia/cuda:13.0.1-devel-rockylinux8",
        "quay.io/pypa/manylinux_2_28_x86_64",
        f"localhost:5000/base@sha256:{DIGEST}",
        f"registry.example.org/a/b_c/d--e:latest@sha256:{DIGEST}",
    ],
)
def test_names_of_images(name: str) -> None:
    config = config_of(f'{FILE}[root]\nimage = "{name}"\n')
    assert config.sandbox.root == f"docker://{name}"


@pytest.mark.parametrize("name", ["", "--all", "docker://a/b", "a b", "A/B", "a@sha256:1", "a:"])
def test_what_is_no_name_of_an_image_is_refused(name: str) -> None:
    with pytest.raises(ConfigError, match=f"`{name}` is not the name of an image"):
        config_of(f'{FILE}[root]\nimage = "{name}"\n')


def test_a_root_is_an_image_or_a_directory() -> None:
    with pytest.raises(ConfigError, match="has an image already"):
        config_of(f'{FILE}[root]\nimage = "a"\n[toolchain]\nroot = "b"\n')
