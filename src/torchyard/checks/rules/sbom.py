"""The rule about the document that lists what is in a package (SBOM)."""

from collections.abc import Iterator

from torchyard.checks.expected import spec_in_package
from torchyard.checks.rule import Hit, Severity, rule
from torchyard.checks.subject import Subject
from torchyard.checks.table import load_rule_table
from torchyard.config.recipes import find_recipe
from torchyard.errors import CheckError
from torchyard.package.contents import Contents, is_torn
from torchyard.package.sbom.component import ALL, SBOM_FILE, Bill
from torchyard.package.sbom.cyclonedx import carried_bill


@rule("sbom-wrong", Severity.ERROR, "the package is not what its bill of materials says")
def sbom_wrong(subject: Subject) -> Iterator[Hit]:
    """A package of torchyard has no bill of materials, or one that does not fit its files.

    torchyard writes into each package which sources, third-party libraries and static archives are
    in it. Vulnerability scanners, and those who answer for licences, rely on that document. If it
    lacks, names files that are not there, or misses a bundled library, then the package was changed
    after it was built. The rule does not apply to packages of your own steps, or of plug-ins.

    Build the package again, or repair it by `torchyard repair` only.
    """
    contents = subject.contents
    spec = spec_in_package(contents)
    if spec is None or not spec.tasks or "steps" in spec.task.settings or is_torn(contents):
        return
    recipe = find_recipe(spec.task.recipe)
    if recipe is None or not recipe.provisioned:  # it packs by itself
        return
    try:
        bill = carried_bill(contents)
    except CheckError as error:
        yield Hit(str(error))
        return
    if bill is None:
        yield Hit(f"it has no {SBOM_FILE}")
        return
    yield from map(Hit, _differences(bill, contents))


def _differences(bill: Bill, contents: Contents) -> Iterator[str]:
    """Yield how the libraries of a package differ from its bill."""
    names = {name.rpartition("/")[2] for name in contents.files}
    listed = {name for part in bill.components for name in part.files}
    for name in sorted(listed - names):
        yield f"it lists `{name}`, which is not in the package"
    known = {*listed, *bill.unseen}
    for path in load_rule_table().bundled_in(contents) if ALL not in known else ():
        if path.rpartition("/")[2] not in known:
            yield f"it does not list `{path}`"
