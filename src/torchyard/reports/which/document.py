"""What `torchyard which` prints with `--json`."""

from collections.abc import Mapping
from typing import Literal

from torchyard.index.entry import Entry
from torchyard.publish.resolve.compatibility import MachineFacts
from torchyard.publish.resolve.resolve import Resolution
from torchyard.reports.document import JsonDocument


class FactsDocument(JsonDocument, kw_only=True):
    """What is known of the machine; none for what is not there or not known."""

    python: str
    platform: str
    glibc: str | None
    driver: str | None
    cuda: str | None
    rocm: str | None
    xpu: bool


class ChoiceDocument(JsonDocument, kw_only=True):
    """The package to take."""

    file: str
    version: str
    variant: str
    sha256: str
    size: int
    commands: dict[str, str]


class OtherDocument(JsonDocument, kw_only=True):
    """A package that is not the one."""

    file: str
    version: str
    variant: str
    reason: str
    why: str


class WhichDocument(JsonDocument, kw_only=True):
    """`torchyard which --json`: the package that fits, and why not the others."""

    version: Literal[1] = 1
    channel: str
    project: str
    kind: str
    facts: FactsDocument
    choice: ChoiceDocument | None
    others: list[OtherDocument]
    notes: list[str]


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
    return FactsDocument(
        python=facts.python,
        platform=facts.platform,
        glibc=facts.glibc or None,
        driver=facts.driver or None,
        cuda=facts.cuda or None,
        rocm=facts.rocm or None,
        xpu=facts.xpu,
    )
