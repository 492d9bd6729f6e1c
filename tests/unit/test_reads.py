"""Which files a job reads is observed, and names its result; steps are real, in a sandbox."""

import os
import shutil
from datetime import timedelta
from pathlib import Path

import msgspec
import pytest
from tests.support.makers import Makers
from tests.unit.test_store import task_of

from torchyard.host.syscall_filter import filter_program
from torchyard.model.canonical import fingerprint
from torchyard.model.config import Source
from torchyard.model.job_spec import JobSpec, Task
from torchyard.model.reads import COMMIT, InputFiles, carry, reads_key, spec_name
from torchyard.model.recipe import Stage
from torchyard.model.result import SAME_AS, File, Reads, Result, Tree, Usage
from torchyard.model.step import SHELL, Step
from torchyard.recipes.recipe import lay_out_step
from torchyard.run.conditions import Conditions
from torchyard.run.log import Log
from torchyard.run.reading import ReadWatch
from torchyard.run.reuse import reuse_result, watch_reads
from torchyard.run.sandbox import Enclosure
from torchyard.run.steps import StepContext, run_steps
from torchyard.run.workdir import JobState, WorkDir
from torchyard.store.gc import remove_garbage
from torchyard.store.keys import result_key
from torchyard.store.same_reads import find_same, read_record, record_key, remember_reads
from torchyard.store.store import Store
from torchyard.store.transfer import copy
from torchyard.store.trees import Writer


def spec_with(digit: str) -> JobSpec:
    """Return the spec of a core, given the digit that a source's digest consists of."""
    task = msgspec.structs.replace(task_of("", Stage.SOURCE), id="source:demo-1.0")
    task = msgspec.structs.replace(task, settings={"digest": digit * 64})
    source = msgspec.structs.replace(task, fingerprint=fingerprint(task.payload))
    return JobSpec(tasks=(source, task_of("linux/cpu-mkl", inputs=(source.fingerprint,))))


SPEC = spec_with("1")
SOURCE, CORE = SPEC.tasks
NAME = spec_name(SPEC)
NO_TIME = timedelta(seconds=-60)

needs_sandbox = pytest.mark.skipif(
    not shutil.which("bwrap") or not filter_program(), reason="there is no sandbox here"
)


def file(path: str, text: str, *, executable: bool = False) -> File:
    digest = msgspec.json.encode(text).hex().ljust(64, "0")[:64]
    return File(path=path, digest=digest, size=len(text), mtime=1, executable=executable)


def tree(**changes: File | str | None) -> Tree:
    """A source of two files, a link and an empty directory, with some of them changed."""
    files = {"a_c": file("a.c", "a"), "b_py": file("b.py", "b")} | {
        name: found for name, found in changes.items() if isinstance(found, File)
    }
    kept = tuple(found for name, found in files.items() if changes.get(name, "") is not None)
    links = {"link": str(changes.get("link", "a.c"))}
    return Tree(files=kept, links=links, empty=(str(changes.get("empty", "empty")),))


def inputs(of: Tree, spec: JobSpec = SPEC) -> InputFiles:
    return InputFiles.of(spec, {"source": of})


def key(of: Tree, spec: JobSpec = SPEC, read: tuple[str, ...] = ("source/a.c",)) -> str | None:
    return reads_key(spec_name(spec), inputs(of, spec), read)


# ------------------------------------------------------------------------------- names


def test_a_name_does_not_depend_on_the_content_of_files_that_are_not_read() -> None:
    assert key(tree(b_py=file("b.py", "other"))) == key(tree())
    later = msgspec.structs.replace(file("a.c", "a"), mtime=2)
    assert key(tree(a_c=later)) == key(tree())


@pytest.mark.parametrize(
    "other",
    [
        tree(a_c=file("a.c", "other")),
        tree(b_py=None),
        tree(c_py=file("c.py", "b")),
        tree(b_py=file("c.py", "b")),
        tree(b_py=file("b.py", "b", executable=True)),
        tree(link="b.py"),
        tree(empty="other"),
        tree(a_c=None),
    ],
    ids=["read", "removed", "new", "renamed", "mode", "link", "directory", "read and removed"],
)
def test_a_name_depends_on_what_is_read_and_on_which_files_there_are(other: Tree) -> None:
    assert key(other) != key(tree())


