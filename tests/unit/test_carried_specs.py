"""Specs in packages: what they may ask for, and what is shown before they are followed."""

import zipfile
from pathlib import Path

import msgspec
import pytest
from tests.support.helpers import Command
from tests.support.hostile_store import Document, Json, put

from torchyard.errors import HostError, StoreError, UsageError
from torchyard.features.rebuild import use_case
from torchyard.host.untrusted_tree import lay_out_files
from torchyard.model.canonical import fingerprint
from torchyard.model.config import Sandbox, Source
from torchyard.model.job_spec import JobSpec, Task
from torchyard.model.recipe import Stage
from torchyard.model.step import SHELL, Step
from torchyard.run.carried_spec import carried_spec, describe_spec

BLOCK = "linux-x86_64/cpu-openblas"
SCOPES = {
    Stage.SOURCE: "",
    Stage.CORE: BLOCK,
    Stage.BINDINGS: f"{BLOCK}/cp312",
    Stage.PACKAGE: f"{BLOCK}/cp312/wheel",
    Stage.CHECK: f"{BLOCK}/cp312/wheel",
    Stage.SMOKE: f"{BLOCK}/cp312/wheel",
    Stage.PUBLISH: "nightly",
}
COMMIT = "c" * 40
PUBLIC = Source(git="https://example.org/x", commit=COMMIT)


def task_of(
    stage: Stage,
    *inputs: Task,
    source: Source | None = None,
    **settings: str | tuple[str, ...] | dict[str, str],
) -> Task:
    step = Step(run=(*SHELL, "touch {out}/made"))
    task = Task(
        id=f"{stage}:demo-1.0/{SCOPES[stage]}".rstrip("/"),
        stage=stage,
        stage_revision=1,
        scope=SCOPES[stage],
        recipe="pytorch",
        fingerprint="0" * 64,
        inputs=tuple(task.fingerprint for task in inputs),
        settings={"steps": (step,), **settings},
        source=source,
    )
    return msgspec.structs.replace(task, fingerprint=fingerprint(task.payload))


def spec_of(source: Source = PUBLIC, requires: tuple[str, ...] = ()) -> JobSpec:
    first = task_of(Stage.SOURCE, source=source, commit=COMMIT)
    core = task_of(Stage.CORE, first, requires=requires)
    return JobSpec(tasks=(first, core, task_of(Stage.PACKAGE, core)), sandbox=Sandbox())


def wheel_with(folder: Path, spec: bytes) -> Path:
    path = folder / "demo-1.0-cp312-cp312-linux_x86_64.whl"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("torchyard-spec.json", spec)
    return path


def changed(path: str, value: Json) -> bytes:
    document: Document = msgspec.json.decode(msgspec.json.encode(spec_of()))
    put(document, path, value)
    return msgspec.json.encode(document)


def with_tasks(*stages: Stage) -> bytes:
    """Return a spec of tasks, each of which needs the one before it."""
    tasks: list[Task] = []
    for stage in stages:
        tasks.append(task_of(stage, *tasks[-1:]))
    return msgspec.json.encode(JobSpec(tasks=tuple(tasks)))


def from_git(address: str) -> bytes:
    return msgspec.json.encode(spec_of(Source(git=address, commit=COMMIT)))


def compiled_with(compiler: str) -> bytes:
    first = task_of(Stage.SOURCE, source=PUBLIC, commit=COMMIT)
    core = task_of(Stage.CORE, first, toolchain={"compiler": compiler})
    return msgspec.json.encode(JobSpec(tasks=(first, core, task_of(Stage.PACKAGE, core))))


def running(*run: str, scope: str = SCOPES[Stage.PACKAGE]) -> bytes:
    task = msgspec.structs.replace(
        task_of(Stage.PACKAGE),
        id=f"package:demo-1.0/{scope}",
        scope=scope,
        settings={"steps": (Step(run=run),)},
    )
    task = msgspec.structs.replace(task, fingerprint=fingerprint(task.payload))
    return msgspec.json.encode(JobSpec(tasks=(task,)))


def requiring(*names: str) -> bytes:
    return msgspec.json.encode(spec_of(requires=names))


BUILT = (Stage.SOURCE, Stage.CORE, Stage.PACKAGE)

