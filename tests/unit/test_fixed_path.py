"""A directory at another path without namespaces: programs and their descendants are traced."""

import errno
import os
import platform
import shutil
import signal
import struct
import subprocess
import sys
import time
from pathlib import Path

import pytest

from torchyard.host.fixed_path import fixed_path_fault, fixed_path_program, move_links
from torchyard.host.process import with_variables
from torchyard.host.untrusted_tree import remove_tree

pytestmark = pytest.mark.skipif(shutil.which("cc") is None, reason="there is no C compiler here")

SEEN = "/mnt/torchyard"
ENV = {"PATH": os.environ["PATH"], "LANG": "C.UTF-8"}


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> str:
    return fixed_path_program(tmp_path_factory.mktemp("work"))


@pytest.fixture
def job(tmp_path: Path) -> Path:
    folder = tmp_path / "a longer name than the other" / "job"
    (folder / "build").mkdir(parents=True)
    (folder.parent / "env").mkdir()
    (folder / "env").mkdir()
    return folder


def command(program: str, job: Path, *argv: str, cwd: str = f"{SEEN}/build") -> list[str]:
    binds = ("--bind", str(job), SEEN, "--ro-bind", str(job.parent / "env"), f"{SEEN}/env")
    return [program, *binds, "--chdir", cwd, "--", *argv]


