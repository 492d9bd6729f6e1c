"""`torchyard diagnose`: logs of any kind, for people and for machines."""

import gzip
import sys
import tomllib
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, cast

import msgspec
import pytest
from tests.support.helpers import Command
from tests.support.schemas import validate

from torchyard.config.failures import check_failures, load_failures
from torchyard.config.tables import parse_data
from torchyard.errors import SmokeError
from torchyard.host.child import Exit
from torchyard.host.files import read_data
from torchyard.model.failure import Certainty, Failure, Found
from torchyard.model.step import OWN, Step
from torchyard.run import log_text
from torchyard.run.diagnose import diagnose_log, diagnose_pieces, templates_of
from torchyard.run.draft_failure import draft_failure
from torchyard.run.failure import explained
from torchyard.run.failure_patterns import FailurePatterns
from torchyard.run.log import Log
from torchyard.run.log_text import LogText, pieces_of_lines
from torchyard.run.steps import StepError

if TYPE_CHECKING:
    from torchyard.run.steps import StepContext

FAILURES = load_failures()
ERROR = "/src/a.cpp:3:9: error: 'x' was not declared in this scope"
LOG = f"""\
cmake -GNinja -DUSE_CUDA=ON -DUSE_MKLDNN=OFF ..
--   USE_CUDA              : OFF
--   USE_MKLDNN            : OFF
[1/3] Building CXX object a.o
FAILED: [code=1] a.o
/usr/bin/c++ -c /src/a.cpp -o a.o
{ERROR}
[2/3] Building CXX object b.o
ninja: build stopped: subcommand failed.
"""


@pytest.fixture
def log(tmp_path: Path) -> Path:
    path = tmp_path / "build.log"
    path.write_text(LOG)
    return path


def test_text(torchyard: Command, log: Path) -> None:
    shown = torchyard("diagnose", log)
    assert shown.code == 0
    assert shown.out.splitlines()[:5] == [
        f"{log}: 9 lines",
        "",
        "The compiler rejects the code: 'x' was not declared in this scope  (likely)",
        "  5 FAILED: [code=1] a.o",
        f"> 7 {ERROR}",
    ]
    assert "unit   /src/a.cpp" in shown.out
    assert "left out without an error" in shown.out
    assert "   2 certain USE_CUDA was asked for and is off" in shown.out
    assert "USE_MKLDNN" not in shown.out


def test_json_follows_its_schema(torchyard: Command, log: Path) -> None:
    shown = torchyard("diagnose", log, "--json")
    document = msgspec.json.decode(shown.out)
    validate(document, "diagnose")
    (cause,) = document["causes"]
    assert (cause["name"], cause["line"]) == ("compiler-error", {"number": 7, "text": ERROR})
    assert (cause["certainty"], cause["found"], cause["unit"]) == ("likely", "ninja", "/src/a.cpp")
    assert [lost["title"] for lost in document["lost"]] == ["USE_CUDA was asked for and is off"]


def test_compressed_and_of_powershell(torchyard: Command, tmp_path: Path) -> None:
    (tmp_path / "a.gz").write_bytes(
        gzip.compress(LOG[:50].encode()) + gzip.compress(LOG[50:].encode())
    )
    (tmp_path / "b.txt").write_bytes(b"\xff\xfe" + LOG.replace("\n", "\r\n").encode("utf-16-le"))
    for name in ("a.gz", "b.txt"):
        document = msgspec.json.decode(torchyard("diagnose", tmp_path / name, "--json").out)
        assert document["causes"][0]["line"]["text"] == ERROR


def test_what_a_passed_build_says_does_not_count(torchyard: Command, tmp_path: Path) -> None:
    noise = "probe-{}: error: curses is missing, going on without\n"
    bad, good = tmp_path / "bad", tmp_path / "good"
    bad.write_text(noise.format(12) + "all is quiet\n" * 20 + "fatal: the disk is upside down\n")
    good.write_text(noise.format(7) + "done\n")
    before = msgspec.json.decode(torchyard("diagnose", bad, "--json").out)
    after = msgspec.json.decode(torchyard("diagnose", bad, "--passed", good, "--json").out)
    assert before["causes"][0]["line"]["number"] == 1
    assert [cause["line"]["number"] for cause in after["causes"]] == [22]
    assert (before["passed"], after["passed"]) == (0, 1)


