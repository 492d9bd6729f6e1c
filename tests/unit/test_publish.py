"""Publishing to a directory: what packages say, what is refused, what is never written over."""

import io
import json
import tarfile
from collections.abc import Callable, Iterable, Sequence
from datetime import date
from hashlib import sha256
from pathlib import Path

import msgspec
import pytest
from tests.support.channels import conda, put
from tests.support.helpers import SMALL, Command, config_of, plan_of
from tests.support.made_wheel import make_wheel, spec_for
from tests.support.schemas import validate

from torchyard.checks.policies import load_policy
from torchyard.errors import Diagnostic, ElsewhereError, PublishError, SelectionError
from torchyard.index.conda.section import conda_requires
from torchyard.index.entry import Hidden, State
from torchyard.package.contents import Contents
from torchyard.package.read import read_package
from torchyard.publish.channel.channel import Channel
from torchyard.publish.channel.draft import ChangeReason
from torchyard.publish.channel.head import Head
from torchyard.publish.channel.layout import key_of, parse_part
from torchyard.publish.evidence import NO_EVIDENCE, Evidence, judge_by
from torchyard.publish.gates import Demands, judge_all
from torchyard.publish.package_gates import refused_packages
from torchyard.publish.publish import Published, in_order, publish
from torchyard.publish.staged import Grouping, Package, read_staged
from torchyard.store.objects import Objects

FIRST, LATER = "2026-11-15T10:00:00Z", "2026-11-16T10:00:00Z"
TODAY = date(2026, 11, 15)
PLAN = plan_of(SMALL)
CP312 = "linux-x86_64/cu130-mkl/cp312/wheel"


@pytest.fixture
def channel(tmp_path: Path) -> Channel:
    return Channel.at(str(tmp_path / "channel"), make=True)


def staged(folder: Path, grouping: Grouping = "compute", now: str = FIRST) -> list[Package]:
    return read_staged([folder], grouping, now)


def send(channel: Channel, packages: Sequence[Package], at: str = FIRST) -> Published:
    return publish(channel, channel.head(), packages, ChangeReason("test", at))


def refusals(channel: Channel, packages: Sequence[Package], demands: Demands) -> list[str]:
    verdict = judge_all(channel, channel.head(), packages, demands)
    return [refusal.what for refusal in verdict.refusals]


def edit(channel: Channel, part: str, change: Callable[[State], State]) -> None:
    channel.commit({part: change}, ChangeReason("somebody else", LATER))


# ------------------------------------------------------------------------------ what is read


def test_a_wheel_says_what_it_is_and_for_whom(tmp_path: Path) -> None:
    wheel = make_wheel(
        tmp_path,
        "Torch",
        "2.14.0+cu130",
        tag="cp312-cp312-manylinux_2_28_x86_64",
        requires=["NumPy>=1", "sympy ; extra == 'all'"],
        more="Provides-Extra: all\nRequires-Python: >=3.10\n",
        spec=spec_for(PLAN, CP312),
    )
    (package,) = staged(tmp_path, "compute-blas")
    assert package.part == "simple/torch"
    assert package.requires == ("numpy",), "those of extras aside"
    entry = package.entry
    assert (entry.variant, entry.version) == ("cu130-mkl", "2.14.0+cu130")
    assert entry.cell == f"torch-2.14.0/{CP312}"
    assert entry.requires_python == ">=3.10"
    assert entry.sha256 == sha256(wheel.read_bytes()).hexdigest()
    assert entry.metadata == sha256(package.metadata).hexdigest()
    assert b"Requires-Python: >=3.10" in package.metadata
    assert staged(tmp_path, "compute")[0].entry.variant == "cu130"


def test_a_wheel_of_no_compute_fits_every_variant(tmp_path: Path) -> None:
    make_wheel(tmp_path)
    (package,) = staged(tmp_path)
    assert (package.entry.variant, package.entry.cell) == ("", "")