def test_a_name_depends_on_the_commit_only_if_it_is_read() -> None:
    settings: dict[str, str] = {"commit": "1" * 40}
    committed = msgspec.structs.replace(SOURCE, settings=settings)
    spec = msgspec.structs.replace(SPEC, tasks=(committed, CORE))
    other = msgspec.structs.replace(SOURCE, settings={"commit": "2" * 40})
    after = msgspec.structs.replace(SPEC, tasks=(other, CORE))
    assert key(tree(), spec) == key(tree(), after)
    assert key(tree(), spec, (COMMIT,)) != key(tree(), after, (COMMIT,))


def test_a_name_depends_on_all_settings_but_the_source() -> None:
    changed: list[Task] = [
        msgspec.structs.replace(CORE, settings={"env": {"CFLAGS": "-O3"}}),
        msgspec.structs.replace(CORE, stage_revision=2),
        msgspec.structs.replace(CORE, scope="linux/cpu-openblas"),
    ]
    names = {spec_name(JobSpec(tasks=(SOURCE, task))) for task in (CORE, *changed)}
    assert len(names) == 4
    patched = msgspec.structs.replace(SOURCE, settings={"digest": "1"})
    assert spec_name(JobSpec(tasks=(patched, CORE))) == NAME


# ------------------------------------------------------------------------------- store


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store.at(str(tmp_path / "store"))


def made(store: Store, folder: Path, of: Tree, read: tuple[str, ...] = ("source/a.c",)) -> Result:
    """Store a result whose job read some files of a source, and kept another."""
    (folder / "out").mkdir(exist_ok=True)
    (folder / "out/kept.py").write_text("b", encoding="utf-8")
    name = key(of, read=read)
    assert name is not None
    writer = Writer(store)
    result = Result(
        fingerprint=CORE.fingerprint,
        spec=SPEC,
        tree=writer.add_tree(folder / "out"),
        log=writer.add_file(folder / "out/kept.py", "log.gz"),
        reads=Reads(key=name, files=read, total=3, carried={"kept.py": "source/b.py"}),
    )
    result = store.signed(result)
    writer.publish(result)
    return result


def test_a_result_is_found_for_a_source_that_differs_in_what_is_not_read(
    store: Store, tmp_path: Path
) -> None:
    result = made(store, tmp_path, tree())
    other = inputs(tree(b_py=file("b.py", "other")))
    assert find_same(store, NAME, other) == result
    assert result.reads is not None
    carried = carry(result.tree, result.reads, other)
    assert [found.digest for found in carried.files] == [file("b.py", "other").digest]
    assert [found.path for found in carried.files] == ["kept.py"]
    assert find_same(store, NAME, inputs(tree(a_c=file("a.c", "other")))) is None
    assert find_same(store, "0" * 64, inputs(tree())) is None


def test_a_result_is_found_after_a_copy_and_goes_with_its_record(
    store: Store, tmp_path: Path
) -> None:
    result = made(store, tmp_path, tree())
    other = Store.at(str(tmp_path / "other"))
    copy(store, other, [result])
    assert find_same(other, NAME, inputs(tree())) == result
    remove_garbage(other, {result.fingerprint}, NO_TIME)
    assert find_same(other, NAME, inputs(tree())) == result
    remove_garbage(other, set(), NO_TIME)
    assert read_record(other.objects, record_key(result)) == ()


@pytest.mark.parametrize("record", [b"", b"{", b"[" * 100_000, b'{"version": 2}', b"\xff"])
def test_a_record_that_cannot_be_used_leads_to_nothing(
    store: Store, tmp_path: Path, record: bytes
) -> None:
    result = made(store, tmp_path, tree())
    store.objects.write(record_key(result), record)
    assert find_same(store, NAME, inputs(tree())) is None
    remember_reads(store.objects, result)
    assert find_same(store, NAME, inputs(tree())) == result


def test_a_forged_record_leads_to_nothing(store: Store, tmp_path: Path) -> None:
    """Only the manifest counts: it says itself what was read."""
    result = made(store, tmp_path, tree(), ("source/a.c", "source/b.py"))
    assert result.reads is not None
    wanted = inputs(tree(b_py=file("b.py", "other")))
    forged = msgspec.structs.replace(
        result.reads, files=("source/a.c",), key=reads_key(NAME, wanted, ["source/a.c"]) or ""
    )
    remember_reads(store.objects, msgspec.structs.replace(result, reads=forged))
    assert read_record(store.objects, record_key(result))[0].files == ("source/a.c",)
    assert find_same(store, NAME, wanted) is None