def test_own_failures_come_first(torchyard: Command, tmp_path: Path, log: Path) -> None:
    drafted = torchyard("diagnose", "--learn", log)
    assert "known already, as compiler-error" in drafted.err
    own = tmp_path / "own.toml"
    own.write_text(drafted.out)
    ((name, row),) = tomllib.loads(drafted.out).items()
    assert row["pattern"] == "error: '(?P<name>[^']{1,300})' was not declared in this scope"
    found = msgspec.json.decode(torchyard("diagnose", log, "--failures", own, "--json").out)
    assert found["causes"][0]["name"] == name
    own.write_text(drafted.out.replace("{1,300}", "{3,300}"))
    refused = torchyard("diagnose", log, "--failures", own)
    assert refused.code != 0
    assert "has an example that its pattern does not match" in refused.err


@pytest.mark.parametrize(
    "line",
    [
        "gperf: the keyword table 'a' is upside down at 0x7f12 in /tmp/x.gperf",
        "E42",
        "tool: (unbalanced [brackets* + \\d in a message",
        '/src/k.cu(12): error: it\'s "odd"',
    ],
)
def test_every_draft_is_valid(line: str) -> None:
    name, entry = draft_failure(diagnose_log([line], {}))
    rows = {name: entry}
    if line != "E42":
        check_failures(rows)
        assert diagnose_log([line], rows).name == name


def test_a_missing_log_is_named(torchyard: Command, tmp_path: Path) -> None:
    for source in (tmp_path / "none.log", tmp_path):
        shown = torchyard("diagnose", source)
        assert shown.code == 2
        assert "there is no log" in shown.err


def test_times_colours_and_streams_are_taken_off() -> None:
    lines = (
        f"2026-07-30T10:39:20.7140484Z {ERROR}",
        f"[2026-07-30T10:39:20.714Z] {ERROR}",
        f"2026-07-30T10:39:20.714848Z 01O {ERROR}",
        f"#12 34.56 {ERROR}",
        f"[12:01:02] {ERROR}",
        f"\x1b_bk;t=123\x07\x1b[31m{ERROR}\x1b[0m",
        ERROR.replace("error:", "\x1b[01;31m\x1b[Kerror:\x1b[m\x1b[K"),
    )
    for line in lines:
        assert diagnose_log([line], FAILURES).lines[0].text == ERROR


@pytest.mark.parametrize("size", [1, 7, 64, 1000])
def test_the_size_of_pieces_does_not_matter(size: int, monkeypatch: pytest.MonkeyPatch) -> None:
    data = f"\x1b[1m{LOG}\x1b[0m".encode()
    monkeypatch.setattr(log_text, "BEFORE", 200)
    pieces = [data[i : i + size] for i in range(0, len(data), size)]
    assert diagnose_pieces(pieces, FAILURES) == diagnose_pieces([data], FAILURES)


def test_a_line_without_end_takes_little_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(log_text, "PIECE", 1000)
    text = LogText([b"x" * 900] * 50 + [b"\nend\n"], lambda *_: [])
    assert len(text.next() or "") <= 2000
    assert text.next() == "end"
    assert text.number == 2


def test_recent_lines_and_numbers() -> None:
    def signs(text: bytes, begin: int, end: int) -> list[int]:
        return [i for i in range(begin, end) if text[i] == ord("!")]

    text = LogText(pieces_of_lines(["a", "b", "", "c!", "d"]), signs)
    assert text.next_sign(edges=False) == "c!"
    assert (text.number, text.recent(2)) == (4, [(1, "a"), (2, "b")])
    assert text.next_sign(edges=False) is None
    assert (text.number, text.recent(2)) == (5, [(4, "c!"), (5, "d")])


def test_jump_to_the_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(log_text, "END", 50)
    text = LogText(pieces_of_lines(f"line {i}" for i in range(1000)), lambda *_: [])
    text.jump()
    assert text.next() == f"line {text.number - 1}"
    while text.next() is not None:
        pass
    assert text.number == 1000


