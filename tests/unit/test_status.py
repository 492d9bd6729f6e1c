"""`torchyard status` beside builds that begin, go on, end and are forgotten."""

import os
import shutil
from pathlib import Path

import pytest
from tests.support.helpers import Command, make_project

from torchyard.host.detached import RunRecord, create_record, find_record
from torchyard.model.event import Began, encode_event

BEGAN = encode_event(
    Began(project="demo-1.0", store="", jobs=9, needed=7, stages={}, expected={}, cached=2, slots=1)
)


def record_of(file: Path, pid: int) -> Path:
    """The record of a build by a process, which has told of its begin."""
    path = file.parent / f".torchyard/builds/20260101T000000Z-{pid}/events.jsonl"
    path.parent.mkdir(parents=True)
    path.write_bytes(BEGAN)
    return path


def test_a_build_is_over_even_if_its_number_is_that_of_another_process(
    torchyard: Command, tmp_path: Path
) -> None:
    file = make_project(tmp_path)
    record_of(file, os.getpid())
    shown = torchyard("status", "-f", file)
    assert "0 of 7 jobs" in shown.out
    assert "its process is gone" in shown.out


def test_a_line_that_is_just_written_is_not_read(torchyard: Command, tmp_path: Path) -> None:
    file = make_project(tmp_path)
    handle = create_record(record_of(file, 1))
    os.write(handle, BEGAN + BEGAN[:20])
    shown = torchyard("status", "-f", file)
    assert shown.code == 0
    assert "0 of 7 jobs" in shown.out
    assert "its process is gone" not in shown.out
    assert torchyard("status", "--json", "-f", file).out.encode() == BEGAN
    os.close(handle)


def test_a_line_that_a_full_disk_cut_is_left_out(torchyard: Command, tmp_path: Path) -> None:
    file = make_project(tmp_path)
    record_of(file, 1).write_bytes(BEGAN[:20] + BEGAN + BEGAN)
    assert "0 of 7 jobs" in torchyard("status", "-f", file).out


def test_a_build_that_is_forgotten_meanwhile_is_left_out(
    torchyard: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = make_project(tmp_path)
    record_of(file, 1)

    def forgotten(path: Path) -> RunRecord | None:
        shutil.rmtree(path.parent)
        return find_record(path)

    monkeypatch.setattr("torchyard.features.status.use_case.find_record", forgotten)
    assert "nothing was built yet" in torchyard("status", "-f", file).err
