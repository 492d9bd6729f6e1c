"""Names of others reach no terminal with control characters, whatever command prints them."""

import ast
import gzip
import io
import json
import re
import zipfile
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest
from rich.live import Live
from rich.text import Text
from tests.support.helpers import ROOT, SMALL, Command
from tests.support.made_wheel import make_wheel

from torchyard.cli.build_display import gitlab
from torchyard.errors import Diagnostic, Span, UsageError
from torchyard.model.canonical import fingerprint
from torchyard.model.event import Began, Ended, Noted, Started
from torchyard.model.job_spec import SPEC_FILE, JobSpec, Task
from torchyard.model.recipe import Stage
from torchyard.model.result import Result, Usage
from torchyard.model.values import Reported
from torchyard.store.store import Store
from torchyard.store.trees import Writer
from torchyard.terminal import console
from torchyard.terminal.board import Board, BoardView
from torchyard.terminal.json_output import encode
from torchyard.terminal.safe_console import SafeConsole
from torchyard.terminal.tables import table
from torchyard.terminal.untrusted import neutral, printable

EVIL = "\x1b]0;owned\x07\x1b[2J\x9b31m\x7f\u202ea\u2066b\u2028c\rd\x08\x00"
HOSTILE = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]")
ON_LINUX = EVIL.replace("\x00", "").replace("/", "")
"""As a file may be called."""


# ------------------------------------------------------------------------------------- streams


@pytest.mark.parametrize(
    "character", sorted(set(HOSTILE.findall("".join(map(chr, range(0x2100))))))
)
def test_no_control_character_stays(character: str) -> None:
    assert neutral(f"a{character}b\n\tc") == f"a{character.encode('unicode_escape').decode()}b\n\tc"
    assert printable(character) == character.encode("unicode_escape").decode()


def test_only_colours_of_a_log_stay() -> None:
    assert neutral("\x1b[1;31mred\x1b[0m\x1b[2J", colours=True) == "\x1b[1;31mred\x1b[0m\\x1b[2J"
    assert neutral("\x1b[31mred") == "\\x1b[31mred"


ERROR = UsageError("what " + EVIL, hint=EVIL, span=Span(f"f{EVIL}.toml", 1, 3, 2, f"a {EVIL} = 1"))