def test_overlapping_literals_are_found() -> None:
    at_the_start = msgspec.structs.replace(next(iter(FAILURES.values())), pattern="^ERROR: ")
    search = FailurePatterns({"made": at_the_start}, ["undefined symbol: ", "symbol: x"])
    text = b"a: undefined symbol: x ERROR: yERROR: \nERROR: "
    assert search.signs(text, 0, len(text)) == [
        text.index(b"undef"),
        text.index(b"symbol"),
        text.index(b"ERROR"),
        text.rindex(b"ERROR"),
    ]
    assert search.signs(text, 5, len(text))[0] == text.index(b"symbol")


def test_thrust_has_two_owners() -> None:
    header = "c10/util/complex.h:8:10: fatal error: 'thrust/complex.h' file not found"
    rocm = f"FAILED: a.o\n/opt/rocm/bin/hipcc -c a.hip\n{header}".splitlines()
    cuda = f"FAILED: a.o\n/usr/local/cuda/bin/nvcc -c a.cu\n{header}".splitlines()
    assert diagnose_log(rocm, FAILURES).name == "rocm-thrust-missing"
    assert diagnose_log(cuda, FAILURES).name == "cuda-headers-missing"


def test_the_direction_of_an_abi_mismatch() -> None:
    old = "ImportError: x.so: undefined symbol: _ZN3c106detail14torchCheckFailEPKcS2_jRKSs"
    new = old.replace("RKSs", "RKNSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEEE")
    assert diagnose_log([old], FAILURES).name == "cxx11-abi-old-extension"
    assert diagnose_log([new], FAILURES).name == "cxx11-abi-new-extension"
    assert diagnose_log([new], FAILURES).certainty == Certainty.LIKELY


def test_steps_that_ended_well_are_forgotten() -> None:
    lines = [
        "== step 1/2: probe",
        "FAILED: probe.o",
        "cc -c probe.c",
        "probe.c:1:1: error: only a probe",
        "== ended well after 1.2 s",
        "== step 2/2: compile",
        "virtual memory exhausted: Cannot allocate memory",
    ]
    assert diagnose_log(lines, FAILURES).name == "no-memory"
    assert diagnose_log(lines[:5], FAILURES).found == Found.TAIL


def test_templates() -> None:
    found = templates_of([b"a.cpp:12:3: error: 0x7f at 1234567\nfine\n"], FAILURES)
    assert found == {"a.cpp:#:#: error: # at #"}


def test_contexts_are_checked() -> None:
    rows = parse_data("failures", read_data("failures.toml"), Failure)
    rows["rocm-thrust-missing"] = msgspec.structs.replace(
        rows["rocm-thrust-missing"], context="(unclosed"
    )
    with pytest.raises(Exception, match="has an invalid context, evidence or find"):
        check_failures(rows)


IN_SETUP = (
    'Traceback (most recent call last):\n  File "setuptools/build_meta.py", line 317, in run\n'
)
IN_ENVIRON = f'{IN_SETUP}  File "<frozen os>", line 679, in __getitem__\n'


@pytest.mark.parametrize(
    ("text", "add"),
    [
        (f"{IN_SETUP}ModuleNotFoundError: No module named 'cv2'", '["opencv-python-headless"]'),
        (f"{IN_SETUP}ModuleNotFoundError: No module named 'numpy'", '["numpy"]'),
        (f"{IN_ENVIRON}KeyError: 'DEMO_MAJOR'", 'env = { DEMO_MAJOR = "1" }'),
        (f"{IN_SETUP}KeyError: 'DEMO_MAJOR'", None),
        (f"{IN_SETUP}RuntimeError: DEMO_MAJOR env var must be set", 'env = { DEMO_MAJOR = "1" }'),
        (f"{IN_SETUP}ValueError: DEMO environment variable is not set", 'env = { DEMO = "1" }'),
        (f"{IN_SETUP}OSError: the environment variable `DEMO` has to be set", "{ DEMO ="),
        (f"{IN_SETUP}DemoError: please set the environment variable DEMO", "{ DEMO ="),
        (f"{IN_SETUP}ValueError: DEMO is not set", None),
    ],
)
def test_lines_to_add_have_what_was_missing(
    torchyard: Command, tmp_path: Path, text: str, add: str | None
) -> None:
    log = tmp_path / "log"
    log.write_text(f"{text}\n", encoding="utf-8")
    (cause, *_) = msgspec.json.decode(torchyard("diagnose", log, "--json").out)["causes"]
    found = (cause["extension"] or {}).get("add", "")
    assert add in found if add else not found


