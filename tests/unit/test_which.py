"""Which package fits a machine, and why not the others."""

import json
import shlex
from hashlib import sha256
from pathlib import Path
from typing import NamedTuple, Protocol

import msgspec
import pytest
from tests.support.helpers import Command, Output

from torchyard.compute.cuda.driver import nvidia_driver
from torchyard.compute.rocm import rocm_version
from torchyard.errors import SelectionError, UsageError
from torchyard.features.which.report import WhichReport
from torchyard.index.entry import Entry, State
from torchyard.publish.channel.channel import Channel
from torchyard.publish.channel.draft import ChangeReason
from torchyard.publish.channel.head import Head

LINUX = "manylinux_2_28_x86_64"
URL = "https://example.org/nightly"
MACHINE = ("--python", "cp312", "--platform", "linux-x86_64", "--glibc", "2.28")


class Ask(Protocol):
    """Put wheels into a channel, and ask for one."""

    def __call__(self, entries: list[Entry], *args: str, project: str = "torch") -> "Told": ...


class Told(NamedTuple):
    """What a command told."""

    document: WhichReport

    @property
    def file(self) -> str | None:
        return self.document.choice.file if self.document.choice else None

    @property
    def commands(self) -> dict[str, str]:
        assert self.document.choice
        return self.document.choice.commands

    @property
    def reasons(self) -> dict[str, str]:
        return {other.file: other.reason for other in self.document.others}

    @property
    def whys(self) -> dict[str, str]:
        return {other.file: other.why for other in self.document.others}


def told_by(text: str) -> Told:
    return Told(msgspec.json.decode(text, type=WhichReport))


def wheel(
    version: str,
    tags: str = f"cp312-cp312-{LINUX}",
    variant: str | None = None,
    **more: str,
) -> Entry:
    file = f"torch-{version}-{tags}.whl"
    entry = Entry(
        file=file,
        version=version,
        variant=version.partition("+")[2] if variant is None else variant,
        sha256=sha256(f"{file} {variant}".encode()).hexdigest(),
        size=1000,
        uploaded="2026-11-15T14:20:00Z",
    )
    return msgspec.structs.replace(entry, **more)


def put(place: Path, part: str, *entries: Entry) -> None:
    def edit(state: State) -> State:
        return msgspec.structs.replace(state, entries=(*state.entries, *entries))

    reason = ChangeReason("test", "2026-11-15T14:20:00Z")
    Channel.at(str(place), make=True).commit({part: edit}, reason)


@pytest.fixture
def ask(torchyard: Command, tmp_path: Path) -> Ask:
    def run(entries: list[Entry], *args: str, project: str = "torch") -> Told:
        put(tmp_path / "channel", "simple/torch", *entries)
        done = torchyard("which", tmp_path / "channel", project, *MACHINE, "--json", *args)
        told = told_by(done.out)
        assert done.code == (0 if told.file else SelectionError.exit_code)
        return told

    return run


@pytest.mark.parametrize(
    ("tags", "more", "reason", "why"),
    [
        (f"cp313-cp313-{LINUX}", {}, "python", "is for Python cp313"),
        (f"cp310-cp310-{LINUX}", {}, "python", "is for Python cp310"),
        (f"cp312-cp312t-{LINUX}", {}, "abi", "is for the ABI cp312t"),
        ("cp312-cp312-win_amd64", {}, "platform", "is for win_amd64"),
        ("cp312-cp312-manylinux_2_28_aarch64", {}, "platform", "is for manylinux_2_28_aarch64"),
        ("cp312-cp312-manylinux_2_34_x86_64", {}, "glibc", "needs glibc 2.34"),
        (f"cp312-cp312-{LINUX}", {"yanked": "no GPU"}, "yanked", "was yanked: no GPU"),
        (
            f"cp312-cp312-{LINUX}",
            {"requires_python": ">=3.13"},
            "requires-python",
            "wants Python >=3.13",
        ),
        ("cp312", {}, "unreadable", "its name is not a wheel's"),
    ],
)
def test_every_misfit_has_its_reason(
    ask: Ask, tags: str, more: dict[str, str], reason: str, why: str
) -> None:
    bad = wheel("2.14.0+cpu", tags, **more)
    told = ask([bad], "--cpu")
    assert told.file is None
    assert told.reasons == {bad.file: reason}
    assert told.whys == {bad.file: why}


