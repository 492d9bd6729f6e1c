"""Turn the failure of a step into an error with its cause."""

import re
import shlex
import shutil
import signal
from collections import deque
from collections.abc import Iterable, Iterator
from contextlib import suppress
from itertools import islice
from pathlib import Path

import msgspec

from torchyard.config.failures import load_failures
from torchyard.config.recipes import known_recipes
from torchyard.errors import (
    BuildError,
    Diagnostic,
    ElsewhereError,
    HostError,
    Span,
    TorchyardError,
    all_errors,
)
from torchyard.host.files import FULL
from torchyard.host.untrusted_tree import EntryKind, UntrustedTree
from torchyard.model.failure import Diagnosis, ExtensionRemedy, Found, Kind, LogLine, SourceLocation
from torchyard.model.matrix import any_match
from torchyard.model.recipe import Stage
from torchyard.model.step import OWN
from torchyard.run.diagnose import diagnose_stream
from torchyard.run.failure_patterns import QUOTED_SOURCE
from torchyard.run.log import Log, lines_before, lines_since
from torchyard.run.steps import StepContext, StepError

_ROOTS = ("build", "inputs/source")
"""The directories of project files in the directory of a job."""
_SUFFIXES = (".py", ".toml", ".cfg", ".txt", ".cmake", ".cpp", ".cc", ".cu", ".c", ".h", ".cuh")
_GENERATED = re.compile(r"^(?:build|dist)/|\.egg-info/|/CMakeFiles/|\.txt/|(?<!CMakeLists)\.txt$")
_MOST = 20_000
"""The most entries of a directory to look at."""
_LARGEST = 1 << 20


def blamed_line(diagnosis: Diagnosis, job: Path, work: str) -> Span | None:
    """Return the source line that the known failure searches for, or that the log names.

    `work` is the job's directory as its steps see it.
    """
    if diagnosis.find:
        with suppress(HostError, OSError), UntrustedTree(job, _ROOTS[0]) as tree:
            if found := next(_search(tree, re.compile(diagnosis.find, re.MULTILINE)), None):
                return found
    location = diagnosis.where or SourceLocation(file="", line=1)
    for root in _ROOTS:
        name = location.file.removeprefix(f"{work}/").removeprefix(f"{root}/")
        with suppress(HostError, OSError, IndexError), UntrustedTree(job, root) as tree:
            text = _read(tree, name).splitlines()[location.line - 1].rstrip()
            start = location.column or len(text) - len(text.lstrip()) + 1
            length = 1 if location.column else len(text.strip())
            return Span(name, location.line, start, length, text)
    return None


def _search(tree: UntrustedTree, wanted: re.Pattern[str]) -> Iterator[Span]:
    """Yield the first matching line of each file, in files near the top first."""
    names = [
        entry.path
        for entry in islice(tree.walk(partly=True), _MOST)
        if entry.kind is EntryKind.FILE
        and entry.path.endswith(_SUFFIXES)
        and not _GENERATED.search(entry.path)
    ]
    for name in sorted(names, key=lambda name: (name.count("/"), name)):
        text = _read(tree, name)
        if found := wanted.search(text):
            number = text.count("\n", 0, found.start()) + 1
            line = text.splitlines()[number - 1]
            column = found.start() - text.rfind("\n", 0, found.start())
            yield Span(name, number, column, len(found[0].splitlines()[0]), line)


def _read(tree: UntrustedTree, name: str) -> str:
    with tree.open_file(name) as file:
        return file.read(_LARGEST).decode(errors="replace")


_KILLED = (-signal.SIGKILL, 128 + signal.SIGKILL)
"""The exit codes of a killed program and of its shell."""

_SMOKE = "smoke"
"""The stage of known failures in output of torchyard's own steps."""

_SHOWN, _WIDE = 4, 150
"""The most lines of a log to show, and the most characters of each: two terminal lines."""

_UNFILLED = re.compile(r"<\w+>")
"""A group in a text that matched nothing."""

_LINES, _WIDTH = 1000, 2000
"""The most lines and characters to show of output of torchyard's own steps."""


