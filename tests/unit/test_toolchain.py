"""What compiles: the parts that need no program."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from torchyard.config.tables import load_tables
from torchyard.errors import ConfigError, DataError, ElsewhereError, HostError, PlanError
from torchyard.toolchain import cache
from torchyard.toolchain.atomic_dir import make_whole
from torchyard.toolchain.blas import Blas, blas_variables, root_of
from torchyard.toolchain.interpreters import running_interpreter
from torchyard.toolchain.provision import compare
from torchyard.toolchain.pypi import (
    _with_hashes,
    locks,
    make_environment,
    parse_lock,
    read_lock,
)
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


HASH = f"--hash=sha256:{'0' * 64}"


def test_every_lock_can_be_read() -> None:
    assert {"mkl", "openblas", "cuda-13.0"} <= set(locks())
    for name in locks():
        assert read_lock(name).versions


def test_all_build_requirements_that_init_proposes_have_hashes() -> None:
    pins = {pin for row in load_tables().builds.values() for pin in row.requires}
    assert list(read_lock("backend").hashes) == sorted(pins), "run `nox -s pins`"
    for pin in pins:
        assert _with_hashes(pin).startswith(f"{pin} --hash=sha256:")


def test_own_hashes_are_kept_and_unknown_requirements_have_none() -> None:
    assert _with_hashes(f"six==1.17.0 {HASH}") == f"six==1.17.0 {HASH}"
    assert _with_hashes("six==1.16.0") == "six==1.16.0"


def test_a_lock_knows_its_versions() -> None:
    lock = parse_lock("x", f"one==1.2 \\\n    {HASH} \\\n    {HASH}\ntwo==3 {HASH}\n")
    assert lock.versions == {"one": "1.2", "two": "3"}
    assert parse_lock("x", f"one==1.3 {HASH}").digest != lock.digest


@pytest.mark.parametrize(
    "text", ["one==1.2", f"one>=1.2 {HASH}", f"one {HASH}", f"one==1 {HASH[:-1]}", "# a comment"]
)
def test_a_lock_without_a_version_or_a_hash_is_refused(text: str) -> None:
    with pytest.raises(DataError, match="without version or hash"):
        parse_lock("x", f"two==3 {HASH}\n{text}\n")


def test_another_toolchain_is_refused() -> None:
    compare({"compiler": "gcc 12"}, {"compiler": "gcc 12"})
    with pytest.raises(ElsewhereError, match=r"this machine has gcc 13, but .* for gcc 12"):
        compare({"compiler": "gcc 12"}, {"compiler": "gcc 13"})
    with pytest.raises(PlanError, match="the plan names no compute"):
        compare({}, {"compute": "cuda 13.0"})


@pytest.mark.parametrize(
    ("place", "expected"),
    [
        ("/var/cache/c", {"SCCACHE_DIR": "/var/cache/c"}),
        (
            "/var/cache/c#?size=1.5 GB",
            {"SCCACHE_DIR": "/var/cache/c#", "SCCACHE_CACHE_SIZE": "1500000000"},
        ),
        ("redis://host:6379", {"SCCACHE_REDIS_ENDPOINT": "redis://host:6379"}),
        (
            "s3://bucket/a/b?endpoint=http://host:1&region=eu",
            {
                "SCCACHE_BUCKET": "bucket",
                "SCCACHE_S3_KEY_PREFIX": "a/b",
                "SCCACHE_ENDPOINT": "http://host:1",
                "SCCACHE_S3_USE_SSL": "false",
                "SCCACHE_REGION": "eu",
            },
        ),
    ],
)
def test_places_of_a_compile_cache(place: str, expected: dict[str, str]) -> None:
    env = cache.cache_variables(place, Path("/real/job"), "/mnt/job")
    assert expected.items() <= env.items()
    assert env["CMAKE_CUDA_COMPILER_LAUNCHER"].startswith("/mnt/job/")
    assert env["SCCACHE_BASEDIRS"] == "/mnt/job"
    other = cache.cache_variables(place, Path("/real/other"), "/mnt/job")
    assert other["SCCACHE_SERVER_UDS"] != env["SCCACHE_SERVER_UDS"]


@pytest.mark.parametrize(
    "place",
    [
        "relative",
        "ftp://x",
        "redis://",
        "redis://me:secret@host",
        "s3://",
        "s3://b?x=1",
        "/c?x=1",
        "/c?size=much",
    ],
)
def test_what_is_no_place_for_a_compile_cache(place: str) -> None:
    with pytest.raises(ConfigError) as caught:
        cache.cache_variables(place, Path("/real"), "/mnt")
    assert "secret" not in str(caught.value)


def test_a_folder_is_made_whole_or_not_at_all(tmp_path: Path) -> None:
    folder = tmp_path / "a" / "folder"

    def fail(part: Path) -> None:
        (part / "file").touch()
        msg = "half"
        raise HostError(msg)

    with pytest.raises(HostError, match="half"):
        make_whole(folder, "one", fail)
    assert not list(folder.parent.iterdir())
    make_whole(folder, "one", lambda part: (part / "first").touch())
    make_whole(folder, "one", fail)
    with pytest.raises(HostError, match="half"):
        make_whole(folder, "two", fail)
    assert (folder / "first").exists()
    make_whole(folder, "two", lambda part: (part / "second").touch())
    assert not (folder / "first").exists()
    assert [path.name for path in folder.parent.iterdir()] == ["folder"]


def test_a_blas_is_told_by_the_names_that_pytorch_knows() -> None:
    generic = Blas(name="generic", version="", origin="system", digest="0")
    assert blas_variables(generic, "/job/blas") == {
        "BLAS": "Generic",
        "GENERIC_BLAS_LIBRARIES": "blas",
    }
    assert not root_of("generic", {"MKLROOT": "/mkl"})
    mkl = Blas(name="mkl", version="2026.2", origin="pypi", digest="0", root=".")
    env = blas_variables(mkl, "/job/blas")
    assert (env["MKLROOT"], env["INTEL_MKL_DIR"]) == ("/job/blas", "/job/blas")
    assert root_of("mkl", env) == "/job/blas"
    assert not root_of("openblas", env)


@pytest.mark.parametrize("line", ["-e /tmp/x", "-r /etc/passwd", "x @ file:///tmp/x", "x", "./x"])
def test_an_environment_has_only_versions_of_packages(tmp_path: Path, line: str) -> None:
    """uv builds what is named by `-e`, on the machine and not in a sandbox."""
    with pytest.raises(ConfigError, match="does not name one version of a package"):
        make_environment(running_interpreter(), ["packaging==26.3", line], tmp_path / "env")
    assert not (tmp_path / "env").exists()