@pytest.mark.parametrize(
    "tags",
    [
        "cp312-cp312-manylinux_2_17_x86_64.manylinux2014_x86_64",
        "cp312-cp312-manylinux2014_x86_64",
        "cp39-abi3-manylinux_2_28_x86_64",
        "cp312-cp312-linux_x86_64",
        "py3-none-any",
        f"py3-none-{LINUX}",
    ],
)
def test_what_installers_take_fits(ask: Ask, tags: str) -> None:
    good = wheel("2.14.0", tags, "")
    assert ask([good], "--cpu").file == good.file


@pytest.mark.parametrize(
    ("python", "platform", "tags"),
    [
        ("cp314t", "linux-x86_64", f"cp314-cp314t-{LINUX}"),
        ("cp312", "linux-aarch64", "cp312-cp312-manylinux_2_28_aarch64"),
        ("cp312", "macos-arm64", "cp312-cp312-macosx_14_0_arm64"),
        ("cp312", "windows-x86_64", "cp312-cp312-win_amd64"),
    ],
)
def test_facts_of_other_machines(ask: Ask, python: str, platform: str, tags: str) -> None:
    good, others = wheel("2.14.0+cpu", tags), [wheel("2.14.0+cpu"), wheel("2.15.0+cpu")]
    told = ask([good, *others], "--python", python, "--platform", platform, "--cpu")
    assert told.file == good.file


@pytest.mark.parametrize(
    ("gpu", "variant"),
    [
        (("--driver", "580.65.06"), "cu130"),
        (("--driver", "580.65"), "cu130"),  # as far as it is told, it may do
        (("--driver", "595.45.04"), "cu132"),
        (("--driver", "570.26"), "cu126"),
        (("--driver", "535.104.05"), "cu126"),  # by minor version compatibility
        (("--driver", "520.1"), "cpu"),
        (("--cuda", "13.0"), "cu130"),
        (("--cuda", "13.2"), "cu132"),
        (("--cuda", "12.9"), "cu126"),
        (("--rocm", "7.2.0"), "rocm7.2"),
        (("--rocm", "7.1"), "cpu"),
        (("--xpu",), "xpu"),
        (("--cpu",), "cpu"),
    ],
)
def test_best_variant_for_the_gpu(ask: Ask, gpu: tuple[str, ...], variant: str) -> None:
    computes = ("cpu", "cu126", "cu130", "cu132", "rocm7.2", "xpu")
    told = ask([wheel(f"2.14.0+{compute}") for compute in computes], *gpu)
    assert told.file == wheel(f"2.14.0+{variant}").file


def test_driver_too_old_is_told(ask: Ask) -> None:
    told = ask([wheel("2.14.0+cu130")], "--driver", "570.26")
    assert list(told.whys.values()) == ["the driver 570.26 is too old for cu130, which needs 580"]


def test_newest_version_comes_before_the_best_variant(ask: Ask) -> None:
    told = ask([wheel("2.13.0+cu130"), wheel("2.14.0+cpu")], "--cuda", "13.0")
    assert told.file == wheel("2.14.0+cpu").file
    assert told.reasons == {wheel("2.13.0+cu130").file: "older"}


def test_trap_of_nightlies_is_explained(ask: Ask) -> None:
    nightly = wheel("2.14.0.dev20261115+cu130")
    told = ask([wheel("2.14.0+cpu"), nightly], "--cuda", "13.0")
    assert told.file == wheel("2.14.0+cpu").file
    (note,) = told.document.notes
    assert note.startswith("2.14.0.dev20261115+cu130 is for the GPU, but 2.14.0+cpu comes before")
    assert note.endswith("ask for ==2.14.0.dev20261115+cu130")
    again = ask([], "--cuda", "13.0", project="torch==2.14.0.dev20261115")
    assert again.file == nightly.file