def test_a_package_that_lies_in_two_places_is_taken_once(tmp_path: Path) -> None:
    make_wheel(tmp_path / "a")
    make_wheel(tmp_path / "b")
    make_wheel(tmp_path / "c" / "deep", text="x = 2\n")
    (tmp_path / "a" / "demo-1.0-py3-none-any-debug.zip").write_bytes(b"")
    assert len(staged(tmp_path)) == 2


def test_a_link_out_of_a_directory_is_refused(tmp_path: Path) -> None:
    make_wheel(tmp_path / "theirs", "torch")
    (private,) = (tmp_path / "theirs").glob("*.whl")
    (tmp_path / "dist").mkdir()
    (tmp_path / "dist" / private.name).symlink_to(private)
    with pytest.raises(SelectionError, match="is a link to a file outside of"):
        staged(tmp_path / "dist")
    (tmp_path / "inside").symlink_to(tmp_path / "theirs")
    assert len(staged(tmp_path / "inside")) == 1


def test_all_that_are_no_packages_are_told_at_once(tmp_path: Path) -> None:
    (tmp_path / "demo-1.0-py3-none-any.whl").write_bytes(b"rubbish")
    (tmp_path / "other.zip").write_bytes(b"rubbish")
    with pytest.raises(PublishError) as caught:
        staged(tmp_path)
    assert len(caught.value.diagnostics) == 2


def test_a_conda_package_names_a_subdir_that_could_be(tmp_path: Path) -> None:
    tar = io.BytesIO()
    index = {"name": "some", "version": "1.0", "build": "0", "subdir": "../simple"}
    with tarfile.open(fileobj=tar, mode="w:bz2") as archive:
        about = tarfile.TarInfo("info/index.json")
        about.size = len(json.dumps(index))
        archive.addfile(about, io.BytesIO(json.dumps(index).encode()))
    (tmp_path / "some-1.0-0.tar.bz2").write_bytes(tar.getvalue())
    with pytest.raises(PublishError, match="does not name its subdirectory of a conda channel"):
        staged(tmp_path)


# --------------------------------------------------------------------------- what is published


def test_what_is_there_already_changes_nothing(tmp_path: Path, channel: Channel) -> None:
    make_wheel(tmp_path / "dist")
    first = send(channel, staged(tmp_path / "dist"))
    assert [len(first.new), len(first.there)] == [1, 0]
    make_wheel(tmp_path / "dist", "other")
    again = send(channel, staged(tmp_path / "dist", now=LATER), LATER)
    assert [package.name for package in again.new] == ["other"]
    assert [package.name for package in again.there] == ["demo"]
    (entry,) = channel.state(again.head, "simple/demo").entries
    assert entry.uploaded == FIRST
    assert send(channel, staged(tmp_path / "dist")).head.generation == again.head.generation


def test_other_bytes_never_take_a_name(tmp_path: Path, channel: Channel) -> None:
    make_wheel(tmp_path / "one")
    make_wheel(tmp_path / "two", text="x = 2\n")
    head = send(channel, staged(tmp_path / "one")).head
    with pytest.raises(PublishError, match="with other bytes"):
        send(channel, staged(tmp_path / "two"))
    assert channel.head() == head
    (what,) = refusals(channel, staged(tmp_path / "two"), Demands())
    assert "with other bytes" in what


def test_a_closed_project_takes_nothing(tmp_path: Path, channel: Channel) -> None:
    make_wheel(tmp_path / "one")
    send(channel, staged(tmp_path / "one"))
    edit(channel, "simple/demo", lambda state: msgspec.structs.replace(state, status="archived"))
    assert not refusals(channel, staged(tmp_path / "one"), Demands()), "it has that one"
    make_wheel(tmp_path / "two", version="1.1")
    with pytest.raises(PublishError, match="archived"):
        send(channel, staged(tmp_path / "two"))


def hide(state: State) -> State:
    hidden = tuple(Hidden(entry=entry, since=LATER) for entry in state.entries)
    return msgspec.structs.replace(state, entries=(), hidden=(*state.hidden, *hidden))


