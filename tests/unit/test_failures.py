"""The table of known failures: every row can be found, cheaply, by its own example."""

import re
import subprocess
import time

import msgspec
import pytest

from torchyard.config.failures import check_failures, load_failures
from torchyard.config.tables import dump, header_of, parse_data
from torchyard.errors import DataError
from torchyard.host.files import read_data
from torchyard.model.failure import Certainty, Failure, Found, Kind, LineSeverity, literals
from torchyard.run.diagnose import diagnose_log, diagnose_pieces
from torchyard.run.failure_patterns import FailurePatterns, best

FAILURES = load_failures()
KNOWN = FailurePatterns(FAILURES)


def test_round_trip() -> None:
    text = read_data("failures.toml")
    assert dump(parse_data("failures", text, Failure), header_of(text)) == text


def test_names_are_unique_and_plain() -> None:
    tables = re.findall(r"^\[(.+)\]$", read_data("failures.toml"), re.MULTILINE)
    names = [name for name in tables if not name.endswith(".extension")]
    assert names == list(FAILURES)
    assert all(re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)*", name) for name in names)


@pytest.mark.parametrize("name", FAILURES)
def test_the_example_is_recognised(name: str) -> None:
    failure = FAILURES[name]
    texts = [*failure.example.splitlines(), " ".join(failure.example.split())]
    assert name in {match.name for text in texts for match in KNOWN.matches(text)}


@pytest.mark.parametrize("name", FAILURES)
def test_the_example_as_a_log_is_explained(name: str) -> None:
    failure = FAILURES[name]
    found = diagnose_pieces([failure.example.encode()], FAILURES)
    match failure.severity:
        case LineSeverity.FATAL | LineSeverity.DOUBTFUL:
            assert found.causes[0].name == name
        case LineSeverity.SILENT:
            assert [lost.name for lost in found.lost] == [name]
            assert found.causes[0].found == Found.TAIL
        case LineSeverity.WRAPPER:
            assert found.causes[0].found == Found.WRAPPER
        case LineSeverity.BOUNDARY:
            assert found.causes[0].found == Found.TAIL


@pytest.mark.parametrize("name", FAILURES)
def test_no_pattern_takes_long(name: str) -> None:
    failure = FAILURES[name]
    pattern = re.compile(failure.pattern)
    head = failure.example.splitlines()[0]
    word = max(literals(failure.pattern), key=len)
    for long in (
        "a" * 100_000,
        " " * 100_000,
        f"{word} " * 2000,
        head + "x" * 100_000,
        "a.b:" * 25_000,
    ):
        start = time.process_time()
        pattern.search(long)
        assert time.process_time() - start < 10