def test_a_result_of_a_maker_without_trust_is_not_reused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    makers = Makers(tmp_path / "makers", monkeypatch)
    makers.add("builder", [Stage.CORE])
    makers.add("tester", [Stage.SMOKE])
    url = str(tmp_path / "store")
    makers.be("tester")
    made(Store.at(url), tmp_path, tree())
    assert find_same(Store.at(url), NAME, inputs(tree())) is None
    Store.at(url).objects.delete([result_key(CORE.fingerprint)])
    makers.be("builder")
    made(Store.at(url), tmp_path, tree())
    assert find_same(Store.at(url), NAME, inputs(tree())) is not None


def test_a_record_keeps_the_sets_that_were_used_last(store: Store, tmp_path: Path) -> None:
    result = made(store, tmp_path, tree())
    names = [f"source/{number}" for number in range(20)]
    for name in names:
        reads = Reads(key=name.encode().hex().ljust(64, "0"), files=(name,), total=1)
        remember_reads(store.objects, msgspec.structs.replace(result, reads=reads))
    sets = read_record(store.objects, record_key(result))
    assert [found.files for found in sets] == [(name,) for name in names[:-9:-1]]


def edited(store: Store, tmp_path: Path) -> JobSpec:
    """Return the spec of a core whose source was edited since another was built."""
    made(store, tmp_path, tree())
    spec, found = spec_with("2"), store.get(CORE.fingerprint, "it")
    source, given = spec.tasks[0], tree(b_py=file("b.py", "other"))
    store.publish(
        msgspec.structs.replace(
            found, fingerprint=source.fingerprint, spec=JobSpec(tasks=(source,)), tree=given
        )
    )
    return spec


def test_a_reused_result_is_one_of_its_own(store: Store, tmp_path: Path) -> None:
    spec = edited(store, tmp_path)
    reused = reuse_result(spec, store)
    assert reused is not None
    assert reused == store.get(spec.task.fingerprint, "it")
    assert reused.spec == spec
    assert reused.facts == {SAME_AS: CORE.fingerprint}
    assert [found.digest for found in reused.tree.files] == [file("b.py", "other").digest]
    store.objects.delete([result_key(CORE.fingerprint)])
    assert find_same(store, NAME, inputs(tree())) == reused