def test_prereleases_are_taken_where_there_is_nothing_else(ask: Ask) -> None:
    nightlies = [wheel("2.15.0.dev1+cpu"), wheel("2.15.0.dev2+cpu")]
    assert ask(nightlies, "--cpu").file == nightlies[1].file
    told = ask([wheel("2.14.0+cpu")], "--cpu")
    assert told.file == wheel("2.14.0+cpu").file
    assert told.reasons == {one.file: "prerelease" for one in nightlies}


def test_letters_behind_the_plus_are_explained(ask: Ask) -> None:
    told = ask([wheel("2.14.0+cu130"), wheel("2.14.0+xpu")], "--cuda", "13.0")
    assert told.file == wheel("2.14.0+cu130").file
    (note,) = told.document.notes
    assert "installers would take 2.14.0+xpu" in note


def test_yanked_is_taken_only_if_named(ask: Ask) -> None:
    yanked = wheel("2.14.0+cpu", yanked="")
    assert ask([yanked], "--cpu").reasons == {yanked.file: "yanked"}
    assert ask([], "--cpu", project="torch==2.14.0").file == yanked.file


def test_yanked_is_taken_last_and_told(ask: Ask) -> None:
    yanked, kept = wheel("2.14.0+cu130", yanked="no GPU"), wheel("2.14.0+cpu")
    both = ask([yanked, kept], "--cuda", "13.0", project="torch==2.14.0")
    assert both.file == kept.file
    assert both.whys == {yanked.file: "was yanked: no GPU"}
    assert ask([], "--cuda", "13.0", project="torch==2.14.*").file == kept.file
    named = ask([], "--cuda", "13.0", project="torch==2.14.0+cu130")
    assert named.file == yanked.file
    assert named.document.notes == ["2.14.0+cu130 was yanked: no GPU"]


@pytest.mark.parametrize("variant", ["custom", "cu", "cuda", "rocm", "debug"])
def test_a_variant_may_be_called_anything(ask: Ask, variant: str) -> None:
    good = wheel("2.14.0", variant=variant)
    told = ask([good], *(("--rocm", "7.2") if variant == "rocm" else ("--cpu",)))
    assert told.file == good.file


def test_spec_leaves_versions_out(ask: Ask) -> None:
    old, new = wheel("2.13.0+cpu"), wheel("2.14.0+cpu")
    told = ask([old, new], "--cpu", project="torch<2.14")
    assert told.file == old.file
    assert told.whys == {new.file: "is not <2.14"}


def test_first_blas_of_the_platform_wins_a_tie(ask: Ask) -> None:
    both = [wheel("2.14.0", variant=f"cpu-{blas}") for blas in ("openblas", "mkl")]
    told = ask(both, "--cpu")
    assert told.document.choice
    assert told.document.choice.variant == "cpu-mkl"
    assert set(told.whys.values()) == {"fits, but less well than cpu-mkl"}


def test_directory_is_an_address_for_installers(ask: Ask, tmp_path: Path) -> None:
    told = ask([wheel("2.14.0", "py3-none-any", "")], "--cpu")
    assert f" --index-url file://{tmp_path}/channel/simple/ " in told.commands["pip"]


def test_commands_name_the_index_of_the_variant(ask: Ask) -> None:
    told = ask([wheel("2.14.0+cu130")], "--cuda", "13.0", "--url", "https://example.org/nightly/")
    rest = "install --index-url https://example.org/nightly/cu130/ 'torch==2.14.0+cu130'"
    assert told.commands == {
        "pip": f"pip {rest}",
        "uv": f"uv pip {rest}",
    }


def conda(build: str, *depends: str, number: int = 0) -> Entry:
    digests = {"sha256": "00" * 32, "md5": "00" * 16}
    said = {"name": "torch", "build": build, "build_number": number, "depends": depends}
    record = {**said, **digests}
    return msgspec.structs.replace(
        wheel("2.14.0"),
        file=f"torch-2.14.0-{build}.conda",
        variant=build.partition("_")[0],
        record=msgspec.Raw(msgspec.json.encode(record)),
    )


