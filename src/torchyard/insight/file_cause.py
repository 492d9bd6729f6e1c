"""Why ninja made a file again, or is about to."""

import re
import shutil
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

from torchyard.errors import BuildError, SelectionError
from torchyard.host.process import capture
from torchyard.insight.build_record import BUILD_FILE, LOG, left_by_ninja, read_edges
from torchyard.insight.job_cause import RebuildCause
from torchyard.insight.ninja_file import Edge
from torchyard.insight.ninja_log import MadeOnce, read_history
from torchyard.model.suggest import did_you_mean
from torchyard.toolchain.ninja import ExplainedBuild

_DEPS = ".ninja_deps"
_SECONDS = 120.0
"""The time limit of ninja, which needs a second for PyTorch's build."""
_OTHER_LOG = re.compile(r"warning: (?:build|deps) log version")


class JobView(NamedTuple):
    """A sandbox's path of a job's directory, and the command that runs others in it."""

    job: Path
    seen_as: str
    enclose: Callable[[list[str]], list[str]]


class FileCauses:
    """Explains the files of a build directory; `view` is its job's."""

    def __init__(self, folder: Path, view: JobView | None = None) -> None:
        self.folder = folder
        self._view = view
        self._makers: dict[str, Edge] = {
            output: edge for edge in read_edges(folder) for output in edge.outputs
        }
        has_run = (folder / LOG).is_file()
        self._history = read_history(left_by_ninja(folder, LOG)) if has_run else {}

    def output(self, path: Path) -> str:
        """Return a file's name in the build."""
        resolved = path.resolve()
        name = str(path)
        if resolved.is_relative_to(self.folder.resolve()):
            name = str(resolved.relative_to(self.folder.resolve()))
        if name not in self._makers and self._view and resolved.is_relative_to(self._view.job):
            name = f"{self._view.seen_as}/{resolved.relative_to(self._view.job)}"
        if name in self._makers:
            return name
        msg = f"`{path}` is not made in `{self.folder}`"
        known = [maker for maker in self._makers if maker.endswith(path.suffix or "")]
        raise SelectionError(msg, hint=did_you_mean(name, known[:1000]))

    def pending(self, output: str) -> RebuildCause | None:
        """Return why ninja would make a file now, or None if it would not."""
        explained = ExplainedBuild()
        text = self._ask("-d", "explain", output)
        for line in text.splitlines():
            explained.listen(line)
        path = self._search(output, explained)
        if not path:
            return None
        return _cause(path, explained.reason(path[-1]))

    def _search(self, output: str, explained: ExplainedBuild) -> list[str]:
        """Return the files from an output to the nearest one with its own reason."""
        before = {output: ""}
        waiting = deque([output])
        while waiting:
            name = waiting.popleft()
            if explained.reason(name):
                return _path_from(before, name)
            edge = self._makers[name]
            for needed in (*edge.inputs, *edge.ordered):  # generated headers are order-only inputs
                if needed in self._makers and needed not in before:
                    before[needed] = name
                    waiting.append(needed)
        return []

    def past(self, output: str) -> RebuildCause:
        """Return why a file was last made."""
        path = [output]
        while True:
            reason, following = self._last_reason(path[-1])
            if following is None or following in path:
                return _cause(path, reason)
            path.append(following)

    def _last_reason(self, output: str) -> tuple[str, str | None]:
        """Return why a file was made, or the generated file that caused it."""
        times = self._history.get(output, [])
        if len(times) < 2:  # noqa: PLR2004 - once is no comparison
            return "it had not been made before", None
        before, last = times[-2:]
        if before.command != last.command:
            return "its command changed", None
        newer = min(self._newer(output, before), default=None)
        if newer is None:
            return "it was missing, or an input has its old time again", None
        name = newer[1]
        return f"{name} was newer", name if name in self._makers else None

    def _newer(self, output: str, before: MadeOnce) -> Iterator[tuple[int, str]]:
        for name in (*self._makers[output].inputs, *self._included(output)):
            path = self.folder / name
            if self._view and path.is_relative_to(self._view.seen_as):
                path = self._view.job / path.relative_to(self._view.seen_as)
            if path.exists() and path.stat().st_mtime_ns > before.time:
                yield path.stat().st_mtime_ns, name

    def _included(self, output: str) -> list[str]:
        """Return the headers that a compiler reported to ninja."""
        text = self._ask("-t", "deps", output)
        return [line.strip() for line in text.splitlines() if line.startswith("    ")]

    def _ask(self, *words: str) -> str:
        """Run ninja on copies of its logs: it deletes logs that it can't read, even with -n."""
        with TemporaryDirectory(prefix="torchyard-why-") as scratch:
            for name in (LOG, _DEPS):
                if (self.folder / name).is_file():
                    shutil.copy2(self.folder / name, scratch)
            file = Path(scratch, BUILD_FILE)
            file.write_text(f"include {BUILD_FILE}\nbuilddir = {scratch}\n", encoding="utf-8")
            ninja = ["ninja", "-n", "-f", str(file), *words]
            if self._view:
                ninja = self._view.enclose(ninja)
            try:
                text = capture(ninja, cwd=self.folder, talk=True, limit=_SECONDS)
            except TimeoutError as error:
                msg = f"ninja has not read `{self.folder}` in {_SECONDS:g} s"
                hint = (
                    f"see where `ninja -n` waits there: is a file that {BUILD_FILE} names a pipe?"
                )
                raise BuildError(msg, hint=hint) from error
        if _OTHER_LOG.search(text):
            msg = f"ninja can't read the log in `{self.folder}`: another version has built there"
            raise BuildError(msg, hint="put the ninja that built there first in PATH")
        return text


def build_folder(path: Path) -> Path | None:
    """Return the build directory of a file, or None."""
    for folder in path.absolute().parents:
        if (folder / BUILD_FILE).is_file():
            return folder
    return None


def _path_from(before: dict[str, str], name: str) -> list[str]:
    path = [name]
    while before[path[-1]]:
        path.append(before[path[-1]])
    return path[::-1]


def _cause(path: Sequence[str], reason: str) -> RebuildCause:
    """Describe a path's last file as the cause of its first."""
    first, last = path[0], path[-1]
    if first != last and reason.startswith(("it ", "its ")):
        subject = reason.partition(" ")[2]
        reason = f"{last} {subject}" if reason.startswith("it ") else f"{last}'s {subject}"
    return RebuildCause(reason, tuple(path[1:]))
