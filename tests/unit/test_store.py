"""The store: what goes in comes out, once, whole, and goes when nobody needs it."""

import gzip
import json
import os
import platform
import subprocess
import sys
import threading
import zipfile
from collections.abc import Collection, Iterator
from datetime import timedelta
from pathlib import Path

import msgspec
import pytest
from tests.support.helpers import Command, make_project

from torchyard.errors import ElsewhereError, SelectionError, StoreError, UsageError
from torchyard.features.store.report import ResultsReport, store_show_text
from torchyard.host.process_id import process_birth
from torchyard.model.canonical import fingerprint
from torchyard.model.job_spec import JobSpec, Task
from torchyard.model.recipe import Stage
from torchyard.model.result import File, Part, Result, Tree
from torchyard.store import claims, gc_lease
from torchyard.store.gc import remove_garbage
from torchyard.store.keys import blob_key, claim_key, result_key
from torchyard.store.objects import ObjectMeta
from torchyard.store.pins import add_pin, list_pins, remove_pin
from torchyard.store.select import select_results
from torchyard.store.store import Store
from torchyard.store.transfer import copy
from torchyard.store.trees import Writer, fetch_file, fetch_tree, read_result_log
from torchyard.store.verify import remove_broken, remove_result, verify
from torchyard.terminal.console import show

NO_TIME = timedelta(seconds=-60)
"""A grace period that spares nothing: everything is older than a minute from now."""


def task_of(scope: str, stage: Stage = Stage.CORE, inputs: tuple[str, ...] = ()) -> Task:
    payload = {
        "inputs": sorted(inputs),
        "recipe": "pytorch",
        "scope": scope,
        "settings": {},
        "stage": stage.value,
        "stage_revision": 1,
    }
    return Task(
        id=f"{stage.value}:demo-1.0/{scope}",
        stage=stage,
        stage_revision=1,
        scope=scope,
        recipe="pytorch",
        fingerprint=fingerprint(payload),
        inputs=inputs,
    )


def store_result(store: Store, folder: Path, task: Task, **files: str) -> Result:
    """Put a result with some files into a store."""
    out = folder / task.fingerprint
    out.mkdir(parents=True)
    for name, text in files.items():
        (out / name).write_text(text, encoding="utf-8")
    log = folder / f"{task.fingerprint}.log"
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


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store.at(str(tmp_path / "store"))


def blobs(store: Store) -> set[str]:
    return {meta.key for meta in store.objects.list("blobs/")}


def test_a_tree_comes_out_as_it_went_in(store: Store, tmp_path: Path) -> None:
    tree = tmp_path / "tree"
    (tree / "deep/er").mkdir(parents=True)
    (tree / "empty").mkdir()
    (tree / "deep/er/file").write_bytes(os.urandom(9 << 20))
    (tree / "program").write_text("#!/bin/sh\n", encoding="utf-8")
    (tree / "program").chmod(0o755)
    (tree / "link").symlink_to("deep/er/file")
    os.utime(tree / "program", ns=(1, 1_234_567_890_123_456_789))
    stored = Writer(store).add_tree(tree)
    back = tmp_path / "back"
    fetch_tree(store, stored, back)
    assert (back / "deep/er/file").read_bytes() == (tree / "deep/er/file").read_bytes()
    assert (back / "program").stat().st_mtime_ns == 1_234_567_890_123_456_789
    assert os.access(back / "program", os.X_OK)
    assert not os.access(back / "deep/er/file", os.X_OK)
    assert (back / "link").readlink() == Path("deep/er/file")
    assert list((back / "empty").iterdir()) == []
    assert not list(back.rglob("*.part"))


def test_identical_files_are_stored_once_also_across_jobs(store: Store, tmp_path: Path) -> None:
    store_result(store, tmp_path, task_of("a"), one="same", two="same", three="other")
    assert len(blobs(store)) == 3  # with the empty log
    store_result(store, tmp_path, task_of("b"), one="same", four="third")
    assert len(blobs(store)) == 4


