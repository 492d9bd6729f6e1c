"""Packages and steps that want to do harm: what they run happens in a sandbox."""

import zipfile
from pathlib import Path

import msgspec
import pytest
from tests.support.helpers import CORE, WORKS, Command, make_project

from torchyard.errors import DifferenceError
from torchyard.host.bubblewrap import can_confine
from torchyard.model.canonical import fingerprint
from torchyard.model.config import Sandbox, Source
from torchyard.model.job_spec import JobSpec, Task
from torchyard.model.recipe import Stage
from torchyard.model.step import SHELL, Step
from torchyard.store.makers import make_key
from torchyard.store.store import Store

pytestmark = [
    pytest.mark.integration,
    pytest.mark.skipif(not can_confine(), reason="bubblewrap does not work here"),
]

BLOCK = "linux-x86_64/cpu-openblas"
SCOPES = {
    Stage.SOURCE: "",
    Stage.CORE: BLOCK,
    Stage.BINDINGS: f"{BLOCK}/cp312",
    Stage.PACKAGE: f"{BLOCK}/cp312/wheel",
}
NAME = "demo-1.0-cp312-cp312-linux_x86_64.whl"

ATTACK = """\
set +e
echo "token=${{TORCHYARD_TEST_TOKEN-}} aws=${{AWS_SECRET_ACCESS_KEY-}}" > {{out}}/{stage}.said
echo x > {victim}/{stage}
echo x >> {victim}/file
cat {victim}/file >> {{out}}/{stage}.said
ln -s {victim}/file {{work}}/log; ln -s {victim}/file {{work}}/state.json
true
"""


def task_of(stage: Stage, steps: tuple[Step, ...], *inputs: Task, source: Source | None) -> Task:
    task = Task(
        id=f"{stage}:demo-1.0/{SCOPES[stage]}".rstrip("/"),
        stage=stage,
        stage_revision=1,
        scope=SCOPES[stage],
        recipe="pytorch",
        fingerprint="0" * 64,
        inputs=tuple(task.fingerprint for task in inputs),
        settings={
            "steps": steps,
            "pass_env": ("TORCHYARD_TEST_TOKEN", "AWS_SECRET_ACCESS_KEY", "HOME"),
        },
        source=source,
    )
    return msgspec.structs.replace(task, fingerprint=fingerprint(task.payload))


def hostile_wheel(folder: Path, victim: Path) -> Path:
    """Make a package whose spec attacks in every stage, and says that it needs no sandbox."""
    tasks: list[Task] = []
    for stage in SCOPES:
        steps: tuple[Step, ...] = (Step(run=(*SHELL, ATTACK.format(stage=stage, victim=victim))),)
        if stage is Stage.PACKAGE:
            steps += (Step(run=(*SHELL, f"cp -r {{inputs}} {{out}}/seen; touch {{out}}/{NAME}")),)
        source = Source(path=".") if stage is Stage.SOURCE else None
        tasks.append(task_of(stage, steps, *tasks, source=source))
    spec = JobSpec(tasks=tuple(tasks), sandbox=Sandbox(kind="none", root="/"))
    path = folder / NAME
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("torchyard-spec.json", msgspec.json.encode(spec))
    return path


def test_no_step_of_a_package_leaves_the_sandbox(
    torchyard: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    victim = tmp_path / "victim"
    victim.mkdir()
    (victim / "file").write_text("of the machine\n", encoding="utf-8")
    monkeypatch.setenv("TORCHYARD_TEST_TOKEN", "hunter2")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "hunter3")
    work = tmp_path / "work"
    done = torchyard("rebuild", hostile_wheel(tmp_path, victim), "--yes", "--work", work)
    assert "Traceback" not in done.err
    assert done.code == DifferenceError.exit_code, done.err
    assert {path.name for path in victim.iterdir()} == {"file"}
    assert (victim / "file").read_text(encoding="utf-8") == "of the machine\n"
    blobs = [path.read_bytes() for path in (work / "store/blobs").rglob("*") if path.is_file()]
    assert any(data.startswith(b"token= aws=\n") for data in blobs), done.err
    assert not any(b"hunter" in data or b"of the machine" in data for data in blobs)


def test_a_step_does_not_see_the_key_of_its_machine(
    torchyard: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shown = tmp_path / "shown"
    shown.mkdir()
    (shown / "other").write_text("x", encoding="utf-8")
    key = shown / "key"  # in a directory that steps can read
    make_key(key)
    monkeypatch.setenv("TORCHYARD_KEY", str(key))
    line = f"cat {shown}/key > {{out}}/lib/core.bin || true; test -s {shown}/other"
    text = WORKS.replace("cat {source}/*.txt > {out}/lib/core.bin", line)
    file = make_project(tmp_path, f'{text}\n[sandbox]\nreadable = ["{shown}"]\n')
    for job in ("source:demo-1.0", CORE):
        done = torchyard("run", job, "-f", file, "--sandbox", "bwrap")
        assert done.code == 0, done.err
    results = {result.id: result for result in Store.at(f"{tmp_path}/.torchyard/store").results()}
    sizes = {one.path: one.size for one in results[CORE].tree.files}
    assert sizes["lib/core.bin"] == 0
    assert all(result.signature for result in results.values())
