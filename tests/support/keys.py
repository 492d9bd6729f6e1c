"""A key in the kernel's session keyring, which programs inherit, and what finds it."""

import ctypes
import platform

NAME = "torchyard-test"

_KEYCTL = 250 if platform.machine() == "x86_64" else 219
_SESSION = -3
_SEARCH = 10


def add_session_key() -> None:
    """Add a key to the session of this thread."""
    word = NAME.encode()
    ctypes.CDLL(None).syscall(_KEYCTL - 2, b"user", word, b"secret", 6, ctypes.c_int(_SESSION))


FIND_KEY = (
    "import ctypes; "
    f'key = ctypes.CDLL(None).syscall({_KEYCTL}, {_SEARCH}, {_SESSION}, b"user", b"{NAME}", 0); '
    "raise SystemExit(key < 0)"
)
"""A program in Python that succeeds where the key is in its session."""

FIND_KEY_C = f"""\
#include <unistd.h>
int main(void) {{ return syscall({_KEYCTL}, {_SEARCH}, {_SESSION}, "user", "{NAME}", 0) < 0; }}
"""
"""The same in C, for roots without Python."""
