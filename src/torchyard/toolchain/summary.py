"""Checks that CMake enabled what a cell requires: nothing may be disabled silently."""

import re
import tomllib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache

import msgspec

from torchyard.errors import BuildError
from torchyard.host.files import read_data
from torchyard.model.values import Value
from torchyard.toolchain.cmake import Configured
from torchyard.toolchain.toolkit import ToolkitSource

_FALSE = frozenset(("", "0", "off", "no", "false", "n", "ignore"))
_TRUE = frozenset(("1", "on", "yes", "true", "y"))


class Asked(Value, kw_only=True):
    """What a cell requires of a configured build.

    `blas_root` is where its BLAS has to come from, if it is not empty; `cmake` are the cache
    entries that the file sets, and `env` the variables, of which backends pass some to CMake.
    """

    compute: str
    blas: str
    blas_root: str
    archs: tuple[str, ...]
    cmake: dict[str, str]
    env: dict[str, str]


class _Summary(Value, kw_only=True):
    entries: dict[str, tuple[str, ...]]
    blas: dict[str, str]
    libraries: dict[str, str]


@cache
def _summary() -> _Summary:
    return msgspec.convert(tomllib.loads(read_data("summary.toml")), _Summary)


def check_summary(
    configured: Configured,
    asked: Asked,
    source: ToolkitSource,
    platforms: Iterable[ToolkitSource],
) -> None:
    """Fail if the configuration is not as requested, before anything is compiled."""
    found = [
        *_bindings(configured),
        *_switches(configured, asked.compute, source, platforms),
        *_blas(configured, asked.blas),
        *_libraries(configured, asked.blas, asked.blas_root),
        *_archs(configured, asked.archs, source),
        *_entries(configured, asked.cmake),
        *_variables(configured, asked.env),
    ]
    if found:
        msg = "the build is not configured as its cell asks:\n" + "\n".join(f"- {x}" for x in found)
        hint = "see what CMake looked for, further up in the log; nothing has been compiled yet"
        raise BuildError(msg, hint=hint)


def check_bindings(configured: Configured) -> None:
    """Fail if a build that was pointed to another Python has no bindings any more."""
    for found in _bindings(configured):
        msg = f"CMake leaves the Python bindings out: {found}"
        raise BuildError(msg, hint="see what it says of Python, further up in the log")


def _bindings(configured: Configured) -> Iterator[str]:
    """Yield that bindings are switched off, in a project that has such a switch."""
    for name in _summary().entries["bindings"]:
        value = configured.cache.get(name, "ON")
        if not _is_on(value):
            yield f"{name} should be on, and is `{value}`"


def _said(configured: Configured, names: Sequence[str]) -> tuple[str, str]:
    """Return the first of the entries that exists, and its value."""
    for name in names:
        if name in configured.cache:
            return name, configured.cache[name]
    return " or ".join(names), "NOTFOUND"


def _is_on(value: str) -> bool:
    return value.lower() not in _FALSE and not value.upper().endswith("NOTFOUND")


def _switches(
    configured: Configured, compute: str, source: ToolkitSource, platforms: Iterable[ToolkitSource]
) -> Iterator[str]:
    switches = (one for one in platforms if one.cmake_switch)
    wanted = [((one.cmake_switch,), one.name == source.name) for one in switches]
    for names, on in [*wanted, (_summary().entries["openmp"], True)]:
        name, value = _said(configured, names)
        if _is_on(value) != on:
            yield f"{name} should be {'on' if on else 'off'} for {compute}, and is `{value}`"


def _blas(configured: Configured, blas: str) -> Iterator[str]:
    name, value = _said(configured, _summary().entries["blas"])
    if not re.fullmatch(_summary().blas[blas], value.lower()):
        yield f"{name} should say {blas}, and is `{value}`"


def _libraries(configured: Configured, blas: str, root: str) -> Iterator[str]:
    """Yield mismatches of the BLAS in the link lines; the cache entry is only the request."""
    pattern = _summary().libraries[blas]
    linked = [one for one in configured.linked() if re.search(pattern, one.lower())]
    strays = [one for one in linked if root and "/" in one and not one.startswith(f"{root}/")]
    if not linked:
        yield f"link lines should name a library of {blas}, and none does"
    elif strays:
        yield f"{blas} should come from {root}; link lines name {' '.join(strays)}"


def _entries(configured: Configured, cmake: Mapping[str, str]) -> Iterator[str]:
    for name, wanted in cmake.items():
        got = configured.cache.get(name.partition(":")[0])  # `NAME:TYPE` is a name, too
        if got is None:
            yield f"{name} should be `{wanted}`, as the file says; CMake was not told"
        elif got != wanted and not any({got.lower(), wanted.lower()} <= s for s in (_TRUE, _FALSE)):
            yield f"{name} should be `{wanted}`, as the file says, and is `{got}`"


def _variables(configured: Configured, env: Mapping[str, str]) -> Iterator[str]:
    """Yield switches that the file sets by a variable, and that CMake turned the other way."""
    for name, wanted in env.items():
        value = configured.cache.get(name, wanted)
        if name.startswith(("USE_", "BUILD_")) and _is_on(value) != _is_on(wanted):
            yield f"{name} should be `{wanted}`, as the file says, and is `{value}`"


def _archs(configured: Configured, archs: Sequence[str], source: ToolkitSource) -> Iterator[str]:
    """Yield mismatches of architectures with the compile lines, or else with the cache."""
    if not archs:
        return
    wanted, got = set(source.device_codes(archs)), set(configured.device_code())
    where = "the compile lines make code for"
    if not got:
        name, value = _said(configured, [source.cmake_archs])
        got, where = set(source.device_codes(re.split(r"[;, ]+", value))), f"{name} has"
    if got != wanted:
        yield f"device code should be {' '.join(sorted(wanted))}; {where} {' '.join(sorted(got))}"
