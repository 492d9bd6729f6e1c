"""Statements of how packages were made, signed by the machine that made them.

A statement is an in-toto statement with SLSA's provenance, in a DSSE envelope, so tools for these
can verify it. It is beside each package: `demo-1.0-py3-none-any.whl.intoto.jsonl`.
"""

from base64 import b64decode, b64encode
from collections.abc import Iterable, Iterator, Mapping
from hashlib import file_digest
from pathlib import Path
from typing import NamedTuple

import msgspec

from torchyard.errors import CheckError
from torchyard.model.canonical import canonical_json, fingerprint
from torchyard.model.job_spec import JobSpec, Task
from torchyard.model.matrix import any_match
from torchyard.model.recipe import Stage
from torchyard.model.result import Result
from torchyard.model.values import UNDECODABLE, Value
from torchyard.package.delivered import STATEMENT, is_package_name
from torchyard.store.makers import Signer, Trust, verify_signature

_LARGEST = 16 << 20

_KIND = "application/vnd.in-toto+json"
_STATEMENT_TYPE = "https://in-toto.io/Statement/v1"
_PREDICATE_TYPE = "https://slsa.dev/provenance/v1"
_BUILD_TYPE = "torchyard:job/v1"
_SOURCE = "source"


class _Part(Value, rename="camel", forbid_unknown_fields=False):
    """A part of a statement; unknown fields of later versions are ignored."""


class Resource(_Part):
    """Something that a package is made from; an input's digests are of its job and its files."""

    name: str = ""
    uri: str = ""
    digest: dict[str, str] = {}
    annotations: dict[str, str] = {}


class _Parameters(_Part):
    job: str
    spec: msgspec.Raw


class _Circumstances(_Part):
    confined: bool
    """Whether the package and all inputs were built from scratch in a sandbox."""
    facts: dict[str, str] = {}
    environment: dict[str, str] = {}


class _Definition(_Part):
    build_type: str
    external_parameters: _Parameters
    internal_parameters: _Circumstances
    resolved_dependencies: tuple[Resource, ...]


class _Builder(_Part):
    id: str
    version: dict[str, str]


class _Metadata(_Part):
    invocation_id: str
    started_on: str


class _RunDetails(_Part):
    builder: _Builder
    metadata: _Metadata
    byproducts: tuple[Resource, ...] = ()


class _Predicate(_Part):
    build_definition: _Definition
    run_details: _RunDetails


class _Statement(_Part):
    kind: str = msgspec.field(name="_type")
    subject: tuple[Resource, ...]
    predicate_type: str
    predicate: _Predicate


class _Signature(_Part):
    keyid: str
    sig: str


class _Envelope(_Part):
    payload: str
    payload_type: str
    signatures: tuple[_Signature, ...]


class PackageOrigin(NamedTuple):
    """How a package was made, by a statement that a trusted maker has signed for its bytes."""

    maker: str
    key: str
    job: str
    source: str
    commit: str
    confined: bool
    torchyard: str
    started: str
    toolchain: Mapping[str, str]


def sign_statement(
    result: Result, inputs: Iterable[Result], signer: Signer, *, confined: bool
) -> bytes:
    """Return a signed statement about the packages of a result, given results it is made from."""
    spec = result.spec
    packages = (f for f in result.tree.files if "/" not in f.path and is_package_name(f.path))
    statement = _Statement(
        kind=_STATEMENT_TYPE,
        subject=tuple(Resource(name=f.path, digest={"sha256": f.digest}) for f in packages),
        predicate_type=_PREDICATE_TYPE,
        predicate=_Predicate(
            build_definition=_Definition(
                build_type=_BUILD_TYPE,
                external_parameters=_Parameters(
                    job=result.id, spec=msgspec.Raw(canonical_json(spec))
                ),
                internal_parameters=_Circumstances(
                    confined=confined, facts=result.facts, environment=result.environment
                ),
                resolved_dependencies=(
                    *_sources(spec),
                    *(
                        Resource(
                            name=made.id,
                            digest={
                                "fingerprint": made.fingerprint,
                                "tree": fingerprint(made.tree),
                            },
                            annotations={"key": made.key} if made.key else {},
                        )
                        for made in inputs
                    ),
                    *_toolchain(spec),
                ),
            ),
            run_details=_RunDetails(
                builder=_Builder(id=signer.key, version={"torchyard": result.torchyard}),
                metadata=_Metadata(invocation_id=result.run, started_on=result.started),
                byproducts=(Resource(name=result.log.path, digest={"sha256": result.log.digest}),),
            ),
        ),
    )
    payload = canonical_json(statement)
    signature = _Signature(keyid=signer.key, sig=signer.sign(_KIND, payload))
    envelope = _Envelope(
        payload=b64encode(payload).decode(), payload_type=_KIND, signatures=(signature,)
    )
    return canonical_json(envelope) + b"\n"


