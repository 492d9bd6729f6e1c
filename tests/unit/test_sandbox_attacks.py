"""Attempts to get out of the sandbox `bwrap`: each is a command that must fail there."""

import os
import shutil
import socket
import tomllib
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from tests.support.helpers import ROOT
from tests.support.hostile_steps import Machine, as_nobody, attempt_twice
from tests.support.keys import FIND_KEY, add_session_key

pytestmark = pytest.mark.skipif(not shutil.which("bwrap"), reason="bubblewrap is not installed")

USERS = ["caller", "nobody"] if os.geteuid() == 0 else ["caller"]

CONNECT = "python3 -c 'import socket, sys; socket.socket(socket.{}).connect({})' {}"

CALLS = tomllib.loads((ROOT / "src/torchyard/data/syscalls.toml").read_text(encoding="utf-8"))
TRY_CALL = (
    "python3 -c 'import ctypes as c, os; b = c.create_string_buffer(256);"
    " r = c.CDLL(None).syscall({}); os._exit(r < 0)'"
)


def call(group: str, name: str, arguments: str) -> str:
    """Return an attempt to make a system call."""
    number = CALLS[group][name].get(os.uname().machine, -1)
    return TRY_CALL.format(f"{number}, {arguments}")


NOT_PYTHONS = "-not -path '*/versions/*' -not -path '*/torchyard-pythons/*'"
NOT_OWN = "-not -path '/proc/[0-9]*' -not -path '/proc/*self/*'"

ATTACKS = {
    # the file systems of the machine
    "make the root writable": "mount -o remount,rw,bind /",
    "make the system writable": "mount -o remount,rw,bind /usr",
    "make the tools writable": "mount -o remount,rw,bind {work}/tools",
    "mount over the system": "mount -t tmpfs none /opt",
    "mount a disk": "mount /dev/vda /opt || mount /dev/sda1 /opt",
    "see below a mount": "umount -l /etc/shadow || umount -l /tmp",
    "own namespaces": "unshare -m true",
    "a system made writable": "unshare -rm mount -o remount,rw,bind /usr",
    "what is below /etc/shadow": "unshare -rm umount /etc/shadow",
    "another root": "chroot / true",
    "a disk": "mknod {tmp}/disk b 254 0 && head -c 1 {tmp}/disk",
    "the devices of the machine": "ls /dev/vda /dev/sda /dev/mem /dev/kmsg /dev/fuse 2>&- | grep .",
    "the kernel's memory": "head -c 1 /proc/kcore | grep -q .",
    # files of the machine
    "write to the root": "touch /file",
    "write to the system": "touch /usr/file || touch /etc/file || touch /opt/file",
    "write to the tools": "touch {work}/tools/file || rm {work}/tools/ninja",
    "write to the spec": "echo x >> {spec} || rm {spec} || mv {spec} {out}",
    "read the passwords": "grep . /etc/shadow",
    "read the keys": "find /etc/ssl/private /etc/ssh/*_key -type f | grep .",
    "read home directories": "find /home -mindepth 1 | grep .",
    "read settings of root": f"find /root -type f {NOT_PYTHONS} | grep .",
    "read temporary files": "cat $VICTIM/file",
    "write temporary files": "echo x > $VICTIM/file",
    "list the work directory": "ls $VICTIM/../work",
    "list the store": "ls $VICTIM/../store",
    "read the project's file": "ls $VICTIM/../project/torchyard.toml",
    "read what the machine runs": "find /run /var/run /var/lib /srv /media -type f | grep .",
    "find secrets in variables": "env | grep HUNTER2",
    # processes of the machine
    "see the supervisor": "ls /proc/$SUPERVISOR",
    "read command lines": r"grep -l '[h]ostile_steps\|[p]ytest' /proc/[0-9]*/cmdline",
    "read variables of others": "cat /proc/[0-9]*/environ | tr '\\0' '\\n' | grep HUNTER2",
    "signal the supervisor": "kill -0 $SUPERVISOR",
    "enter its namespaces": "nsenter -t $SUPERVISOR -m true",
    "go through its root": "ls /proc/$SUPERVISOR/root/",
    "go through the root of init": "ls /proc/1/root$VICTIM",
    "open what others have open": "ls -l /proc/*/fd 2>&- | grep victim",
    # sockets and networks
    "find a socket": "find / -xdev -type s 2>&- | grep .",
    "connect to the machine": "exec 3<>/dev/tcp/127.0.0.1/$PORT",
    "connect to a socket file": CONNECT.format("AF_UNIX", "sys.argv[1]", "$VICTIM/socket"),
    "connect to an abstract socket": CONNECT.format("AF_UNIX", '"\\0" + sys.argv[1]', "$ABSTRACT"),
    "send raw packets": CONNECT.format("AF_INET, socket.SOCK_RAW, 1", '("127.0.0.1", 0)', ""),
    "find a network": "grep -v -e lo: -e face -e Inter- /proc/net/dev | grep .",
    # privileges
    "have a capability": "grep -E 'Cap(Eff|Prm|Bnd|Inh|Amb):.*[1-9a-f]' /proc/self/status",
    "get new privileges": "grep -E 'NoNewPrivs:[^1]*0' /proc/self/status",
    "become another user": "setpriv --reuid 1 --clear-groups true || su daemon -c true",
    "give files away": "touch {tmp}/mine && chown 1 {tmp}/mine",
    "a program of another user": "cp /bin/sh {tmp}/sh && chown 1 {tmp}/sh && chmod u+s {tmp}/sh",
    "read keys of the session": f"python3 -c '{FIND_KEY}'",
    "change the kernel": "f=/proc/sys/kernel/core_pattern; cat $f > $f",
    "crash the kernel": "test -w /proc/sysrq-trigger",
    "write to /proc": f"find /proc -maxdepth 3 -type f -writable {NOT_OWN} 2>&- | grep .",
    "change devices": "find /sys -maxdepth 6 -writable -type f 2>&- | head -1 | grep .",
    "change cgroups": "test -w /sys/fs/cgroup || ls /sys/fs/cgroup/*",
    "set the clock": 'date -s "$(date)"',
    "read the log of the kernel": "cat /dev/kmsg | head -1 | grep .",
    # holes of kernels
    "a user namespace": "unshare -U true",
    "a user namespace by clone": call("namespaces", "clone", "0x10000011, 0, 0, 0, 0"),
    "a key": call("forbidden", "add_key", 'b"user", b"torchyard", b"x", 1, -2'),
    "a ring of requests": call("absent", "io_uring_setup", "4, b"),
    "own page faults": call("forbidden", "userfaultfd", "1"),
    "a program in the kernel": call("forbidden", "bpf", "0, b, 72"),
    "events of the processor": call("forbidden", "perf_event_open", "b, 0, -1, -1, 0"),
    "the machine of a guest": call("sockets", "socket", "40, 1, 0"),
    "ciphers of the kernel": call("sockets", "socket", "38, 5, 0"),
    "a detached mount": call("forbidden", "open_tree", '-100, b"/usr", 1'),
    "higher priority": "nice -n -5 true 2>&1 | grep -c . | grep 0",
}


