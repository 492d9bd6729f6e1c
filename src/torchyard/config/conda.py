"""Check what the file says about conda packages."""

import re
from collections.abc import Iterator

from torchyard.config.matrix import Problems
from torchyard.model.conda_output import CondaOutput
from torchyard.model.config import Config
from torchyard.model.lock import CONDA, HOST, conda_packages
from torchyard.model.match_spec import match_spec_fault
from torchyard.model.suggest import did_you_mean

_NAME = re.compile(r"[a-z0-9_](?:[a-z0-9_.-]|\{device\})*")
_VERSION = re.compile(r"\d[A-Za-z0-9_.]*")
_STRING = re.compile(r"(?:[A-Za-z0-9_.]|\{[a-z]+\})+")
_WORDS = ("flavour", "python", "hash", "number", "magma")
_META, _LINALG = "conda-meta", "conda-linalg"


def check_outputs(config: Config, problems: Problems) -> None:
    """Refuse outputs that no package could have."""
    tables = config.tables
    kinds = [kind for kind, row in tables.packages.items() if tables.formats[row.format].channels]
    for kind, output in config.conda_outputs.items():
        path = (CONDA, "outputs", kind)
        if kind not in kinds:
            hint = did_you_mean(kind, kinds)
            problems.add(path, f"there is no kind of conda package `{kind}`", hint)
        for key, what, hint in _faults(kind, output, config):
            problems.add((*path, key), what, hint)


def _faults(kind: str, output: CondaOutput, config: Config) -> Iterator[tuple[str, str, str]]:
    """Yield the keys with wrong values, what is wrong, and a hint."""
    name = output.name
    if name is not None and not _NAME.fullmatch(name):
        yield "name", f"`{name}` is not the name of a conda package", "lower case, such as libdemo"
    if name is not None and ("{device}" in name) != (kind == _META):
        yield "name", f"only `{_META}` has a name for each {{device}}", "such as demo-{device}"
    if name and [each.name for each in config.conda_outputs.values()].count(name) > 1:
        yield "name", f"two outputs are named `{name}`", "give each its own name"
    if output.version is not None and not _VERSION.fullmatch(output.version):
        yield "version", f"`{output.version}` is not a version of conda", "such as 1.0"
    if output.build_offset < 0:
        yield "build_offset", "a build number can't be negative", "0 or more"
    for key in ("depends", "constrains", "tests"):
        specs = output.tests.requires if key == "tests" else getattr(output, key)
        for spec in specs:
            if fault := match_spec_fault(spec):
                yield key, f"`{spec}` {fault}", "write NAME VERSIONS BUILD: numpy >=2,<3"
    yield from _ambiguous(kind, output.build_string)
    yield from _unpinnable(output, config)


def _ambiguous(kind: str, string: str | None) -> Iterator[tuple[str, str, str]]:
    """Yield a build string that can't be one, or not tell packages apart."""
    if string is None:
        return
    words = {*re.findall(r"\{(\w+)\}", string)}
    least = {"hash", "magma"} if kind == _LINALG else {"hash"}
    if not _STRING.fullmatch(string) or words - {*_WORDS}:
        hint = f"letters, digits, _ and . with {', '.join(_WORDS)} in braces"
        yield "build_string", f"`{string}` is not a build string", hint
    elif least - words:
        what = f"`{string}` would be the same for different packages"
        yield "build_string", what, f"add {{{min(least - words)}}}"


def _unpinnable(output: CondaOutput, config: Config) -> Iterator[tuple[str, str, str]]:
    """Yield packages to pin that no `host` environment has."""
    is_conda = config.toolchain is not None and config.toolchain.conda is not None
    locks = [conda_packages(text)[HOST] for text in config.lock.conda.values()]
    for name in output.pin_compatible:
        if not is_conda:
            what = f"nothing says which {name} is pinned"
            yield "pin_compatible", what, "it is for [toolchain] conda; write `depends` instead"
        elif locks and not any(name in lock for lock in locks):
            what = f"`{name}` is in no `{HOST}` environment"
            yield "pin_compatible", what, "add it to `host`, and run `torchyard lock`"