def test_a_smoke_test_that_lacks_a_module_is_told_what_to_add(tmp_path: Path) -> None:
    log = tmp_path / "log"
    line = "any/import.py failed (uv clean): ModuleNotFoundError: No module named 'a_b'"
    log.write_text(f"2026-11-17T19:00:00.000Z {line}\n", encoding="utf-8")
    step = Step(run=(sys.executable, *OWN[1:], "tool", "smoke"), name="try it")
    workdir = SimpleNamespace(
        log=log,
        folder=tmp_path,
        spec=SimpleNamespace(task=SimpleNamespace(id="smoke:x", recipe="extension")),
    )
    file = tmp_path / "torchyard.toml"
    file.touch()
    sandbox = SimpleNamespace(kind="bwrap")
    places = {"self": sys.executable}
    context = SimpleNamespace(
        workdir=workdir, sandbox=sandbox, file=str(file), words=lambda: places
    )
    error = StepError("smoke:x", step, Exit(14, 1.0, 1.0, 0), 0)
    with Log(log) as opened:
        found = explained(error, cast("StepContext", context), opened)
    assert "== smoke:x: `try it` failed with exit code 14" in log.read_text(encoding="utf-8")
    assert isinstance(found, SmokeError)
    first, second = found.diagnostics
    assert first.what == "The package imports a_b, and does not require it"
    assert '[project]\n    dependencies = ["a_b"]' in str(first.hint)
    assert "No module named 'a_b'" in second.what


@pytest.mark.parametrize(
    ("setup", "lines"),
    [
        ('os.getenv("DEMO_SMS", "")\n', 'env = { DEMO_SMS = "{sms}" }  # or {archs}: setup.py:2'),
        ("", "prepare = [\"sed -i -E 's/(compute|sm)_35/\\\\1_90/g' setup.py\"]"),
    ],
)
def test_an_architecture_that_the_project_asks_for_itself(
    tmp_path: Path, setup: str, lines: str
) -> None:
    """Its own variable is proposed if it reads one, or else another architecture in its code."""
    job = tmp_path / "job"
    for folder in (job / "inputs/source", job / "build"):
        folder.mkdir(parents=True)
        text = f"import os\n{setup}flags = ['-gencode', 'arch=compute_35,code=sm_35']\n"
        (folder / "setup.py").write_text(text, encoding="utf-8")
    line = "nvcc fatal   : Unsupported gpu architecture 'compute_35'"
    (log := tmp_path / "log").write_text(f"2026-11-17T19:00:00.000Z {line}\n", encoding="utf-8")
    compiled = SimpleNamespace(words=lambda _: ("9.0", "10.0"))
    task = SimpleNamespace(id="bindings:x", recipe="extension")
    workdir = SimpleNamespace(
        log=log,
        folder=tmp_path,
        job=job,
        inputs=job / "inputs",
        spec=SimpleNamespace(task=task, compiled=compiled),
    )
    places = {"self": sys.executable, "work": "/mnt/torchyard"}
    context = SimpleNamespace(
        workdir=workdir,
        sandbox=SimpleNamespace(kind="bwrap"),
        file=str(tmp_path / "torchyard.toml"),
        words=lambda: places,
        store="",
    )
    (tmp_path / "torchyard.toml").touch()
    error = StepError("bindings:x", Step(run=("build",)), Exit(1, 1.0, 1.0, 0), 0)
    with Log(log) as opened:
        found = explained(error, cast("StepContext", context), opened)
    cause = found.diagnostics[0]
    assert lines in (cause.hint or "")
    tomllib.loads((cause.hint or "").partition("torchyard.toml:\n")[2])
    assert "TORCH_CUDA_ARCH_LIST=" not in (cause.hint or "")
    assert cause.span
    assert cause.span.file == "setup.py"
