"""Identities of this machine's compilers and libraries, for fingerprints."""

from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import TypeVar

import msgspec

from torchyard.errors import HostError
from torchyard.host.machine import platform_name
from torchyard.model.tables import Tables
from torchyard.model.toolchain import Toolchain
from torchyard.model.values import Value
from torchyard.toolchain.blas import Blas, find_blas
from torchyard.toolchain.compilers import Compiler, find_compiler
from torchyard.toolchain.digests import Digests
from torchyard.toolchain.root import ask_in_root
from torchyard.toolchain.root_image import root_identity
from torchyard.toolchain.toolkit import Toolkit, ToolkitSource

Part = TypeVar("Part")


def identify(
    toolchain: Toolchain,
    *,
    computes: Mapping[str, ToolkitSource],
    variants: Iterable[str],
    tables: Tables,
    digests: Digests | None = None,
) -> Toolchain:
    """Return the toolchain with the identities found on this machine, without missing parts."""
    found = survey(toolchain, computes=computes, variants=variants, tables=tables, digests=digests)
    parts = {name: part for name, part in found.items() if isinstance(part, str)}
    return msgspec.structs.replace(toolchain, platform=platform_name(), parts=parts)


def identify_in_root(
    toolchain: Toolchain, root: str, *, computes: Iterable[str], variants: Iterable[str]
) -> Toolchain:
    """Return the toolchain with the identities found in a root, and the root's own.

    Without compute platforms and variants, only the root is identified.
    """
    parts = {"root": root_identity(toolchain.root or root, root)}
    wanted = {"computes": sorted(computes), "variants": sorted(variants)}
    if any(wanted.values()):
        request = SurveyRequest(toolchain=toolchain, **wanted)
        answer = ask_in_root(root, ["survey", msgspec.json.encode(request).decode()])
        parts |= msgspec.json.decode(answer, type=dict[str, str])
    return msgspec.structs.replace(toolchain, platform=platform_name(), parts=parts)


class SurveyRequest(Value, kw_only=True):
    """The parts of a toolchain to identify."""

    toolchain: Toolchain
    computes: list[str]
    variants: list[str]


def survey(
    toolchain: Toolchain,
    *,
    computes: Mapping[str, ToolkitSource],
    variants: Iterable[str],
    tables: Tables,
    digests: Digests | None = None,
) -> dict[str, str | HostError]:
    """Return the identity of each part on this machine, or why it is missing."""
    digests = digests or Digests()
    compiler = _attempt(partial(find_compiler, toolchain.compiler, digests))
    finders: dict[str, Callable[[], Toolkit | Blas | None]] = {
        f"compute/{compute}": partial(find_toolkit, source, toolchain, compute, digests)
        for compute, source in computes.items()
    }
    if isinstance(compiler, Compiler):
        finders |= {
            f"blas/{variant}": partial(blas_for, toolchain, variant, compiler, tables, digests)
            for variant in variants
        }
    with ThreadPoolExecutor(4) as pool:
        answers = dict(zip(finders, pool.map(_attempt, finders.values()), strict=True))
    found = {"compiler": compiler, **answers}
    identities = {
        name: part if isinstance(part, HostError) else part.identity
        for name, part in found.items()
        if part is not None
    }
    for name in computes:  # beside the toolkits, in the order of their platforms
        kit = answers.get(f"compute/{name}")
        libraries = {} if kit is None or isinstance(kit, (HostError, Blas)) else kit.libraries
        identities |= {f"compute/{name}/{library}": libraries[library] for library in libraries}
    return identities


def _attempt(find: Callable[[], Part]) -> Part | HostError:
    try:
        return find()
    except HostError as error:
        return error


def find_toolkit(
    source: ToolkitSource, toolchain: Toolchain, compute: str, digests: Digests
) -> Toolkit | None:
    """Return the toolkit for a compute; None if a compiler is enough."""
    return source.find_toolkit(compute, toolchain.origin_of(source.name), digests)


def blas_for(
    toolchain: Toolchain, variant: str, compiler: Compiler, tables: Tables, digests: Digests
) -> Blas | None:
    """Return the BLAS of a variant; None if the variant is a torch release."""
    if variant not in tables.blas:
        return None
    return find_blas(variant, toolchain.blas, compiler, digests)