def _sources(spec: JobSpec) -> Iterator[Resource]:
    names = {"commit": "gitCommit", "sha256": "sha256", "digest": "tree"}
    for task in spec.tasks:
        if task.stage is Stage.SOURCE:
            digest = {kind: task.text(name) for name, kind in names.items() if task.text(name)}
            yield Resource(name=_SOURCE, uri=_address(task), digest=digest)


def _address(task: Task) -> str:
    """Return where a source is from; a directory has no address."""
    if git := task.text("git"):
        return f"git+{git}"
    return next((text for name in ("archive", "sdist", "debian") if (text := task.text(name))), "")


def _toolchain(spec: JobSpec) -> Iterator[Resource]:
    """Yield the parts of the toolchain that jobs depend on, each once."""
    found = {part: at for task in spec.tasks for part, at in task.table("identity").items()}
    for part, identity in found.items():
        uri = f"torchyard:toolchain/{part}"
        yield Resource(name=part, uri=uri, annotations={"identity": identity})


def package_origin(path: Path, trust: Trust) -> PackageOrigin:
    """Return how a package was made, by the statement beside it; raise CheckError if unproven."""
    with path.open("rb") as file:
        sha256 = file_digest(file, "sha256").hexdigest()
    return check_statement(read_statement(path), path.name, sha256, trust)


def read_statement(path: Path) -> bytes | None:
    """Return the statement beside a package, if there is one."""
    beside = path.with_name(path.name + STATEMENT)
    if not beside.is_file():
        return None
    with beside.open("rb") as file:
        return file.read(_LARGEST + 1)


def check_statement(data: bytes | None, name: str, sha256: str, trust: Trust) -> PackageOrigin:
    """Return what a statement says of a file.

    Raise CheckError unless a trusted maker has signed it, and it says what the policy requires.
    """
    if data is None:
        msg = f"it has no statement of its origin, `{name}{STATEMENT}`"
        raise CheckError(msg)
    try:
        envelope = msgspec.json.decode(data, type=_Envelope)
        payload = b64decode(envelope.payload, validate=True)
        statement = msgspec.json.decode(payload, type=_Statement)
    except (*UNDECODABLE, ValueError) as error:
        msg = f"its statement can't be read: {error}"
        raise CheckError(msg) from error
    key = _signed_by(envelope, payload, trust)
    if (statement.kind, statement.predicate_type) != (_STATEMENT_TYPE, _PREDICATE_TYPE):
        msg = "its statement is of another kind"
        raise CheckError(msg)
    if not any(s.name == name and s.digest.get("sha256") == sha256 for s in statement.subject):
        msg = "its statement is about another file, or other bytes"
        raise CheckError(msg)
    definition, run = statement.predicate.build_definition, statement.predicate.run_details
    resources = definition.resolved_dependencies
    sources = [found for found in resources if found.name == _SOURCE] or [Resource()]
    source = sources[0]
    confined = definition.internal_parameters.confined
    for found in sources if trust.require.source else ():
        if not any_match(found.uri, trust.require.source):
            msg = f"its source `{found.uri}` is none that the policy allows"
            raise CheckError(msg)
    if trust.require.sandbox == "required" and not confined:
        msg = "it was not made in a sandbox from a clean start, as the policy requires"
        raise CheckError(msg)
    return PackageOrigin(
        maker=trust.name_of(key),
        key=key,
        job=definition.external_parameters.job,
        source=source.uri,
        commit=next(iter(source.digest.values()), ""),
        confined=confined,
        torchyard=run.builder.version.get("torchyard", ""),
        started=run.metadata.started_on,
        toolchain={
            found.name: found.annotations["identity"]
            for found in resources
            if "identity" in found.annotations
        },
    )


def _signed_by(envelope: _Envelope, payload: bytes, trust: Trust) -> str:
    """Return the key that signed a statement, whose maker is trusted for packages."""
    reasons = []
    for signature in envelope.signatures:
        if why := trust.distrust(signature.keyid, Stage.PACKAGE):
            reasons.append(why)
        elif verify_signature(signature.keyid, envelope.payload_type, payload, signature.sig):
            return signature.keyid
        else:
            reasons.append(f"it was changed after {trust.name_of(signature.keyid)} signed it")
    msg = f"its statement does not count: {reasons[0] if reasons else 'it is not signed'}"
    raise CheckError(msg)
