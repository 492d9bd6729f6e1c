"""What `torchyard which` prints with `--json`."""

from collections.abc import Mapping
from typing import Literal, cast

import msgspec

from torchyard.compute.registry import compute_platforms
from torchyard.index.entry import Entry
from torchyard.model.values import Reported
from torchyard.publish.resolve.compatibility import MachineFacts
from torchyard.publish.resolve.resolve import Resolution


class FactsDocument(Reported, kw_only=True):
    """What is known of the machine; none for what is not there or not known."""

    python: str
    platform: str
    glibc: str | None
    torch: str | None = None
    torch_compute: str | None = None


_GPU_FACTS = [fact for platform in compute_platforms() for fact in platform.facts]

_WithGpus = msgspec.defstruct(
    "FactsDocument",
    [(fact.option, bool if fact.is_flag else str | None) for fact in _GPU_FACTS],
    bases=(FactsDocument,),
    namespace={"__doc__": FactsDocument.__doc__},
    frozen=True,
    kw_only=True,
)


class ChoiceDocument(Reported, kw_only=True):
    """The package to take."""

    file: str
    version: str
    variant: str
    sha256: str
    size: int
    commands: dict[str, str]


class OtherDocument(Reported, kw_only=True):
    """A package that is not the one."""

    file: str
    version: str
    variant: str
    reason: str
    why: str


class WhichDocument(Reported, kw_only=True):
    """`torchyard which --json`: the package that fits, and why not the others."""

    version: Literal[1] = 1
    channel: str
    project: str
    kind: str
    facts: FactsDocument
    choice: ChoiceDocument | None
    others: list[OtherDocument]
    notes: list[str]


_Printed = msgspec.defstruct(
    "WhichDocument",
    [("facts", _WithGpus)],
    bases=(WhichDocument,),
    namespace={"__doc__": WhichDocument.__doc__},
    frozen=True,
    kw_only=True,
)

WHICH_SCHEMA: type[msgspec.Struct] = _Printed
"""What is printed, with the keys of the compute platforms."""


def which_document(answer: Resolution, channel: str, typed: Mapping[str, str]) -> WhichDocument:
    others = [
        OtherDocument(
            file=other.entry.file,
            version=other.entry.version,
            variant=other.entry.variant,
            reason=other.misfit.reason,
            why=other.misfit.why,
        )
        for other in answer.others
    ]
    return WhichDocument(
        channel=channel,
        project=answer.project,
        kind=answer.kind,
        facts=_facts(answer.facts),
        choice=_choice(answer.choice, typed) if answer.choice else None,
        others=others,
        notes=list(answer.notes),
    )


def _choice(entry: Entry, typed: Mapping[str, str]) -> ChoiceDocument:
    return ChoiceDocument(
        file=entry.file,
        version=entry.version,
        variant=entry.variant,
        sha256=entry.sha256,
        size=entry.size,
        commands=dict(typed),
    )


def _facts(facts: MachineFacts) -> FactsDocument:
    gpu: dict[str, str | bool | None] = {}
    for fact in _GPU_FACTS:
        value = facts.gpu.get(fact.option, "")
        gpu[fact.option] = bool(value) if fact.is_flag else value or None
    document = _WithGpus(
        python=facts.python,
        platform=facts.platform,
        glibc=facts.glibc or None,
        torch=facts.torch or None,
        torch_compute=facts.torch_compute or None,
        **gpu,
    )
    return cast("FactsDocument", document)


def gpu_facts(document: WhichDocument) -> list[str]:
    """Return what is known of the machine's GPUs, as people read it."""
    values = msgspec.structs.asdict(document.facts)
    known = ((fact, values[fact.option]) for fact in _GPU_FACTS)
    return [
        fact.title if fact.is_flag else f"{fact.title} {value}" for fact, value in known if value
    ]
