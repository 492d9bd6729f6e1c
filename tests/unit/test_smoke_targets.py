"""Which packages of a channel are smoke-tested, and where they are installed from."""

from msgspec import Raw

from torchyard.index.entry import Entry
from torchyard.publish.select import Chosen
from torchyard.publish.smoke_targets import newest, packages_under_test


def chosen(
    part: str,
    file: str,
    version: str,
    variant: str = "cpu",
    *,
    record: str = "null",
    yanked: str | None = None,
    cell: str = "",
) -> Chosen:
    entry = Entry(
        file=file,
        version=version,
        variant=variant,
        sha256="ab" * 32,
        size=1,
        uploaded="2026-11-15T00:00:00Z",
        record=Raw(record.encode()),
        yanked=yanked,
        cell=cell,
    )
    return Chosen(part, entry)


def wheel(
    version: str, python: str = "cp312", *, yanked: str | None = None, cell: str = ""
) -> Chosen:
    file = f"torch-{version}+cpu-{python}-{python}-linux_x86_64.whl"
    return chosen("simple/torch", file, f"{version}+cpu", yanked=yanked, cell=cell)


def test_versions_are_compared_as_versions_and_for_each_python() -> None:
    old, new, other = wheel("2.9.0"), wheel("2.10.0"), wheel("2.9.0", "cp311")
    assert newest([new, old, other]) == [new, other]


def test_what_was_taken_back_is_not_tried() -> None:
    old, new = wheel("2.9.0"), wheel("2.10.0", yanked="")
    assert newest([old, new]) == [old]


def test_cells_are_compared_by_what_they_are_for() -> None:
    cell = "torch-{}/linux-x86_64/cpu-mkl/cp312/wheel"
    days = [
        wheel(f"2.10.0.dev2026111{day}", cell=cell.format(f"2.10.0.dev2026111{day}"))
        for day in (4, 5)
    ]
    assert newest(days) == [days[1]]


def test_each_kind_is_found_where_its_users_look() -> None:
    record = '{"name": "pytorch", "build": "cpu_0"}'
    files = [
        wheel("2.9.0"),
        chosen("simple/shared", "shared-2.0-py3-none-any.whl", "2.0", ""),
        chosen("conda/linux-64", "pytorch-2.9.0-cpu_0.conda", "2.9.0", record=record),
        chosen("libtorch/torch", "libtorch-2.9.0+cpu.zip", "2.9.0+cpu"),
    ]
    found = list(packages_under_test(files, "https://example.org/nightly"))
    digits = f"ab/{'ab' * 31}"
    assert [one.index.removeprefix("https://example.org/nightly/") for one in found] == [
        "cpu/",
        "simple/",
        "conda",
        f"packages/{digits}/libtorch-2.9.0%2Bcpu.zip",
    ]
    assert (found[2].name, found[2].build, found[2].subdir) == ("pytorch", "cpu_0", "linux-64")
    assert {one.compute for one in found} == {"cpu", ""}