class Outside:
    """What a step may look for: a machine, its supervisor, and servers that listen."""

    def __init__(self, folder: Path) -> None:
        self.machine = Machine(folder)
        self.path = socket.socket(socket.AF_UNIX)
        self.path.bind(str(self.machine.victim / "socket"))
        self.abstract = socket.socket(socket.AF_UNIX)
        self.abstract.bind(f"\0torchyard-{folder.name}")
        self.port = socket.create_server(("127.0.0.1", 0))
        for one in (self.path, self.abstract):
            one.listen()
        self.machine.before = self.machine.picture()
        add_session_key()

    def script(self) -> str:
        """Return a step that makes all attempts, and leaves the names of those that succeeded."""
        lines = [
            f"PORT={self.port.getsockname()[1]} ABSTRACT=torchyard-{self.machine.folder.name}",
            f"SUPERVISOR={os.getpid()}; touch {{out}}/made; set +e",
        ]
        for name, attack in ATTACKS.items():
            text = attack.replace("{tmp}", "{work}/tmp")
            lines.append(f'( {text} ) >/dev/null 2>&1 </dev/null && touch "{{out}}/did {name}"')
        return "\n".join([*lines, "true"])

    def close(self) -> None:
        for one in (self.path, self.abstract, self.port):
            one.close()


@pytest.fixture(scope="module", params=USERS)
def succeeded(request: pytest.FixtureRequest) -> Iterator[list[str]]:
    """The attempts that succeeded."""
    with TemporaryDirectory() as name:
        Path(name).chmod(0o755)
        outside = Outside(Path(name))
        os.environ["HUNTER2"] = "secret"
        try:
            run = as_nobody if request.param == "nobody" else attempt_twice
            done = run(outside.machine, [outside.script()], "bwrap")
        finally:
            del os.environ["HUNTER2"]
            outside.close()
        assert done.error == ""
        assert "made" in done.files
        outside.machine.assert_unharmed()
        yield [file.removeprefix("did ") for file in done.files]


def test_programs_have_the_sockets_that_they_need(tmp_path: Path) -> None:
    families = ("AF_UNIX", "AF_INET", "AF_INET6", "AF_NETLINK")
    opened = "; ".join(f"socket.socket(socket.{name}, socket.SOCK_DGRAM)" for name in families)
    step = f"python3 -c 'import socket; {opened}; socket.socketpair()' && touch {{out}}/made"
    assert attempt_twice(Machine(tmp_path), [step], "bwrap").files == ("made",)


@pytest.mark.parametrize("attack", ATTACKS)
def test_nothing_gets_out_of_the_sandbox(succeeded: list[str], attack: str) -> None:
    assert attack not in succeeded