def test_conda_packages(torchyard: Command, tmp_path: Path) -> None:
    good = conda("cu130_py312", "python_abi 3.12.* *_cp312", "__glibc >=2.28,<3.0.a0")
    bad = {
        "cu126_py313": ("is for Python 3.13", "python_abi 3.13.* *_cp313"),
        "cu126_py312t": ("is for the ABI cp312t", "python_abi 3.12.* *_cp312t"),
        "cu126_new": ("needs glibc 2.34", "__glibc >=2.34,<3.0.a0"),
        "cu132_py312": (
            "the driver's CUDA 12.9 is too old for cu132, which needs 13.0",
            "python_abi 3.12.* *_cp312",
        ),
    }
    place = tmp_path / "channel"
    others = [conda(build, depends) for build, (_, depends) in bad.items()]
    put(place, "conda/linux-64", conda("cu126_py312"), *others)
    put(place, "conda/osx-arm64", conda("cpu_mac"))
    args = ("which", place, "torch", *MACHINE, "--package", "conda", "--json", "--url", "u")
    told = told_by(torchyard(*args, "--cuda", "12.9").out)
    channels = "--channel u/conda --channel conda-forge"
    assert told.commands == {"conda": f"conda install {channels} 'torch=2.14.0=cu126_py312'"}
    assert told.whys == {
        **{f"torch-2.14.0-{build}.conda": why for build, (why, _) in bad.items()},
        "torch-2.14.0-cpu_mac.conda": "is for osx-arm64",
    }
    put(place, "conda/linux-64", good)
    chosen = told_by(torchyard(*args, "--cuda", "13.0").out).file
    assert chosen == "torch-2.14.0-cu132_py312.conda", (
        "solvers take the newest that the driver runs"
    )


def test_newest_build_of_a_conda_package(torchyard: Command, tmp_path: Path) -> None:
    put(tmp_path / "channel", "conda/linux-64", *(conda(f"cpu_{n}", number=n) for n in (2, 10, 9)))
    args = ("--package", "conda", "--cpu", "--json")
    told = told_by(torchyard("which", tmp_path / "channel", "torch", *MACHINE, *args).out)
    assert told.file == "torch-2.14.0-cpu_10.conda"
    assert set(told.whys.values()) == {"fits, but less well than torch-2.14.0-cpu_10.conda"}


def test_highest_build_of_a_wheel(ask: Ask) -> None:
    """As pip does it: a better tag comes before a higher build number."""
    tags = f"cp312-cp312-{LINUX}"
    builds = [wheel("2.14.0+cpu", tags=f"{build}{tags}") for build in ("", "9-", "10-")]
    told = ask([*builds, wheel("2.14.0+cpu", tags="11-cp312-cp312-manylinux_2_17_x86_64")])
    assert told.file == f"torch-2.14.0+cpu-10-{tags}.whl"
    assert told.whys[builds[1].file] == f"fits, but less well than {told.file}"


def test_highest_build_of_a_libtorch_zip(torchyard: Command, tmp_path: Path) -> None:
    stem = "libtorch-shared-with-deps-2.14.0+cpu"
    zips = [wheel("2.14.0+cpu", file=f"{stem}{end}.zip") for end in ("-9", "-10", "")]
    put(tmp_path / "channel", "libtorch/torch", *zips)
    args = ("--package", "libtorch", "--cpu", "--json")
    told = told_by(torchyard("which", tmp_path / "channel", "torch", *MACHINE, *args).out)
    assert told.file == f"{stem}-10.zip"


def test_libtorch_zips_are_told_apart_by_their_cells(torchyard: Command, tmp_path: Path) -> None:
    zips = [
        wheel(
            f"2.14.0+{compute}",
            file=f"{platform}+{compute}.zip",
            cell=f"torch-2.14.0/{platform}/{compute}-mkl/any/libtorch",
        )
        for platform, compute in (
            ("linux-x86_64", "cpu"),
            ("linux-x86_64", "cu130"),
            ("windows-x86_64", "cpu"),
        )
    ]
    put(tmp_path / "channel", "libtorch/torch", *zips)
    args = ("--package", "libtorch", "--cpu", "--json", "--url", "u")
    told = told_by(torchyard("which", tmp_path / "channel", "torch", *MACHINE, *args).out)
    digest = zips[0].sha256
    key = f"packages/{digest[:2]}/{digest[2:]}/linux-x86_64%2Bcpu.zip"
    assert told.commands == {"curl": f"curl -L -o 'linux-x86_64+cpu.zip' 'u/{key}'"}
    assert told.document.notes == []


