"""What channels offer, and the landing page that is made of it."""

import re
from base64 import b64encode
from hashlib import sha256
from html.parser import HTMLParser
from pathlib import Path

import msgspec
import pytest
from tests.support.offered import AT, add, cells, offer, published

from torchyard.index.availability import PackageOffer, offers
from torchyard.index.entry import Entry, State
from torchyard.index.landing import LANDING, landing_page
from torchyard.index.sort_keys import version_key
from torchyard.publish.channel.channel import Channel
from torchyard.publish.channel.draft import ChangeReason


def entry(file: str, version: str = "1.0", variant: str = "cpu", cell: str = "") -> Entry:
    return Entry(
        file=file, version=version, variant=variant, sha256="0" * 64, size=1, uploaded=AT, cell=cell
    )


@pytest.mark.parametrize(
    ("file", "platforms"),
    [
        ("a-1.0-cp312-cp312-manylinux_2_28_x86_64.whl", {"linux-x86_64": ("cp312",)}),
        ("a-1.0-cp312-cp312-linux_s390x.whl", {"linux-s390x": ("cp312",)}),
        ("a-1.0-1-cp313-cp313t-win_amd64.whl", {"windows-x86_64": ("cp313t",)}),
        (
            "a-1.0-cp310-cp310-manylinux2014_aarch64.manylinux_2_17_aarch64.whl",
            {"linux-aarch64": ("cp310",)},
        ),
        (
            "a-1.0-cp39.cp310-none-macosx_11_0_universal2.whl",
            {"macos-arm64": ("cp39", "cp310"), "macos-x86_64": ("cp39", "cp310")},
        ),
        ("a-1.0-cp314-abi3-win_arm64.whl", {"windows-arm64": ("cp314", "cp315")}),
        ("a-1.0-py3-none-macosx_14_0_arm64.whl", {"macos-arm64": ()}),
        ("a-1.0-py3-none-any.whl", {"any": ()}),
        ("a-1.0-pp310-pypy310_pp73-win_amd64.whl", {"windows-x86_64": ("pp310",)}),
        ("a-1.0-py3-none-musllinux_1_2_x86_64.whl", {"musllinux_1_2_x86_64": ()}),
        ("a-1.0-cp312-cp312-android_21_x86.whl", {"android_21_x86": ("cp312",)}),
        ("a-1.0.tar.gz", {"any": ()}),
    ],
)
def test_names_of_files_say_what_they_are_for(
    file: str, platforms: dict[str, tuple[str, ...]]
) -> None:
    assert [one.platforms for one in offers("simple/a", [entry(file)])] == [platforms]


@pytest.mark.parametrize(
    ("file", "platform"),
    [
        ("libtorch-shared-with-deps-1.0.zip", "linux-x86_64"),
        ("libtorch-win-shared-with-deps-1.0.zip", "windows-x86_64"),
        ("libtorch-macos-arm64-1.0.zip", "macos-arm64"),
        ("libtorch-macos-1.0.zip", "macos-x86_64"),
    ],
)
def test_zips_from_elsewhere(file: str, platform: str) -> None:
    (found,) = offers("libtorch/torch", [entry(file)])
    assert found.platforms == {platform: ()}


def test_a_cell_says_more_than_a_name() -> None:
    cell = "torch-2.14.0/linux-aarch64/cpu-openblas/cp313t/wheel"
    (found,) = offers("simple/torch", [entry("odd.whl", cell=cell)])
    assert found.platforms == {"linux-aarch64": ("cp313t",)}


def test_only_the_newest_version_counts() -> None:
    tag = "manylinux_2_28_x86_64.whl"
    files = [
        entry(f"a-{version}-{python}-{python}-{tag}", version, "cu130")
        for version, python in (
            ("1.9+cu130", "cp39"),
            ("1.10+cu130", "cp312"),
            ("1.10+cu130", "cp310"),
            ("1.10.dev1+cu130", "cp313"),
        )
    ]
    yanked = msgspec.structs.replace(entry(f"a-2-cp39-cp39-{tag}", "2", "cu130"), yanked="")
    assert offers("simple/a", [*files, yanked]) == (
        PackageOffer(
            project="a",
            name="a",
            variant="cu130",
            version="1.10+cu130",
            uploaded=AT,
            platforms={"linux-x86_64": ("cp310", "cp312")},
        ),
    )


def test_versions_that_python_does_not_know_have_an_order() -> None:
    odd = ["9f", "9e", "1.1.1w", "10e", "1!1.0", "1.10", "1.9"]
    assert sorted(odd, key=version_key) == ["1.1.1w", "9e", "9f", "10e", "1.9", "1.10", "1!1.0"]


@pytest.mark.parametrize(
    ("build", "variant", "expected"),
    [
        ("cuda130_mkl_py312_h93a9a1d_200", "cu130", "cuda130_*"),
        ("cuda130_mkl_py312_h93a9a1d_200", "cu130-mkl", "cuda130_mkl_*"),
        ("cpu_openblas_h93a9a1d_0", "cpu-openblas", "cpu_openblas_*"),
        ("py312h93a9a1d_0", "cpu", ""),
        ("cpu_mkl_py312_h93a9a1d_200", "", ""),
    ],
)
def test_builds_of_a_variant(build: str, variant: str, expected: str) -> None:
    (found,) = offers("conda/linux-64", [entry(f"a-b-1.0-{build}.conda", variant=variant)])
    assert (found.name, found.build) == ("a-b", expected)