@pytest.mark.parametrize(
    "put",
    [
        lambda: console.show(EVIL),
        lambda: console.show(Text(EVIL, style="bold")),
        lambda: console.show(table(("a", EVIL), [[EVIL, Text(EVIL)]])),
        lambda: console.talk(EVIL, Text(EVIL)),
        lambda: console.say(EVIL),
        lambda: console.write(EVIL),
        lambda: console.warn([EVIL]),
        lambda: console.print_error(ERROR),
        lambda: console.print_error(UsageError.of([Diagnostic(EVIL), Diagnostic(EVIL)])),
    ],
    ids=["text", "style", "table", "talk", "say", "write", "warn", "error", "errors"],
)
def test_every_way_out_is_neutral(
    put: Callable[[], None], capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    put()
    out, err = capfdbinary.readouterr()
    assert "owned" in (out + err).decode()
    assert not HOSTILE.search((out + err).decode())


def test_a_caret_is_under_what_is_wrong() -> None:
    line = '\x1b = "x"'
    error = Diagnostic("wrong", Span("f.toml", 1, line.index("x") + 1, 1, line))
    _, _, text, caret, *_ = (str(part) for part in console.render_diagnostic(error, 80))
    assert text.index('x"') == caret.index("^")


def test_own_styles_stay() -> None:
    out = io.StringIO()
    SafeConsole(file=out, force_terminal=True, width=100).print(Text(EVIL, style="bold"))
    assert out.getvalue().startswith("\x1b[1m")
    assert not HOSTILE.search(re.sub(r"\x1b\[[0-9;]*m", "", out.getvalue()))


def test_a_live_board_is_neutral() -> None:
    board = Board()
    board(Began(project=EVIL, store=EVIL, jobs=1, needed=1, cached=0, slots=1))
    board(Started(job=f"core:{EVIL}", fingerprint="", worker=EVIL))
    board(Noted(job=EVIL, text=EVIL))
    board(Ended(job="core:x", outcome="failed", fingerprint="", why=EVIL))
    out = io.StringIO()
    safe = SafeConsole(file=out, force_terminal=True, width=100)
    with Live(BoardView(board, 1.0), console=safe, refresh_per_second=1):
        safe.print(EVIL)
    own = re.sub(r"\x1b\[(?:[0-9;]*m|\?25[lh]|2K|1A)|\r", "", out.getvalue())
    assert "owned" in own
    assert not HOSTILE.search(own)


def test_logs_are_neutral_on_a_terminal_only(monkeypatch: pytest.MonkeyPatch) -> None:
    evil = f"\x1b[31m{EVIL} ü\n".encode()
    pieces = [evil[:15], evil[15:]]
    for is_terminal in (False, True):
        raw = io.BytesIO()
        stream = io.TextIOWrapper(raw)
        monkeypatch.setattr(stream, "isatty", lambda there=is_terminal: there)
        monkeypatch.setattr("sys.stdout", stream)
        monkeypatch.setattr("sys.stderr", stream)
        console.relay(pieces)
        console.write_error(evil)
        got = raw.getvalue()
        if is_terminal:
            assert got.startswith(b"\x1b[31m")
            assert not HOSTILE.search(got.decode().replace("\x1b[31m", ""))
            assert "ü" in got.decode()
        else:
            assert got == evil * 2


def test_a_folded_log_ends_where_we_say() -> None:
    lines = [neutral(EVIL, colours=True)]
    assert not HOSTILE.search("".join(list(gitlab("log", lines))[1:-1]))


def test_json_has_no_control_characters() -> None:
    class Said(Reported, kw_only=True):
        text: str

    data = encode(Said(text=EVIL))
    assert not HOSTILE.search(data.decode())
    assert json.loads(data) == {"text": EVIL}


WRITERS = {
    "cli/main.py": "the interruption, and tracebacks, which it neutralises",
    "toolchain/rattler_child.py": "a child that speaks JSON",
    "host/fork_server.py": "how a forked job ended, into the file that `write_error` shows",
}


def test_nothing_else_writes_to_a_stream() -> None:
    """All output of commands goes through `terminal`; a new way out has to be in the list."""
    found = set()
    for top in (ROOT / "src/torchyard", ROOT / "farm/src/torchyard_farm"):
        for path in top.rglob("*.py"):
            name = path.relative_to(top).as_posix()
            if name.startswith(("terminal/", "data/")):
                continue
            for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
                if isinstance(node, ast.Call) and _is_writer(ast.unparse(node.func)):
                    found.add(name)
    assert found == set(WRITERS)


def _is_writer(called: str) -> bool:
    return called in {"print", "click.echo", "click.secho", "echo", "Console"} or bool(
        re.fullmatch(r"sys\.(?:stdout|stderr)(?:\.buffer)?\.write(?:lines)?", called)
    )


# ------------------------------------------------------------------------------------ commands


def _task() -> Task:
    scope = f"{ON_LINUX}/x"
    payload = {
        "inputs": [],
        "recipe": "pytorch",
        "scope": scope,
        "settings": {},
        "stage": "core",
        "stage_revision": 1,
    }
    return Task(
        id=f"core:demo-1.0/{scope}",
        stage=Stage.CORE,
        stage_revision=1,
        scope=scope,
        recipe="pytorch",
        fingerprint=fingerprint(payload),
        inputs=(),
    )


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A directory with a store, wheels and configurations, all with hostile names."""
    monkeypatch.chdir(tmp_path)
    _fill_store(tmp_path)
    good = make_wheel(tmp_path, tag="cp312-cp312-linux_x86_64")
    bad = tmp_path / "bad"
    bad.mkdir()
    spec = JobSpec(tasks=(_task(),))
    with zipfile.ZipFile(good) as old, zipfile.ZipFile(bad / good.name, "w") as new:
        for info in old.infolist():
            text = old.read(info)
            if info.filename.endswith("METADATA"):
                text += f"Requires-Dist: {EVIL}\nLicense: {EVIL}\n".encode()
            new.writestr(info, text)
        new.writestr(f"demo/{EVIL[1:-1]}.py", EVIL)
        new.writestr(f"demo/{ON_LINUX}/_version.py", "1.0")
        new.writestr(f"demo-1.0.dist-info/{SPEC_FILE}", msgspec.json.encode(spec))
    twin = tmp_path / ON_LINUX
    twin.mkdir()
    (twin / good.name).write_bytes((bad / good.name).read_bytes())
    (tmp_path / "torchyard.toml").write_text(SMALL, encoding="utf-8")
    (tmp_path / "bad.toml").write_text(
        f"[project] # {EVIL[2:7]}\nname = 3 # \u202e\u2066{EVIL[8:12]}\n"
    )
    (tmp_path / "odd.toml").write_text(SMALL.replace('name = "torch"', 'name = "a\\u001b[2J"'))
    return tmp_path


def _fill_store(folder: Path) -> None:
    store, out = Store.at(str(folder / "store")), folder / "out"
    out.mkdir()
    (out / ON_LINUX).write_text("x")
    log = folder / "log.gz"
    log.write_bytes(gzip.compress(b"a log\n"))
    writer, task = Writer(store), _task()
    result = Result(
        fingerprint=task.fingerprint,
        spec=JobSpec(tasks=(task,)),
        tree=writer.add_tree(out),
        log=writer.add_file(log, "log.gz"),
        steps=(Usage(step=EVIL, seconds=1, cpu=1, memory=1, disk=1),),
        facts={EVIL: EVIL},
        machine=EVIL,
        started=EVIL,
        torchyard=EVIL,
        run="0" * 16,
    )
    writer.publish(result)


WHEEL = "demo-1.0-cp312-cp312-linux_x86_64.whl"
STORE = ("--store", "store")
COMMANDS = {
    "check": ("check", f"bad/{WHEEL}"),
    "check a path": ("check", f"{ON_LINUX}/{WHEEL}"),
    "check a policy": ("check", f"bad/{WHEEL}", "--policy", EVIL[:-1]),
    "diff": ("diff", WHEEL, f"bad/{WHEEL}"),
    "repair": ("repair", f"bad/{WHEEL}", "-o", "new", "--version", "2.0"),
    "repair to": ("repair", WHEEL, "-o", f"new{ON_LINUX}", "--version", "2.0", "--no-check"),
    "rebuild": ("rebuild", f"bad/{WHEEL}", "--work", "again"),
    "store ls": ("store", "ls", *STORE),
    "store show": ("store", "show", "*", *STORE),
    "store get": ("store", "get", "*", *STORE, "-o", "got"),
    "store get to": ("store", "get", "*", *STORE, "-o", f"got{ON_LINUX}"),
    "store get nothing": ("store", "get", EVIL[:-1], *STORE, "-o", "got"),
    "store verify": ("store", "verify", *STORE),
    "store gc": ("store", "gc", *STORE, "--grace", "0", "--dry-run"),
    "store at": ("store", "ls", "--store", f"no{ON_LINUX}"),
    "plan of a bad file": ("plan", "-f", "bad.toml"),
    "plan of an odd file": ("plan", "-f", "odd.toml"),
    "plan a cell": ("plan", EVIL[:-1]),
    "config": ("config", "show", "-f", "odd.toml"),
    "explain": ("explain", EVIL[:-1]),
    "a rule": ("explain", "rule", EVIL[:-1]),
    "run": ("run", EVIL[:-1]),
    "publish": ("publish", f"bad/{WHEEL}", "--to", "channel"),
    "mirror": ("channel", "mirror", f"bad{EVIL[:-1]}", "channel", "x"),
    "which": ("which", EVIL[:-1], "--channel", "channel"),
    "channel check": ("channel", "check", EVIL[:-1]),
    "no command": (EVIL[:-1],),
    "no option": ("check", f"--{EVIL[:-1]}"),
}


@pytest.mark.parametrize("name", COMMANDS)
def test_no_command_prints_control_characters(
    name: str, place: Path, torchyard: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("FORCE_COLOR", raising=False)
    done = torchyard(*COMMANDS[name])
    said = done.out + done.err
    assert said
    assert done.code != 1, said
    assert not HOSTILE.search(said), said.encode("unicode_escape")
