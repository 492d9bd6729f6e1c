"""The installed command as a process: reproducible, and at home in git."""

import json
import os
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest
from tests.support.helpers import EXAMPLE, ROOT, SMALL

pytestmark = pytest.mark.integration


@pytest.fixture(autouse=True)
def buffered(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let Python buffer its streams, as it does for users."""
    monkeypatch.delenv("PYTHONUNBUFFERED", raising=False)


TORCHYARD = Path(sysconfig.get_path("scripts")) / "torchyard"


def run(*args: str, cwd: Path, **environment: str) -> subprocess.CompletedProcess[bytes]:
    env = {key: value for key, value in os.environ.items() if key != "COLUMNS"} | environment
    return subprocess.run([TORCHYARD, *args], cwd=cwd, env=env, capture_output=True, check=False)


def test_same_bytes_whatever_the_hash_seed_and_directory(tmp_path: Path) -> None:
    near = run("plan", "-f", EXAMPLE.name, "--json", cwd=EXAMPLE.parent, PYTHONHASHSEED="1")
    far = run("plan", "-f", str(EXAMPLE), "--json", cwd=tmp_path, PYTHONHASHSEED="2")
    relative = str(EXAMPLE.relative_to(ROOT))
    root = run("plan", "-f", relative, "--json", cwd=ROOT, PYTHONHASHSEED="random")
    assert near.returncode == far.returncode == root.returncode == 0
    assert near.stdout == far.stdout == root.stdout
    assert len(json.loads(near.stdout)["jobs"]) == 1260


def test_diff_against_a_git_revision(tmp_path: Path) -> None:
    def git(*args: str) -> None:
        who = ("-c", "user.name=t", "-c", "user.email=t@example.org")
        subprocess.run(["git", *who, *args], cwd=tmp_path, check=True, capture_output=True)

    file = tmp_path / "torchyard.toml"
    git("init", "-q")
    file.write_text(SMALL, encoding="utf-8")
    git("add", ".")
    git("commit", "-qm", "one")
    file.write_text(SMALL.replace('["cp311", "cp312"]', '["cp312"]'), encoding="utf-8")
    changed = run("plan", "diff", "HEAD", "torchyard.toml", "--json", cwd=tmp_path)
    vanished = json.loads(changed.stdout)["vanished"]
    assert len(vanished) == 2
    assert vanished[0]["causes"] == [
        {"what": "matrix.python lost `cp311`", "origin": "HEAD:torchyard.toml:13"}
    ]
    git("commit", "-qam", "two")
    args = ("plan", "diff", "HEAD~1", "HEAD", "-f", str(file), "--fail-on-vanish")
    assert run(*args, cwd=tmp_path.parent).returncode == 8
    git("mv", "torchyard.toml", "moved.toml")
    moved = run("plan", "diff", "HEAD~1:torchyard.toml", "moved.toml", "--json", cwd=tmp_path)
    assert len(json.loads(moved.stdout)["vanished"]) == 2
    git("mv", "moved.toml", "torchyard.toml")
    option = run("plan", "diff", "--", "--output=x", "torchyard.toml", cwd=tmp_path)
    assert option.returncode == 7
    assert not (tmp_path / "x").exists()
    explained = run(
        "explain", "source:torch-2.14.0", "--against", "HEAD~1", cwd=tmp_path, NO_COLOR="1"
    )
    assert b"unchanged" in explained.stdout


def test_python_dash_m(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "torchyard", "--version"],
        cwd=tmp_path,
        capture_output=True,
        check=True,
    )
    assert b"torchyard" in done.stdout


def test_a_closed_pipe_is_no_error(tmp_path: Path) -> None:
    command = f'"{TORCHYARD}" plan -f "{EXAMPLE}" --json | head -c 1; echo ${{PIPESTATUS[0]}}'
    done = subprocess.run(["bash", "-c", command], cwd=tmp_path, capture_output=True, check=True)
    assert done.stdout == b"{141\n"
    assert done.stderr == b""


def test_a_full_disk_is_told(tmp_path: Path) -> None:
    command = f'"{TORCHYARD}" plan -f "{EXAMPLE}" > /dev/full; echo $?'
    done = subprocess.run(["bash", "-c", command], cwd=tmp_path, capture_output=True, check=True)
    assert done.stdout == b"75\n"
    assert b"No space left on device" in done.stderr
    assert b"Traceback" not in done.stderr


def test_closed_streams_are_passed_over(tmp_path: Path) -> None:
    command = (
        f"{TORCHYARD} init <&- 2>/dev/full; echo $?; {TORCHYARD} plan -f no 2>/dev/full; echo $?"
    )
    done = subprocess.run(["bash", "-c", command], cwd=tmp_path, capture_output=True, check=True)
    assert done.stdout == b"0\n7\n"


def test_pipes_and_terminals_have_their_own_width(tmp_path: Path) -> None:
    piped = run("explain", "publish:torch-2.14.0/nightly", "-f", str(EXAMPLE), cwd=tmp_path)
    assert b"package:torch-2.14.0/linux-x86_64/cu130-mkl/cp312/wheel\n" in piped.stdout


def test_quick_commands_leave_slow_libraries_alone() -> None:
    """Start-up is a promise (see benchmarks); these imports would break it."""
    code = (
        "import sys; sys.argv = ['torchyard', 'plan', '--list', 'cells', '-f', sys.argv[1]]\n"
        "from torchyard.cli.main import main\n"
        "try: main()\n"
        "except SystemExit: pass\n"
        "print(*sorted(sys.modules), file=sys.stderr)"
    )
    env = {key: value for key, value in os.environ.items() if not key.startswith("COV")}
    done = subprocess.run(
        [sys.executable, "-c", code, str(EXAMPLE)], env=env, capture_output=True, check=True
    )
    loaded = set(done.stderr.decode().split())
    assert not loaded & {"rich", "pathlib", "subprocess", "hashlib", "torchyard.inspect"}