def test_conda_packages_belong_to_their_project() -> None:
    path = "torch-1.0/linux-x86_64/cpu-mkl"
    found = offers(
        "conda/linux-64",
        [
            entry("libtorch-1.0-cpu_mkl_h0000000_1.conda", cell=f"{path}/any/conda-libtorch"),
            entry("pytorch-1.0-cpu_mkl_py312_h0000000_1.conda", cell=f"{path}/cp312/conda"),
            entry("six-1.0-py_0.tar.bz2", variant=""),
        ],
    )
    told = [(one.project, one.name, one.platforms) for one in found]
    assert told == [
        ("libtorch", "libtorch", {"linux-x86_64": ()}),
        ("torch", "pytorch", {"linux-x86_64": ("cp312",)}),
        ("six", "six", {"linux-x86_64": ()}),
    ]


def test_one_more_version_does_not_write_the_page(tmp_path: Path) -> None:
    offer(tmp_path)
    page = (tmp_path / LANDING).read_bytes()
    channel = Channel.at(tmp_path.as_uri())
    first = channel.head()
    one = published(next(cells()), "1.3.0.dev20261116")
    channel.commit(add([one]), ChangeReason("one wheel of the next", AT))
    offer(tmp_path, "1.4.0")
    assert (tmp_path / LANDING).read_bytes() == page
    assert channel.head().landing == first.landing == 1


def test_a_page_that_comes_again_is_another(tmp_path: Path) -> None:
    offer(tmp_path)
    channel = Channel.at(tmp_path.as_uri())
    before = (tmp_path / LANDING).read_bytes()
    wheels = channel.state(channel.head(), "simple/tinytorch").entries

    def without(state: State) -> State:
        kept = tuple(one for one in state.entries if not one.variant.startswith("rocm"))
        return msgspec.structs.replace(state, entries=kept)

    channel.commit({"simple/tinytorch": without}, ChangeReason("take ROCm away", AT))
    assert b"rocm5.2" not in (tmp_path / LANDING).read_bytes()
    back = {"simple/tinytorch": lambda state: msgspec.structs.replace(state, entries=wheels)}
    channel.commit(back, ChangeReason("bring it back", AT))
    after = (tmp_path / LANDING).read_bytes()
    assert after == before.replace(b"<!--SERIAL 1-->", b"<!--SERIAL 3-->") != before
    assert channel.mend([""]) == []


def test_a_quarantined_project_has_nothing_to_offer(tmp_path: Path) -> None:
    offer(tmp_path)
    channel = Channel.at(tmp_path.as_uri())
    edits = {"simple/tinytorch": lambda state: msgspec.structs.replace(state, status="quarantined")}
    head = channel.commit(edits, ChangeReason("bad news", AT))
    assert head.parts["simple/tinytorch"].offers == ()
    assert b"pip install" not in (tmp_path / LANDING).read_bytes()


class Tags(HTMLParser):
    """The elements of a page, and the text in them."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.links: list[str] = []
        self.text = ""
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.links += [value or "" for name, value in attrs if name == "href"]
        assert not [name for name, _ in attrs if name.startswith("on")]

    def handle_data(self, data: str) -> None:
        self.text += data


def test_hostile_names_are_only_text() -> None:
    evil = "\"'><img src=x onerror=hit()><script>hit()</script>"
    bad = PackageOffer(
        project=evil, name=evil, variant=evil, version=evil, uploaded=evil, build=evil
    )
    parts = {f"{shelf}/{evil}": [bad] for shelf in ("simple", "conda", "libtorch")}
    page = Tags(landing_page(evil, parts, 1).data.decode())
    assert (page.tags.count("script"), page.tags.count("img")) == (1, 0)
    assert f"pip install {evil} --index-url " in page.text
    assert not [link for link in page.links if re.match("javascript|//|http", link)]


def test_the_page_stands_alone() -> None:
    """No other script may run in it, and nothing is fetched from elsewhere."""
    text = landing_page("", {}, 1).data.decode()
    assert "Nothing is published here yet." in text
    assert "://" not in text
    for tag in ("script", "style"):
        inside = text.partition(f"<{tag}>")[2].partition(f"</{tag}>")[0]
        digest = b64encode(sha256(inside.encode()).digest()).decode()
        assert f"{tag}-src 'sha256-{digest}'" in text


def test_commands_for_all_packages_name_no_torch() -> None:
    """An index that many packages share is headed by what it is, not by one of them."""
    rows = {"plain": ("", ""), "stable": ("", ">=2.14.0"), "ext": ("cu130", "2.13")}
    found = [
        PackageOffer(project=n, name=n, version="1.0", variant=variant, uploaded=AT, torch=torch)
        for n, (variant, torch) in rows.items()
    ]
    page = landing_page("demo", {"simple/all": found}, 1).data.decode()
    assert re.findall("<dt>(.*?)</dt>", page) == ["pip, torch 2.13, cu130", "pip, any"]
