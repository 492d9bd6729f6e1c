"""CycloneDX documents: bills of materials as JSON, and JSON as bills.

Version 1.6 is the newest that syft 1.18 reads. Only what torchyard writes is declared.
"""

from uuid import UUID, uuid5

import msgspec
from packaging.licenses import InvalidLicenseExpression, canonicalize_license_expression

from torchyard.errors import CheckError
from torchyard.model.values import UNDECODABLE, Value
from torchyard.package.contents import Contents
from torchyard.package.sbom.component import SBOM_FILE, Bill, Component, ComponentKind
from torchyard.version import __version__

_NAMESPACE = UUID("9f3a0a5e-7d7c-5f0c-9a50-4d9d5c1b6a57")
_KINDS = {kind.value: kind for kind in ComponentKind}
_KIND, _PATH, _UNSEEN = (f"torchyard:{name}" for name in ("kind", "path", "unseen"))

_PHASES = {False: "build", True: "post-build"}
"""The phase of a package's life in which its document is made; inferred ones later."""

_Texts = tuple[dict[str, str], ...]
_License = dict[str, str | dict[str, str]]


class _Part(Value, rename="camel", forbid_unknown_fields=False):
    """A part of a document."""


class _Entry(_Part):
    """A component of a document."""

    type: str
    name: str
    ref: str = msgspec.field(default="", name="bom-ref")
    version: str = ""
    scope: str = ""
    hashes: _Texts = ()
    licenses: tuple[_License, ...] = ()
    purl: str = ""
    evidence: dict[str, _Texts] = {}
    properties: _Texts = ()

    def values(self, name: str) -> tuple[str, ...]:
        """Return the values of a property."""
        return tuple(item["value"] for item in self.properties if item["name"] == name)


class _Metadata(_Part):
    component: _Entry
    lifecycles: _Texts = ()
    tools: dict[str, tuple[_Entry, ...]] = {}


class _Relation(_Part):
    ref: str
    depends_on: tuple[str, ...] = ()


class _Composition(_Part):
    aggregate: str
    assemblies: tuple[str, ...]


class _Document(_Part, tag_field="bomFormat", tag="CycloneDX"):
    metadata: _Metadata
    spec_version: str = ""
    serial_number: str = ""
    version: int = 0
    components: tuple[_Entry, ...] = ()
    dependencies: tuple[_Relation, ...] = ()
    compositions: tuple[_Composition, ...] = ()


def encode_bill(bill: Bill) -> bytes:
    """Return the document of a bill: the same bytes for the same bill, at any time."""
    parts = sorted(bill.components, key=lambda part: part.ref)
    trees = {part.path: part.ref for part in parts if part.kind is ComponentKind.VENDORED}
    made = [(part.ref, trees[part.made_of]) for part in parts if part.made_of in trees]
    unseen = tuple({"name": _UNSEEN, "value": name} for name in bill.unseen)
    root = _Entry("library", bill.name, bill.purl, bill.version, purl=bill.purl, properties=unseen)
    document = _Document(
        _Metadata(
            root,
            ({"phase": _PHASES[bill.inferred]},),
            {"components": (_Entry("application", "torchyard", version=__version__),)},
        ),
        spec_version="1.6",
        version=1,
        components=tuple(map(_entry, parts)),
        dependencies=(
            _Relation(bill.purl, tuple(part.ref for part in parts)),
            *(_Relation(ref, (tree,)) for ref, tree in made),
        ),
        compositions=(_Composition("incomplete", (bill.purl,)),) if unseen else (),
    )
    serial = uuid5(_NAMESPACE, msgspec.json.encode(document).decode()).urn
    whole = msgspec.structs.replace(document, serial_number=serial)
    return msgspec.json.format(msgspec.json.encode(whole)) + b"\n"


def _entry(part: Component) -> _Entry:
    is_tool = part.kind is ComponentKind.TOOLCHAIN
    known = {_KIND: part.kind.value, _PATH: part.path}
    return _Entry(
        "application" if is_tool else "library",
        part.name,
        part.ref,
        part.version,
        "excluded" if is_tool else "",
        hashes=({"alg": "SHA-256", "content": part.digest},) if part.digest else (),
        licenses=_licenses(part.license),
        purl=part.purl,
        evidence=(
            {"occurrences": tuple({"location": name} for name in part.files)} if part.files else {}
        ),
        properties=tuple({"name": name, "value": text} for name, text in known.items() if text),
    )


def _licenses(stated: str) -> tuple[_License, ...]:
    """Return a licence in SPDX's words, or else by the name that it is given."""
    try:
        known = canonicalize_license_expression(stated) if stated else ""
    except InvalidLicenseExpression:
        return ({"license": {"name": stated}},)
    is_one = " " not in known and not known.startswith("LicenseRef-")
    one: _License = {"license": {"id": known}} if is_one else {"expression": known}
    return (one,) if known else ()


def decode_bill(text: bytes, name: str) -> Bill:
    """Return the bill in a document; fail if it is malformed."""
    try:
        document = msgspec.json.decode(text, type=_Document)
        of = {relation.ref: relation.depends_on[:1] for relation in document.dependencies}
        paths = {entry.ref: "".join(entry.values(_PATH)) for entry in document.components}
        return Bill(
            name=document.metadata.component.name,
            version=document.metadata.component.version,
            purl=document.metadata.component.purl,
            components=tuple(
                _component(entry, "".join(paths[ref] for ref in of.get(entry.ref, ())))
                for entry in document.components
            ),
            unseen=document.metadata.component.values(_UNSEEN),
            inferred={"phase": _PHASES[True]} in document.metadata.lifecycles,
        )
    except (*UNDECODABLE, KeyError) as error:
        msg = f"`{name}` is no document of torchyard: {error}"
        raise CheckError(msg, hint="look who changed the package since it was built") from error


def carried_bill(contents: Contents) -> Bill | None:
    """Return the bill in a package's document, or None if it has none."""
    members = (name for name in contents.texts if name.rpartition("/")[2] == SBOM_FILE)
    member = min(members, key=lambda name: name.count("/"), default=None)
    return decode_bill(contents.texts[member], member) if member else None


def _component(entry: _Entry, made_of: str) -> Component:
    names = [one.get("expression") or one["license"] for one in entry.licenses]
    texts = (n if isinstance(n, str) else "".join(n.values()) for n in names)
    return Component(
        kind=_KINDS["".join(entry.values(_KIND))],
        name=entry.name,
        version=entry.version,
        license="".join(texts),
        purl=entry.purl,
        digest="".join(one["content"] for one in entry.hashes),
        path="".join(entry.values(_PATH)),
        made_of=made_of,
        files=tuple(one["location"] for one in entry.evidence.get("occurrences", ())),
    )
