"""The kernel's keyrings: a program inherits its session's, even in a sandbox."""

import ctypes
import os

_KEYCTL = {"x86_64": 250, "aarch64": 219, "ppc64le": 271, "riscv64": 219, "s390x": 280}
"""The number of the system call, for which the C library has no function."""

_JOIN_SESSION = 1


def leave_session_keyring() -> None:
    """Give this thread, and the programs that it starts, a session without keys.

    The caller's may have Kerberos tickets and keys of encrypted disks. A user's keys are
    not accessible in a sandbox, as its user namespace has its own.
    """
    number = _KEYCTL.get(os.uname().machine)
    if number is not None:
        ctypes.CDLL(None).syscall(number, _JOIN_SESSION, None)  # fails without keyrings
