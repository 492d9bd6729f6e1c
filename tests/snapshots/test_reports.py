"""Reports and error messages, word for word, as a user sees them."""

from pathlib import Path

import pytest
from syrupy.assertion import SnapshotAssertion
from tests.support.helpers import EXAMPLE, SMALL, Command


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, torchyard: Command) -> Path:
    """Work in a directory of one's own, so that paths in messages are short and stable."""
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("torchyard.workspace.plan.with_toolchain_id", lambda config, _: config)
    (tmp_path / "torchyard.toml").write_text(SMALL, encoding="utf-8")
    (tmp_path / "example.toml").write_text(EXAMPLE.read_text(encoding="utf-8"), encoding="utf-8")
    return tmp_path


@pytest.mark.parametrize("width", [80, 60])
def test_plan(
    torchyard: Command, snapshot: SnapshotAssertion, monkeypatch: pytest.MonkeyPatch, width: int
) -> None:
    monkeypatch.setenv("COLUMNS", str(width))
    out = torchyard("plan", "-f", "example.toml").out
    assert max(map(len, out.splitlines())) <= width
    assert out == snapshot


def test_plan_in_colour(
    torchyard: Command, snapshot: SnapshotAssertion, monkeypatch: pytest.MonkeyPatch
) -> None:
    plain = torchyard("plan").out
    assert "\x1b" not in plain
    monkeypatch.delenv("NO_COLOR")
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("TERM", "xterm-256color")
    coloured = torchyard("plan").out
    assert "\x1b[1m" in coloured
    assert coloured == snapshot


@pytest.mark.parametrize("width", [80, 60])
def test_diff(
    torchyard: Command,
    snapshot: SnapshotAssertion,
    monkeypatch: pytest.MonkeyPatch,
    here: Path,
    width: int,
) -> None:
    monkeypatch.setenv("COLUMNS", str(width))
    new = SMALL.replace('["cp311", "cp312"]', '["cp312", "cp313"]').replace('"0"', '"1"')
    (here / "new.toml").write_text(new, encoding="utf-8")
    out = torchyard("plan", "diff", "torchyard.toml", "new.toml").out
    assert max(map(len, out.splitlines())) <= width
    assert out == snapshot


@pytest.mark.parametrize("width", [80, 60])
@pytest.mark.parametrize(
    "identifier",
    [
        "torch-2.14.0/linux-x86_64/cu130-mkl/cp312/wheel",
        "torch-2.14.0/linux-x86_64/cu130-mkl/cp312/conda",
        "torch-2.14.0/linux-s390x/cpu-openblas/cp315/wheel",
        "core:torch-2.14.0/linux-aarch64/cu130-nvpl",
    ],
)
def test_explain(
    torchyard: Command,
    snapshot: SnapshotAssertion,
    monkeypatch: pytest.MonkeyPatch,
    identifier: str,
    width: int,
) -> None:
    monkeypatch.setenv("COLUMNS", str(width))
    monkeypatch.setattr("torchyard.plan.settings.__version__", "0.1.0")  # it is in fingerprints
    out = torchyard("explain", identifier, "-f", "example.toml").out
    assert max(map(len, out.splitlines())) <= width
    assert out == snapshot


def test_config_show(torchyard: Command, snapshot: SnapshotAssertion) -> None:
    assert torchyard("config", "show", "--set", "project.version=2.14.1").out == snapshot


def test_init(torchyard: Command, snapshot: SnapshotAssertion, here: Path) -> None:
    flags = ("--platform", "linux-x86_64,macos-arm64", "--python", "cp312", "--compute", "cpu")
    torchyard("init", "-f", "new.toml", *flags)
    assert (here / "new.toml").read_text(encoding="utf-8") == snapshot


MISTAKES = {
    "unknown key": ("python = [", "pyton = ["),
    "unknown value": ('"cp312"]', '"cp321"]'),
    "unknown table": ("[subset.pr]", "[subsets.pr]"),
    "wrong type": ('name = "torch"', "name = 3"),
    "glob that matches nothing": ('compute = "cu*"', 'compute = "cuda*"'),
    "missing reason": ('reason = "nobody wants it"\n', ""),
    "not TOML": ('name = "torch"', 'name = "torch'),
    "unit": ('"16 GB"', '"16 GiB"'),
    "shared setting": ('stage = "core"\n', 'stage = "core"\npython = "cp312"\n'),
    "uneven couple": (
        "[subset.pr]",
        '[[matrix.couple]]\npython = ["cp311"]\nblas = []\n[subset.pr]',
    ),
    "no pins": ("2.14.0", "2.20.0"),
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_mistakes_in_the_file(
    torchyard: Command, snapshot: SnapshotAssertion, here: Path, mistake: str
) -> None:
    text = SMALL.replace(*MISTAKES[mistake])
    assert text != SMALL
    (here / "torchyard.toml").write_text(text, encoding="utf-8")
    result = torchyard("plan")
    assert result.code in (3, 4)
    assert result.out == ""
    assert result.err == snapshot


@pytest.mark.parametrize(
    "args",
    [
        ["plan", "-f", "none.toml"],
        ["plan", "cp321"],
        ["plan", "--subset", "prr"],
        ["plan", "--set", "project.version=v2"],
        ["explain", "core:torch-2.14.0/linux-x86_64/cu131-mkl"],
        ["explain", "torch/linux"],
        ["plan", "diff", "no-such-revision", "torchyard.toml"],
    ],
    ids=" ".join,
)
def test_mistakes_on_the_command_line(
    torchyard: Command, snapshot: SnapshotAssertion, args: list[str]
) -> None:
    result = torchyard(*args)
    assert result.out == ""
    assert f"exit {result.code}\n{result.err}" == snapshot


def test_an_error_at_sixty_columns(
    torchyard: Command, snapshot: SnapshotAssertion, monkeypatch: pytest.MonkeyPatch, here: Path
) -> None:
    monkeypatch.setenv("COLUMNS", "60")
    text = SMALL.replace(
        'python = ["cp311"', 'python = ["cp310", "cp313", "cp314", "cp311", "cp399"'
    )
    (here / "torchyard.toml").write_text(text, encoding="utf-8")
    err = torchyard("plan").err
    assert max(map(len, err.splitlines())) <= 60
    assert err == snapshot