def explained(error: StepError, context: StepContext, log: Log) -> TorchyardError:
    """Return the error for a failed step, with the cause in its log, the kind, and a fix."""
    failed = _explained(error, context)
    with suppress(OSError):  # the disk may be the cause
        log.add(f"== {error}")
    return failed


def _explained(error: StepError, context: StepContext) -> TorchyardError:
    path, failures = context.workdir.log, load_failures()
    with path.open("rb") as stream:
        stream.seek(error.mark)
        diagnosis = diagnose_stream(stream, failures).causes[0]
    kind = _kind(context, error, diagnosis)
    is_own = error.step.run[: len(OWN)] == (context.words()["self"], *OWN[1:])
    if is_own and error.ended.code in _own_classes():  # otherwise, a program that it ran has failed
        result, failure = _own_error(context, error, kind), failures.get(diagnosis.name or "")
        if failure is not None and failure.stage == _SMOKE:
            known = Diagnostic(
                diagnosis.title or "", hint=_what_helps(context, diagnosis, kind, None)
            )
            result.diagnostics = (known, *result.diagnostics)
        return result
    if error.ended.code in _KILLED:
        diagnosis = _killed(diagnosis)
    return _error(context, error, diagnosis, kind)


def _own_classes() -> dict[int, type[TorchyardError]]:
    """Return torchyard's errors by exit code, without 1, which any program uses."""
    return {known.exit_code: known for known in all_errors() if known is not TorchyardError}


def _own_error(context: StepContext, error: StepError, kind: Kind) -> TorchyardError:
    """Return the error that a step of torchyard itself has printed."""
    text = "\n".join((str(error), *_last_lines(context.workdir.log, error.mark)))
    own = _own_classes()[error.ended.code] if kind is Kind.BUILD else _class_of(kind)
    return own(text, hint=_look_around(context), reason=kind.value)


def _last_lines(path: Path, mark: int) -> Iterable[str]:
    """Return the end of a log: torchyard's own steps may pass on a package's output."""
    return deque((line[:_WIDTH] for line in lines_since(path, mark)), maxlen=_LINES)


def _kind(context: StepContext, error: StepError, diagnosis: Diagnosis) -> Kind:
    """Return the kind of a failure; the machine's state takes precedence over the log."""
    if error.ended.code in _KILLED:
        return Kind.MEMORY  # only the OOM killer kills compilers
    if shutil.disk_usage(context.workdir.folder).free < FULL:
        return Kind.DISK
    network = error.step.network or context.sandbox.kind != "bwrap"
    return diagnosis.kind if diagnosis.elsewhere(network=network) else Kind.BUILD


def _class_of(kind: Kind) -> type[BuildError | ElsewhereError]:
    return BuildError if kind is Kind.BUILD else ElsewhereError


def _flags(context: StepContext) -> str:
    """Return the options with which `torchyard shell` finds the same directory."""
    file, work = Path(context.file), context.workdir.folder.parent
    if not file.exists():  # the spec came without its file
        spec = context.workdir.spec_path
        return "".join(
            f" --{name} {shlex.quote(str(value))}"
            for name, value in (("spec", spec), ("store", context.store), ("work", work))
        )
    flags = "" if file == Path.cwd() / "torchyard.toml" else f" -f {shlex.quote(str(file))}"
    usual = file.parent / ".torchyard" / "work"
    return flags if work == usual else f"{flags} --work {shlex.quote(str(work))}"


def _look_around(context: StepContext) -> str:
    """Return the commands that show more, with the job's name unless it is the file's last one."""
    flags, log = _flags(context), context.workdir.log
    if "--spec" in flags:
        return f"look around: torchyard shell {context.workdir.spec.task.id}{flags}  (log: {log})"
    more = f"more of the log: torchyard diagnose{flags}"
    return f"{more}; look around: torchyard shell{flags}  (log: {log})"


def _killed(diagnosis: Diagnosis) -> Diagnosis:
    """Return the diagnosis with the explanation of killed steps, whatever is in the log."""
    known = load_failures()["killed"]
    return msgspec.structs.replace(diagnosis, title=known.title, cause=known.cause, fix=known.fix)


