"""A tree to develop in: a finished core, restored at its path and built after edits.

    development.json        what is needed to run commands in it, without planning
    activate.bash …         for shells outside
    env/ tools/ toolchain/  as in a job's directory, like `job/`; but never removed
    job/build/              the tree, unless it is a checkout elsewhere

CMake has written absolute paths into the tree, so programs see it at the path of the core's job:
steps run in a view of this machine, or in the root that the core was compiled in.
"""

import csv
import io
import os
import re
from collections.abc import Callable
from enum import StrEnum
from functools import partial
from pathlib import Path

import msgspec

from torchyard.errors import BuildError, TorchyardError
from torchyard.host.child import Child
from torchyard.host.locks import replace_bytes
from torchyard.host.untrusted_tree import UntrustedTree
from torchyard.model.job_spec import SPEC_FILE, JobSpec
from torchyard.model.result import File, Result, Tree
from torchyard.model.step import Step
from torchyard.model.values import Reported, Value
from torchyard.recipes.recipe import DevelopSteps
from torchyard.run.failure import explained
from torchyard.run.log import Log
from torchyard.run.sandbox import INSIDE, Enclosure, enclose
from torchyard.run.steps import StepContext, StepError
from torchyard.run.workdir import BUILD, EQUIPMENT, WorkDir
from torchyard.store.store import Store
from torchyard.store.trees import fetch_tree
from torchyard.toolchain.build_tree import keep_recorded_times
from torchyard.toolchain.ninja import ExplainedBuild, is_compiled, is_unit, read_log

RECORD_FILE = "development.json"
COMMANDS = "compile_commands.json"
_NINJA_LOG = "build/.ninja_log"
_INSTALLED = "installed"
"""A stamp that is newer than ninja's log if ninja's outputs are installed."""

_METADATA = "tmp/metadata"
_INSTALLER = "torchyard"
_GIT = ".git/"
_VIEW = re.compile(rf"{re.escape(INSIDE)}(?:/({'|'.join((BUILD, *EQUIPMENT))})(?![\w.-]))?")
"""A path of the view, and a separate first directory in it."""


class DevelopDir(WorkDir):
    """The directory of a development; its tree may be a checkout elsewhere."""

    def __init__(self, folder: Path, spec: JobSpec, tree: Path | None = None) -> None:
        super().__init__(folder.parent, spec, folder.name)
        self._tree = tree

    @property
    def build(self) -> Path:
        return self._tree or super().build


class Development(Value, kw_only=True):
    """What is needed to run commands in a development."""

    cell: str
    core: str
    tree: str | None
    file: str
    enclosure: Enclosure
    tools: dict[str, str]
    ready: bool = False


class MadeKind(StrEnum):
    """The kind of ninja's output: a compiled unit, a linked or archived file, or another file."""

    UNIT = "unit"
    LIBRARY = "library"
    OTHER = "other"


class MadeFile(Reported):
    """A file that ninja made; without `why`, only because an input was made."""

    output: str
    kind: MadeKind
    why: str

    @classmethod
    def of(cls, output: str, why: str) -> "MadeFile":
        """Return a file with its kind."""
        if not is_compiled(output):
            return cls(output, MadeKind.OTHER, why)
        return cls(output, MadeKind.UNIT if is_unit(output) else MadeKind.LIBRARY, why)


