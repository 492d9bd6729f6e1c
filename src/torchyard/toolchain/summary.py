"""Check that CMake enabled everything that a cell requires: nothing may be disabled silently."""

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


class RequestedBuild(Value, kw_only=True):
    """The requirements of a cell for a configured build.

    `blas_root`, if not empty, is the required origin of its BLAS; `cmake` are the cache entries
    that the file sets, `env` the variables, some of which backends pass to CMake. `parts` are the
    promised libraries, each by the switch that CMake turns off without it.
    """

    compute: str
    blas: str
    blas_root: str
    archs: tuple[str, ...]
    cmake: dict[str, str]
    env: dict[str, str]
    parts: dict[str, str] = {}


class SummaryTable(Value, kw_only=True):
    """The cache entries with CMake's findings, and the names of each BLAS in them."""

    entries: dict[str, tuple[str, ...]]
    blas: dict[str, str]
    libraries: dict[str, str]
    within: dict[str, str]
    tested: dict[str, str]


@cache
def summary_table() -> SummaryTable:
    """Read the table."""
    return msgspec.convert(tomllib.loads(read_data("summary.toml")), SummaryTable)


def is_wanted(switch: str, env: Mapping[str, str], cmake: Mapping[str, str]) -> bool:
    """Return whether the file turns off neither a switch nor the one that includes it."""
    entries = {name.partition(":")[0]: value for name, value in cmake.items()}
    switches = (switch, summary_table().within.get(switch, switch))
    return all(_is_on(entries.get(name, env.get(name, "ON"))) for name in switches)


def check_summary(
    configured: Configured,
    wanted: RequestedBuild,
    source: ToolkitSource,
    platforms: Iterable[ToolkitSource],
) -> None:
    """Fail before compiling if the configuration is not as requested."""
    found = [
        *_bindings(configured),
        *_switches(configured, wanted.compute, source, platforms),
        *_parts(configured, wanted),
        *_blas(configured, wanted.blas),
        *_libraries(configured, wanted.blas, wanted.blas_root),
        *_archs(configured, wanted.archs, source),
        *_abi(configured, wanted),
        *_entries(configured, wanted.cmake),
        *_variables(configured, wanted.env),
    ]
    if found:
        msg = "the build is not configured as its cell asks:\n" + "\n".join(f"- {x}" for x in found)
        hint = (
            "see CMake's search further up in the log; install what is missing, or turn it off by "
            'env = { USE_… = "0" } in an [[override]] of the core'
        )
        raise BuildError(msg, hint=hint)


def check_bindings(configured: Configured) -> None:
    """Fail if a build has lost its bindings with another Python."""
    for found in _bindings(configured):
        msg = f"CMake leaves the Python bindings out: {found}"
        raise BuildError(msg, hint="see its messages about Python, further up in the log")


def _bindings(configured: Configured) -> Iterator[str]:
    """Yield the switch for bindings if it is off."""
    for name in summary_table().entries["bindings"]:
        value = configured.cache.get(name, "ON")
        if not _is_on(value):
            yield f"{name} should be on, and is `{value}`"


def _entry(configured: Configured, names: Sequence[str]) -> tuple[str, str]:
    """Return the first existing entry and its value."""
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
    for switch, on in {other.cmake_switch: other.name == source.name for other in switches}.items():
        value = configured.cache.get(switch, "NOTFOUND")
        if _is_on(value) != on:
            yield f"{switch} should be {'on' if on else 'off'} for {compute}, and is `{value}`"


def _parts(configured: Configured, wanted: RequestedBuild) -> Iterator[str]:
    """Yield promised libraries that CMake left out, if the project has their switches."""
    for switch, library in {OPENMP: "", **wanted.parts}.items():
        value = configured.cache.get(switch)
        if value is None or not is_wanted(switch, wanted.env, wanted.cmake):
            continue
        name = library.partition(".")[0].removeprefix("lib")
        file = re.compile(rf"(^|[/\\]|lib|-l){name}[\w.-]*$")
        if not _is_on(value):
            yield f"{switch} should be on for {wanted.compute}, and is `{value}`"
        elif name and not any(map(file.search, configured.linked())):
            yield f"{switch} is on for {wanted.compute}, but link lines name no library of {name}"
        elif not _is_on(configured.cache.get(test := summary_table().tested.get(switch, ""), "1")):
            log = "build/CMakeFiles/CMakeConfigureLog.yaml"
            yield f"{switch} is on, but CMake's test {test} has failed (see {log})"


def _abi(configured: Configured, wanted: RequestedBuild) -> Iterator[str]:
    """Yield the C++ ABI of the compile lines if it is neither the new one nor the file's."""
    name = summary_table().entries["abi"][0]
    version = wanted.cmake.get(name, wanted.env.get(name, "1"))
    for abi in configured.definitions(f"_{name}") - {version}:
        yield f"{name} should be {version}; the compile lines have -D_{name}={abi}"


def _blas(configured: Configured, blas: str) -> Iterator[str]:
    name, value = _entry(configured, summary_table().entries["blas"])
    if not re.fullmatch(summary_table().blas[blas], value.lower()):
        yield f"{name} should be {blas}, and is `{value}`"


def _libraries(configured: Configured, blas: str, root: str) -> Iterator[str]:
    """Yield mismatches of the BLAS in the link lines; the cache entry is only the request."""
    pattern = summary_table().libraries[blas]
    linked = [path for path in configured.linked() if re.search(pattern, path.lower())]
    strays = [path for path in linked if root and "/" in path and not path.startswith(f"{root}/")]
    if not linked:
        yield f"no link line names a library of {blas}"
    elif strays:
        yield f"{blas} should come from {root}; link lines name {' '.join(strays)}"


def _entries(configured: Configured, cmake: Mapping[str, str]) -> Iterator[str]:
    for name, wanted in cmake.items():
        got = configured.cache.get(name.partition(":")[0])  # `NAME:TYPE` is a name, too
        if got is None:
            yield f"{name} should be `{wanted}` by the file, and is not set in CMake"
        elif got != wanted and not any({got.lower(), wanted.lower()} <= s for s in (_TRUE, _FALSE)):
            yield f"{name} should be `{wanted}` by the file, and is `{got}`"


def _variables(configured: Configured, env: Mapping[str, str]) -> Iterator[str]:
    """Yield switches that the file sets by a variable, but CMake set differently."""
    for name, wanted in env.items():
        value = configured.cache.get(name, wanted)
        if name.startswith(("USE_", "BUILD_")) and _is_on(value) != _is_on(wanted):
            yield f"{name} should be `{wanted}` by the file, and is `{value}`"


def _archs(configured: Configured, archs: Sequence[str], source: ToolkitSource) -> Iterator[str]:
    """Yield mismatches of architectures with the compile lines, or else with the cache."""
    if not archs:
        return
    wanted, got = set(source.device_codes(archs)), set(configured.device_code())
    where = "the compile lines make code for"
    if not got:
        name, value = _entry(configured, [source.cmake_archs])
        got, where = set(source.device_codes(re.split(r"[;, ]+", value))), f"{name} has"
    if got != wanted:
        yield f"device code should be {' '.join(sorted(wanted))}; {where} {' '.join(sorted(got))}"