def test_a_hidden_file_comes_back_as_it_was(tmp_path: Path, channel: Channel) -> None:
    make_wheel(tmp_path / "dist")
    send(channel, staged(tmp_path / "dist"))
    (before,) = channel.state(channel.head(), "simple/demo").entries
    edit(channel, "simple/demo", hide)
    head = send(channel, staged(tmp_path / "dist", now=LATER), LATER).head
    state = channel.state(head, "simple/demo")
    assert (state.entries, state.hidden) == ((before,), ())


def test_what_is_being_deleted_has_to_wait(tmp_path: Path, channel: Channel) -> None:
    make_wheel(tmp_path / "dist")
    packages = staged(tmp_path / "dist")
    key = key_of(parse_part("simple/demo"), packages[0].entry)
    edit(
        channel,
        "simple/demo",
        lambda state: msgspec.structs.replace(state, pending_deletion=(key,)),
    )
    with pytest.raises(ElsewhereError, match="just being deleted"):
        send(channel, packages)


def test_what_is_deleted_while_it_is_published_is_sent_again(
    tmp_path: Path, channel: Channel
) -> None:
    """Its bytes were found in the channel, and are gone when the head is swapped."""
    make_wheel(tmp_path / "dist")
    packages = staged(tmp_path / "dist")
    send(channel, packages)
    edit(channel, "simple/demo", hide)
    key = key_of(parse_part("simple/demo"), packages[0].entry)
    keys = [key, f"{key}.metadata"]

    def prune(_sent: int) -> None:
        other = Channel.at(channel.url)
        replace = msgspec.structs.replace
        edit(other, "simple/demo", lambda s: replace(s, hidden=(), pending_deletion=tuple(keys)))
        other.objects.delete(keys)
        edit(other, "simple/demo", lambda s: replace(s, pending_deletion=()))

    publish(channel, channel.head(), packages, ChangeReason("test", LATER), prune)
    assert channel.objects.read(key) == packages[0].path.read_bytes()
    assert channel.objects.read(keys[1]) == packages[0].metadata


class Lasting(Objects):
    """Objects that are never taken back: somebody else may have found them meanwhile."""

    def delete(self, keys: Iterable[str]) -> None:
        assert not list(keys)


@pytest.mark.parametrize("size", [1, 9 << 20])
def test_a_file_that_changes_while_it_is_sent_gets_no_name(
    tmp_path: Path, channel: Channel, size: int
) -> None:
    wheel = make_wheel(tmp_path / "dist")
    packages = staged(tmp_path / "dist")
    wheel.write_bytes(wheel.read_bytes() + bytes(size))
    with pytest.raises(PublishError, match="was changed while it was being published"):
        send(Channel(Lasting(channel.url)), packages)
    assert not list(channel.objects.list("packages/"))
    assert not list(channel.objects.leftovers())


def test_what_is_needed_comes_before_what_needs_it(tmp_path: Path) -> None:
    make_wheel(tmp_path, "a", requires=["b"])
    make_wheel(tmp_path, "b", requires=["z"])
    make_wheel(tmp_path, "z", requires=["a"])
    make_wheel(tmp_path, "c", requires=["z"])
    assert list(in_order(staged(tmp_path))) == ["simple/z", "simple/b", "simple/a", "simple/c"]


def test_a_channel_keeps_to_its_variants(tmp_path: Path, channel: Channel) -> None:
    make_wheel(tmp_path / "dist")
    head = msgspec.structs.replace(channel.head(), name="nightly", grouping="compute-blas")
    publish(channel, head, staged(tmp_path / "dist"), ChangeReason("test", FIRST))
    assert (channel.head().name, channel.head().grouping) == ("nightly", "compute-blas")
    make_wheel(tmp_path / "dist", version="1.1")
    wrong = msgspec.structs.replace(channel.head(), grouping="compute")
    with pytest.raises(PublishError, match="called after `compute-blas`"):
        publish(channel, wrong, staged(tmp_path / "dist"), ChangeReason("test", FIRST))


# -------------------------------------------------------------------------------------- gates

CELLS = frozenset(
    f"torch-2.14.0/linux-x86_64/cpu-mkl/{python}/wheel" for python in ("cp311", "cp312")
)


