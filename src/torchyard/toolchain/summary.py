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

OPENMP = "USE_OPENMP"
_FALSE = frozenset(("", "0", "off", "no", "false", "n", "ignore"))
_TRUE = frozenset(("1", "on", "yes", "true", "y"))


class Asked(Value, kw_only=True):
    """What a cell requires of a configured build.

    `blas_root` is where its BLAS has to come from, if it is not empty; `cmake` are the cache
    entries that the file sets, and `env` the variables, of which backends pass some to CMake.
    `parts` are the libraries that it promises, each by the switch that CMake turns off without it.
    """

    compute: str
    blas: str
    blas_root: str
    archs: tuple[str, ...]
    cmake: dict[str, str]
    env: dict[str, str]
    parts: dict[str, str] = {}


class SummaryTable(Value, kw_only=True):
    """Where CMake records what it found, and what it and torch call each BLAS there."""

    entries: dict[str, tuple[str, ...]]
    blas: dict[str, str]
    libraries: dict[str, str]
    within: dict[str, str]


@cache
def summary_table() -> SummaryTable:
    """Read the table."""
    return msgspec.convert(tomllib.loads(read_data("summary.toml")), SummaryTable)


def is_wanted(switch: str, env: Mapping[str, str], cmake: Mapping[str, str]) -> bool:
    """Return whether the file turns off neither a switch nor what it is a part of."""
    entries = {name.partition(":")[0]: value for name, value in cmake.items()}
    switches = (switch, summary_table().within.get(switch, switch))
    return all(_is_on(entries.get(one, env.get(one, "ON"))) for one in switches)


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
        *_parts(configured, asked),
        *_blas(configured, asked.blas),
        *_libraries(configured, asked.blas, asked.blas_root),
        *_archs(configured, asked.archs, source),
        *_abi(configured, asked),
        *_entries(configured, asked.cmake),
        *_variables(configured, asked.env),
    ]
    if found:
        msg = "the build is not configured as its cell asks:\n" + "\n".join(f"- {x}" for x in found)
        hint = (
            "the log has, further up, what CMake looked for: install that, or do without it by "
            'env = { USE_… = "0" } in an [[override]] of the core'
        )
        raise BuildError(msg, hint=hint)


def check_bindings(configured: Configured) -> None:
    """Fail if a build that was pointed to another Python has no bindings any more."""
    for found in _bindings(configured):
        msg = f"CMake leaves the Python bindings out: {found}"
        raise BuildError(msg, hint="see what it says of Python, further up in the log")


def _bindings(configured: Configured) -> Iterator[str]:
    """Yield that bindings are switched off, in a project that has such a switch."""
    for name in summary_table().entries["bindings"]:
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
    switches = (platform for platform in platforms if platform.cmake_switch)
    for switch, on in {one.cmake_switch: one.name == source.name for one in switches}.items():
        value = configured.cache.get(switch, "NOTFOUND")
        if _is_on(value) != on:
            yield f"{switch} should be {'on' if on else 'off'} for {compute}, and is `{value}`"


def _parts(configured: Configured, asked: Asked) -> Iterator[str]:
    """Yield promised libraries that CMake went on without, in a project that has their switches."""
    for switch, library in {OPENMP: "", **asked.parts}.items():
        value = configured.cache.get(switch)
        if value is None or not is_wanted(switch, asked.env, asked.cmake):
            continue
        name = library.partition(".")[0].removeprefix("lib")
        file = re.compile(rf"(^|[/\\]|lib|-l){name}[\w.-]*$")
        if not _is_on(value):
            yield f"{switch} should be on for {asked.compute}, and is `{value}`"
        elif name and not any(map(file.search, configured.linked())):
            yield f"{switch} is on for {asked.compute}, but link lines name no library of {name}"


def _abi(configured: Configured, asked: Asked) -> Iterator[str]:
    """Yield the C++ ABI of the compile lines if it is neither the new one nor the file's."""
    name = summary_table().entries["abi"][0]
    wanted = asked.cmake.get(name, asked.env.get(name, "1"))
    for abi in configured.definitions(f"_{name}") - {wanted}:
        yield f"{name} should be {wanted}; the compile lines have -D_{name}={abi}"


def _blas(configured: Configured, blas: str) -> Iterator[str]:
    name, value = _said(configured, summary_table().entries["blas"])
    if not re.fullmatch(summary_table().blas[blas], value.lower()):
        yield f"{name} should say {blas}, and is `{value}`"


def _libraries(configured: Configured, blas: str, root: str) -> Iterator[str]:
    """Yield mismatches of the BLAS in the link lines; the cache entry is only the request."""
    pattern = summary_table().libraries[blas]
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
