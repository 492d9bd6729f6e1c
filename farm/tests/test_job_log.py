"""A job's events as log lines and summaries."""

import msgspec
import pytest

from torchyard.model.event import (
    Ended,
    Event,
    Made,
    Noted,
    Progress,
    Started,
    Stepped,
    Stepping,
    encode_event,
)
from torchyard.model.result import Usage
from torchyard_farm.web.job_log import JobLog

JOB = "package:demo-1.0/linux-x86_64/cpu-mkl/cp312/wheel"
USED = Usage(step="compile", seconds=61.0, cpu=118.2, memory=3 * 10**8, disk=10**9)
BUILT = Ended(
    job=JOB,
    fingerprint="f" * 64,
    outcome="built",
    seconds=12.0,
    size=4 * 10**6,
    files=1,
    made=(Made(path="demo-1.0.whl", size=4 * 10**6, digest="d" * 64),),
)


def text(*events: Event) -> str:
    return b"".join(map(encode_event, events)).decode()


def test_events_become_the_lines_of_a_desk() -> None:
    job_log = JobLog(JOB)
    started = Started(job=JOB, fingerprint="f" * 64, work="/w", pid=1)
    for done in (10**6, 10**7):
        job_log.feed(text(Progress(job=JOB, done=done, unit="bytes", what="fetching")))
    assert job_log.activity == "fetching, 10 MB written"
    assert job_log.feed(text(started, Stepping(job=JOB, step="compile", number=1, of=2))) == (
        f"started  {JOB}\nstep 1/2  {JOB}: compile\n"
    )
    assert job_log.activity == "step 1/2: compile"
    assert job_log.feed(text(Progress(job=JOB, done=1200, total=1331))) == ""
    assert job_log.activity == "step 1/2: compile, 1,200 of 1,331 commands"
    job_log.feed(text(Progress(job=JOB, done=1331, total=1331)))
    assert job_log.activity == "step 1/2: compile, 1,331 of 1,331 commands"
    assert job_log.summary == ""


def test_a_result_is_told_with_its_files_and_steps() -> None:
    job_log = JobLog(JOB)
    told = job_log.feed(
        text(Stepped(job=JOB, usage=USED), Noted(job=JOB, text="no sandbox"), BUILT)
    )
    assert job_log.details == job_log.summary == "built in 12 s, 1 file, 4 MB"
    assert job_log.headline == "package: built in 12 s, 1 file, 4 MB"
    assert told == (
        f"note     {JOB}: no sandbox\nbuilt    {JOB}: 12 s, 4 MB\nfingerprint {'f' * 64}\n\n"
        f"file          size  sha256\ndemo-1.0.whl  4 MB  {'d' * 64}\n\n"
        "step     time   processors  memory  disk\ncompile  1 min  2 min       300 MB  1 GB\n"
    )


def test_what_the_store_had_is_told() -> None:
    job_log = JobLog(JOB)
    told = job_log.feed(text(msgspec.structs.replace(BUILT, outcome="cached", files=7, made=())))
    assert job_log.summary == "the store had it, 7 files, 4 MB"
    assert "sha256" not in told


def test_a_check_makes_no_files() -> None:
    job_log = JobLog(JOB)
    job_log.feed(text(msgspec.structs.replace(BUILT, files=0, made=(), size=0)))
    assert job_log.summary == "done in 12 s"


def test_a_failure_begins_with_what_is_known_of_it() -> None:
    job_log = JobLog(JOB)
    why = f"{JOB}: `compile` ended with exit code 1\n      7 | x.cpp:1: fatal error"
    failed = Ended(job=JOB, fingerprint="f", outcome="failed", code=9, why=why)
    assert "fingerprint" not in job_log.feed(text(failed))
    assert job_log.summary == "`compile` ended with exit code 1"
    assert job_log.details == f"{job_log.summary}\n7 | x.cpp:1: fatal error"
    job_log.feed(text(msgspec.structs.replace(failed, known="A header is missing")))
    assert job_log.summary == "A header is missing: `compile` ended with exit code 1"
    job_log.feed(text(msgspec.structs.replace(failed, known="x" * 1000)))
    assert len(job_log.summary) == 200


@pytest.mark.parametrize("size", [1, 100, 4096])
def test_an_event_that_comes_in_pieces_is_put_together(size: int) -> None:
    long = text(Noted(job=JOB, text="é" * 9000))[:-1]
    pieces = [long[i : i + size] for i in range(0, len(long), size)]
    job_log = JobLog(JOB)
    if size < 9:  # such a piece does not look like the beginning of an event
        assert job_log.feed("\n".join(pieces)).count("\n") == len(pieces)
    else:
        assert job_log.feed("\n".join(pieces)) == f"note     {JOB}: {'é' * 9000}\n"


def test_what_is_no_event_is_passed_on() -> None:
    job_log = JobLog(JOB)
    assert job_log.feed("warning: odd\n{}\n") == "warning: odd\n{}\n"
    assert job_log.feed('{"event":"nothing like this"}\n') == ""  # it may go on
    assert job_log.feed(text(BUILT)).startswith(
        f'{{"event":"nothing like this"}}\nbuilt    {JOB}: 12 s, 4 MB\n'
    )
    huge = '{"event":' + "x" * (1 << 20)
    assert job_log.feed(huge) == f"{huge}\n"
