"""The components of packages, and their licences."""

from collections import Counter
from typing import Literal

from torchyard.errors import CheckError
from torchyard.model.quantity import show_count
from torchyard.model.values import Reported
from torchyard.package.sbom.component import Bill, ComponentKind
from torchyard.terminal.tables import Lines, folded, indented, number, table, word
from torchyard.terminal.untrusted import printable


class PackageBill(Reported):
    """A package's bill of materials, and the names of components with a denied licence."""

    file: str
    bill: Bill
    denied: tuple[str, ...] = ()


class SbomReport(Reported):
    """`torchyard sbom --json`: the bills of packages."""

    packages: list[PackageBill]
    version: Literal[1] = 1


def sbom_text(report: SbomReport) -> Lines:
    for package in report.packages:
        bill = package.bill
        how = "inferred from its files" if bill.inferred else f"{bill.name} {bill.version}"
        yield indented(f"{package.file}: {how}", 0)
        columns = [word("kind"), *map(folded, ("component", "version", "licence", "in"))]
        rows = (
            (part.kind, part.name, part.version, part.license, ", ".join(part.files) or part.path)
            for part in bill.components
        )
        yield indented(table(columns, ([printable(text) for text in row] for row in rows)), 2)
        if bill.unseen:
            names = ", ".join(bill.unseen)
            yield indented(f"not known: what was linked statically into {names}", 2, style="yellow")
        yield ""
    inside = (part for p in report.packages for part in p.bill.components)
    licenses = Counter(p.license or "?" for p in inside if p.kind is not ComponentKind.TOOLCHAIN)
    shown = ((printable(name), f"{count:,}") for name, count in sorted(licenses.items()))
    yield table([folded("licence"), number("components")], shown)


def sbom_error(report: SbomReport) -> CheckError | None:
    denied = [f"`{name}` in {p.file}" for p in report.packages for name in p.denied]
    if not denied:
        return None
    msg = f"{show_count(len(denied), 'component')} with a denied licence: {', '.join(denied)}"
    return CheckError(msg, hint="build without it, or allow its licence")
