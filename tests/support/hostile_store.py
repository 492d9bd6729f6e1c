"""Stores that were tampered with: manifests as whoever can write to a store could leave them."""

import json
import os
from pathlib import Path

import msgspec

from torchyard.model.canonical import canonical_json, fingerprint
from torchyard.model.job_spec import JobSpec, Task
from torchyard.model.recipe import Stage
from torchyard.model.result import Result
from torchyard.store.store import Store
from torchyard.store.trees import Writer

Document = dict[str, "Json"]
Json = str | int | float | bool | list["Json"] | Document | None

BLOCK = "linux-x86_64/cpu-mkl"
SCOPES = {Stage.SOURCE: "", Stage.CORE: BLOCK, Stage.PACKAGE: f"{BLOCK}/cp312/wheel"}


def task_at(scope: str, stage: Stage = Stage.PACKAGE, **settings: str) -> Task:
    """Return a task whose fingerprint is right."""
    task = Task(
        id=f"{stage}:demo-1.0/{scope}".rstrip("/"),
        stage=stage,
        stage_revision=1,
        scope=scope,
        recipe="pytorch",
        fingerprint="0" * 64,
        settings=dict(settings),
    )
    return msgspec.structs.replace(task, fingerprint=fingerprint(task.payload))


def add_result(store: Store, task: Task, out: Path) -> Result:
    """Store a directory as the result of a task."""
    log = out.with_name(f"{out.name}.log")
    log.write_bytes(b"")
    writer = Writer(store)
    result = Result(
        fingerprint=task.fingerprint,
        spec=JobSpec(tasks=(task,)),
        tree=writer.add_tree(out),
        log=writer.add_file(log, "log.gz"),
        run=os.urandom(8).hex(),
    )
    writer.publish(result)
    return result


def read_json(result: Result) -> Document:
    """Return a manifest as a document that can be changed."""
    document: Document = json.loads(canonical_json(result))
    return document


def put(document: Document, path: str, value: Json) -> None:
    """Change one value of a document: `tree.files.0.path`."""
    *names, last = path.split(".")
    place: Json = document
    for name in names:
        if isinstance(place, list):
            place = place[int(name)]
        elif isinstance(place, dict):
            place = place.setdefault(name, {})
    if isinstance(place, list):
        place[int(last)] = value
    elif isinstance(place, dict):
        place[last] = value


def file_result(store: Store, data: bytes, name: str) -> Path:
    """Write bytes as the manifest of a fingerprint, as a program with access to the disk would."""
    assert store.objects.folder is not None
    path = store.objects.folder / "results" / name[:2] / f"{name}.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)
    return path


def forge(store: Store, document: Document) -> str:
    """File a document under the fingerprint that its content has; return that."""
    spec = document["spec"]
    assert isinstance(spec, dict)
    tasks = spec["tasks"]
    assert isinstance(tasks, list)
    task = tasks[-1]
    assert isinstance(task, dict)
    payload = {
        name: task.get(name, empty)
        for name, empty in (
            ("inputs", []),
            ("recipe", ""),
            ("scope", ""),
            ("settings", {}),
            ("stage", ""),
            ("stage_revision", 1),
        )
    }
    name = fingerprint(payload)
    task["fingerprint"] = document["fingerprint"] = name
    file_result(store, msgspec.json.encode(document), name)
    return name


def picture(folder: Path) -> list[tuple[str, int, int, bytes]]:
    """Return everything about a directory that an attack could change."""
    return [
        (str(path), path.lstat().st_mode, path.lstat().st_mtime_ns, _bytes(path))
        for path in sorted([folder, *folder.rglob("*")])
    ]


def _bytes(path: Path) -> bytes:
    if path.is_symlink():
        return os.fsencode(path.readlink())
    return path.read_bytes() if path.is_file() else b""
