"""Reports of a check: the document, the table, the page and its pictures."""

import html.parser
import json
import re
from datetime import date
from itertools import combinations

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.support.schemas import validate
from tests.support.shapes import library, package, text

from torchyard.checks.checked import CheckedPackage, describe_package, natural
from torchyard.checks.policy import CheckPolicy
from torchyard.checks.rule import Finding, Severity
from torchyard.checks.subject import Subject
from torchyard.checks.text import by_members, count_findings, grouped, packages_text
from torchyard.features.check.page import check_html
from torchyard.features.check.report import CheckReport
from torchyard.package.contents import Contents, DeviceCode
from torchyard.reports.library_graph import library_graph
from torchyard.reports.picture import PICTURE_FILTERS, Rect, SvgPicture
from torchyard.reports.templates import render_template
from torchyard.reports.treemap import squarify, treemap
from torchyard.terminal.console import show

TODAY = date(2026, 11, 15)
NASTY = "<script>alert('&')</script>\x1b[31m\u2028"


def finding(
    rule: str = "linking-unresolved",
    severity: Severity = Severity.ERROR,
    what: str = "needs `libfoo.so.1`",
    member: str = "",
    hint: str = "bundle it",
) -> Finding:
    return Finding(rule=rule, severity=severity, what=what, member=member, hint=hint)


def torch() -> Contents:
    cuda = (DeviceCode("ptx", "compute_90", 2, 10), DeviceCode("cubin", "sm_100", 4, 700))
    return package(
        library("torch/_C.so", "libtorch.so", "libc.so.6", imports=["a", "b"]),
        library("torch/lib/libtorch.so", "libc10.so", "libfoo.so.1", exports=["a"], device=cuda),
        library("torch/lib/libc10.so", "libc.so.6", device=(DeviceCode("cubin", "sm_90", 1, 5),)),
        *(library(f"torch/bin/test_{number}", "libtorch.so") for number in range(5)),
        *(text(f"torch/part/{number}.py", 3000 * number) for number in range(40)),
    )


def checked(contents: Contents, *findings: Finding) -> CheckedPackage:
    return msgspec.structs.replace(
        describe_package(Subject(contents, CheckPolicy()), {}), findings=findings
    )


def report_of(*packages: CheckedPackage) -> CheckReport:
    return CheckReport(
        torchyard="0.1.0",
        policy="default",
        policy_digest="0" * 64,
        date=TODAY.isoformat(),
        findings=count_findings(packages),
        packages=list(packages),
    )


def test_the_document_says_what_is_in_a_package() -> None:
    described = checked(torch(), finding(), finding(severity=Severity.NOTE))
    assert report_of(described).findings == {"error": 1, "warning": 0, "note": 1}
    assert (described.name, described.release, described.python) == ("torch", "2.13.0", "cp312")
    assert [code.arch for code in described.device] == ["sm_90", "sm_100", "compute_90"]
    assert described.outside == {"libc.so.6": "system", "libfoo.so.1": ""}
    module = described.libraries[0]
    assert (module.member, module.imports, module.exports) == ("torch/_C.so", 2, 0)


def test_the_document_fits_its_schema() -> None:
    validate(json.loads(msgspec.json.encode(report_of(checked(torch(), finding())))), "check")


def test_architectures_are_sorted_as_people_count() -> None:
    mixed = ["compute_120", "sm_100a", "sm_90", "sm_75", "compute_90"]
    assert sorted(mixed, key=natural) == ["sm_75", "sm_90", "sm_100a", "compute_90", "compute_120"]


def test_the_worst_is_first_and_what_is_alike_is_one() -> None:
    found = [
        finding("b-rule", Severity.NOTE),
        finding("a-rule", Severity.ERROR, "same", "x"),
        finding("a-rule", Severity.ERROR, "same", "y"),
        finding("a-rule", Severity.ERROR, "other", "z"),
        finding("a-rule", Severity.ERROR, "another", "z"),
    ]
    groups = grouped(found)
    assert [(group[0].severity, group[0].rule, len(group)) for group in groups] == [
        ("error", "a-rule", 4),
        ("note", "b-rule", 1),
    ]
    assert {
        members: [one.what for one in findings] for members, findings in by_members(groups[0])
    } == {
        ("x", "y"): ["same"],
        ("z",): ["other", "another"],
    }


def test_of_several_packages_those_without_findings_have_a_line(
    capfd: pytest.CaptureFixture[str],
) -> None:
    def shown(*packages: CheckedPackage) -> str:
        show(*packages_text(packages))
        return capfd.readouterr().out

    clean = shown(checked(torch()))
    assert "size " in clean
    assert "nothing found in" in clean
    assert "device code  sm_90" in clean
    pure = package(text("torch/one.py", 1))
    several = shown(checked(torch()), checked(pure, finding()), checked(torch()))
    assert several.count(".whl: nothing found\n") == 2
    assert several.count("size ") == 1
    assert "device code" not in several