def test_a_file_may_be_stored_in_parts(store: Store, tmp_path: Path) -> None:
    halves = []
    for text in ("first half, ", "second half"):
        path = tmp_path / "half"
        path.write_text(text, encoding="utf-8")
        halves.append(Writer(store).add_file(path, "half"))
    whole = tmp_path / "whole"
    whole.write_text("first half, second half", encoding="utf-8")
    digest = Writer(Store.at(str(tmp_path / "other"))).add_file(whole, "whole").digest
    parts = tuple(Part(digest=half.digest, size=half.size) for half in halves)
    file = File(path="whole", digest=digest, size=23, mtime=0, parts=parts)
    fetch_file(store, file, tmp_path / "back")
    assert (tmp_path / "back").read_text(encoding="utf-8") == "first half, second half"
    wrong = msgspec.structs.replace(file, parts=parts[::-1])
    with pytest.raises(StoreError, match="damaged"):
        fetch_file(store, wrong, tmp_path / "wrong")
    assert not (tmp_path / "wrong").exists()


def test_the_first_result_wins(store: Store, tmp_path: Path) -> None:
    first = store_result(store, tmp_path / "1", task_of("a"), one="1")
    second = store_result(store, tmp_path / "2", task_of("a"), one="2")
    found = store.find(first.fingerprint)
    assert found is not None
    assert found.run == first.run != second.run


