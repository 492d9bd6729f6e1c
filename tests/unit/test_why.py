"""Why a job or a file was built again."""

import json
import os
import subprocess
from pathlib import Path

import pytest
from tests.support.helpers import SMALL, Command, plan_of
from tests.support.made_wheel import spec_for
from tests.support.schemas import validate

from torchyard.insight.file_cause import FileCauses
from torchyard.insight.job_cause import RebuildCause, job_cause
from torchyard.model.job_spec import JobSpec
from torchyard.model.result import Result
from torchyard.store.store import Store
from torchyard.store.trees import Writer

BUILD = """\
rule gen
  command = sed s/x/y/ $in > $out
rule cc
  command = gcc $flags -MMD -MF $out.d -c $in -o $out
  deps = gcc
  depfile = $out.d
rule ar
  command = rm -f $out && ar rcs $out $in
build gen.h: gen gen.in
build a.o: cc a.c || gen.h
build b.o: cc b.c || gen.h
  flags = -O0
build lib.a: ar a.o b.o
"""
FILES = {
    "build.ninja": BUILD,
    "gen.in": "#define X 1\n",
    "b.h": "#define B 1\n",
    "a.c": '#include "gen.h"\nint a;\n',
    "b.c": '#include "b.h"\nint b;\n',
}


def ninja(folder: Path) -> None:
    subprocess.run(["ninja", "-C", str(folder)], check=True, capture_output=True)


def touch(path: Path) -> None:
    """Make a file newer than all others, whatever the resolution of times is."""
    newest = max(one.stat().st_mtime_ns for one in path.parent.iterdir())
    os.utime(path, ns=(newest + 10**6, newest + 10**6))


@pytest.fixture
def build(tmp_path: Path) -> Path:
    for name, text in FILES.items():
        (tmp_path / name).write_text(text)
    ninja(tmp_path)
    return tmp_path


@pytest.mark.parametrize(
    ("touched", "asked", "sentence"),
    [
        ("b.h", "b.o", "b.o {} because b.h {} newer"),
        ("b.h", "lib.a", "lib.a {} because b.h {} newer, through b.o"),
        ("a.c", "lib.a", "lib.a {} because a.c {} newer, through a.o"),
        ("gen.in", "lib.a", "lib.a {} because gen.in {} newer, through a.o, gen.h"),
    ],
)
def test_the_first_cause_before_and_after(
    torchyard: Command, build: Path, touched: str, asked: str, sentence: str
) -> None:
    touch(build / touched)
    told = torchyard("explain", "rebuild", build / asked).out
    assert told == f"{sentence.format('will be made again', 'is')}\n"
    ninja(build)
    told = torchyard("explain", "rebuild", build / asked).out
    assert told == f"{sentence.format('was made', 'was')}\n"


def test_a_changed_command(torchyard: Command, build: Path) -> None:
    (build / "build.ninja").write_text(BUILD.replace("-O0", "-O1"))
    way = "because b.o's command changed, through b.o"
    assert (
        torchyard("explain", "rebuild", build / "lib.a").out == f"lib.a will be made again {way}\n"
    )
    ninja(build)
    assert torchyard("explain", "rebuild", build / "lib.a").out == f"lib.a was made {way}\n"
    assert (
        torchyard("explain", "rebuild", build / "b.o").out
        == "b.o was made because its command changed\n"
    )


def test_what_is_missing_and_what_is_new(torchyard: Command, build: Path) -> None:
    told = torchyard("explain", "rebuild", build / "a.o").out
    assert told == "a.o was made because it had not been made before\n"
    (build / "a.o").unlink()
    document = json.loads(torchyard("explain", "rebuild", build / "lib.a", "--json").out)
    validate(document, "explain-rebuild")
    assert document["pending"]
    assert document["cause"] == "a.o did not exist"


def test_asking_changes_nothing(torchyard: Command, build: Path) -> None:
    touch(build / "b.h")
    before = {path.name: path.read_bytes() for path in build.iterdir()}
    torchyard("explain", "rebuild", build / "lib.a")
    assert {path.name: path.read_bytes() for path in build.iterdir()} == before


def test_a_log_of_another_ninja_is_left_alone(torchyard: Command, build: Path) -> None:
    """Ninja deletes a log that it can't read, and would build everything again."""
    log = build / ".ninja_log"
    log.write_text(log.read_text().replace("# ninja log v", "# ninja log v9"))
    before = {path.name: path.read_bytes() for path in build.iterdir()}
    done = torchyard("explain", "rebuild", build / "lib.a")
    assert "another version has built there" in done.err
    assert {path.name: path.read_bytes() for path in build.iterdir()} == before


def test_a_file_that_is_not_made_there(torchyard: Command, build: Path) -> None:
    done = torchyard("explain", "rebuild", build / "aa.o")
    assert done.code != 0
    assert "did you mean `a.o`?" in done.err


def test_a_log_that_was_begun_anew(build: Path) -> None:
    (build / ".ninja_log").unlink()
    assert FileCauses(build).past("a.o") == RebuildCause("it had not been made before")


# --------------------------------------------------------------------------------- jobs


def spec(*changes: str) -> JobSpec:
    text = SMALL
    for change in changes:
        old, _, new = change.partition(" => ")
        assert old in text
        text = text.replace(old, new)
    return spec_for(plan_of(text), "linux-x86_64/cu130-mkl/cp312/wheel")


@pytest.mark.parametrize(
    ("changes", "cause"),
    [
        ([], "its result was removed from the store, or rebuilt on purpose"),
        (
            ['rev = "v2.14.0" => rev = "v2.14.1"'],
            "rev of source:torch-2.14.0 changed from `v2.14.0` to `v2.14.1`",
        ),
        (['"0" } => "1" }'], "env.USE_MAGMA of core:torch-2.14.0/linux"),
    ],
)
def test_a_job_is_compared_with_the_one_before(changes: list[str], cause: str) -> None:
    assert job_cause(spec(*changes), spec()).first.startswith(cause)


def test_the_jobs_on_the_way() -> None:
    cause = job_cause(spec('rev = "v2.14.0" => rev = "v2.14.1"'), spec())
    assert [name.partition(":")[0] for name in cause.way] == ["core", "bindings"]


def test_a_job_of_the_store(torchyard: Command, tmp_path: Path) -> None:
    store = Store.at(str(tmp_path / "store"))
    first, second = spec(), spec('"0" } => "1" }')
    store_spec(store, first, "2026-11-01T00:00:00Z", tmp_path)
    job = first.task.id
    told = torchyard("explain", "rebuild", job, "--store", store.url)
    assert told.out == f"{job} was made because it was never built before\n"
    store_spec(store, second, "2026-11-02T00:00:00Z", tmp_path)
    told = torchyard("explain", "rebuild", job, "--store", store.url)
    core = "core:torch-2.14.0/linux-x86_64/cu130-mkl"
    assert told.out == (
        f"{job} was made because env.USE_MAGMA of {core} changed from `0` to `1`, "
        "through bindings:torch-2.14.0/linux-x86_64/cu130-mkl/cp312\n"
    )


def store_spec(store: Store, spec: JobSpec, started: str, folder: Path) -> None:
    """Put a result without files into a store."""
    (folder / "log").write_text("")
    writer = Writer(store)
    log = writer.add_file(folder / "log", "log.gz")
    result = Result(fingerprint=spec.task.fingerprint, spec=spec, log=log, started=started)
    assert writer.publish(result)