def test_names_of_cxx_are_shown_as_they_were_written(capfd: pytest.CaptureFixture[str]) -> None:
    """Whoever shows the report: the check of a build did not."""
    named = finding(what="shows 2 functions (_ZN3c101fEv …): and _Zonk")
    show(*packages_text([checked(torch(), named)]))
    assert "shows 2 functions (c10::f() …): and _Zonk" in capfd.readouterr().out


class Structure(html.parser.HTMLParser):
    """Checks that elements are closed in order, and collects what refers to what."""

    EMPTY = frozenset(("meta", "br", "rect", "path"))

    def __init__(self, page: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.tags: list[str] = []
        self.ids: list[str] = []
        self.links: list[str] = []
        self.feed(page)
        self.close()
        assert not self.open

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.ids += [value or "" for name, value in attrs if name == "id"]
        self.links += [value or "" for name, value in attrs if name in ("href", "src")]
        if tag not in self.EMPTY:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


def page_of(*contents: Contents, found: tuple[Finding, ...] = ()) -> str:
    return check_html(report_of(*(checked(one, *found) for one in contents)), contents)


def test_the_page_stands_alone() -> None:
    page = page_of(torch(), torch(), found=(finding(),))
    structure = Structure(page)
    assert all(link.startswith("#") for link in structure.links)
    assert {link[1:] for link in structure.links} <= set(structure.ids)
    assert len(structure.ids) == len(set(structure.ids))
    assert not re.search(r"url\(|@import|https?://", page)
    assert "script" not in structure.tags


def test_the_page_tells_the_verdict_in_words() -> None:
    assert "✗ failed" in page_of(torch(), found=(finding(),))
    passed = page_of(torch(), found=(finding(severity=Severity.WARNING),))
    assert "✓ passed" in passed
    assert "✗ failed" not in passed


def test_nothing_in_a_package_can_write_into_the_page() -> None:
    nasty = package(
        library(f"torch/{NASTY}.so", f"lib{NASTY}.so", runpath=NASTY),
        text(f"torch/{NASTY}"),
        name=f"{NASTY}.whl",
    )
    found = finding(NASTY, what=NASTY, member=NASTY, hint=NASTY)
    page = page_of(nasty, found=(found,))
    assert "<script" not in page
    assert "&lt;script&gt;" in page
    Structure(page)


@pytest.mark.parametrize("contents", [package(), package(library("lib/a.so"), text("b", 0))])
def test_a_page_of_hardly_anything(contents: Contents) -> None:
    Structure(page_of(contents))


def drawn(picture: SvgPicture) -> str:
    return render_template("picture.svg", PICTURE_FILTERS, picture=picture)


def test_missing_libraries_have_a_sign_besides_their_colour() -> None:
    described = checked(torch())
    graph = drawn(library_graph(described, 1200))
    assert "✗ libfoo.so.1" in graph
    assert 'class="missing"' in graph
    assert "5 programs" in graph
    assert graph.count("<title>") == 1 + 6  # three libraries, the folder, the system, the missing


def test_libraries_that_need_each_other_can_be_drawn() -> None:
    ring = package(library("a/libx.so", "liby.so"), library("a/liby.so", "libx.so"))
    assert drawn(library_graph(checked(ring), 366)).count("<path") == 2


def test_every_library_is_below_those_that_need_it() -> None:
    described = checked(torch())
    heights = {
        name: float(y)
        for name, y in re.findall(
            r'<title>torch/(?:lib/)?(\S+?): .*?</title><rect x="\d+" y="([\d.]+)"',
            drawn(library_graph(described, 1200)),
        )
    }
    assert heights["_C.so"] < heights["libtorch.so"] < heights["libc10.so"]


@given(st.lists(st.integers(1, 10**10), min_size=1, max_size=60))
def test_a_treemap_shares_out_its_area(sizes: list[int]) -> None:
    sizes.sort(reverse=True)
    place = Rect(0, 0, 300, 200)
    rects = squarify(sizes, place)
    for size, rect in zip(sizes, rects, strict=True):
        assert rect.width * rect.height == pytest.approx(60_000 * size / sum(sizes), abs=1e-3)
        assert rect.x >= -1e-6
        assert rect.y >= -1e-6
        assert rect.x + rect.width <= 300 + 1e-6
        assert rect.y + rect.height <= 200 + 1e-6
    for a, b in combinations(rects, 2):
        across = min(a.x + a.width, b.x + b.width) - max(a.x, b.x)
        down = min(a.y + a.height, b.y + b.height) - max(a.y, b.y)
        assert min(across, down) < 1e-6


def test_a_treemap_counts_what_is_too_small_to_see() -> None:
    files = [text("big.py", 10**8), *(text(f"small/{number}.py", 10) for number in range(50))]
    picture = drawn(treemap(files, 1200, 600))
    assert "big.py: 50 MB" in picture
    assert "50 files" in picture
    assert "small/7.py" not in picture