def test_one_of_many_writers_wins(store: Store) -> None:
    won = []
    gate = threading.Barrier(16)

    def write(number: int) -> None:
        gate.wait()
        if store.objects.create("pins/x.json", f"{number}".encode()):
            won.append(number)

    threads = [threading.Thread(target=write, args=(number,)) for number in range(16)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(won) == 1
    assert store.objects.read("pins/x.json") == f"{won[0]}".encode()


def test_a_manifest_filed_under_another_name_is_refused(store: Store, tmp_path: Path) -> None:
    result = store_result(store, tmp_path, task_of("a"), one="1")
    data = store.objects.read(result_key(result.fingerprint))
    assert data is not None
    other = "0" * 64
    store.objects.write(result_key(other), data)
    with pytest.raises(StoreError, match="another job"):
        store.find(other)
    store.objects.write(result_key(other), b"no manifest")
    with pytest.raises(StoreError, match="can't be read"):
        store.find(other)


@pytest.mark.parametrize("name", ["../out", "/etc/passwd", "a/../../b"])
def test_a_manifest_cannot_write_outside(store: Store, tmp_path: Path, name: str) -> None:
    path = tmp_path / "file"
    path.write_text("x", encoding="utf-8")
    file = msgspec.structs.replace(Writer(store).add_file(path, "x"), path=name)
    with pytest.raises(StoreError, match="would not stay"):
        fetch_tree(store, Tree(files=(file,)), tmp_path / "back")
    with pytest.raises(StoreError, match="would not stay"):
        fetch_tree(store, Tree(links={name: "x"}), tmp_path / "back")


def test_the_first_results_are_read_by_many_threads(store: Store, tmp_path: Path) -> None:
    """In a process that has read none before: how msgspec reads a class is found out then."""
    for number in range(8):
        store_result(store, tmp_path, task_of(f"{number}"))
    script = """\
import os, sys, threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from torchyard.store.manifest import decode_result
sys.setswitchinterval(1e-6)
paths = list(Path(sys.argv[1]).rglob("*.json"))
for _ in range(20):
    if not (child := os.fork()):
        gate = threading.Barrier(len(paths))
        with ThreadPoolExecutor(len(paths)) as pool:
            read = lambda path: (gate.wait(), decode_result(path.read_bytes(), path.stem))
            os._exit(len(list(pool.map(read, paths))) != len(paths))
    print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""
    words = [sys.executable, "-c", script, str(tmp_path / "store/results")]
    done = subprocess.run(words, capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["0"] * 20


def test_known_results_are_found_either_way(store: Store, tmp_path: Path) -> None:
    names = [store_result(store, tmp_path, task_of(f"{i}")).fingerprint for i in range(5)]
    asked = {*names, *(f"{i:064x}" for i in range(10))}
    assert store.known(asked) == set(names)
    assert store.known({*asked, *(f"{i:064x}" for i in range(10, 400))}) == set(names)


def test_verify_finds_damage_and_removes_it(store: Store, tmp_path: Path) -> None:
    good = store_result(store, tmp_path, task_of("good"), one="fine")
    flipped = store_result(store, tmp_path, task_of("flipped"), one="was right")
    gone = store_result(store, tmp_path, task_of("gone"), one="will go")
    assert verify(store).is_clean
    store.objects.write(blob_key(flipped.tree.files[0].digest), b"is wrong!")
    store.objects.delete([blob_key(gone.tree.files[0].digest)])
    store.objects.write(result_key("f" * 64), b"{}")
    verdict = verify(store)
    assert verdict.damaged == (flipped.tree.files[0].digest,)
    assert set(verdict.broken) == {flipped.fingerprint, gone.fingerprint, "f" * 64}
    assert "`one` is damaged" in verdict.broken[flipped.fingerprint]
    assert "`one` is missing" in verdict.broken[gone.fingerprint]
    with pytest.raises(StoreError, match="damaged"):
        fetch_tree(store, flipped.tree, tmp_path / "back")
    with pytest.raises(StoreError, match="missing"):
        fetch_tree(store, gone.tree, tmp_path / "back")
    remove_broken(store, verdict)
    assert verify(store).is_clean
    assert list(store.fingerprints()) == [good.fingerprint]


def test_a_result_that_was_made_again_meanwhile_is_not_taken_out(
    store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two jobs have found it damaged; one is slow to look at its blobs."""
    task = task_of("shared")
    bad = store_result(store, tmp_path / "first", task, one="was right")
    store.objects.write(blob_key(bad.tree.files[0].digest), b"is wrong!")
    reading = store.objects.stream

    def slow(key: str) -> Iterator[bytes]:
        yield from reading(key)
        if key == blob_key(bad.tree.files[0].digest):
            monkeypatch.undo()
            remove_result(store, bad)
            store_result(store, tmp_path / "second", task, one="was right")

    monkeypatch.setattr(store.objects, "stream", slow)
    remove_result(store, bad)
    assert store.has(task.fingerprint)
    assert verify(store).is_clean


def test_what_was_made_again_since_it_was_verified_is_not_removed(
    store: Store, tmp_path: Path
) -> None:
    task = task_of("shared")
    bad = store_result(store, tmp_path / "first", task, one="was right")
    store.objects.write(blob_key(bad.tree.files[0].digest), b"is wrong!")
    for path in filter(Path.is_file, (tmp_path / "store").rglob("*")):
        os.utime(path, (0, 0))  # in a directory, what is written in one tick may look the same
    verdict = verify(store)
    remove_result(store, bad)
    store_result(store, tmp_path / "second", task, one="was right")
    remove_broken(store, verdict)
    assert store.has(task.fingerprint)
    assert verify(store).is_clean


def test_names_that_look_like_unfinished_files(store: Store, tmp_path: Path) -> None:
    tree = tmp_path / "tree"
    tree.mkdir()
    names = [f"{number}{suffix}" for number in range(40) for suffix in ("", ".part")]
    for name in (*names, "n" * 255):
        (tree / name).write_text(name, encoding="utf-8")
    fetch_tree(store, Writer(store).add_tree(tree), tmp_path / "back")
    back = {p.name: p.read_text(encoding="utf-8") for p in (tmp_path / "back").iterdir()}
    assert back == {name: name for name in (*names, "n" * 255)}


def test_verify_takes_nobody_for_broken_who_is_only_new(
    store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A result is written after the blobs were listed, and before the results are."""
    listing = store.objects.list

    def slow(prefix: str) -> Iterator[ObjectMeta]:
        if prefix == "results/":
            store_result(store, tmp_path, task_of("new"), one="new")
        return listing(prefix)

    monkeypatch.setattr(store.objects, "list", slow)
    assert verify(store).is_clean


def test_gc_removes_what_killed_writers_left(store: Store, tmp_path: Path) -> None:
    (tmp_path / "store/blobs/ab").mkdir(parents=True)
    leftover = tmp_path / "store/blobs/ab/abcd#1"
    leftover.write_text("half", encoding="utf-8")
    assert remove_garbage(store, set(), timedelta(hours=1)).leftovers == {}
    assert remove_garbage(store, set(), NO_TIME).freed == len("half")
    assert not leftover.exists()


def test_gc_keeps_what_is_reachable_pinned_published_or_young(store: Store, tmp_path: Path) -> None:
    planned = store_result(store, tmp_path, task_of("planned"), own="1", shared="s")
    pinned = store_result(store, tmp_path, task_of("pinned"), own="2")
    packed = store_result(store, tmp_path, task_of("packed", Stage.PACKAGE), own="3")
    inputs = (packed.fingerprint,)
    published = store_result(store, tmp_path, task_of("nightly", Stage.PUBLISH, inputs))
    lone = store_result(store, tmp_path, task_of("lone"), own="4", shared="s")
    add_pin(store, "keep", [pinned.fingerprint])

    young = remove_garbage(store, set(), timedelta(hours=1))
    assert (young.results, young.blobs, young.leftovers) == ({}, {}, {})

    tried = remove_garbage(store, {planned.fingerprint}, NO_TIME, dry_run=True)
    assert set(tried.results) == {lone.fingerprint}
    assert store.has(lone.fingerprint)

    garbage = remove_garbage(store, {planned.fingerprint}, NO_TIME)
    assert garbage == tried
    assert garbage.freed == len("4")
    kept = {r.fingerprint for r in (planned, pinned, packed, published)}
    assert set(store.fingerprints()) == kept
    assert verify(store).is_clean
    assert remove_garbage(store, kept, NO_TIME).blobs == {}


def spoil(store: Store, result: Result, how: str) -> None:
    """Make a manifest unusable."""
    data = msgspec.json.encode(result)
    spoilt = {
        "cut": data[: len(data) // 2],
        "empty": b"",
        "newer": b'{"since":"version 9",' + data[1:].replace(b'"fingerprint"', b'"name"'),
        "escaping": data.replace(b'"path":"own"', b'"path":"../own"'),
    }
    store.objects.write(result_key(result.fingerprint), spoilt[how])


@pytest.mark.parametrize("how", ["newer", "escaping"])
def test_gc_keeps_what_an_unusable_manifest_names(store: Store, tmp_path: Path, how: str) -> None:
    """A manifest that can be read at all shows what it names; the rest is still collected."""
    packed = store_result(store, tmp_path, task_of("packed", Stage.PACKAGE), own="1")
    inputs = (packed.fingerprint,)
    spoilt = store_result(store, tmp_path, task_of("x", Stage.PUBLISH, inputs), own="2", also="s")
    lone = store_result(store, tmp_path, task_of("lone"), own="3", shared="s")
    spoil(store, spoilt, how)
    tried = remove_garbage(store, set(), NO_TIME, dry_run=True)
    garbage = remove_garbage(store, set(), NO_TIME)
    assert list(garbage.unusable) == list(tried.unusable) == [spoilt.fingerprint]
    assert not garbage.is_blind
    assert garbage.results == {lone.fingerprint: lone.id}
    assert garbage.freed == len("3")
    assert set(store.fingerprints()) == {packed.fingerprint, spoilt.fingerprint}
    assert {blob_key(digest) for one in (packed, spoilt) for digest in one.blobs()} == blobs(store)


@pytest.mark.parametrize("how", ["cut", "empty"])
def test_gc_removes_no_result_while_a_manifest_is_cut_short(
    store: Store, tmp_path: Path, how: str
) -> None:
    """It may have named any of them, as a publication that needs it."""
    spoilt = store_result(store, tmp_path, task_of("x"), own="1")
    lone = store_result(store, tmp_path, task_of("lone"), own="2")
    leftovers = [Path(store.objects.folder, "blobs/abcd#1")] if store.objects.folder else []
    for path in leftovers:
        path.write_text("half", encoding="utf-8")
    spoil(store, spoilt, how)
    before = blobs(store)
    garbage = remove_garbage(store, set(), NO_TIME)
    assert garbage.is_blind
    assert (garbage.results, garbage.blobs, list(garbage.leftovers)) == ({}, {}, leftovers)
    assert blobs(store) == before
    remove_broken(store, verify(store))
    assert set(remove_garbage(store, set(), NO_TIME).results) == {lone.fingerprint}
    assert blobs(store) == set()


def test_gc_ends_if_a_manifest_can_not_be_reached(
    store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store_result(store, tmp_path, task_of("x"), own="1")

    def read(_: str) -> bytes:
        msg = "the network is down"
        raise StoreError(msg)

    monkeypatch.setattr(store.objects, "read", read)
    with pytest.raises(StoreError, match="the network is down"):
        list(store.results(unusable={}))


@pytest.mark.parametrize("how", ["cut", "newer"])
def test_an_unusable_manifest_is_named_by_commands_that_go_on(
    torchyard: Command, tmp_path: Path, how: str
) -> None:
    file = make_project(tmp_path / "project")
    store = Store.at(str(file.parent / ".torchyard/store"))
    spoilt = store_result(store, tmp_path, task_of("x"), own="1")
    fine = store_result(store, tmp_path, task_of("fine"), own="2")
    spoil(store, spoilt, how)
    for command in (("ls",), ("ls", spoilt.fingerprint[:12]), ("gc",), ("gc", "--grace", "0")):
        said = torchyard("store", *command, "-f", file)
        assert said.code == 0, said.err
        assert f"warning: the manifest of {spoilt.fingerprint} can't be read" in said.err
        assert "hint: `torchyard store verify --remove`" in said.err
        told = json.loads(torchyard("store", *command, "--json", "-f", file).out)
        assert list(told["unusable"]) == [spoilt.fingerprint]
        if command == ("ls",):
            assert fine.id in said.out
            assert [one["id"] for one in told["results"]] == [fine.id]
        elif command[0] == "gc":
            assert ("no result and no blob is removed" in said.err) == (how == "cut")
    assert store.has(fine.fingerprint) == (how == "cut")
    assert torchyard("store", "verify", "--remove", "-f", file).code == 0
    assert not torchyard("store", "ls", "-f", file).err


def test_many_unusable_manifests_are_counted(torchyard: Command, store: Store) -> None:
    for number in range(40):
        store.objects.write(result_key(f"{number:064x}"), b"{}")
    said = torchyard("store", "ls", "--store", store.url)
    assert said.err.count("warning: the manifest of ") == 10
    assert "warning: 30 more manifests can't be used" in said.err


def test_a_pin_is_removed_as_a_whole(torchyard: Command, store: Store) -> None:
    add_pin(store, "kept", ["0" * 64])
    refused = torchyard("store", "pin", "kept", "core:*", "--remove", "--store", store.url)
    assert refused.code == 2
    assert "takes no selectors" in refused.err
    assert [name for name, _ in list_pins(store)] == ["kept"]
    assert torchyard("store", "pin", "kept", "--remove", "--store", store.url).code == 0
    assert not [*list_pins(store)]


def test_gc_removes_claims_on_what_is_done(store: Store, tmp_path: Path) -> None:
    """Whoever had them was killed before giving them up, or no longer needs them."""
    done = store_result(store, tmp_path, task_of("done")).fingerprint
    for name in (done, "a" * 64):
        claims.Claim(store.objects, name).take()
    remove_garbage(store, {done}, NO_TIME)
    assert [meta.key for meta in store.objects.list("claims/")] == [claim_key("a" * 64)]


def test_gc_does_not_mind_writers_that_come_and_go(store: Store, tmp_path: Path) -> None:
    (tmp_path / "store/finished#1").symlink_to("nowhere")  # listed, but not there
    assert remove_garbage(store, (), NO_TIME).leftovers == {}


def test_a_writer_notices_a_sweep_that_ran_meanwhile(store: Store, tmp_path: Path) -> None:
    """The blob was there when the writer looked, and gone before its manifest was written."""
    old = store_result(store, tmp_path, task_of("old"), one="same")
    tree = tmp_path / "tree"
    tree.mkdir()
    (tree / "one").write_text("same", encoding="utf-8")
    task = task_of("new")
    writer = Writer(store)
    stored = writer.add_tree(tree)
    log = writer.add_file(tree / "one", "log.gz")
    assert remove_garbage(store, set(), NO_TIME).results == {old.fingerprint: old.id}
    assert store.objects.head(blob_key(stored.files[0].digest)) is None
    result = Result(
        fingerprint=task.fingerprint, spec=JobSpec(tasks=(task,)), tree=stored, log=log, run="r"
    )
    assert writer.publish(result)
    assert verify(store).is_clean


def test_a_writer_waits_for_a_sweep_that_goes_on(
    store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The sweep has read the manifests already, and deletes after the writer looked."""
    monkeypatch.setattr(gc_lease, "BEAT", 0.05)
    announced = gc_lease.GcLease(store.objects)
    going = announced.__enter__()
    assert going.tzinfo is not None
    digests: list[str] = []

    def delete_later() -> None:
        threading.Event().wait(0.4)
        store.objects.delete(digests)
        announced.__exit__(None, None, None)

    (tmp_path / "file").write_text("bytes", encoding="utf-8")
    task = task_of("new")
    writer = Writer(store)
    log = writer.add_file(tmp_path / "file", "log.gz")
    digests.append(blob_key(log.digest))
    thread = threading.Thread(target=delete_later)
    thread.start()
    writer.publish(Result(fingerprint=task.fingerprint, spec=JobSpec(tasks=(task,)), log=log))
    thread.join()
    assert verify(store).is_clean


def test_a_writer_looks_again_after_a_sweep_has_ended(store: Store) -> None:
    """The sweep deletes and ends just after the writer has put everything back."""
    watch = gc_lease.GcWatch(store.objects)
    announced = gc_lease.GcLease(store.objects)
    announced.__enter__()
    healed: list[int] = []

    def heal() -> None:
        healed.append(len(healed))
        if len(healed) == 1:
            announced.__exit__(None, None, None)

    watch.settle(heal)
    assert healed == [0, 1]


def test_a_dead_sweep_is_not_waited_for_long(
    store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(gc_lease, "DEAD", 0.2)
    monkeypatch.setattr(gc_lease, "BEAT", 0.05)
    gc_lease.GcLease(store.objects).__enter__()
    store_result(store, tmp_path, task_of("new"), one="1")
    assert not list(store.objects.list("sweeps/active/"))


def test_a_sweep_that_slept_gives_up(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gc_lease, "ASLEEP", -1.0)
    going = gc_lease.GcLease(store.objects)
    with going, pytest.raises(ElsewhereError, match="stood still"):
        going.beat()


def test_pins(store: Store, tmp_path: Path) -> None:
    result = store_result(store, tmp_path, task_of("a"))
    add_pin(store, "v1", [result.fingerprint])
    assert [(name, p.results) for name, p in list_pins(store)] == [("v1", (result.fingerprint,))]
    with pytest.raises(UsageError, match="already"):
        add_pin(store, "v1", [])
    with pytest.raises(UsageError, match="name of a pin"):
        add_pin(store, "a/b", [])
    with pytest.raises(SelectionError, match="no pin"):
        remove_pin(store, "v2")
    remove_pin(store, "v1")
    assert list(list_pins(store)) == []


def test_a_pin_that_comes_too_late_is_refused(
    store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A sweep that has read the pins before removes the result, and ends."""
    result = store_result(store, tmp_path, task_of("a"))
    announced = gc_lease.GcLease(store.objects)
    announced.__enter__()
    known = store.known

    def known_until_then(fingerprints: Collection[str]) -> set[str]:
        found = known(fingerprints)
        store.objects.delete([result_key(result.fingerprint)])
        announced.__exit__(None, None, None)
        return found

    monkeypatch.setattr(store, "known", known_until_then)
    with pytest.raises(StoreError, match="has just removed 1 result of those"):
        add_pin(store, "v1", [result.fingerprint])
    assert list(list_pins(store)) == []


def test_results_are_selected_by_glob_and_fingerprint(store: Store, tmp_path: Path) -> None:
    one = store_result(store, tmp_path, task_of("one"))
    two = store_result(store, tmp_path, task_of("two"))

    def ids(*selectors: str) -> set[str]:
        return {result.id for result in select_results(store, selectors)}

    assert ids() == {one.id, two.id}
    assert ids("core:*/one") == ids("demo-1.0/one") == ids(one.fingerprint[:8]) == {one.id}
    assert ids("*/one", two.fingerprint) == {one.id, two.id}
    with pytest.raises(SelectionError, match="no result of"):
        ids("*/three")


def test_results_are_copied_with_their_blobs(store: Store, tmp_path: Path) -> None:
    one = store_result(store, tmp_path, task_of("one"), a="1", b="2")
    store_result(store, tmp_path, task_of("two"), a="1", c="3")
    target = Store.at(str(tmp_path / "target"))
    first = copy(store, target, select_results(store, ["*/one"]))
    assert (first.results, first.there, first.sent) == (1, 0, 2)
    rest = copy(store, target, select_results(store, ()))
    assert (rest.results, rest.there, rest.sent) == (1, 1, 1)
    assert verify(target).is_clean
    assert target.find(one.fingerprint) == one


def test_claims_are_held_released_and_taken_over(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    name = "a" * 64
    with claims.Claim(store.objects, name) as mine:
        assert mine.take() is None
        holder = claims.Claim(store.objects, name).take()
        assert holder is not None
        assert holder.pid == os.getpid()
    with claims.Claim(store.objects, name) as again:
        assert again.take() is None

    stranger = claims.Owner(name="x", host=holder.host, pid=2**22 + 1, born="another-boot 7")
    store.objects.write(claim_key(name), msgspec.json.encode(stranger))
    assert claims.Claim(store.objects, name).take() == stranger, "who knows what its number means?"

    gone = claims.Owner(name="x", host=holder.host, pid=2**22 + 1, born=process_birth(2**22 + 1))
    store.objects.write(claim_key(name), msgspec.json.encode(gone))
    with claims.Claim(store.objects, name) as taken:
        assert taken.take() is None

    far = claims.Owner(name="y", host="elsewhere", pid=1)
    store.objects.write(claim_key(name), msgspec.json.encode(far))
    patience = claims.ClaimMonitor(store.objects)
    assert patience.holder(name) == far
    monkeypatch.setattr(claims, "DEAD", 0.0)
    assert patience.holder(name) is None
    assert store.objects.head(claim_key(name)) is None


OWNER = {"name": "x", "host": platform.node(), "pid": 1, "born": process_birth(1)}


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"\xff",
        b"[]",
        b"[" * 10_000,
        msgspec.json.encode(OWNER | {"pid": 1 << 62}),
        msgspec.json.encode(OWNER | {"pid": -1}),
        msgspec.json.encode(OWNER | {"host": 7}),
    ],
)
def test_a_claim_that_can_not_be_read_is_nobodys(store: Store, data: bytes) -> None:
    """It once ended every build of the job with a traceback."""
    store.objects.write(claim_key("a" * 64), data)
    assert claims.ClaimMonitor(store.objects).holder("a" * 64) is None
    with claims.Claim(store.objects, "a" * 64) as claim:
        assert claim.take() is None


def test_a_claim_shows_that_it_lives(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(claims, "BEAT", 0.02)
    with claims.Claim(store.objects, "a" * 64) as mine:
        mine.take()
        seen: set[int] = set()
        while len(seen) < 3:
            owner = claims.read_owner(store.objects, claim_key("a" * 64))
            assert owner is not None
            seen.add(owner.beat)


def test_logs_are_read_back(store: Store, tmp_path: Path) -> None:
    path = tmp_path / "log.gz"
    path.write_bytes(gzip.compress(b"a line\n" * 1000))
    task = task_of("a")
    log = Writer(store).add_file(path, "log.gz")
    result = Result(fingerprint=task.fingerprint, spec=JobSpec(tasks=(task,)), log=log)
    assert b"".join(read_result_log(store, result)) == b"a line\n" * 1000


def test_logs_are_zipped_the_same_way_each_time(torchyard: Command, tmp_path: Path) -> None:
    folder, writer = tmp_path / "store", Writer(Store.at(str(tmp_path / "store")))
    for name in ("b", "a"):
        (tmp_path / "log.gz").write_bytes(gzip.compress(name.encode(), mtime=0))
        task = task_of(name)
        log = writer.add_file(tmp_path / "log.gz", "log.gz")
        Store.at(str(folder)).publish(
            Result(fingerprint=task.fingerprint, spec=JobSpec(tasks=(task,)), log=log)
        )
    paths = [tmp_path / f"{number}.zip" for number in range(2)]
    for path in paths:
        done = torchyard("store", "show", "core:*", "--zip", path, "--store", folder)
        assert (done.code, done.err) == (0, f"2 logs in {path}\n")
    assert paths[0].read_bytes() == paths[1].read_bytes()
    with zipfile.ZipFile(paths[0]) as archive:
        texts = {name.rpartition("-")[0]: archive.read(name) for name in archive.namelist()}
    assert texts == {"core/demo-1.0/a": b"a", "core/demo-1.0/b": b"b"}


def test_many_files_are_shown_by_folder(capfd: pytest.CaptureFixture[str]) -> None:
    """A build tree of PyTorch has 33,000."""
    task = task_of("a")
    paths = ("log", "tree/y.c", *(f"tree/build/x/{number}.o" for number in range(200)))
    files = tuple(File(path=path, digest="a" * 64, size=1000, mtime=0) for path in paths)
    spec = JobSpec(tasks=(task,))
    result = Result(fingerprint="a" * 64, spec=spec, log=files[0], tree=Tree(files=files))
    show(*store_show_text(ResultsReport(store="", results=[result])))
    shown = capfd.readouterr().out.splitlines()
    assert [line.split()[-4:] for line in shown[-6:-1]] == [
        ["folder", "files", "size"],
        ["folder)", "1", "1", "kB"],
        ["tree/", "1", "1", "kB"],
        ["tree/build/", "200", "200", "kB"],
        ["them)", "202", "202", "kB"],
    ]


def test_a_place_that_is_none(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="not the address of a store"):
        Store.at("ftp://example.org/store")
    (tmp_path / "file").write_text("", encoding="utf-8")
    with pytest.raises(ElsewhereError, match="can't be made"):
        Store.at(str(tmp_path / "file" / "store"))