def run(program: str, job: Path, script: str) -> str:
    words = command(program, job, "sh", "-c", script)
    done = subprocess.run(words, capture_output=True, text=True, env=ENV, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


@pytest.mark.parametrize(
    ("script", "said"),
    [
        ("pwd", f"{SEEN}/build"),
        ("/bin/pwd -P", f"{SEEN}/build"),
        ("cd ..; /bin/pwd", SEEN),
        ("cd ../env; /bin/pwd", f"{SEEN}/env"),
        ("cd ../env; cd ../build; /bin/pwd", f"{SEEN}/build"),
        ("readlink /proc/self/cwd", f"{SEEN}/build"),
        ("realpath x", f"{SEEN}/build/x"),
        (f"cd /; echo 1 > {SEEN}/x; cat {SEEN}/x", "1"),
        ("cd /; echo 1 > //mnt/.//torchyard/x; cat /usr/../mnt/torchyard/x", "1"),
        ("ls -d ../../../usr", "../../../usr"),
        (f"ls -d {SEEN}/build/../../../usr", f"{SEEN}/build/../../../usr"),
        (f"mkdir ../env/z; echo 2 > ../env/y; cat {SEEN}/env/z/../y {SEEN}/env/../env/y", "2\n2"),
        (
            "cd /mnt; mkdir torchyard/d; ls -d torchyard/d; cd torchyard; /bin/pwd",
            f"torchyard/d\n{SEEN}",
        ),
        (f"ln -s {SEEN}/x l; echo 3 > ../x; cat l; readlink l", f"3\n{SEEN}/x"),
        (f"mkdir -p {SEEN}/d/e; mv {SEEN}/d {SEEN}/f; ls {SEEN}/f", "e"),
        (f"touch {SEEN}/a; ln {SEEN}/a {SEEN}/b; rm {SEEN}/a; ls {SEEN}/b", f"{SEEN}/b"),
        (f"test -e {SEEN}x || echo none", "none"),
        (f"cp /bin/sh {SEEN}/own; {SEEN}/own -c 'readlink /proc/$$/exe'", f"{SEEN}/own"),
    ],
)
def test_programs_see_their_directory_at_the_other_path(
    program: str, job: Path, script: str, said: str
) -> None:
    assert run(program, job, script) == said


def test_scripts_and_their_interpreters_have_the_names_that_they_are_called_by(
    program: str, job: Path
) -> None:
    """The kernel would open the first, and tell the second the other path."""
    (job.parent / "env/own python").symlink_to(sys.executable)
    (job.parent / "env/python").symlink_to(sys.executable)
    for name, line in {"mapped": f"{SEEN}/env/python -I", "plain": "/bin/sh -e"}.items():
        body = "import sys; print(*sys.argv)" if name == "mapped" else 'echo "$0" "$@"'
        script = job / name
        script.write_text(f"#!{line}\n{body}\n", encoding="utf-8")
        script.chmod(0o755)
    for name in ("mapped", "plain"):
        assert run(program, job, f"{SEEN}/{name} a 'b c'") == f"{SEEN}/{name} a b c"
        assert run(program, job, f"../{name} a") == f"../{name} a"
        assert run(program, job, f"PATH={SEEN}:$PATH {name}") == f"{SEEN}/{name}"


def test_what_is_compiled_has_the_bytes_of_the_other_path(program: str, job: Path) -> None:
    (job / "x.c").write_text("const char *file = __FILE__;\n", encoding="utf-8")
    run(program, job, f"cc -g -c {SEEN}/x.c -o x.o; cc -g -shared -o {SEEN}/x.so x.o")
    for made in (job / "build/x.o", job / "x.so"):
        assert SEEN.encode() in made.read_bytes()
        assert str(job.parent).encode() not in made.read_bytes()


DEEP = """
#include <string.h>
#include <unistd.h>
int deeper(int n) {
  char room[1 + n % 64 * 16];
  memset(room, 1, sizeof room);
  if (access("/mnt/torchyard/x.c", F_OK)) return n;
  return n == 0 ? 0 : deeper(n - 1) + room[0] - 1;
}
int main(void) { return deeper(3000) != 0; }
"""


def test_paths_are_replaced_at_any_depth_of_a_stack(program: str, job: Path) -> None:
    """They are written below it, where nothing may be mapped yet."""
    (job / "x.c").write_text(DEEP, encoding="utf-8")
    run(program, job, f"cc -O0 {SEEN}/x.c -o deep && ./deep")


def test_variables_come_by_a_handle(program: str, job: Path) -> None:
    words, handles = with_variables(
        command(program, job, "sh", "-c", 'echo "$ONE,$TWO"'),
        {**ENV, "ONE": "a b", "TWO": ""},
        "view",
    )
    done = subprocess.run(
        words, capture_output=True, text=True, env={}, pass_fds=handles, check=True
    )
    assert done.stdout == "a b,\n"


def test_exit_codes_and_signals_are_passed_on(program: str, job: Path) -> None:
    for script, code in {"exit 3": 3, "kill -9 $$": -9, "kill -TERM $$": -15}.items():
        assert subprocess.call(command(program, job, "sh", "-c", script), env=ENV) == code
    words = command(program, job, "nothing-like-this")
    done = subprocess.run(words, env=ENV, capture_output=True, text=True, check=False)
    assert done.returncode == 127
    assert "nothing-like-this: No such file" in done.stderr


def wait_for(path: Path) -> str:
    until = time.monotonic() + 60
    while not path.exists() or not path.read_text("utf-8").endswith("\n"):
        assert time.monotonic() < until, path
        time.sleep(0.01)
    return path.read_text("utf-8")


def state_of(pid: int) -> str:
    return Path(f"/proc/{pid}/stat").read_text("utf-8").rpartition(") ")[2][0]


def test_a_program_can_be_paused_and_dies_with_what_traces_it(program: str, job: Path) -> None:
    """The memory guard pauses compilers; a killed job leaves nothing running."""
    script = "sh -c 'echo $$ > pid; exec tail -f /dev/null'; echo done"
    with subprocess.Popen(command(program, job, "sh", "-c", script), env=ENV) as tracer:
        pid = int(wait_for(job / "build/pid"))
        os.kill(pid, signal.SIGSTOP)
        until = time.monotonic() + 60
        while state_of(pid) not in "Tt":
            assert time.monotonic() < until
        os.kill(pid, signal.SIGCONT)
        while state_of(pid) in "Tt":
            assert time.monotonic() < until
        tracer.kill()
    until = time.monotonic() + 60
    while Path(f"/proc/{pid}").exists() and state_of(pid) != "Z":
        assert time.monotonic() < until


PIPED = """
import os
pipe, _ = os.pipe()
for path in ("../torchyard/x", "torchyard/" * 400, "a/../../.."):
    try:
        os.open(path, os.O_RDONLY, dir_fd=pipe)
    except OSError as error:
        print(error.strerror)
"""


def test_what_is_relative_to_no_directory_is_refused_by_the_kernel(program: str, job: Path) -> None:
    """The name of a pipe is no path: the tracer once wrote behind its own memory."""
    assert run(program, job, f"{sys.executable} -c '{PIPED}'").split("\n") == [
        "Not a directory",
        "Not a directory",
        "Not a directory",
    ]


def test_a_script_gets_all_of_its_arguments(program: str, job: Path) -> None:
    """It was once run without any, and said nothing, when there was no room below the stack."""
    script = job / "count"
    script.write_text("#!/bin/sh\necho $#\n", encoding="utf-8")
    script.chmod(0o755)
    assert run(program, job, f"{SEEN}/count $(seq 100000)") == "100000"


def test_a_fifo_is_no_program_and_the_tracer_does_not_wait_for_it(program: str, job: Path) -> None:
    os.mkfifo(job / "fifo", 0o755)
    words = command(program, job, f"{SEEN}/fifo")
    done = subprocess.run(words, env=ENV, capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode == 127
    assert "Permission denied" in done.stderr


SOCKETS = """
import os, socket
server, client, abstract = (socket.socket(socket.AF_UNIX) for _ in range(3))
server.bind("/mnt/torchyard/build/socket")
server.listen()
client.connect("socket")
again = socket.socket(socket.AF_UNIX)
again.connect(server.getsockname())
os.stat("/mnt/torchyard/build/socket")
abstract.bind("\\0abstract" + str(os.getpid()))
print(server.accept()[0].getsockname() == server.getsockname())
"""


def test_sockets_can_be_in_the_directory(program: str, job: Path) -> None:
    """As those of Python's multiprocessing are, in TMPDIR; a real path may be too long for one."""
    deep = job / ("n" * 100)
    (deep / "build").mkdir(parents=True)
    (deep.parent / "env").mkdir(exist_ok=True)
    assert run(program, deep, f"{sys.executable} -c '{SOCKETS}'") == "True"


POOL = """
import multiprocessing, os
if __name__ == "__main__":
    context = multiprocessing.get_context("forkserver")
    with context.Manager() as manager, context.Pool(2) as pool:
        print(pool.map(abs, (-1, 2)), manager.list([3]))
"""


def test_processes_of_python_find_each_other(program: str, job: Path) -> None:
    (job / "pool.py").write_text(POOL, encoding="utf-8")
    (job / "tmp").mkdir()
    script = f"TMPDIR={SEEN}/tmp {sys.executable} {SEEN}/pool.py"
    assert run(program, job, script) == "[1, 2] [3]"


READ_LINK = """
#include <stdio.h>
#include <string.h>
#include <unistd.h>
int main(int count, char **words) {
  char text[512];
  for (size_t room = 1; room < sizeof text; room++) {
    ssize_t size = readlink(words[1], text, room);
    if (size < 0 || (size_t)size == room) continue;  /* as programs do that ask again */
    text[size] = 0;
    if (strcmp(text, words[2])) return printf("%zu: %s\\n", room, text);
  }
  return count != 3;
}
"""


def test_a_link_is_never_read_half(program: str, job: Path) -> None:
    """The kernel cuts the real target, which is longer than the one that the program gets."""
    (job / "x.c").write_text(READ_LINK, encoding="utf-8")
    target = f"{SEEN}/some/where/else"
    assert run(program, job, f"cc {SEEN}/x.c -o x; ln -s {target} l; ./x l {target}") == ""


URING = """
import ctypes, errno
libc = ctypes.CDLL(None, use_errno=True)
print(libc.syscall(425, 1, ctypes.create_string_buffer(256)), errno.errorcode[ctypes.get_errno()])
"""


def test_no_path_is_hidden_in_a_ring(program: str, job: Path) -> None:
    """Older profiles of docker allow io_uring."""
    assert run(program, job, f"{sys.executable} -c '{URING}'") == "-1 ENOSYS"


FILTER = {"x86_64": (310, 311), "aarch64": (270, 271)}
"""The numbers of process_vm_readv and process_vm_writev."""


def refusing(*numbers: int) -> bytes:
    """Return a filter of seccomp that refuses system calls, as `bwrap --seccomp` takes it."""
    load, is_same, answer = 0x20, 0x15, 0x06
    allowed, refused = 0x7FFF0000, 0x00050000 | errno.EPERM
    lines = [(load, 0, 0, 0)]
    lines += [(is_same, len(numbers) - n, 0, number) for n, number in enumerate(numbers)]
    lines += [(answer, 0, 0, allowed), (answer, 0, 0, refused)]
    return b"".join(struct.pack("=HBBI", *line) for line in lines)


@pytest.mark.skipif(shutil.which("bwrap") is None, reason="bubblewrap is not installed")
def test_memory_is_read_in_another_way_where_a_container_refuses_the_first(
    program: str, job: Path
) -> None:
    """As docker's profile did before 2021, and containerd's before 2022."""
    (job / "filter").write_bytes(refusing(*FILTER[platform.machine()]))
    words = command(program, job, "sh", "-c", f"touch {SEEN}/x; /bin/pwd; readlink /proc/self/cwd")
    with (job / "filter").open("rb") as file:
        handle = file.fileno()
        bwrap = ["bwrap", "--dev-bind", "/", "/", "--seccomp", str(handle), "--", *words]
        done = subprocess.run(
            bwrap, capture_output=True, text=True, env=ENV, pass_fds=[handle], check=False
        )
    assert done.stdout == f"{SEEN}/build\n" * 2, done.stderr
    assert (job / "x").exists()


FAULT = """
import sys
from pathlib import Path
from torchyard.host.fixed_path import fixed_path_fault
print(fixed_path_fault(Path(sys.argv[1])))
"""


@pytest.mark.skipif(shutil.which("bwrap") is None, reason="bubblewrap is not installed")
def test_a_container_that_refuses_to_trace_has_a_short_fault(tmp_path: Path) -> None:
    """As containerd's profile did before 2022."""
    ptrace = {"x86_64": 101, "aarch64": 117}[platform.machine()]
    (tmp_path / "filter").write_bytes(refusing(ptrace))
    with (tmp_path / "filter").open("rb") as file:
        handle = file.fileno()
        bwrap = ["bwrap", "--dev-bind", "/", "/", "--seccomp", str(handle), "--"]
        words = [*bwrap, sys.executable, "-c", FAULT, str(tmp_path)]
        said = subprocess.check_output(words, text=True, pass_fds=[handle])
    assert said.startswith("`fixed-path-")
    assert said.endswith(
        "` failed with exit code 126: fixed-path: ptrace: Operation not permitted\n"
    )


def test_two_at_once_have_the_same_path_and_do_not_wait_for_each_other(
    program: str, tmp_path: Path
) -> None:
    """Each ends only after the other has begun, with its own files at the common path."""
    shared = tmp_path / "shared"
    shared.mkdir()
    started = []
    for own, other in (("a", "b"), ("b", "a")):
        job = tmp_path / own / "job"
        (job / "build").mkdir(parents=True)
        (job.parent / "env").mkdir()
        wait = f"until test -e {shared}/{other}; do sleep 0.01; done"
        script = f"echo {own} > {SEEN}/mine; touch {shared}/{own}; {wait}; cat {SEEN}/mine"
        words = command(program, job, "sh", "-c", script)
        started.append(subprocess.Popen(words, env=ENV, stdout=subprocess.PIPE, text=True))
    said = [one.communicate(timeout=60)[0].strip() for one in started]
    assert said == ["a", "b"]


def test_links_are_made_usable_and_put_back(tmp_path: Path) -> None:
    (tmp_path / "deep").mkdir()
    link, other = tmp_path / "deep/link", tmp_path / "other"
    link.symlink_to(f"{SEEN}/env/bin")
    other.symlink_to(f"{SEEN}-not")
    paths = {SEEN: "/real/job", f"{SEEN}/env": "/real/env"}
    move_links(tmp_path, paths)
    assert str(link.readlink()) == "/real/env/bin"
    assert str(other.readlink()) == f"{SEEN}-not"
    move_links(tmp_path, {real: seen for seen, real in paths.items()})
    assert str(link.readlink()) == f"{SEEN}/env/bin"


def test_links_are_found_beside_what_can_not_be_read(tmp_path: Path) -> None:
    """A step may leave directories of any depth."""
    link, deep = tmp_path / "z", tmp_path
    for _ in range(1100):
        deep /= "d"
        deep.mkdir()
    link.symlink_to(f"{SEEN}/out")
    move_links(tmp_path, {SEEN: "/real/job"})
    remove_tree(tmp_path / "d")  # pytest can't
    assert str(link.readlink()) == "/real/job/out"


def test_a_program_that_does_not_start_is_compiled_again(tmp_path: Path) -> None:
    """Another image may have compiled it, or a power cut may have left it empty."""
    program = Path(fixed_path_program(tmp_path / "work"))
    program.write_bytes(b"")
    fixed_path_program.cache_clear()
    assert fixed_path_program(tmp_path / "work") == str(program)
    assert program.stat().st_size


def test_a_machine_without_a_compiler_has_a_fault(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    assert "there is no C compiler" in fixed_path_fault(tmp_path / "work")
