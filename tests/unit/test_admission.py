"""What `doctor` says about a machine is what `build` does on it, before a compiler runs."""

import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest
from tests.support.helpers import WORKS, Command
from tests.support.sabotage import write
from tests.support.spoils import HARMLESS, OF_PROJECT, QUICK, SPOILS, Spoil, Yard, forget

from torchyard.engines import runner
from torchyard.errors import TorchyardError
from torchyard.features.doctor.use_case import examine_cells
from torchyard.host.machine import platform_name
from torchyard.model.event import AnyEvent, Noted
from torchyard.workspace.build import build_packages
from torchyard.workspace.build_request import BuildRequest

pytestmark = pytest.mark.skipif(platform_name() != "linux-x86_64", reason="cells are of Linux")


class FirstJobError(Exception):
    """The first job would start now."""


@pytest.fixture
def yard(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Yard]:
    """Make a project that this machine can build; a build ends where its first job would start."""

    def start(_self: object) -> None:
        raise FirstJobError

    monkeypatch.setattr(runner.Runner, "run", start)
    forget()
    yield Yard(tmp_path, monkeypatch)
    forget()


def verdict_of_doctor(yard: Yard, cell: str) -> list[str]:
    """Return why `doctor` says that a cell can't be built."""
    return [_timeless(what) for what, _ in remedies_of_doctor(yard, cell)]


def remedies_of_doctor(yard: Yard, cell: str) -> list[tuple[str, str | None]]:
    """Return why `doctor` says that a cell can't be built, each with the remedy."""
    try:
        found = examine_cells(BuildRequest(str(yard.file), select=[cell] if cell else []))
    except TorchyardError as error:
        return [(fault.what, fault.hint) for fault in error.diagnostics]
    return [(one.what, one.cure) for one in found.errors]


def verdict_of_build(yard: Yard, cell: str) -> list[str]:
    """Return why `build` refuses a cell."""
    try:
        build_packages(BuildRequest(str(yard.file), select=[cell] if cell else []))
    except TorchyardError as error:
        return [_timeless(fault.what) for fault in error.diagnostics]
    except FirstJobError:
        return []
    pytest.fail("there was nothing to do")


def _timeless(what: str) -> str:
    return re.sub(r" in [\d.]+(µ|m|)s|[\d.]+ .B are free", "", what)


def cases(table: Mapping[str, Spoil]) -> list[object]:
    """Return each spoil with each of its cells; most are for the night."""
    return [
        pytest.param(name, cell, marks=[] if first and name in QUICK else [pytest.mark.slow])
        for name, spoil in table.items()
        for cell, first in zip(spoil.cells, (True, *(False,) * len(spoil.cells)), strict=False)
    ]


def test_there_are_thirty_ways_to_spoil_a_machine() -> None:
    assert len(SPOILS) >= 30
    assert {"cpu", "cu130", "conda"} <= {cell for one in SPOILS.values() for cell in one.cells}
    assert SPOILS.keys() | HARMLESS.keys() >= QUICK


GPU_SPOILS = [name for name, spoil in SPOILS.items() if spoil.cells[0].startswith(("cu", "rocm"))]


def test_twenty_of_them_are_about_toolkits_for_gpus() -> None:
    assert len(GPU_SPOILS) >= 20


@pytest.mark.slow
@pytest.mark.parametrize("name", GPU_SPOILS)
def test_what_is_wrong_with_a_toolkit_has_a_remedy(name: str, yard: Yard) -> None:
    spoil = SPOILS[name]
    spoil.spoil(yard)
    found = remedies_of_doctor(yard, spoil.cells[0])
    assert [cure for what, cure in found if spoil.says in what and cure], found


@pytest.mark.parametrize("cell", ["cpu", "cu130", "conda"])
def test_what_is_ready_is_admitted(cell: str, yard: Yard) -> None:
    assert verdict_of_doctor(yard, cell) == verdict_of_build(yard, cell) == []


@pytest.mark.parametrize(("name", "cell"), cases(SPOILS))
def test_doctor_and_build_refuse_the_same_for_the_same_reason(
    name: str, cell: str, yard: Yard
) -> None:
    spoil = SPOILS[name]
    spoil.spoil(yard)
    refused = verdict_of_build(yard, cell)
    assert [what for what in refused if spoil.says in what], refused
    assert verdict_of_doctor(yard, cell) == refused
    assert yard.compilations() == []
    assert not (yard.folder / ".torchyard/work").exists()