def test_names_mean_nothing_to_a_shell(torchyard: Command, tmp_path: Path) -> None:
    strange = conda("cpu_'; touch x; '", "__glibc >=2.17")
    put(tmp_path / "channel", "conda/linux-64", strange)
    args = ("--package", "conda", "--cpu", "--json", "--url", "u")
    told = told_by(torchyard("which", tmp_path / "channel", "torch", *MACHINE, *args).out)
    assert shlex.split(told.commands["conda"])[-1] == "torch=2.14.0=cpu_'; touch x; '"


def test_a_zip_that_has_what_it_needs_comes_first(torchyard: Command, tmp_path: Path) -> None:
    names = [f"libtorch-shared-{kind}-deps-2.14.0.zip" for kind in ("with", "without")]
    zips = [wheel("2.14.0", variant="cpu", file=file) for file in names]
    put(tmp_path / "channel", "libtorch/torch", *zips)
    args = ("--package", "libtorch", "--cpu", "--json", "--platform", "linux-x86_64")
    told = told_by(torchyard("which", tmp_path / "channel", "torch", *args).out)
    assert told.file == names[0]


def test_libtorch_zips_of_others_are_told_apart_by_their_names(
    torchyard: Command, tmp_path: Path
) -> None:
    names = {
        "linux-x86_64": "libtorch-shared-with-deps-2.14.0.zip",
        "windows-x86_64": "libtorch-win-shared-with-deps-2.14.0.zip",
        "macos-arm64": "libtorch-macos-arm64-2.14.0.zip",
    }
    zips = [wheel("2.14.0", variant="cpu", file=file) for file in sorted(names.values())]
    put(tmp_path / "channel", "libtorch/torch", *zips)
    for platform, file in names.items():
        args = ("--package", "libtorch", "--cpu", "--json", "--platform", platform)
        told = told_by(torchyard("which", tmp_path / "channel", "torch", *args).out)
        assert told.file == file


@pytest.mark.parametrize(
    ("args", "code", "said"),
    [
        (("vision",), SelectionError.exit_code, "no wheel of `vision`"),
        (("torch >",), UsageError.exit_code, "not a project with versions"),
        (("torch", "--python", "cp31"), UsageError.exit_code, "there is no Python `cp31`"),
        (("torch", "--platform", "linux"), UsageError.exit_code, "there is no platform `linux`"),
        (("torch", "--cpu", "--cuda", "13.0"), UsageError.exit_code, "exclude each other"),
        (("torch", "--glibc", "2"), UsageError.exit_code, "`--glibc 2` is not a version"),
        (("torch", "--driver", "new"), UsageError.exit_code, "`--driver new` is not a version"),
    ],
)
def test_mistakes(
    torchyard: Command, tmp_path: Path, args: tuple[str, ...], code: int, said: str
) -> None:
    put(tmp_path / "channel", "simple/torch", wheel("2.14.0+cpu"))
    done = torchyard("which", tmp_path / "channel", *args)
    assert done.code == code
    assert said in done.err