def wheel_for(folder: Path, python: str) -> Path:
    spec = spec_for(PLAN, f"linux-x86_64/cpu-mkl/{python}/wheel")
    tag = f"{python}-{python}-manylinux_2_28_x86_64"
    return make_wheel(folder, "torch", "2.14.0+cpu", tag=tag, spec=spec)


def delivered(folder: Path, python: str) -> list[Package]:
    """Return a package that a job of the plan is known to have delivered."""
    wheel_for(folder, python)
    (cell,) = (cell for cell in CELLS if f"/{python}/" in cell)
    return read_staged([folder], "compute", FIRST, cell_for=lambda _path, _sha256: cell)


def test_missing_cells_are_named(tmp_path: Path, channel: Channel) -> None:
    demands = Demands(cells=CELLS, evidence=Evidence(finished=CELLS))
    one = delivered(tmp_path / "one", "cp311")
    (what,) = refusals(channel, one, demands)
    assert what.startswith("1 of 2 packages are missing: `torch-2.14.0/linux-x86_64/cpu-mkl/cp312")
    assert not refusals(channel, one, demands._replace(partial=True))
    send(channel, one)
    assert not refusals(channel, delivered(tmp_path / "two", "cp312"), demands), "one is there"


def test_a_version_that_the_file_does_not_plan_is_told(tmp_path: Path, channel: Channel) -> None:
    wheel_for(tmp_path, "cp311")
    cells = frozenset({"torch-2.15.0/linux-x86_64/cpu-mkl/cp311/wheel"})
    what = refusals(channel, staged(tmp_path), Demands(cells=cells))
    assert "it is unknown whether torch-2.14.0 is complete" in what[0]


@pytest.mark.parametrize(
    "other",
    [
        ("Demo", "1.0", "py3-none-any"),
        ("demo", "1.0.0", "py3-none-any"),
        ("demo", "1.0", "py3.py3-none-any"),
    ],
)
def test_a_wheel_is_not_published_under_another_spelling(
    tmp_path: Path, channel: Channel, other: tuple[str, str, str]
) -> None:
    """Installers would take one or the other."""
    name, version, tag = other
    send(channel, [*staged(make_wheel(tmp_path / "one").parent)])
    make_wheel(tmp_path / "two", name, version, tag=tag, text="y = 2\n")
    expected = (
        f"installers can't tell `{name}-{version}-{tag}.whl` from `demo-1.0-py3-none-any.whl`"
    )
    (what,) = refusals(channel, staged(tmp_path / "two"), Demands())
    assert what == f"{expected}, which differs"
    fresh = Channel.at(str(tmp_path / "fresh"), make=True)
    assert len(refusals(fresh, staged(tmp_path), Demands())) == 1, "nor both at once"
    make_wheel(tmp_path / "three", "demo", "1.0.1")
    make_wheel(tmp_path / "three", "demo", "1.0", tag="py2-none-any")
    assert not refusals(channel, staged(tmp_path / "three"), Demands())


@pytest.mark.parametrize("replace", [True, False])
def test_a_file_that_is_changed_while_it_is_read_is_not_published(
    tmp_path: Path, *, replace: bool
) -> None:
    """Its digest would be that of bytes which nothing has examined."""
    path = make_wheel(tmp_path / "dist")
    good = path.read_bytes()
    data = make_wheel(tmp_path / "other", text="y = 2\n").read_bytes()
    path.write_bytes(data)

    def write(content: bytes) -> None:
        if replace:
            (tmp_path / "new").write_bytes(content)
            (tmp_path / "new").replace(path)
        else:
            path.write_bytes(content)

    def read(path: Path) -> Contents:
        write(good)
        found = read_package(path)
        write(data)
        return found

    with pytest.raises(PublishError, match="was changed while it was being read"):
        read_staged([path], "compute", FIRST, read=read)


def test_packages_that_no_plan_knows_are_noted(tmp_path: Path, channel: Channel) -> None:
    make_wheel(tmp_path)
    verdict = judge_all(channel, channel.head(), staged(tmp_path), Demands(cells=CELLS))
    assert not verdict.refusals
    assert verdict.notes == ["`demo-1.0-py3-none-any.whl` is not in the plan"]


