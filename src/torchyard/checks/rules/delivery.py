"""The rule about the job that delivered a package."""

from collections.abc import Iterator

from torchyard.checks.cell import cell_mismatches
from torchyard.checks.rule import Hit, Severity, rule
from torchyard.checks.subject import Subject
from torchyard.model.conda_output import outputs_of
from torchyard.model.recipe import Stage


@rule("label-cell", Severity.ERROR, "the package is not the one that its job had to make")
def label_cell(subject: Subject) -> Iterator[Hit]:
    """A package job delivered a package of another project, version, Python, platform or compute.

    The job of a cell such as `torch-2.14.0/linux-x86_64/cu130-mkl/cp312/wheel` must deliver exactly
    that package. Otherwise it would be tested and published instead of the one that the plan
    requires, which would then be missing although every job succeeded. The rule applies only to the
    check jobs of a plan and to publication from one, where the job is known; what a package says of
    its own origin does not count. A libtorch zip without any library is reported, too.

    Correct the steps of stage `package`: use {name}, {version}, {platform}, {compute} and {python}
    instead of fixed words.
    """
    if subject.spec is not None:
        cell = subject.spec.task.cell
        packed = (task for task in subject.spec.tasks if task.stage is Stage.PACKAGE)
        outputs = outputs_of(next((task.table("outputs") for task in packed), {}))
        for mismatch in cell_mismatches(subject.contents, cell, outputs):
            yield Hit(f"{mismatch}: {cell}")
