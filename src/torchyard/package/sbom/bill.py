"""The bill of materials of a build: what its spec and the results of its jobs say."""

import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from pathlib import Path

import msgspec

from torchyard.host.files import basename
from torchyard.model.config import Source
from torchyard.model.job_spec import JobSpec, Task
from torchyard.model.recipe import Stage
from torchyard.package.sbom.component import ALL, FACTS, Bill, Component, ComponentKind, Facts
from torchyard.package.sbom.cyclonedx import encode_bill
from torchyard.package.sbom.purl import git_purl, purl, pypi_purl
from torchyard.package.versions import local_version

_PIN = re.compile(r"([\w.-]+)(?:\[[^]]*\])?==([\w.!+]+)")


def bill_of(spec: JobSpec, inputs: Path) -> Bill:
    """Return all that packages of a build can contain, whatever their format."""
    name, version = spec.task.facts["name"], _version(spec)
    files = (inputs / stage / FACTS for stage in (Stage.CORE, Stage.BINDINGS))
    facts = [msgspec.json.decode(path.read_bytes(), type=Facts) for path in files if path.is_file()]
    own = next((noted.license for noted in facts), "")
    compiling = [task for task in spec.tasks if task.stage in (Stage.CORE, Stage.BINDINGS)]
    return Bill(
        name=name,
        version=version,
        purl=pypi_purl(name, version),
        components=_merged(
            [
                *(part for task in spec.tasks if task.source for part in _sources(task, spec, own)),
                *(part for noted in facts for part in noted.components),
                *(part for task in compiling for part in _toolchain(task)),
            ]
        ),
        unseen=tuple(sorted({n for noted in facts for n in noted.unseen})) if facts else (ALL,),
    )


def package_sbom(bill: Bill, root: Path, bundled: Mapping[str, str]) -> bytes:
    """Return the document of a package with a tree's files.

    `bundled` are the new names of libraries by their old ones; some may be in a package beside it.
    """
    return encode_bill(_narrowed(bill, {path.name for path in root.rglob("*")}, bundled))


def _narrowed(bill: Bill, names: Collection[str], bundled: Mapping[str, str]) -> Bill:
    """Return the bill of a package with files of these names."""
    known = {part.name: part for part in bill.components if part.kind is ComponentKind.BUNDLED}
    inside = [
        msgspec.structs.replace(
            known.get(old, Component(kind=ComponentKind.BUNDLED, name=old)), files=(new,)
        )
        for old, new in bundled.items()
        if new in names
    ]
    for part in bill.components:
        if part.kind is ComponentKind.STATIC:
            files = tuple(name for name in part.files if name in names)
            inside += [msgspec.structs.replace(part, files=files)] if files else []
        elif part.kind is not ComponentKind.BUNDLED:
            inside.append(part)
    unseen = tuple(name for name in bill.unseen if name in names or name == ALL)
    return msgspec.structs.replace(bill, components=tuple(inside), unseen=unseen)


def _version(spec: JobSpec) -> str:
    """Return the version of the build's wheels."""
    facts, label = spec.task.facts, spec.task.text("label")
    if spec.compiled.stage is Stage.CORE:
        return local_version(facts["version"], facts["compute"])
    return f"{facts['version']}{'+' if label else ''}{label}"


def _merged(parts: Iterable[Component]) -> tuple[Component, ...]:
    """Return components without repetitions, each with all its files."""
    found: dict[str, Component] = {}
    for part in parts:
        files = tuple(sorted({*found.get(part.ref, part).files, *part.files}))
        found[part.ref] = msgspec.structs.replace(part, files=files)
    return tuple(found[ref] for ref in sorted(found))


def _sources(task: Task, spec: JobSpec, own: str) -> Iterator[Component]:
    """Yield the source of a job, with its `own` licence, and its downloads; no local paths."""
    source = task.source or Source()
    name, version, sha256 = task.facts["name"], task.facts["version"], task.text("sha256")
    if source.sdist is not None:
        name, _, version = source.sdist.partition("==")
        tree = _source(name, version, pypi_purl(name, version), sha256)
    elif source.debian is not None:
        name, _, version = source.debian.partition("=")
        tree = _source(name, version, purl("deb", f"debian/{name}", version, arch="source"))
    elif source.archive is not None:
        tree = _archive(name, version, source.archive, sha256)
    else:
        version = spec.commit or version
        tree = _source(name, version, git_purl(source.git or "", version, name))
    yield msgspec.structs.replace(tree, license=own)
    for part in source.also:
        name = basename(part.requested.rstrip("/")).removesuffix(".git")
        version = part.commit or part.rev or ""
        if part.git is not None:
            yield _source(name, version, git_purl(part.git, version, name))
        else:
            yield _archive(name, version, part.archive or "", part.sha256 or "")


def _archive(name: str, version: str, address: str, sha256: str) -> Component:
    at = address if "://" in address else ""
    checksum = f"sha256:{sha256}" if sha256 else ""
    named = purl("generic", name, version, download_url=at, checksum=checksum)
    return _source(name, version, named, sha256)


def _source(name: str, version: str, named: str, sha256: str = "") -> Component:
    kind = ComponentKind.SOURCE
    return Component(kind=kind, name=name, version=version, purl=named, digest=sha256)


def _toolchain(task: Task) -> Iterator[Component]:
    """Yield what compiles: the parts with an identity, `gcc 12.2.0 sha256:…`, and requirements."""
    kind = ComponentKind.TOOLCHAIN
    for identity in task.table("identity").values():
        name, _, rest = identity.partition(" ")
        version = rest.partition(" ")[0].rstrip(",")
        yield Component(kind=kind, name=name, version=version, purl=purl("generic", name, version))
    for pin in filter(None, map(_PIN.match, task.words("requires"))):
        yield Component(kind=kind, name=pin[1], version=pin[2], purl=pypi_purl(pin[1], pin[2]))