def _error(
    context: StepContext, error: StepError, diagnosis: Diagnosis, kind: Kind
) -> TorchyardError:
    """Return the error for a step's program: its cause, a fix, and the failed step."""
    last = diagnosis.line.text.strip() if diagnosis.line else ""
    if not diagnosis.title:  # a project's own message, which may be in its code
        diagnosis = msgspec.structs.replace(diagnosis, find=re.escape(last))
    span = blamed_line(diagnosis, context.workdir.job, context.words()["work"])
    what, at = diagnosis.title or last, diagnosis.where
    if span is None and (at or diagnosis.unit):
        what += f" ({at.file}:{at.line})" if at else f" ({diagnosis.unit})"
    what = _shortened(what, context) + _excerpt(context, error, diagnosis, span)
    cause = Diagnostic(what, span, _what_helps(context, diagnosis, kind, span))
    result = _class_of(kind)(str(error), hint=_look_around(context), reason=kind.value)
    if diagnosis.title or last:
        result.diagnostics = (cause, *result.diagnostics)
    return result


def _excerpt(
    context: StepContext, error: StepError, diagnosis: Diagnosis, span: Span | None
) -> str:
    """Return the lines of the log around the most telling one."""
    telling = diagnosis.line.number if diagnosis.line else 0
    once = {line.text: line for line in diagnosis.lines}.values()
    lines = [line for line in once if not (span and _is_code(line, diagnosis))]
    nearest = sorted(lines, key=lambda line: abs(line.number - telling))[:_SHOWN]
    before = lines_before(context.workdir.log, error.mark)
    return "".join(
        f"\n{before + line.number:>6} | {_shortened(line.text, context)[:_WIDE]}"
        for line in sorted(nearest, key=lambda line: line.number)
    )


def _is_code(line: LogLine, diagnosis: Diagnosis) -> bool:
    """Return whether a line of a log quotes code, or names a frame."""
    is_frame = diagnosis.found is Found.PYTHON and line.text.startswith("  ")
    return is_frame or QUOTED_SOURCE.match(line.text) is not None


def _shortened(text: str, context: StepContext) -> str:
    """Return a line of a log without the job's directory."""
    work = context.words()["work"]
    return text.replace(f"{work}/build/", "").replace(f"{work}/", "")


def _switch_lines(context: StepContext, remedy: ExtensionRemedy) -> str:
    """Return the lines that set a variable that the project reads; empty if it reads none."""
    from torchyard.toolchain.reading.project import (  # noqa: PLC0415 - few failures need it
        read_project,
    )

    read = read_project(context.workdir.inputs / Stage.SOURCE).switches if remedy.switches else ()
    for switch in read:
        if any_match(switch.text, remedy.switches):
            return remedy.set.replace("<switch>", switch.text).replace("<where>", switch.where)
    return ""


def _what_helps(
    context: StepContext, diagnosis: Diagnosis, kind: Kind, span: Span | None
) -> str | None:
    """Return the fix; for an extension, with the lines to add to its file."""
    remedy, recipe = diagnosis.extension, known_recipes().get(context.workdir.spec.task.recipe)
    if remedy is None or recipe is None or not recipe.is_extension:
        if diagnosis.kind is Kind.NETWORK and kind is Kind.BUILD:
            return "the sandbox gives this step no network: write network = true if it needs one"
        return f"{diagnosis.cause} {diagnosis.fix}" if diagnosis.title else None
    lines = (_switch_lines(context, remedy) or remedy.add).strip()
    lines = lines.replace("<file>", span.file if span else "<file>")
    if "<sm>" in lines and (archs := context.workdir.spec.compiled.words("archs")):
        lines = lines.replace("<sm>", archs[0].replace(".", ""))
    if not lines or _UNFILLED.search(lines):
        return remedy.fix
    return f"{remedy.fix} In {Path(context.file).name}:\n    " + lines.replace("\n", "\n    ")
