"""What a check and a comparison look like, word for word, in narrow terminals."""

import msgspec
import pytest
from syrupy.assertion import SnapshotAssertion
from tests.support.shapes import METADATA, library, package, text

from torchyard.checks.checked import CheckedPackage, describe_package
from torchyard.checks.compare import compare_packages
from torchyard.checks.policy import CheckPolicy
from torchyard.checks.rule import Finding, Rule, Severity
from torchyard.checks.subject import Subject
from torchyard.checks.text import packages_text
from torchyard.features.diff import report
from torchyard.features.diff.report import diff_text
from torchyard.features.explain.report import ExplainReport, explain_text
from torchyard.package.contents import Contents, DeviceCode
from torchyard.terminal.console import show

DEVICE = (
    DeviceCode("cubin", "sm_90", 544, 60_100_000),
    DeviceCode("cubin", "sm_100a", 59, 1_560_000),
    DeviceCode("ptx", "compute_120", 3, 983_000),
)
RULE = Rule(
    id="linking-unresolved",
    severity=Severity.ERROR,
    reason="importing the package would fail",
    page="A library that a file needs is nowhere\nto be found.\n\nPut it into the package:\n\n"
    "    copy it\n    there",
)


@pytest.fixture(params=[80, 60])
def width(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> int:
    columns: int = request.param
    monkeypatch.setenv("COLUMNS", str(columns))
    monkeypatch.setenv("NO_COLOR", "1")
    monkeypatch.delenv("FORCE_COLOR", raising=False)
    return columns


def torch() -> Contents:
    return package(
        library("torch/lib/libtorch_cuda.so", "libc10.so", size=520_000_000, device=DEVICE),
        library("torch/lib/libc10.so", "libc.so.6"),
        *(text(f"torch/{number}.py", 1000 + number) for number in range(20)),
    )


def checked(contents: Contents, *found: Finding) -> CheckedPackage:
    return msgspec.structs.replace(
        describe_package(Subject(contents, CheckPolicy()), {}), findings=found
    )


def findings() -> tuple[Finding, ...]:
    hint = "bundle it, require the package that has it, or do not link with it"
    unresolved = (
        Finding(
            rule="linking-unresolved",
            severity=Severity.ERROR,
            what=f"needs `lib{name}.so.0`, which is in no folder that it looks into",
            member=f"torch/lib/libuser{number}.so",
            hint=hint,
        )
        for number in range(7)
        for name in ("quadmath", "gfortran")
    )
    return (
        *unresolved,
        Finding(rule="size-budget", severity=Severity.WARNING, what="has 539 MB, of 100 MB"),
        Finding(
            rule="archive-names",
            severity=Severity.WARNING,
            what="has a name that moves the cursor",
            member="torch/\x1b[2Jgone\n.py",
        ),
        Finding(
            rule="pth-file",
            severity=Severity.NOTE,
            what="is run at every start",
            member="torch.pth",
            hint="remove it",
            allowed="asked for by the release team",
        ),
    )


def test_check(
    width: int, snapshot: SnapshotAssertion, capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    show(*packages_text([checked(torch(), *findings()), checked(package())]))
    out = capfdbinary.readouterr().out.decode()
    assert max(map(len, out.splitlines())) <= width
    assert "\x1b" not in out
    assert out == snapshot


@pytest.mark.parametrize("everything", [False, True], ids=["summary", "all"])
def test_compare(
    width: int,
    everything: bool,
    snapshot: SnapshotAssertion,
    capfdbinary: pytest.CaptureFixture[bytes],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    gone = [f"_ZN3c105Error{number}Ev" for number in range(12)]
    old = package(
        library("torch/lib/libc10.so", "libm.so.6", exports=gone, size=3_000_000, digest="1"),
        text("torch/gone.py", 700),
        metadata=METADATA + b"Requires-Dist: sympy\n",
    )
    new = package(
        library("torch/lib/libc10.so", exports=["c10_new"], device=DEVICE, digest="2"),
        *(text(f"torch/new_{number}.py", 100 * number) for number in range(12)),
    )
    monkeypatch.setattr(report, "demangled", lambda names: {n: f"c10::Error::{n}()" for n in names})
    show(*diff_text(compare_packages(old, new), everything=everything))
    out = capfdbinary.readouterr().out.decode()
    assert max(map(len, out.splitlines())) <= width
    assert out == snapshot


def test_rules(
    width: int, snapshot: SnapshotAssertion, capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    note = msgspec.structs.replace(RULE, id="pth-file", severity=Severity.NOTE)
    show(*explain_text(ExplainReport(rules=[RULE]), ("rule", RULE.id)))
    show(*explain_text(ExplainReport(rules=[RULE, note]), ("rule",)))
    assert capfdbinary.readouterr().out.decode() == snapshot
