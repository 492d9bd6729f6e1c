"""The toolchains of this machine, and the variables of a job's steps."""

import shlex
from pathlib import Path

from torchyard.compute.features import SYSTEM_PREFIXES, FoundFeature, find_feature
from torchyard.compute.registry import PLAIN, compute_platforms, look_up, platform_for
from torchyard.config.load import load_config
from torchyard.config.tables import load_tables
from torchyard.errors import HostError
from torchyard.features.toolchain.report import FoundPython, ToolchainPart, ToolchainReport
from torchyard.host.files import exists
from torchyard.host.machine import platform_name
from torchyard.model.toolchain import Toolchain
from torchyard.plan.expand import expand
from torchyard.run.sandbox import INSIDE
from torchyard.toolchain.cache import cache_variables
from torchyard.toolchain.digests import DIGESTS, Digests
from torchyard.toolchain.identity import survey
from torchyard.toolchain.machine import Machine, look_around
from torchyard.toolchain.provision import ToolchainLayout, build_variables, find_tools
from torchyard.toolchain.variables import SYSTEM_PATH, compose
from torchyard.workspace.arguments import check_name
from torchyard.workspace.locations import compile_cache_url, home_directory
from torchyard.workspace.toolchain_id import with_toolchain_id

_FILE = "torchyard.toml"


def survey_machine(file: str | None = None) -> ToolchainReport:
    """Find the Pythons, compilers, toolkits and libraries of this machine.

    Args:
        file: A configuration, for whose matrix parts are chosen; by default the current
            directory's, if it exists.
    """
    file = _existing(file)
    digests = _digests(file)
    parts = _parts(file, digests) if file else {}
    machine = look_around(load_tables(), compute_platforms(), digests)
    return ToolchainReport(
        platform=machine.platform,
        interpreters=[
            FoundPython(
                tag=python.tag,
                version=python.version,
                origin=python.origin,
                path=python.path,
                headers=python.headers,
            )
            for python in machine.interpreters
        ],
        compilers=[ToolchainPart(compiler.identity, compiler.cc) for compiler in machine.compilers],
        toolkits={
            platform.title: [
                _part(kit.identity, kit.origin, kit.root)
                for kit in machine.toolkits.get(platform.name, ())
            ]
            for platform in compute_platforms()
            if platform.cmake_switch
        },
        blas=[_part(blas.identity, blas.origin, blas.root) for blas in machine.blas],
        libraries=_libraries(machine),
        parts={name: part for name, part in parts.items() if isinstance(part, str)},
        missing={name: _why(part) for name, part in parts.items() if isinstance(part, HostError)},
    )


def _part(identity: str, origin: str, root: str) -> ToolchainPart:
    return ToolchainPart(identity, (root or None) if origin == "system" else None)


def _libraries(machine: Machine) -> list[ToolchainPart]:
    """Return libraries, such as cuDNN, in the system's toolkits or beside them."""
    titles: dict[FoundFeature, str] = {}
    for platform in compute_platforms():
        features = platform.table().machine.features.values()
        for kit in machine.toolkits.get(platform.name, ()):
            prefixes = [Path(kit.root), *SYSTEM_PREFIXES] if kit.origin == "system" else []
            found = ((find_feature(feature, prefixes), feature.title) for feature in features)
            titles |= {feature: title for feature, title in found if feature}
    return [
        ToolchainPart(f"{title} {feature.version}".strip(), str(feature.library))
        for feature, title in titles.items()
    ]


def _why(error: HostError) -> str:
    (diagnostics, *_) = error.diagnostics
    return f"{diagnostics.what}; {diagnostics.hint}" if diagnostics.hint else diagnostics.what


def job_variables(file: str | None, *, compute: str, blas: str, folder: str) -> bytes:
    """Return the variables that the steps of a job would see, for a shell to read."""
    compute, folder = compute or PLAIN, folder or INSIDE
    look_up([compute])
    tables = load_tables()
    check_name(compute, tables.compute, "compute platform")
    check_name(blas, ("", *tables.blas), "BLAS")
    file = _existing(file)
    config = load_config(file) if file else None
    toolchain = (config and config.toolchain) or Toolchain()
    tools = find_tools(
        toolchain,
        compute=compute,
        source=platform_for(compute),
        blas=blas,
        tables=tables,
        digests=_digests(file),
    )
    env = build_variables(
        tools,
        tables.compute[compute].archs.get(platform_name(), ()),
        ToolchainLayout(Path(folder), folder),
        compute_platforms(),
        python=config is not None,
    )
    if file and (cache := compile_cache_url(file, config)):
        env |= cache_variables(cache, Path(folder), folder)
    env = compose({"PATH": SYSTEM_PATH}, env)
    lines = (f"export {name}={shlex.quote(value)}\n" for name, value in sorted(env.items()))
    return "".join(lines).encode()  # verbatim for a shell


def _parts(file: str, digests: Digests) -> dict[str, str | HostError]:
    """Return the parts for this machine's blocks of a file, of its root if it has one."""
    config = load_config(file)
    if config.toolchain and config.toolchain.has_own_system:
        found = with_toolchain_id(config, file).toolchain
        return dict(found.parts) if found else {}
    cells = expand(config).cells
    here = [cell for cell in cells if cell.platform == platform_name()]
    return survey(
        config.toolchain or Toolchain(),
        computes={cell.compute: platform_for(cell.compute) for cell in here},
        variants=dict.fromkeys(cell.variant for cell in here),
        tables=config.tables,
        digests=digests,
    )


def _existing(file: str | None) -> str | None:
    """Return the given file, or the default one if it exists."""
    return file or (_FILE if exists(_FILE) else None)


def _digests(file: str | None) -> Digests:
    return Digests(Path(home_directory(file), DIGESTS) if file else None)