@pytest.mark.parametrize("columns", [60, 80])
def test_report(
    torchyard: Command, tmp_path: Path, columns: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    pythons = ("cp310", "cp311", "cp312", "cp313")
    wheels = [
        wheel(f"{version}+{compute}", f"{python}-{python}-{LINUX}")
        for version in ("2.13.0", "2.14.0")
        for compute in ("cpu", "cu130", "rocm7.2")
        for python in pythons
    ]
    put(tmp_path / "channel", "simple/torch", *wheels)
    args = ("which", tmp_path / "channel", "torch", *MACHINE, "--driver", "580.65", "--url", URL)
    whole = torchyard(*args).out
    assert f"pip install --index-url {URL}/cu130/ 'torch==2.14.0+cu130'" in whole
    assert "for cp312, linux-x86_64, glibc 2.28, NVIDIA's driver 580.65" in whole
    monkeypatch.setenv("COLUMNS", str(columns))
    lines = torchyard(*args).out.splitlines()
    copied = [line for line in lines if "pip install" in line]
    assert len(copied) == 2
    assert all(line.endswith("'torch==2.14.0+cu130'") for line in copied)
    assert max(len(line) for line in lines if line not in copied) <= columns
    assert any(line.startswith(" 12  is older than 2.14.0") for line in lines)


def test_reasons_of_others_say_nothing_to_terminals(torchyard: Command, tmp_path: Path) -> None:
    strange = wheel("2.14.0+cpu", yanked="\x1b]0;hello\x07 [bold]loud")
    put(tmp_path / "channel", "simple/torch", strange)
    for project in ("torch", "torch==2.14.0"):
        told = torchyard("which", tmp_path / "channel", project, *MACHINE, "--cpu").out
        assert "\x1b" not in told
        assert "[bold]" in told


def test_driver_and_rocm_of_a_machine(tmp_path: Path) -> None:
    version = tmp_path / "proc/driver/nvidia/version"
    version.parent.mkdir(parents=True)
    version.write_text(
        "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  580.65.06  Release Build\n"
        "GCC version:  gcc version 13.3.0 (Ubuntu 13.3.0-6ubuntu2~24.04)\n"
    )
    info = tmp_path / "opt/rocm/.info/version"
    info.parent.mkdir(parents=True)
    info.write_text("7.2.0-43\n")
    assert nvidia_driver(str(tmp_path)) == "580.65.06"
    assert rocm_version(str(tmp_path)) == "7.2.0"
    assert rocm_version(str(tmp_path / "elsewhere")) == ""


def extension(torch: str, compute: str, version: str = "1.0", requires: str = "") -> Entry:
    """An extension that is compiled against a release of torch."""
    label = f"{version}+pt{torch.replace('.', '')}{compute}"
    entry = wheel(label, variant=compute, torch=requires or f"=={torch}.*")
    return msgspec.structs.replace(entry, file=entry.file.replace("torch-", "ext-"))


EXTENSIONS = [extension(t, c) for t in ("2.9", "2.12", "2.13") for c in ("cpu", "cu130")]


@pytest.fixture
def ask_ext(torchyard: Command, tmp_path: Path) -> Command:
    """Ask for an extension in a channel that has no torch."""
    put(tmp_path / "channel", "simple/ext", *EXTENSIONS)

    def ask(*args: object) -> Output:
        return torchyard("which", tmp_path / "channel", "ext", *MACHINE, *args)

    return ask


@pytest.mark.parametrize(
    ("torch", "version", "index"),
    [
        ("2.12.0+cu130", "1.0+pt212cu130", "torch-2.12%2Bcu130"),
        ("2.12.1+cpu", "1.0+pt212cpu", "torch-2.12%2Bcpu"),
        ("2.13.0", "1.0+pt213cpu", "torch-2.13%2Bcpu"),
        ("2.9", "1.0+pt29cpu", "torch-2.9%2Bcpu"),
        ("any", "1.0+pt213cpu", "torch-2.13%2Bcpu"),
    ],
)
def test_an_extension_fits_the_torch_that_is_there(
    ask_ext: Command, torch: str, version: str, index: str
) -> None:
    told = told_by(ask_ext("--cpu", "--torch", torch, "--url", URL, "--json").out)
    assert told.document.choice
    assert told.document.choice.version == version
    assert f"{URL}/{index}/" in told.commands["pip"]


def test_an_extension_for_another_torch_says_so(ask_ext: Command) -> None:
    told = told_by(ask_ext("--torch", "2.12.0+cu130", "--cpu", "--json").out)
    assert told.whys["ext-1.0+pt213cu130-cp312-cp312-manylinux_2_28_x86_64.whl"] == (
        "is for torch 2.13"
    )
    assert told.whys["ext-1.0+pt212cpu-cp312-cp312-manylinux_2_28_x86_64.whl"] == (
        "is for a torch with cpu"
    )


def test_who_has_a_torch_that_nothing_is_for_learns_what_there_is(ask_ext: Command) -> None:
    done = ask_ext("--torch", "2.11.0+cu130", "--cpu")
    assert done.code == SelectionError.exit_code
    said = " ".join(done.err.split())
    assert (
        "no wheel of `ext` is for torch 2.11.0 for cu130; there are some for torch "
        "2.13 (cpu, cu130), 2.12 (cpu, cu130), 2.9 (cpu, cu130)"
    ) in said
    assert "pip install 'torch==2.13.*'" in said


def test_torch_comes_from_the_default_index_if_the_channel_has_none(ask_ext: Command) -> None:
    told = told_by(ask_ext("--cpu", "--torch", "any", "--url", URL, "--json").out)
    assert told.commands == {
        "pip": f"pip install --extra-index-url {URL}/torch-2.13%2Bcpu/ 'ext==1.0+pt213cpu'",
        "uv": f"uv pip install --index {URL}/torch-2.13%2Bcpu/ 'ext==1.0+pt213cpu'",
    }
    note = "torch==2.13.* comes from the default index; if it is not for cpu there, install a torch"
    assert any(one.startswith(note) for one in told.document.notes)


def test_torch_comes_from_the_index_of_its_compute(ask_ext: Command, tmp_path: Path) -> None:
    def declare(head: Head) -> Head:
        return msgspec.structs.replace(
            head, external=("torch",), upstream=("https://example.org/whl/{compute}/",)
        )

    channel = Channel.at(str(tmp_path / "channel"))
    channel.commit({}, ChangeReason("test", "2026-11-15T14:20:00Z"), declare)
    told = told_by(ask_ext("--cuda", "13.0", "--torch", "any", "--url", URL, "--json").out)
    assert "--extra-index-url 'https://example.org/whl/cu130/'" in told.commands["pip"]
    assert "--default-index 'https://example.org/whl/cu130/'" in told.commands["uv"]
    assert not any("comes from" in note for note in told.document.notes)
    done = ask_ext("--torch", "2.11.0+cu130")
    command = "pip install --index-url 'https://example.org/whl/cu130/' 'torch==2.13.*'"
    assert command in " ".join(done.err.split())


def test_a_torch_that_is_no_version(ask_ext: Command) -> None:
    done = ask_ext("--torch", "newest")
    assert done.code == UsageError.exit_code
    assert "`--torch newest` is not a version" in done.err


def test_python_and_torch_are_those_of_the_activated_environment(
    torchyard: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A program that answers as a Python does: no torch is imported."""
    torch = tmp_path / "torch"
    torch.mkdir()
    (torch / "version.py").write_text("__version__ = '2.12.0+cu130'\ncuda = '13.0'\n", "utf-8")
    answer = {
        "executable": "",
        "version": "3.12",
        "free_threaded": False,
        "folder": str(torch),
        "dist_info": "",
        "versions": {},
    }
    python = tmp_path / "env" / "bin" / "python3"
    python.parent.mkdir(parents=True)
    python.write_text(f"#!/bin/sh\necho '{json.dumps(answer)}'\n", encoding="utf-8")
    python.chmod(0o755)
    monkeypatch.setenv("VIRTUAL_ENV", str(tmp_path / "env"))
    put(tmp_path / "channel", "simple/ext", *EXTENSIONS)
    place = ("--platform", "linux-x86_64", "--glibc", "2.28")
    monkeypatch.setattr("torchyard.host.machine.platform_name", lambda: "linux-x86_64")
    told = told_by(torchyard("which", tmp_path / "channel", "ext", *place, "--json").out)
    assert told.document.facts.python == "cp312"
    assert (told.document.facts.torch, told.document.facts.torch_compute) == ("2.12.0", "cu130")
    assert told.document.choice
    assert told.document.choice.version == "1.0+pt212cu130"
