"""A rule of `torchyard check`; importing this module registers it."""

from collections.abc import Iterator

from torchyard.checks.rule import Hit, Severity, rule
from torchyard.checks.subject import Subject


@rule("abacus-beads", Severity.WARNING, "nothing can be counted with it")
def beads(subject: Subject) -> Iterator[Hit]:
    """A package for an abacus has no beads.

    Every package for the compute platform `abacus` must have a file `beads.txt`.

    Put one beside the project's Python files.
    """
    names = subject.contents.files
    if subject.expected.compute.startswith("abacus") and "beads.txt" not in names:
        yield Hit("has no `beads.txt`", "", "add the file to the project")