class OpenDevelopment:
    """A development to run commands in."""

    def __init__(self, workdir: DevelopDir, record: Development) -> None:
        self.workdir = workdir
        self.record = record
        self.context = StepContext(workdir, record.enclosure, None, record.file, record.tools)

    @classmethod
    def at(cls, folder: Path) -> "OpenDevelopment":
        """Open the development in a directory."""
        spec = msgspec.json.decode((folder / SPEC_FILE).read_bytes(), type=JobSpec)
        record = msgspec.json.decode((folder / RECORD_FILE).read_bytes(), type=Development)
        return cls(DevelopDir(folder, spec, Path(record.tree) if record.tree else None), record)

    @property
    def tree(self) -> Path:
        return self.workdir.build

    def save(self, *, ready: bool) -> None:
        self.record = msgspec.structs.replace(self.record, ready=ready)
        replace_bytes(self.workdir.folder / RECORD_FILE, msgspec.json.encode(self.record))

    def outside(self, text: str) -> str:
        """Return a text with paths of the view replaced by this machine's."""

        def path(found: re.Match[str]) -> str:
            match found[1]:
                case None:
                    return str(self.workdir.job)
                case name if name == BUILD:
                    return str(self.tree)
                case name:
                    return str(self.workdir.folder / name)

        return _VIEW.sub(path, text)

    def run(self, step: Step, on_line: Callable[[str], object]) -> None:
        """Run a step, and pass on its lines with paths of this machine.

        If it fails, raise an error with the cause.
        """
        filled = step.filled(self.context.words())
        argv = enclose(self.record.enclosure, filled, self.workdir, None)
        env = self.context.environment() | filled.env
        with Log(self.workdir.log) as log:
            log.add(f"== {filled.title}")
            mark = log.mark()
            kind = self.record.enclosure.kind
            child = Child(argv, cwd=self.workdir.folder, env=env, sandbox=kind)

            def hear(line: str) -> None:
                log.add(line)
                on_line(self.outside(line))

            try:
                child.start()
                ended = child.watch(hear)
            except BaseException:
                child.stop()
                raise
            if ended.code:
                failed = StepError(self.record.cell, filled, ended, mark)
                raise self._explained(failed, log) from failed

    def _explained(self, failed: StepError, log: Log) -> TorchyardError:
        error = explained(failed, self.context, log)
        first, *more = error.diagnostics
        hint = f"look around: torchyard develop run  (log: {self.workdir.log})"
        what = self.outside(first.what)
        return type(error).of([first._replace(what=what, hint=hint), *more])

    def build(
        self, on_line: Callable[[str], object], targets: tuple[str, ...] = (), jobs: int = 0
    ) -> list[MadeFile]:
        """Let ninja make outdated files, and return them with ninja's reasons."""
        log = self.tree / _NINJA_LOG
        before, heard = read_log(log), ExplainedBuild()
        limit = ("-j", str(jobs)) if jobs else ()
        step = Step(run=("ninja", "-C", "build", "-d", "explain", *limit, *targets), name="ninja")
        self.run(step, lambda line: heard.listen(line) or on_line(line))
        after = read_log(log)
        return [
            MadeFile.of(output, heard.reason(output).removeprefix(f"{self.tree}/"))
            for output, made in after.items()
            if before.get(output) != made
        ]

    def install(self, steps: tuple[Step, ...], on_line: Callable[[str], object]) -> None:
        """Install ninja's outputs where Python imports them from, unless up to date."""
        stamp, log = self.workdir.folder / _INSTALLED, self.tree / _NINJA_LOG
        if stamp.exists() and stamp.stat().st_mtime_ns > log.stat().st_mtime_ns:
            return
        for step in steps:
            self.run(step, on_line)
        stamp.touch()

    def write_commands(self) -> None:
        """Update `compile_commands.json` in the tree, with paths of this machine."""
        target, source = self.tree / COMMANDS, self.tree / "build/build.ninja"
        if target.is_file() and target.stat().st_mtime_ns >= source.stat().st_mtime_ns:
            return
        lines: list[str] = []
        self.run(Step(run=("ninja", "-C", "build", "-t", "compdb"), name="list"), lines.append)
        entries: list[dict[str, str]] = msgspec.json.decode("\n".join(lines))
        units = [entry for entry in entries if is_unit(entry["output"])]
        replace_bytes(target, msgspec.json.format(msgspec.json.encode(units), indent=1))

    def install_editable(self) -> str:
        """Make Python import the project from the tree; return its name and version.

        Its metadata is written by the project's backend.
        """
        with UntrustedTree(self.workdir.job, _METADATA) as tree:
            found = [entry.path for entry in tree.walk() if entry.path.endswith("/METADATA")]
            if len(found) != 1:
                msg = f"the project's backend wrote {len(found)} files METADATA, and should one"
                raise BuildError(msg, hint=f"look into {self.workdir.log}")
            info = found[0].rpartition("/")[0]
            texts = {}
            for name in ("METADATA", "entry_points.txt"):
                if tree.find(f"{info}/{name}") is not None:
                    with tree.open_file(f"{info}/{name}") as file:
                        texts[f"{info}/{name}"] = file.read()
        path_file = f"__editable__.{info.removesuffix('.dist-info')}.pth"
        folders = (str(self.tree), f"{INSIDE}/{BUILD}")  # the second exists only in a root
        texts[path_file] = os.fsencode("".join(f"{folder}\n" for folder in folders))
        texts[f"{info}/INSTALLER"] = f"{_INSTALLER}\n".encode()
        origin = {"url": self.tree.as_uri(), "dir_info": {"editable": True}}
        texts[f"{info}/direct_url.json"] = msgspec.json.encode(origin)
        record = io.StringIO()
        csv.writer(record, lineterminator="\n").writerows(
            (name, "", "") for name in (*texts, f"{info}/RECORD")
        )
        texts[f"{info}/RECORD"] = record.getvalue().encode()
        site = self.workdir.folder / "env/lib/python/site-packages"
        for name, data in texts.items():
            (site / name).parent.mkdir(exist_ok=True)
            replace_bytes(site / name, data)
        return info.removesuffix(".dist-info")


def restore_core(store: Store, core: Result, folder: str, tree: Path) -> tuple[File, ...]:
    """Restore the build tree from a core's result, except edited files; return its files.

    Existing files with the same content get their original times, so that ninja rebuilds nothing.
    """
    whole = core.tree.below(folder)
    has_history = (tree / _GIT).is_dir()
    files = tuple(f for f in whole.files if not (has_history and f.path.startswith(_GIT)))
    missing = [file for file in files if not os.path.lexists(tree / file.path)]
    links = {p: to for p, to in whole.links.items() if not os.path.lexists(tree / p)}
    fetch_tree(store, Tree(files=tuple(missing), links=links, empty=whole.empty), tree)
    keep_recorded_times(files, tree)
    return files


def set_up(
    development: OpenDevelopment,
    steps: DevelopSteps,
    core: tuple[File, ...],
    on_line: Callable[[str], object],
) -> list[MadeFile]:
    """Bind a restored core to the cell's Python, build missing files, and install them.

    `core` are the core's files. Return ninja's outputs.
    """
    run = partial(development.run, on_line=on_line)
    for step in steps.bind:
        run(step)
    keep_recorded_times(core, development.tree)
    made = development.build(on_line)
    for step in steps.prepare:
        run(step)
    development.install(steps.install, on_line)
    run(steps.describe)
    development.install_editable()
    development.write_commands()
    return made