def test_wheels_of_a_version_have_to_agree(tmp_path: Path, channel: Channel) -> None:
    tags = ("cp311-none-any", "cp312-none-any")
    make_wheel(tmp_path / "one", tag=tags[0], requires=["demo"])
    make_wheel(tmp_path / "two", tag=tags[1], requires=["demo>=1"])
    both = [*staged(tmp_path / "one"), *staged(tmp_path / "two")]
    (what,) = refusals(channel, both, Demands())
    assert "both 1.0, and differ in Requires-Dist" in what
    send(channel, staged(tmp_path / "one"))
    (what,) = refusals(channel, staged(tmp_path / "two"), Demands())
    assert "both 1.0, and differ in Requires-Dist" in what
    make_wheel(tmp_path / "two", tag=tags[1], requires=["demo"], more="\nother words\n")
    assert not refusals(channel, staged(tmp_path / "two"), Demands()), "resolvers don't read those"


def test_names_that_could_be_squatted_are_refused(tmp_path: Path, channel: Channel) -> None:
    requires = ["Typing_Extensions", "nvidia-x ; extra == 'gpu' or os_name == 'posix'"]
    make_wheel(tmp_path / "one", requires=[*requires, "other ; extra == 'all'"])
    one = staged(tmp_path / "one")
    found = refusals(channel, one, Demands())
    assert len(found) == 1, "one refusal for all names that the same files need"
    assert "needs `nvidia-x`, `typing-extensions`, which" in found[0]
    assert len(refusals(channel, one, Demands(external=("nvidia-*",)))) == 1
    make_wheel(tmp_path / "two", "typing_extensions")
    both = [*one, *staged(tmp_path / "two")]
    assert not refusals(channel, both, Demands(external=("nvidia-*",)))
    send(channel, staged(tmp_path / "two"))
    assert not refusals(channel, one, Demands(external=("nvidia-*",))), "the channel has it"


def test_requirements_of_other_systems_and_pythons_are_not_asked_for(
    tmp_path: Path, channel: Channel
) -> None:
    requires = [
        "colorama ; sys_platform == 'win32'",
        "tomli ; python_version < '3.11'",
        "nvidia-x ; platform_system == 'Linux' and python_version >= '3.12'",
        "nvidia-x ; platform_system == 'Linux' and python_version < '3.12'",
    ]
    make_wheel(tmp_path, tag="cp312-cp312-manylinux_2_28_x86_64", requires=requires)
    (what,) = refusals(channel, staged(tmp_path), Demands())
    assert what == (
        "`demo-1.0-cp312-cp312-manylinux_2_28_x86_64.whl` needs `nvidia-x`, "
        "which the channel does not have"
    )


def test_other_indexes_are_only_for_packages_that_require_others(
    tmp_path: Path, channel: Channel, torchyard: Command
) -> None:
    make_wheel(tmp_path / "a", "plain")
    make_wheel(tmp_path / "b", "needy", requires=["six"])
    send(channel, staged(tmp_path / "a"))
    send(channel, staged(tmp_path / "b"))

    def declare(head: Head) -> Head:
        return msgspec.structs.replace(head, external=("six",))

    channel.commit({}, ChangeReason("test", "2026-11-15T14:20:00Z"), declare)
    machine = ("--python", "cp312", "--platform", "linux-x86_64", "--cpu", "--torch", "any")
    plain, needy = (torchyard("which", channel.url, n, *machine).out for n in ("plain", "needy"))
    assert "pip install --index-url " in plain
    assert "pip install --extra-index-url " in needy


def test_a_wheel_is_named_once(tmp_path: Path, channel: Channel) -> None:
    twice = ["six<2 ; python_version < '3.12'", "six ; python_version >= '3.12'"]
    make_wheel(tmp_path, requires=twice)
    (what,) = refusals(channel, staged(tmp_path), Demands())
    assert what.count("demo-1.0") == 1


