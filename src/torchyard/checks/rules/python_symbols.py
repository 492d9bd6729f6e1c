"""Rules about the functions of the Python C API that a package uses."""

import posixpath
import re
from collections.abc import Iterator

from torchyard.checks.compat.abi import python_names
from torchyard.checks.compat.stable_names import show_release, stable_abi
from torchyard.checks.loader.companions import siblings_of
from torchyard.checks.loader.resolve import is_module, is_program, resolver_of
from torchyard.checks.rule import Hit, Severity, rule
from torchyard.checks.rules.symbols import load_symbols
from torchyard.checks.subject import Subject
from torchyard.model.matrix import any_match
from torchyard.package.contents import Binary
from torchyard.package.formats import format_of
from torchyard.package.wheel.name import ABI3

_PYTHONS = re.compile(r"python|\.abi3\.", re.IGNORECASE)
_INTERPRETER = re.compile(r"cp3(\d+)t?")
_NEVER = (99, 0)
_SHOWN = 4


@rule("symbols-python", Severity.ERROR, "it does not load in the Python that the tag promises")
def python(subject: Subject) -> Iterator[Hit]:
    """A file was compiled for another Python than the tags say.

    - A wheel with the tag `abi3`, or a module called `….abi3.so`, may only use the stable ABI, and
      of that only what the oldest Python of its tag has; else it fails, or crashes, with another.
      Functions defined by a library of the package, or of a required package that is
      checked together with it, are not Python's.
    - A free-threaded Python (`cp313t`) has other objects than one with a lock (`cp313`): code
      compiled for one crashes in the other. The same applies to debug builds of Python.
    - A wheel must not need `libpython`: many Pythons have none, and where there is one, a second
      interpreter is loaded beside the one that runs.

    Compile with the headers of the right Python; for `abi3` with `Py_LIMITED_API`.
    """
    resolver = resolver_of(subject)
    for path, binary in resolver.binaries.items():
        member = resolver.names[path]
        for library in binary.needed:
            if library.startswith("libpython") and format_of(subject.contents).IN_ENVIRONMENT:
                what = f"needs `{library}`, which a wheel must not"
                yield Hit(what, member, "do not link with libpython")
        names = python_names(binary)
        if not names:
            continue
        if _is_stable(subject, path) and not _stranger(subject, binary):
            yield from _unstable(subject, member, names)
        yield from _other_kind(subject.expected.abi, member, names)


@rule("symbols-python-unsure", Severity.WARNING, "it may not load in the Python of its tag")
def python_unsure(subject: Subject) -> Iterator[Hit]:
    """A file for the stable ABI uses functions outside of it, which may be another library's.

    Their names begin like those of Python, but the file also needs a library that was not checked
    and may define them: `libshiboken6` has functions called `Py…`. If it does not, `symbols-python`
    applies.

    Check the package together with the one that has the library.
    """
    resolver = resolver_of(subject)
    for path, binary in resolver.binaries.items():
        if _is_stable(subject, path) and (library := _stranger(subject, binary)):
            for hit in _unstable(subject, resolver.names[path], python_names(binary)):
                what = f"{hit.what}, unless `{library}` has it"
                yield Hit(what, hit.member, "check it together with the package that has it")


def _is_stable(subject: Subject, path: str) -> bool:
    return subject.expected.abi == ABI3 or path.endswith(".abi3.so")


def _stranger(subject: Subject, binary: Binary) -> str:
    """Return a needed library with unknown symbols, or ""."""
    resolver, siblings = resolver_of(subject), siblings_of(subject)
    for library in binary.needed:
        is_known = (
            library in resolver.by_name
            or library.startswith("libpython")
            or any_match(library, resolver.system)
            or siblings.anywhere(library)
            or siblings.imported(library)
            or library in siblings.libraries
        )
        if not is_known:
            return library
    return ""


def _unstable(subject: Subject, member: str, names: set[str]) -> Iterator[Hit]:
    match = _INTERPRETER.fullmatch(subject.expected.python)
    oldest = (3, int(match[1])) if match else max(stable_abi().values())
    binaries = resolver_of(subject).binaries.values()
    blocks = [b.exports for b in (*binaries, *siblings_of(subject).libraries.values())]
    foreign = [
        name
        for name in sorted(names)
        if stable_abi().get(name, _NEVER) > oldest
        and not any(f"{name}\0".encode() in block for block in blocks)
    ]
    if foreign:
        more = f" and {len(foreign) - _SHOWN} more" if len(foreign) > _SHOWN else ""
        listed = ", ".join(foreign[:_SHOWN])
        what = f"uses {listed}{more}, not in the stable ABI of Python {show_release(oldest)}"
        yield Hit(what, member, "define Py_LIMITED_API, or do not promise abi3")


def _other_kind(abi: str, member: str, names: set[str]) -> Iterator[Hit]:
    """Yield files compiled for another kind of CPython than that of the ABI tag."""
    if not _INTERPRETER.fullmatch(abi):
        return
    hints = load_symbols().python
    free = names.intersection(hints.free_threaded)
    if free and not abi.endswith("t"):
        what = f"uses {min(free)}, which only a free-threaded Python has, but is for {abi}"
        yield Hit(what, member, f"compile it with the headers of {abi}")
    locked = names.intersection(hints.locked)
    if locked and not free and abi.endswith("t"):
        what = f"uses {min(locked)} as for a Python with a lock, but is for {abi}"
        yield Hit(what, member, f"compile it with the headers of {abi}")
    debug = names.intersection(hints.debug)
    if debug:
        what = f"uses {min(debug)}, which only a debug build of Python has"
        yield Hit(what, member, f"compile it with the headers of a release build of {abi}")


@rule("symbols-python-core", Severity.WARNING, "the library can't be used without Python")
def python_core(subject: Subject) -> Iterator[Hit]:
    """A library that should be independent of Python uses its functions.

    Libraries that are neither extension modules nor named after Python (`libtorch_python.so`,
    `libpyside6.abi3.so.6.9`) are for C++ programs as well, and the same for every version of
    Python. One that needs functions of Python can be loaded only by an interpreter, and has to be
    compiled for each of them.

    Move what needs Python to the extension module.
    """
    resolver = resolver_of(subject)
    for path, binary in resolver.binaries.items():
        name = posixpath.basename(path)
        if is_program(path) or is_module(path, binary) or _PYTHONS.search(name):
            continue
        if names := python_names(binary):
            what = f"uses {len(names)} functions of Python: {min(names)} …"
            yield Hit(what, resolver.names[path], "move what needs Python to an extension module")