@pytest.mark.parametrize(("name", "cell"), cases(HARMLESS))
def test_doctor_and_build_both_go_on(name: str, cell: str, yard: Yard) -> None:
    HARMLESS[name].spoil(yard)
    assert verdict_of_doctor(yard, cell) == verdict_of_build(yard, cell) == []


def test_the_commands_say_the_same(yard: Yard, torchyard: Command) -> None:
    SPOILS["a-container-that-lets-nothing-be-traced"].spoil(yard)
    SPOILS["an-empty-submodule"].spoil(yard)
    looked = torchyard("doctor", "cpu", "-f", yard.file, "--json")
    built = torchyard("build", "cpu", "-f", yard.file)
    assert looked.code == built.code == 7
    errors = [one for one in json.loads(looked.out)["findings"] if one["severity"] == "error"]
    assert {one["check"] for one in errors} == {"sandbox", "submodules"}
    for one in errors:
        assert f"error: {one['what']}" in built.err
        assert f"hint: {one['cure']}" in built.err


def test_with_keep_going_a_build_does_what_it_can(yard: Yard) -> None:
    SPOILS["no-python"].spoil(yard)
    heard: list[AnyEvent] = []
    with pytest.raises(FirstJobError):
        build_packages(
            BuildRequest(str(yard.file), select=["cpu"], keep_going=True), [heard.append]
        )
    notes = [one.text for one in heard if isinstance(one, Noted)]
    assert [text for text in notes if "there is no Python 3." in text]


def test_results_that_are_stored_need_no_machine(
    tmp_path: Path, torchyard: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(tmp_path / "code", {"main.txt": "text"})
    file = tmp_path / "torchyard.toml"
    file.write_text(WORKS, encoding="utf-8")
    assert torchyard("build", "-f", file).code == 0
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setenv("TORCHYARD_SANDBOX", "bwrap")
    forget()
    seen = torchyard("doctor", "-f", file)
    assert (seen.code, torchyard("build", "-f", file).code) == (0, 0)
    assert "0 of " in seen.out
    write(tmp_path / "code", {"main.txt": "changed"})
    assert torchyard("doctor", "-f", file).code == torchyard("build", "-f", file).code == 7
    forget()


@pytest.mark.parametrize(
    "name", [*sorted(OF_PROJECT), "a-container-that-lets-nothing-be-traced", "no-mkl"]
)
def test_ci_is_generated_only_for_what_a_machine_could_build(
    name: str, torchyard: Command, yard: Yard
) -> None:
    """What this machine lacks does not matter. A project that no machine can build was written."""
    yard.change("", '[ci]\ninstall = "pip install torchyard"\n')
    SPOILS[name].spoil(yard)
    made = torchyard("ci", "generate", "github", "-f", yard.file)
    if name in OF_PROJECT:
        assert made.code != 0
        assert SPOILS[name].says in " ".join(made.err.split())
    assert (yard.folder / ".github").exists() == (name not in OF_PROJECT), made.err


def test_libraries_beside_the_toolkit_are_facts_of_its_cells(
    yard: Yard, torchyard: Command
) -> None:
    def core(name: str) -> tuple[str, dict[str, str]]:
        done = torchyard("plan", f"core:{name}", "-f", yard.file, "--json")
        (job,) = (one for one in json.loads(done.out)["jobs"] if one["id"].startswith("core:"))
        return job["fingerprint"], job["settings"]["identity"]

    (before, identity), plain = core("cu130-*"), core("cpu-*")
    assert identity["cudnn"] == "cudnn 9.24.0 system"
    assert {"cudnn", "nccl", "magma"} <= identity.keys()
    header = yard.cuda / "include/cudnn_version.h"
    header.write_text(header.read_text("utf-8").replace("MINOR 24", "MINOR 27"), "utf-8")
    after, identity = core("cu130-*")
    assert (after != before, identity["cudnn"]) == (True, "cudnn 9.27.0 system")
    assert core("cpu-*") == plain