def test_a_name_in_another_variant_could_be_squatted(tmp_path: Path, channel: Channel) -> None:
    """Who installs from one variant does not see the others."""
    make_wheel(tmp_path / "needed", "needed", "1.0+cpu")
    make_wheel(tmp_path / "demo", "demo", "1.0+cpu", requires=["needed"])
    make_wheel(tmp_path / "demo", "demo", "1.0+cu130", requires=["needed"])
    packages = staged(tmp_path)
    (what,) = refusals(channel, packages, Demands())
    assert what == (
        "`demo-1.0+cu130-py3-none-any.whl` needs `needed`, "
        "which the channel does not have for cu130"
    )
    send(channel, staged(tmp_path / "needed"))
    assert refusals(channel, staged(tmp_path / "demo"), Demands()) == [what]
    make_wheel(tmp_path / "any", "any", requires=["needed"])
    assert not refusals(channel, staged(tmp_path / "any"), Demands()), "some variant has it"
    make_wheel(tmp_path / "needed", "needed", "2.0")
    assert not refusals(channel, staged(tmp_path), Demands()), "all of them have it"


def test_a_conda_package_in_another_subdir_could_be_squatted(channel: Channel) -> None:
    def asking(subdir: str) -> list[str]:
        package = Package(
            path=Path("some-1.0-0.conda"),
            part=f"conda/{subdir}",
            entry=conda("some").entry,
            name="some",
            requires=("needed",),
            findings=(),
        )
        return refusals(channel, [package], Demands())

    put(channel, conda("needed"))
    assert [len(asking(subdir)) for subdir in ("linux-64", "win-64", "noarch")] == [0, 1, 0]
    assert asking("win-64")[0].endswith("which the channel does not have for win-64")


def test_what_is_wanted_from_elsewhere_is_not_here(tmp_path: Path, channel: Channel) -> None:
    """An installer would follow the address, whatever the channel has of that name."""
    make_wheel(tmp_path, "other")
    make_wheel(tmp_path, requires=["Other @ https://example.org/other-1.0-py3-none-any.whl"])
    packages = staged(tmp_path)
    (what,) = refusals(channel, packages, Demands(external=("other", "oth*")))
    assert "`other @ https://example.org/other-1.0-py3-none-any.whl`" in what
    assert not refusals(channel, packages, Demands(external=("other @ https://example.org/*",)))
    assert conda_requires(["a::some >=1", "other[build=x]", "__glibc"]) == ("a::some", "other")


@pytest.mark.parametrize("shared_first", [False, True])
def test_a_file_for_all_variants_is_in_the_way_of_one_of_its_name(
    tmp_path: Path, channel: Channel, *, shared_first: bool
) -> None:
    """Both would be on the page of the variant."""
    spec = spec_for(PLAN, CP312)
    tag = "cp312-cp312-manylinux_2_28_x86_64"
    make_wheel(tmp_path / "shared", "torch", tag=tag)
    make_wheel(tmp_path / "cu130", "torch", tag=tag, spec=spec)
    both = [*staged(tmp_path / "shared"), *staged(tmp_path / "cu130")]
    assert [package.entry.variant for package in both] == ["", "cu130"]
    name = f"torch-1.0-{tag}.whl"
    what = refusals(channel, both, Demands())
    assert f"there are different files named `{name}` for cu130" in what
    first, second = both if shared_first else reversed(both)
    send(channel, [first])
    (fault,) = refusals(channel, [second], Demands())
    assert f"the channel has a `{name}` with other bytes" in fault


def test_variants_are_not_called_as_folders_are(tmp_path: Path, channel: Channel) -> None:
    make_wheel(tmp_path)
    (package,) = staged(tmp_path)
    entry = msgspec.structs.replace(package.entry, variant="packages")
    (what,) = refusals(channel, [package._replace(entry=entry)], Demands())
    assert "is for `packages`, and channels have a folder of that name" in what


def test_one_hint_declares_all_names(tmp_path: Path, channel: Channel) -> None:
    make_wheel(tmp_path / "dist", requires=["b", "c"])
    make_wheel(tmp_path / "dist", "other", requires=["a", "c", "known-x"])
    demands = Demands(external=("known-*",))
    verdict = judge_all(channel, channel.head(), staged(tmp_path / "dist"), demands)
    *others, last = [refusal.hint for refusal in verdict.refusals]
    assert others == [None, None]
    assert 'external = ["known-*", "a", "b", "c"]' in str(last), "what is declared stays so"
    assert "--external a --external b --external c" in str(last)