REFUSED: dict[str, bytes] = {
    "publishes at the end": with_tasks(*BUILT, Stage.PUBLISH),
    "publishes before": with_tasks(Stage.SOURCE, Stage.PUBLISH, Stage.PACKAGE),
    "checks": with_tasks(*BUILT, Stage.CHECK),
    "smokes": with_tasks(Stage.SOURCE, Stage.SMOKE, Stage.PACKAGE),
    "makes no package": with_tasks(Stage.SOURCE, Stage.CORE),
    "no task": changed("tasks", []),
    "a fingerprint that is a path": changed("tasks.1.fingerprint", "../../../../tmp/x"),
    "a fingerprint of something else": changed("tasks.1.fingerprint", "0" * 64),
    "a step that was changed": changed("tasks.1.settings.steps.0.run", ["touch", "/x"]),
    "an input that is a path": changed("tasks.1.inputs", ["../../x"]),
    "an input that is not in it": changed("tasks.1.inputs", ["0" * 64]),
    "a scope that is a path": changed("tasks.1.scope", "../../x"),
    "an identifier that is a path": changed("tasks.1.id", "core:demo-1.0/../../x"),
    "an identifier with an escape": changed("tasks.1.id", "core:\x1b[2Jdemo-1.0"),
    "another commit than it says": changed("tasks.0.source.commit", "d" * 40),
    "git: a program": from_git("ext::sh -c 'touch /tmp/x'"),
    "git: another helper": from_git("fd::17"),
    "git: an option": from_git("--upload-pack=touch"),
    "git: a short option": from_git("-u"),
    "git: an option of ssh": from_git("ssh://-oProxyCommand=touch"),
    "git: an option of ssh, shorter": from_git("x@y:-oProxyCommand=touch"),
    "git: a relative path": from_git("../secret"),
    "git: a line end": from_git("https://example.org/x\n--option"),
    "requires: an option": requiring("--index-url=https://example.org"),
    "requires: a file": requiring("-r/etc/passwd"),
    "requires: an address": requiring("x @ file:///tmp/x.tar.gz"),
    "requires: a path": requiring("./x.whl"),
    "requires: a project to build": requiring("-e /tmp/x"),
    "a compiler of its own": compiled_with("/tmp/torchyard/work/job/build/gcc"),
    "a compiler beside the caller": compiled_with("./gcc"),
    "a step with a NUL": running("echo", "a\0b"),
    "a step with an unknown word": running("echo", "{nope}"),
    "a package without a cell": running("true", scope="x"),
    "requires: any version": requiring("setuptools"),
    "no spec": b"[]",
    "no JSON": b"\xff",
    "a spec without end": b'{"tasks":' + b"[" * 100_000,
}


@pytest.mark.parametrize("spec", REFUSED.values(), ids=REFUSED)
def test_a_spec_that_does_more_than_build_is_refused(
    spec: bytes, tmp_path: Path, torchyard: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(use_case, "rebuild", _fail)
    wheel = wheel_with(tmp_path, spec)
    with pytest.raises(StoreError, match=r"is not followed|can't be read"):
        carried_spec(wheel)
    done = torchyard("rebuild", wheel, "--yes", "--trust", "-f", tmp_path / "torchyard.toml")
    assert done.code == StoreError.exit_code
    assert "\x1b" not in done.err


def _fail(*_: object, **__: object) -> None:
    pytest.fail("something was run")


@pytest.fixture
def wheel(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A package whose spec could be followed, and must not be."""
    monkeypatch.setattr(use_case, "rebuild", _fail)
    return wheel_with(tmp_path, msgspec.json.encode(spec_of(requires=("cmake==3.31.10",))))


def test_what_it_would_run_is_shown_and_asked_for(wheel: Path, torchyard: Command) -> None:
    done = torchyard("rebuild", wheel)
    assert done.code == UsageError.exit_code
    assert f"source:demo-1.0  of https://example.org/x at {COMMIT}" in done.err
    assert f"core:demo-1.0/{BLOCK}\n  with cmake==3.31.10\n" in done.err
    assert done.err.count("  + bash -euo pipefail -c 'touch {out}/made'") == 3
    assert "--yes runs them without a question" in done.err


def test_without_a_sandbox_nothing_is_run(
    wheel: Path, torchyard: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    for kind in ("none", "view"):
        done = torchyard("rebuild", wheel, "--yes", "--sandbox", kind)
        assert done.code == UsageError.exit_code
        assert f"are not run with --sandbox {kind}" in done.err
    monkeypatch.setattr(use_case, "can_confine", lambda: False)
    done = torchyard("rebuild", wheel, "--yes")
    assert done.code == HostError.exit_code
    assert "bubblewrap does not work here" in done.err


def test_commands_are_shown_as_they_are(tmp_path: Path) -> None:
    lines = "echo a\n\x1b[1A\x1b[2Kecho b\rrm -rf x"
    steps = (
        Step(run=(*SHELL, lines), env={"X": "a b"}, network=True),
        Step(run=("{self}", "-P", "-m", "torchyard", "tool", "x")),
    )
    task = msgspec.structs.replace(task_of(Stage.PACKAGE), settings={"steps": steps})
    shown = list(describe_spec(JobSpec(tasks=(task,))))
    assert shown[1] == "  + X='a b' bash -euo pipefail -c 'echo a  (with network)"
    assert shown[2:4] == ["    \x1b[1A\x1b[2Kecho b", "    rm -rf x'"]
    assert shown[4] == "  + torchyard tool x"
    assert tmp_path.exists()


@pytest.mark.parametrize("name", ["../x", "/tmp/x", "a/../../x", "link/x", "..", "a//x", "\0"])
def test_files_in_a_spec_are_written_to_their_directory(name: str, tmp_path: Path) -> None:
    folder = tmp_path / "tests"
    folder.mkdir()
    (folder / "link").symlink_to(tmp_path)
    with pytest.raises(HostError):
        lay_out_files({"fine/x": "text", name: "text"}, folder)
    assert {path.name for path in tmp_path.iterdir()} == {"tests"}
    assert (folder / "fine/x").read_text(encoding="utf-8") == "text"