def test_a_result_whose_files_are_collected_meanwhile_is_not_reused(
    store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    spec = edited(store, tmp_path)
    publish = Store.publish

    def publish_late(self: Store, result: Result) -> bool:
        remove_garbage(store, set(), NO_TIME)
        return publish(self, result)

    monkeypatch.setattr(Store, "publish", publish_late)
    assert reuse_result(spec, store) is None
    assert store.find(spec.task.fingerprint) is None


# ------------------------------------------------------------------------------- observing

TEXTS = {
    "seen.c": "int seen;\n",
    "unseen.py": "secret = 1\n",
    "run.sh": "#!/bin/sh\nexit 0\n",
    "empty.h": "",
}
LAY_OUT = lay_out_step("cp -a {source}/. .")

PYTHON = "python3 -c 'import os, mmap; {}'"

WAYS = {
    "cat": "cat seen.c",
    "from the inputs": "cat {source}/seen.c",
    "mapped": PYTHON.format('f = open("seen.c"); mmap.mmap(f.fileno(), 0, prot=1)'),
    "a program": "./run.sh",
    "copied": "cp -a seen.c copy",
    "copied by CMake": "echo 'file(COPY_FILE seen.c copy)' > c.cmake; cmake -P c.cmake",
    "in the kernel": PYTHON.format(
        'exec("""try: os.copy_file_range(os.open("seen.c", 0), os.open("copy", 65), 5)\n'
        'except OSError: os.sendfile(os.open("copy", 65), os.open("seen.c", 0), 0, 5)""")'
    ),
    "by a hard link": "ln seen.c other; cat other",
    "by a link": "ln -s seen.c other; cat other",
    "by a directory above": "cat ../build/seen.c",
    "included": "echo '#include \"seen.c\"' > new.c; gcc -E new.c",
    "archived": "tar -cf archive.tar seen.c",
    "without a trace": PYTHON.format(
        'exec("""try: f = os.open("seen.c", os.O_NOATIME)\nexcept PermissionError: f = 0\n'
        'os.read(f or os.open("seen.c", 0), 1)""")'
    ),
    "without a trace, later": PYTHON.format(
        "import fcntl\n"
        'f = os.open("seen.c", 0)\n'
        "try: fcntl.fcntl(f, fcntl.F_SETFL, os.O_NOATIME)\n"
        "except PermissionError: pass\n"
        "os.read(f, 1)"
    ),
    "and its time set back": "cat seen.c; touch -a -d @0 seen.c",
    "and put back": "cat seen.c; cp -p seen.c new; touch -a -d @0 new; mv new seen.c",
    "moved, and read": "mv seen.c new; cat new; touch -a -d @0 new; mv new seen.c",
    "removed": "rm seen.c",
    "moved": "mv seen.c new",
    "written": "echo >> seen.c",
    "written over": "echo > seen.c",
    "another mode": "chmod +x seen.c",
    "another time": "touch seen.c",
    "linked": "ln seen.c other",
    "read in the background": "cat seen.c & wait",
}


class Job:
    """A job in a sandbox, whose source has a few files."""

    def __init__(self, folder: Path) -> None:
        self.workdir = WorkDir(folder / "work", SPEC)
        self.workdir.prepare("bwrap")
        source = self.workdir.inputs / "source"
        source.mkdir()
        for name, text in TEXTS.items():
            (source / name).write_text(text, encoding="utf-8")
        (source / "run.sh").chmod(0o755)
        files = tuple(file(name, text) for name, text in TEXTS.items())
        self.watch = ReadWatch(self.workdir, {"source": Tree(files=files)})

    def run(self, *steps: str | Step) -> Reads | None:
        """Run steps after the source was laid out, and return what they read."""
        whole = (LAY_OUT, *(s if isinstance(s, Step) else shell(s) for s in steps))
        sandbox = Enclosure("bwrap")
        context = StepContext(self.workdir, sandbox, None, "/none", watch=self.watch)
        with Log(self.workdir.log) as log:
            run_steps(context, whole, log, lambda _: None)
        return self.watch.reads()


def shell(line: str, **more: str) -> Step:
    return msgspec.structs.replace(Step(run=(*SHELL, line)), **more)


@pytest.fixture
def job(tmp_path: Path) -> Job:
    return Job(tmp_path)


@needs_sandbox
@pytest.mark.parametrize("line", WAYS.values(), ids=WAYS.keys())
def test_what_a_step_reads_or_changes_in_any_way_is_observed(job: Job, line: str) -> None:
    for program in ("cmake", "gcc"):
        if program in line and not Path("/usr/bin", program).exists():
            pytest.skip(f"there is no {program}")
    reads = job.run(line)
    assert reads is not None
    changed = "run.sh" if "run.sh" in line else "seen.c"
    assert reads.files == tuple(sorted((f"source/{changed}", "source/empty.h")))
    assert reads.total == len(TEXTS) + 1  # and the commit


@needs_sandbox
@pytest.mark.parametrize("line", [":", "ls -lR", "find . -newer seen.c", "test -e seen.c"])
def test_what_a_step_does_not_read_is_not_named(job: Job, line: str) -> None:
    reads = job.run(line)
    assert reads is not None
    assert reads.files == ("source/empty.h",)


@needs_sandbox
def test_a_step_that_makes_links_reads_nothing_and_what_it_keeps_is_known(job: Job) -> None:
    keep = shell("cp -al . {out}/tree; ln unseen.py {out}/other", copies="links")
    reads = job.run("cat seen.c", keep)
    assert reads is not None
    assert reads.files == ("source/empty.h", "source/seen.c")
    assert reads.carried == {
        "other": "source/unseen.py",
        "tree/run.sh": "source/run.sh",
        "tree/unseen.py": "source/unseen.py",
    }
    assert "source/unseen.py" not in reads.files


@needs_sandbox
@pytest.mark.parametrize("line", ["cat seen.c", "cp seen.c {out}", "mv seen.c {out}"])
def test_a_step_that_should_make_links_and_does_more_is_observed(job: Job, line: str) -> None:
    reads = job.run(shell(line, copies="links"))
    assert reads is not None
    assert "source/seen.c" in reads.files
    assert not reads.carried


@needs_sandbox
def test_what_ninja_was_told_is_read_even_if_no_time_says_so(job: Job) -> None:
    """A command may look only at whether a file is there, or at its size."""
    lines = (
        "rule size",
        "  command = stat -c %s $in > $out",
        "build made: size seen.c",
        "build other: size unseen.py",
    )
    text = "\\n".join(lines)
    made = shell(f"printf '{text}\\n' > build.ninja; printf '# ninja log v6\\n' > .ninja_log")
    log = shell("printf '0\\t1\\t2\\tmade\\tab\\n' >> .ninja_log")
    reads = job.run(made, log)
    assert reads is not None
    assert reads.files == ("source/empty.h", "source/seen.c")


@needs_sandbox
@pytest.mark.parametrize("number", ["0x40049409", "0x4020940D", "0xC0189436"])
def test_a_file_cannot_be_cloned_which_would_leave_no_trace(job: Job, number: str) -> None:
    """XFS and btrfs clone files; other disks answer that they can't (95), the filter EPERM."""
    program = (
        "import fcntl\n"
        'a, b = open("seen.c"), open("copy", "w")\n'
        f"try: fcntl.ioctl(b, {number}, a.fileno())\n"
        "except PermissionError: pass"
    )
    reads = job.run(PYTHON.format(program))
    assert reads is not None
    assert reads.files == ("source/empty.h",)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can mount")
@needs_sandbox
def test_nothing_is_known_on_a_disk_without_access_times(tmp_path: Path) -> None:
    import subprocess  # noqa: PLC0415 - only here

    folder = tmp_path / "disk"
    folder.mkdir()
    mounted = ["mount", "-t", "tmpfs", "-o", "noatime", "none", str(folder)]
    if subprocess.run(mounted, check=False, capture_output=True).returncode:
        pytest.skip("this machine does not let root mount")
    try:
        assert Job(folder).run("cat seen.c") is None
    finally:
        subprocess.run(["umount", str(folder)], check=True)


# ------------------------------------------------------------------------------- where


@pytest.fixture
def prepared(store: Store, tmp_path: Path) -> WorkDir:
    """The directory of a core's job, whose source is a directory and in the store."""
    (tmp_path / "code").mkdir()
    (tmp_path / "code/a.c").write_text("a", encoding="utf-8")
    given = msgspec.structs.replace(SOURCE, source=Source(path="code"))
    core = msgspec.structs.replace(CORE, settings={"backend": "setup.py"})
    writer = Writer(store)
    writer.publish(
        Result(
            fingerprint=SOURCE.fingerprint,
            spec=JobSpec(tasks=(given,)),
            tree=writer.add_tree(tmp_path / "code"),
            log=writer.add_file(tmp_path / "code/a.c", "log.gz"),
        )
    )
    workdir = WorkDir(tmp_path / "work", JobSpec(tasks=(given, core)))
    workdir.prepare("bwrap")
    return workdir


def is_watched(workdir: WorkDir, store: Store, sandbox: Enclosure) -> bool:
    folder = workdir.folder.parent.parent
    conditions = Conditions(folder / "work", str(folder / "torchyard.toml"))
    return watch_reads(workdir, store, conditions, sandbox) is not None


@needs_sandbox
def test_a_job_that_may_read_without_a_trace_is_not_watched(
    prepared: WorkDir, store: Store, tmp_path: Path
) -> None:
    assert is_watched(prepared, store, Enclosure("bwrap"))
    assert is_watched(prepared, store, Enclosure("bwrap", readable=("/usr", str(store.url))))
    assert not is_watched(prepared, store, Enclosure("view"))
    for shown in (tmp_path, tmp_path / "code", tmp_path / "code/a.c"):
        assert not is_watched(prepared, store, Enclosure("bwrap", readable=(str(shown),)))
    (tmp_path / "link").symlink_to("code")
    assert not is_watched(prepared, store, Enclosure("bwrap", readable=(str(tmp_path / "link"),)))
    for state in (
        JobState(is_continued=True),
        JobState(steps=(Usage(step="a", seconds=1, cpu=1, memory=1, disk=1),)),
        JobState(unfinished=Usage(step="a", seconds=1, cpu=1, memory=1, disk=1)),
    ):
        prepared.save(state)
        assert not is_watched(prepared, store, Enclosure("bwrap"))
    prepared.save(JobState())
    store.objects.delete([result_key(SOURCE.fingerprint)])
    assert not is_watched(prepared, store, Enclosure("bwrap"))