def test_a_channel_without_a_slash_is_one_of_the_file(
    torchyard: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    make_wheel(tmp_path / "dist")
    alone = torchyard("publish", "dist", "--to", "nightly")
    assert (alone.code, "for a directory write ./nightly" in alone.err) == (5, True)
    Path("torchyard.toml").write_text(SMALL, encoding="utf-8")
    wrong = torchyard("publish", "dist", "--to", "nigthly")
    assert "did you mean `nightly`?" in wrong.err
    assert "for a directory write ./nigthly" in wrong.err


def test_an_address_with_one_slash_is_no_directory(torchyard: Command, tmp_path: Path) -> None:
    make_wheel(tmp_path / "dist")
    refused = torchyard("publish", tmp_path / "dist", "--to", "s3:/bucket/nightly")
    assert (refused.code, "write s3://bucket/nightly" in refused.err) == (2, True)


def test_two_files_of_one_name_need_variants_of_their_own(tmp_path: Path, channel: Channel) -> None:
    make_wheel(tmp_path / "one")
    make_wheel(tmp_path / "two", text="x = 2\n")
    verdict = judge_all(channel, channel.head(), staged(tmp_path), Demands())
    assert isinstance(verdict.refusals[0], Diagnostic)
    assert "different files named `demo-1.0-py3-none-any.whl`" in verdict.refusals[0].what
    assert 'variants = "compute-blas"' in str(verdict.refusals[0].hint)


def broken(folder: Path) -> Path:
    """A wheel whose RECORD is not true."""
    return make_wheel(folder, text="y = 1\n", more="Requires-Python: rubbish\n")


def test_what_is_not_proven_is_checked(tmp_path: Path) -> None:
    broken(tmp_path)
    judge = judge_by(load_policy("default"), TODAY, frozenset())
    packages = read_staged([tmp_path], "compute", FIRST, judge)
    (what,) = [one.what for one in refused_packages(packages, frozenset(), NO_EVIDENCE)]
    assert what.startswith("`demo-1.0-py3-none-any.whl` has errors")


def test_a_channel_says_what_is_external_and_what_its_variants_are() -> None:
    text = SMALL + 'external = ["numpy", "nvidia-*"]\nvariants = "compute-blas"\n'
    channel = config_of(text).channels["nightly"]
    assert (channel.external, channel.variants) == (("numpy", "nvidia-*"), "compute-blas")


# ------------------------------------------------------------------------------- the command


def test_the_command_publishes_and_tells(torchyard: Command, tmp_path: Path) -> None:
    make_wheel(tmp_path / "dist")
    place = tmp_path / "channel"
    first = torchyard("publish", tmp_path / "dist", "--to", place, "--dry-run", "--json")
    assert [file["new"] for file in json.loads(first.out)["files"]] == [True]
    assert (json.loads(first.out)["channel"], place.exists()) == (str(place), False)
    done = torchyard("publish", tmp_path / "dist", "--to", place)
    assert done.code == 0, done.err
    assert "generation 1, 1 file is new" in done.out
    make_wheel(tmp_path / "dist", version="1.1")
    planned = torchyard("publish", tmp_path / "dist", "--to", place, "--dry-run", "--json")
    document = json.loads(planned.out)
    validate(document, "publish")
    assert [file["new"] for file in document["files"]] == [False, True]
    assert Channel.at(str(place)).head().generation == 1


def test_everything_that_is_wrong_is_told_at_once(torchyard: Command, tmp_path: Path) -> None:
    make_wheel(tmp_path / "dist", requires=["a"])
    broken(tmp_path / "other")
    refused = torchyard("publish", tmp_path / "dist", tmp_path / "other", "--to", tmp_path / "c")
    assert refused.code == 15
    for what in ("has errors", "needs `a`", "different files"):
        assert what in refused.err
    assert not list((tmp_path / "c").glob("[!.]*"))
