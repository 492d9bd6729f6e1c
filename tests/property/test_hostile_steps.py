"""Whatever a step leaves behind, nothing outside changes, and the job ends with a sentence."""

import json
import shutil
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.support.hostile_steps import Machine, attempt_twice

pytestmark = pytest.mark.skipif(not shutil.which("bwrap"), reason="bubblewrap is not installed")

SCRIPT = r"""
import json, os, shutil, socket, sys

def act(kind, path, value):
    top = os.path.dirname(path)
    if kind != "link" or not os.path.islink(top):
        os.makedirs(top, exist_ok=True)
    if kind in ("link", "replace") and os.path.isdir(path) and not os.path.islink(path):
        shutil.rmtree(path)
    elif os.path.lexists(path) and not os.path.isdir(path):
        os.unlink(path)
    if kind in ("link", "replace"):
        os.symlink(value, path)
    elif kind == "fifo":
        os.mkfifo(path)
    elif kind == "socket":
        socket.socket(socket.AF_UNIX).bind(path)
    elif kind == "device":
        os.mknod(path, 0o600 | 0o020000, os.makedev(1, 5))
    elif kind == "file":
        with open(path, "w") as file:
            file.write("made")
        os.chmod(path, value)
    elif kind == "sparse":
        with open(path, "w") as file:
            file.truncate(value)
    elif kind == "hard":
        os.link("/etc/passwd", path)
    elif kind == "deep":
        os.makedirs(path, exist_ok=True)
        handle = os.open(path, os.O_RDONLY)
        for _ in range(value):
            os.mkdir("d", dir_fd=handle)
            handle = os.open("d", os.O_RDONLY, dir_fd=handle)
            os.set_inheritable(handle, False)
            if handle > 900:
                break
    elif kind == "mode":
        os.chmod(path, value)

for kind, top, names, value in json.loads(sys.argv[1]):
    path = os.fsencode(top)
    for name in names:
        path = os.path.join(path, bytes.fromhex(name))
    try:
        act(kind, path, os.fsencode(value) if isinstance(value, str) else value)
    except (OSError, ValueError, shutil.Error):
        pass
"""
"""Does what it is asked to, as far as it can."""

PLACES = ("out", "build", "home", "tmp", "inputs", "tools", "env", "toolchain")
WHERE = ["", *(f"/{name}" for name in PLACES)]

usual = st.sampled_from([b"state.json", b"log", b"log.gz", b"kept", b"source", b"a", b"out", b"d"])
any_bytes = st.binary(min_size=1, max_size=12).map(
    lambda data: data.translate(bytes.maketrans(b"/\0", b"__"))
)
odd = st.sampled_from([b"\xff\xfe", b"new\nline", b"\x1b[31m", b"-rf", b" ", b"x" * 255, b"*.whl"])
names = st.lists(st.one_of(usual, odd, any_bytes).map(bytes.hex), max_size=3)
targets = st.sampled_from(
    [
        "VICTIM",
        "VICTIM/file",
        "VICTIM/sub",
        "VICTIM/new",
        "../../../victim",
        "/",
        "/etc",
        ".",
        "out",
    ]
)


def _action(kind: str, value: st.SearchStrategy[object]) -> st.SearchStrategy[tuple[object, ...]]:
    return st.tuples(st.just(kind), st.sampled_from(WHERE), names, value)


actions = st.lists(
    st.one_of(
        _action("link", targets),
        _action("replace", targets),
        _action("fifo", st.none()),
        _action("socket", st.none()),
        _action("device", st.none()),
        _action("file", st.sampled_from([0o644, 0o4755, 0o2755, 0o6777, 0, 0o200])),
        _action("sparse", st.sampled_from([1, 1 << 20, 1 << 50, (1 << 63) - 1])),
        _action("deep", st.integers(1, 700)),
        _action("hard", st.none()),
        _action("mode", st.sampled_from([0, 0o111, 0o500, 0o777, 0o1777])),
    ),
    min_size=1,
    max_size=8,
)


@settings(max_examples=settings().max_examples // 10)  # each starts two jobs
@given(asked=actions)
def test_a_step_changes_nothing_outside(asked: list[tuple[object, ...]]) -> None:
    with TemporaryDirectory() as folder:
        machine = Machine(Path(folder))
        work = "{work}"
        listed = [
            (kind, f"{work}{top}", names, _aimed(value, machine))
            for kind, top, names, value in asked
        ]
        text = json.dumps(listed).replace("'", "'\\''").replace("{", "{{").replace("}", "}}")
        text = text.replace("{{work}}", "{work}")
        body = SCRIPT.replace("{", "{{").replace("}", "}}")
        script = f"cat > {{build}}/act.py <<'EOF'\n{body}\nEOF\n"
        script += f"{sys.executable} -I {{build}}/act.py '{text}'"
        done = attempt_twice(machine, [script], "bwrap")
        assert "TRACEBACK" not in done.error, done.error
        machine.assert_unharmed()


def _aimed(value: object, machine: Machine) -> object:
    return value.replace("VICTIM", str(machine.victim)) if isinstance(value, str) else value