def test_a_line_of_100_kb_takes_no_time() -> None:
    for piece in ("x", "error: ", "undefined reference to `", " ", "File", "a.b::"):
        start = time.process_time()
        diagnose_log([piece * (100_000 // len(piece))] * 5, FAILURES)
        assert time.process_time() - start < 10


@pytest.mark.parametrize(
    ("pattern", "expected"),
    [
        (r"plain words", ("plain words",)),
        (r"one thing|(?:a|b) other|x\.y\(z\)", ("one thing", " other", "x.y(z)")),
        (r"colou?r of \d+ things", (" things",)),
        (r"ninja: \*{3} [^\]|]+ stopped", (" stopped",)),
        (r"long+er", ("long",)),
        (r"first\s+second|(?P<all>in a group)", ("second", "")),
    ],
)
def test_literals(pattern: str, expected: tuple[str, ...]) -> None:
    assert literals(pattern) == expected


def test_only_what_another_machine_may_cure_is_tried_elsewhere() -> None:
    kinds = {name: failure.kind for name, failure in FAILURES.items() if failure.kind != Kind.BUILD}
    assert kinds == {
        "network-in-build": "network",
        "oom-host-compiler": "memory",
        "oom-nvcc": "memory",
        "oom-nvcc-plain": "memory",
        "disk-full": "disk",
        "msvc-oom": "memory",
        "compiler-crash-once": "machine",
        "sandbox-not-permitted": "machine",
        "cuda-error-804": "machine",
        "cuda-error-802": "machine",
        "gpu-missing": "machine",
        "gpu-memory": "machine",
        "download-broken": "network",
        "killed": "memory",
        "no-memory": "memory",
        "io-error": "machine",
        "process-limit": "machine",
        "name-resolution": "network",
        "network-unreachable": "network",
        "git-transfer-broken": "network",
        "apt-fetch": "network",
        "uv-download": "network",
        "ci-runner-lost": "machine",
        "ci-pod-unhealthy": "machine",
        "ci-action-download": "network",
        "rate-limit": "network",
        "docker-daemon": "machine",
    }


@pytest.mark.parametrize(
    "line",
    [
        "fatal: unable to access 'https://example.org/x/': The requested URL returned error: 404",
        "curl: (7) Failed to connect to localhost port 4226 after 0 ms: Connection refused",
        "curl: (7) Failed to connect to 127.0.0.1 port 80 after 0 ms: Could not connect to server",
        "ERROR: THESE PACKAGES DO NOT MATCH THE HASHES FROM THE REQUIREMENTS FILE.",
        "x.cpp:1:1: internal compiler error: Segmentation fault",
        "OSError: [Errno 30] Read-only file system: '/usr/lib/x'",
    ],
)
def test_what_would_fail_anywhere_is_ours(line: str) -> None:
    match = best(KNOWN.matches(line))
    assert match
    assert match.failure.kind == Kind.BUILD


@pytest.mark.parametrize(
    "line",
    [
        "/usr/bin/c++ -Werror -Werror=return-type -Wno-error=pedantic -c error.cpp -o error.cpp.o",
        "[12/34] Building CXX object CMakeFiles/c10.dir/util/Exception.cpp.o",
        "-- Performing Test HAS_WERROR_FLAG - Failed",
        "compiled with 0 errors and 2 warnings",
        "12 passed, 0 failed, 0 errors in 3.4s",
        "x.cpp:3:4: warning: this will be an error: in C++26 [-Wdeprecated]",
        "x.cu(12): warning #177-D: variable error: was declared but never referenced",
        "x.cpp(12): warning C4244: fatal error: not really",
        "x.cpp:3:4: note: candidate: 'void error: f()'",
        '   12 |   throw std::runtime_error("fatal error: out of memory allocating 12 bytes");',
        "tests/test_error.py::test_error PASSED",
        "copying torch/errors/Error.h -> build/lib/torch/errors",
    ],
)
def test_false_alarms(line: str) -> None:
    assert diagnose_log([line, "and on it goes"], FAILURES).found == "tail"


def row(**changes: object) -> dict[str, Failure]:
    return {"x": msgspec.structs.replace(FAILURES["disk-full"], **changes)}


@pytest.mark.parametrize(
    ("failures", "message"),
    [
        (row(pattern="(unclosed"), "has an invalid pattern"),
        (row(example="all is well"), "does not match"),
        (row(pattern=r"No space left|(?:a|b)"), "without a literal"),
        (row(fix=""), "no cause or no fix"),
    ],
)
def test_a_useless_row_is_refused(failures: dict[str, Failure], message: str) -> None:
    with pytest.raises(DataError, match=message):
        check_failures(failures)


FACT = re.compile(r"(?i)\b\d+(?:\.\d+)*\b|\blib(?!rar)\w+|\w+\.(?:so|h|py)\b|out of memory")
"""What a title may not say without evidence: versions and sizes, libraries and files, a cause."""


@pytest.mark.parametrize("name", FAILURES)
def test_a_certain_title_says_what_the_log_has(name: str) -> None:
    failure = FAILURES[name]
    if not failure.certain or failure.severity is not LineSeverity.FATAL:
        return
    asked = " ".join((failure.pattern, failure.context, *failure.evidence)).replace("\\", "")
    for fact in FACT.findall(re.sub(r"<\w+>", "", failure.title)):
        assert fact.removeprefix("lib").lower() in asked.lower(), fact


@pytest.mark.parametrize("name", [name for name, row in FAILURES.items() if row.evidence])
def test_without_all_evidence_it_is_only_likely(name: str) -> None:
    failure = FAILURES[name]
    proof = {
        "relocation-overflow": "c++ -o libtorch_cuda.so\nld: crtstuff.c: out of reach\n",
        "nccl-symbol": "torch/lib/libtorch_cuda.so\n",
        "glibcxx-too-old": "/lib/x86_64-linux-gnu/libstdc++.so.6\n",
    }.get(name, "kernel: Out of memory: Killed process 31337\n")
    line = failure.example.replace("libtorch_cuda.so", "mylib.so").replace(
        "crtstuff.c:(.text+0x3)", "mylib.o:(.text+0x3)"
    )
    line = line.replace(".tm_clone_table", "my_table").replace("libstdc++", "libmy")
    bare, proven = (
        diagnose_pieces([text.encode()], FAILURES).causes[0] for text in (line, proof + line)
    )
    assert (bare.name, bare.certainty) == (name, Certainty.LIKELY)
    assert (proven.name, proven.certainty) == (name, Certainty.CERTAIN)


def test_a_small_library_is_not_torch_s() -> None:
    log = "mylib.o: in function `f': relocation truncated to fit: R_X86_64_32 against `.data'"
    found = diagnose_pieces([log.encode()], FAILURES).causes[0]
    assert found.certainty == Certainty.LIKELY
    assert "libtorch_cuda" not in (found.title or "")


@pytest.mark.parametrize(
    ("log", "name"),
    [
        (
            "a.h:4:10: fatal error: cudnn.h: No such file or directory",
            "cudnn-header-missing",
        ),
        ("a.cu:3:10: fatal error: 'cudnn_version.h' file not found", "cudnn-header-missing"),
        ("ProcessGroupNCCL.cpp:(.text+0x3): undefined reference to `ncclCommSplit'", "nccl-link"),
        ("ld.lld: error: undefined symbol: ncclGetErrorString", "nccl-link"),
        (
            "FAILED: [code=137] a.o\n/opt/cuda/bin/nvcc -c a.cu -o a.o\nKilled",
            "oom-nvcc-plain",
        ),
        ("/bin/sh: line 1: 4242 Killed                  /opt/cuda/bin/nvcc -c a.cu", "oom-nvcc"),
        ("/usr/bin/c++ -c a.cpp\nKilled", "killed"),
    ],
)
def test_what_was_only_generic(log: str, name: str) -> None:
    assert diagnose_pieces([log.encode()], FAILURES).causes[0].name == name


def test_the_unit_is_a_file() -> None:
    log = "FAILED: [code=1] b.o\nnvcc -O2 -c -c /src/b.cu -o b.o\nb.cu(3): error: no such thing\n"
    assert diagnose_pieces([log.encode()], FAILURES).causes[0].unit == "/src/b.cu"
    other = log.replace("-c -c /src/b.cu", "-c -o b.o /src/b.cu")
    assert diagnose_pieces([other.encode()], FAILURES).causes[0].unit == "b.o"


@pytest.mark.parametrize("flag", ["-std=c++14", "-std=c++17", "-std=gnu++1z", "-std=c++0x"])
def test_the_proposed_line_raises_each_standard_that_is_blamed(flag: str) -> None:
    failure = FAILURES["cxx-standard-too-old"]
    assert failure.extension
    assert re.search(failure.find, f"cxx_args = ['{flag}']")
    (script,) = re.findall(r"'(s/.+/)'", failure.extension.add)
    words = ["sed", "-E", script.replace("<std>", "20")]
    done = subprocess.run(words, input=flag, capture_output=True, text=True, check=True)
    assert done.stdout == "-std=c++20"
