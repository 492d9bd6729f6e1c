"""What a publication believes: reports by digest and by maker, and packages that are their cell's.

The attacks here put files where steps of a project can, and try to get a package published that
nothing of torchyard's own has examined.
"""

import json
import shlex
import shutil
import zipfile
from collections.abc import Callable
from datetime import date
from hashlib import sha256
from pathlib import Path
from typing import NamedTuple

import msgspec
import pytest
from packaging.requirements import Requirement
from tests.support.helpers import SMALL, Command, plan_of
from tests.support.hostile_steps import Machine
from tests.support.made_wheel import make_wheel, spec_for

from torchyard.checks.cell import cell_mismatches, claimed_cell
from torchyard.checks.policies import load_policy, policy_digest
from torchyard.checks.policy import Allowance, CheckPolicy
from torchyard.errors import BuildError, PublishError, StoreError
from torchyard.model.canonical import fingerprint
from torchyard.model.config import SandboxKind
from torchyard.model.job_spec import Task
from torchyard.model.recipe import Stage
from torchyard.package.delivered import delivered_packages
from torchyard.package.read import read_package
from torchyard.package.wheel.extras import is_excluded
from torchyard.publish.channel.channel import Channel
from torchyard.publish.evidence import Evidence, read_evidence
from torchyard.publish.gates import Demands, judge_all
from torchyard.publish.plan_results import PlanResults
from torchyard.publish.staged import read_staged
from torchyard.publish.submit import Means, PublishRequest, TryOut, submit
from torchyard.recipes.publishing import CONFINED, input_path
from torchyard.run.conditions import Conditions
from torchyard.run.job import run_job
from torchyard.store.store import Store
from torchyard.version import __version__

TODAY = date(2026, 11, 15)
NOW = "2026-11-15T10:00:00Z"
LABEL = "torch-2.14.0"
SCOPE = "linux-x86_64/cpu-mkl/cp312/wheel"
TAG = "cp312-cp312-manylinux_2_28_x86_64"
POLICY = load_policy("default")


class Inputs(NamedTuple):
    """The inputs of a publish job for one cell, all of whose jobs succeeded."""

    folder: Path
    channel: Path
    report: Callable[[Path], str]

    def place(self, stage: str, scope: str = SCOPE) -> Path:
        place = self.folder / stage / scope
        place.mkdir(parents=True, exist_ok=True)
        return place

    def prove(self, wheel: Path) -> None:
        """Leave what a check job and a smoke job of torchyard's own would."""
        (self.place("check") / "check.json").write_text(self.report(wheel), encoding="utf-8")
        self.place("smoke")

    @property
    def results(self) -> PlanResults:
        return PlanResults(self.folder, LABEL)

    def publish(self) -> list[str]:
        """Publish what the jobs delivered, and return the names of what is in the channel."""
        self.submit(Demands())
        return self.published()

    def submit(self, demands: Demands, try_out: TryOut | None = None) -> None:
        request = PublishRequest(
            paths=(),
            policy=POLICY,
            demands=demands,
            results=self.results,
            try_out=try_out,
        )
        submit(Channel.at(str(self.channel), make=True), request, Means(NOW))

    def published(self) -> list[str]:
        channel = Channel.at(str(self.channel), make=True)
        head = channel.head()
        return [entry.file for part in head.parts for entry in channel.state(head, part).entries]


@pytest.fixture
def inputs(tmp_path: Path, torchyard: Command) -> Inputs:
    def report(wheel: Path) -> str:
        return torchyard("check", wheel, "--json").out

    made = Inputs(tmp_path / "inputs", tmp_path / "channel", report)
    wheel = make_wheel(made.place("package"), "torch", "2.14.0+cpu", tag=TAG)
    made.prove(wheel)
    return made


def escaping(folder: Path, name: str = "torch", version: str = "99.0") -> Path:
    """A wheel with a member that would be written outside of the environment."""
    wheel = make_wheel(folder, name, version)
    with zipfile.ZipFile(wheel, "a") as archive:
        archive.writestr("../../../.bashrc", "echo here\n")
    return wheel


def forged(wheel: Path) -> str:
    """A report that finds nothing wrong with a wheel."""
    digest = sha256(wheel.read_bytes()).hexdigest()
    document = {
        "torchyard": __version__,
        "policy_digest": policy_digest(POLICY),
        "date": f"{TODAY}",
        "findings": {"error": 0, "warning": 0, "note": 0},
        "packages": [{"file": wheel.name, "sha256": digest, "findings": []}],
    }
    return json.dumps(document)


# ------------------------------------------------------------------------- reports and packages


def test_what_all_jobs_have_proven_is_published(inputs: Inputs) -> None:
    assert inputs.publish() == [f"torch-2.14.0+cpu-{TAG}.whl"]


@pytest.mark.parametrize("report", ["check.json", "deep/check.json", "my-check.json", ""])
@pytest.mark.parametrize("place", ["sub", "check", "package", "sub/deep", ".hidden"])
def test_a_step_publishes_nothing_from_a_folder(inputs: Inputs, place: str, report: str) -> None:
    """The first attack: a package below the top, with a report that its maker wrote."""
    wheel = escaping(inputs.place("package") / place)
    if report:
        path = wheel.parent / report
        path.parent.mkdir(exist_ok=True)
        path.write_text(forged(wheel), encoding="utf-8")
    with pytest.raises(BuildError, match="delivered"):
        inputs.publish()
    assert inputs.published() == []


@pytest.mark.parametrize("report", ["check.json", "smoke.json", "torch-check.json"])
def test_a_step_delivers_no_report(inputs: Inputs, report: str) -> None:
    (inputs.place("package") / report).write_text("{}", encoding="utf-8")
    with pytest.raises(BuildError, match=f"`{report}`, which is not a package"):
        inputs.publish()


@pytest.mark.parametrize("beside", ["package", "others/check", "core", "others"])
def test_reports_count_only_where_torchyard_lays_out_its_own(inputs: Inputs, beside: str) -> None:
    """A broken package at the top, and a clean report for it where steps may write."""
    (wheel,) = inputs.place("package").iterdir()
    wheel.unlink()
    broken = escaping(inputs.place("package"), "torch", "2.14.0+cpu")
    tagged = broken.rename(wheel)
    (inputs.place("check") / "check.json").unlink()
    place = inputs.place(
        beside, "linux-x86_64/cpu-mkl/cp311/wheel" if beside == "package" else SCOPE
    )
    (place / "check.json").write_text(forged(tagged), encoding="utf-8")
    with pytest.raises((PublishError, BuildError)):
        inputs.publish()
    assert inputs.published() == []


@pytest.mark.parametrize("kind", ["link", "folder", "dangling"])
def test_a_package_is_a_file(inputs: Inputs, tmp_path: Path, kind: str) -> None:
    path = inputs.place("package") / f"torch-2.14.0+cpu-cp311-{TAG}.whl"
    match kind:
        case "link":
            path.symlink_to(make_wheel(tmp_path / "elsewhere"))
        case "folder":
            path.mkdir()
        case _:
            path.symlink_to("nowhere")
    with pytest.raises(BuildError, match="which is not a package"):
        inputs.publish()


def test_a_linked_report_is_none(inputs: Inputs, tmp_path: Path) -> None:
    report = inputs.place("check") / "check.json"
    report.rename(tmp_path / "check.json")
    report.symlink_to(tmp_path / "check.json")
    assert not read_evidence(inputs.results, POLICY, TODAY).checked


def test_debug_archives_and_provenances_may_be_beside_packages(tmp_path: Path) -> None:
    wheel = make_wheel(tmp_path)
    (tmp_path / "demo-1.0-py3-none-any-debug.zip").write_bytes(b"")
    (tmp_path / f"{wheel.name}.provenance").write_text("{}", encoding="utf-8")
    assert delivered_packages(tmp_path) == [wheel]
    (tmp_path / "other.whl.provenance").write_text("{}", encoding="utf-8")
    with pytest.raises(BuildError, match=r"`other.whl.provenance`"):
        delivered_packages(tmp_path)


def test_a_report_counts_only_for_the_same_bytes_policy_and_day(inputs: Inputs) -> None:
    (wheel,) = inputs.place("package").iterdir()
    found = read_evidence(inputs.results, POLICY, TODAY)
    assert found.checked == {sha256(wheel.read_bytes()).hexdigest()}
    assert not read_evidence(inputs.results, CheckPolicy(strict=True), TODAY).checked
    ended = Allowance(rule="metadata-name", reason="known", until=date(2026, 11, 14))
    assert not read_evidence(inputs.results, CheckPolicy(allow=(ended,)), TODAY).checked
    report = inputs.place("check") / "check.json"
    document = json.loads(report.read_bytes())
    for change in ({"findings": {"error": 1}}, {"torchyard": "0.0"}, {"packages": 7}):
        report.write_text(json.dumps({**document, **change}), encoding="utf-8")
        assert not read_evidence(inputs.results, POLICY, TODAY).checked


@pytest.mark.parametrize("setting", ["steps", "env", "pass_env"])
@pytest.mark.parametrize("stage", [Stage.CHECK, Stage.SMOKE])
def test_a_job_that_the_file_changes_gives_no_evidence(stage: Stage, setting: str) -> None:
    plan = plan_of(SMALL)
    spec = spec_for(plan, "cu130-mkl/cp312/wheel")
    task = msgspec.structs.replace(spec.task, stage=stage)
    assert input_path(task, trusted=True) == f"{stage}/{task.scope}"
    changed: Task = msgspec.structs.replace(task, settings={**task.settings, setting: ()})
    unknown = f"others/{stage}" if stage is Stage.CHECK else stage
    assert input_path(task, trusted=False) == f"{unknown}/{task.scope}", "publishing checks again"
    assert input_path(changed, trusted=True) == f"others/{stage}/{task.scope}"


# ------------------------------------------------------------------------------- the cell's own


def named(folder: Path, name: str, members: dict[str, str] | None = None) -> Path:
    """A zip with a name, which may be that of a libtorch."""
    folder.mkdir(parents=True, exist_ok=True)
    with zipfile.ZipFile(folder / name, "w") as archive:
        for member, text in (members or {"libtorch/build-version": "2.14.0+cpu\n"}).items():
            archive.writestr(member, text)
    return folder / name


WRONG = {
    "project": ("myext", "2.14.0+cpu", TAG, "it is of `myext`, and the cell of `torch`"),
    "version": ("torch", "2.14.1+cpu", TAG, "its version is 2.14.1+cpu, and the cell's 2.14.0"),
    "nightly": ("torch", "2.14.0.dev1+cpu", TAG, "its version is 2.14.0.dev1+cpu"),
    "compute": ("torch", "2.14.0+cu130", TAG, "it is for cu130, and the cell for cpu"),
    "python": ("torch", "2.14.0", TAG.replace("312", "311"), "Python cp311-cp311, and the cell"),
    "threads": ("torch", "2.14.0", TAG.replace("cp312-m", "cp312t-m"), "Python cp312-cp312t"),
    "newer": ("torch", "2.14.0", "cp313-abi3-manylinux_2_28_x86_64", "for Python cp313-abi3"),
    "machine": ("torch", "2.14.0", TAG.replace("x86_64", "aarch64"), "it is for linux-aarch64"),
    "system": ("torch", "2.14.0", "cp312-cp312-win_amd64", "it is for windows-x86_64"),
}
RIGHT = {
    "plain": ("torch", "2.14.0", TAG),
    "local": ("Torch", "2.14.0+cpu", TAG),
    "stable": ("torch", "2.14.0", "cp39-abi3-manylinux_2_17_x86_64"),
    "pure": ("torch", "2.14.0", "py3-none-any"),
    "untagged": ("torch", "2.14.0", "cp312-cp312-linux_x86_64"),
    "several": ("torch", "2.14.0", "cp312-cp312-manylinux_2_17_x86_64.manylinux2014_x86_64"),
}


@pytest.mark.parametrize("case", WRONG)
def test_a_package_of_another_cell_is_refused(inputs: Inputs, case: str) -> None:
    """The check's report is true, but its steps delivered what another cell, or none, is for."""
    name, version, tag, why = WRONG[case]
    (wheel,) = inputs.place("package").iterdir()
    wheel.unlink()
    inputs.prove(make_wheel(inputs.place("package"), name, version, tag=tag))
    with pytest.raises(PublishError) as refused:
        inputs.publish()
    assert why in str(refused.value)
    assert f"{LABEL}/{SCOPE}" in str(refused.value)
    assert inputs.published() == []


@pytest.mark.parametrize("case", RIGHT)
def test_what_a_package_does_not_say_agrees_with_its_cell(tmp_path: Path, case: str) -> None:
    name, version, tag = RIGHT[case]
    contents = read_package(make_wheel(tmp_path, name, version, tag=tag))
    assert list(cell_mismatches(contents, f"{LABEL}/{SCOPE}")) == []


LIBTORCH = f"{LABEL}/linux-x86_64/cpu-mkl/any/libtorch"


@pytest.mark.parametrize(
    ("file", "why"),
    [
        ("libtorch-shared-with-deps-2.14.0+cpu.zip", "it has no libraries"),
        ("libother-2.14.0.zip", "it is of `libother`, and the cell of `torch`"),
        ("libtorch-2.13.0.zip", "its version is 2.13.0"),
        ("libtorch-macos-arm64-2.14.0.zip", "it is for macos-arm64"),
        ("torch.zip", "its version is not known"),
    ],
)
def test_an_empty_or_other_libtorch_is_not_that_of_its_cell(
    tmp_path: Path, file: str, why: str
) -> None:
    found = list(cell_mismatches(read_package(named(tmp_path, file)), LIBTORCH))
    assert any(why in one for one in found), found


def test_a_spec_counts_only_in_a_package_of_its_cell(tmp_path: Path) -> None:
    """A package may carry any spec, and so claim to be what the plan asks for."""
    spec = spec_for(plan_of(SMALL), "cu130-mkl/cp312/wheel")
    true = make_wheel(tmp_path / "true", "torch", "2.14.0+cu130", tag=TAG, spec=spec)
    assert claimed_cell(read_package(true)) == f"{LABEL}/linux-x86_64/cu130-mkl/cp312/wheel"
    for number, (name, version, tag) in enumerate(
        [("other", "2.14.0+cu130", TAG), ("torch", "2.14.0+cpu", TAG), ("torch", "2.15", TAG)]
    ):
        wheel = make_wheel(tmp_path / str(number), name, version, tag=tag, spec=spec)
        assert claimed_cell(read_package(wheel)) == ""


def test_a_job_knows_the_cell_of_a_package_without_a_spec(inputs: Inputs) -> None:
    inputs.publish()
    channel = Channel.at(str(inputs.channel))
    (entry,) = channel.state(channel.head(), "simple/torch").entries
    assert (entry.cell, entry.variant) == (f"{LABEL}/{SCOPE}", "cpu")


# ------------------------------------------------------------------------------------- smoke


def test_a_package_whose_smoke_job_has_no_result_is_refused(inputs: Inputs) -> None:
    inputs.place("smoke").rmdir()
    with pytest.raises(PublishError, match="has not passed its smoke tests") as refused:
        inputs.publish()
    assert f"torchyard build smoke:{LABEL}/{SCOPE}" in str(refused.value.diagnostics[0].hint)
    inputs.place("others/smoke")
    assert len(inputs.publish()) == 1, "the file's own steps have tested it"


def test_a_smoke_report_counts_for_its_own_cell(inputs: Inputs) -> None:
    """A smoke job runs code of its package, which could write about others."""
    (wheel,) = inputs.place("package").iterdir()
    digest = sha256(wheel.read_bytes()).hexdigest()
    package = {"sha256": digest, "tried": True, "works": True}
    report = inputs.place("smoke") / "smoke.json"
    report.write_text(json.dumps({"packages": [package]}), encoding="utf-8")
    assert read_evidence(inputs.results, POLICY, TODAY).working == {(f"{LABEL}/{SCOPE}", digest)}
    for change in ({"works": False}, {"tried": False}, {"sha256": None}, {"sha256": 7}):
        report.write_text(json.dumps({"packages": [package | change]}), encoding="utf-8")
        assert not read_evidence(inputs.results, POLICY, TODAY).working


# ------------------------------------------------------------------- overrides, and the channel


@pytest.fixture
def broken(tmp_path: Path) -> Path:
    """A directory with a wheel that has an error."""
    return make_wheel(tmp_path / "dist", more="Provides-Extra: !\n").parent


def test_a_gate_is_overridden_for_one_package_with_a_reason(
    torchyard: Command, broken: Path, tmp_path: Path
) -> None:
    make_wheel(broken, "other")
    place, file = tmp_path / "channel", "demo-1.0-py3-none-any.whl"
    refused = torchyard("publish", broken, "--to", place)
    assert refused.code == 15
    assert f"--override check:{file}=REASON" in refused.err
    why = f"check:{file}=the metadata <of> old releases"
    tried = torchyard("publish", broken, "--to", place, "--override", why, "--dry-run", "--json")
    assert {one["file"]: one["new"] for one in json.loads(tried.out)["files"]}[file]
    done = torchyard("publish", broken, "--to", place, "--override", why, "--json")
    assert done.code == 0, done.err
    reason = "the metadata <of> old releases"
    assert json.loads(done.out)["notes"] == [f"check of {file}: {reason} overrides a gate"]
    log = json.loads(torchyard("channel", "log", place, "--json").out)
    assert log["changes"][0]["why"].endswith(f"; without check of {file}: {reason}")
    listing = json.loads((place / "simple/demo/index.json").read_bytes())
    assert listing["files"][0]["_overrides"] == {"check": reason}
    page = (place / "simple/demo/index.html").read_text("utf-8")
    assert "(without check: the metadata &lt;of&gt; old releases)" in page
    assert "without" not in (place / "simple/other/index.html").read_text("utf-8")
    which = torchyard("which", place, "demo", "--cpu")
    assert f"was published without check: {reason}" in which.out


@pytest.mark.parametrize(
    ("words", "why"),
    [
        ("proof:demo-1.0-py3-none-any.whl=it works", "names no gate"),
        ("check:demo-1.0-py3-none-any.whl", "has no reason"),
        ("check:demo-1.0-py3-none-any.whl= ", "has no reason"),
        ("check:=it works", "has no file"),
        ("smoke:demo-1.0-py3-none-any.whl=it works", "the gate `smoke` does not refuse `demo"),
        ("check:other-1.0-py3-none-any.whl=it works", "the gate `check` does not refuse `other"),
        ("check:*=it works", "the gate `check` does not refuse `*`"),
    ],
)
def test_an_override_is_for_what_a_gate_refuses(
    torchyard: Command, broken: Path, tmp_path: Path, words: str, why: str
) -> None:
    place = tmp_path / "channel"
    refused = torchyard("publish", broken, "--to", place, "--override", words)
    assert refused.code != 0
    assert why in refused.err
    assert not (place / "channel.json").exists()


def test_an_override_is_for_one_of_two_files_with_one_name(
    torchyard: Command, tmp_path: Path
) -> None:
    """Variants can have files of the same name."""
    place, plan = tmp_path / "channel", plan_of(SMALL)

    def made(compute: str, *, broken: bool) -> Path:
        spec = spec_for(plan, f"linux-x86_64/{compute}/cp312/wheel")
        folder = tmp_path / f"{compute} {broken}"
        wheel = make_wheel(folder, "torch", "2.14.0", tag=TAG, spec=spec)
        if broken:
            with zipfile.ZipFile(wheel, "a") as archive:
                archive.writestr("not-in-record", "")
        return wheel

    option = ("--override", f"check:torch-2.14.0-{TAG}.whl=known")
    both = made("cpu-mkl", broken=True), made("cu130-mkl", broken=True)
    refused = torchyard("publish", *both, "--to", place, *option)
    assert refused.code == 15
    assert "the gate `check` refuses 2 files named `torch-2.14.0-" in refused.err
    one = both[0], made("cu130-mkl", broken=False)
    done = torchyard("publish", *one, "--to", place, *option)
    assert done.code == 0, done.err
    pages = {one: (place / one / "torch/index.html").read_text("utf-8") for one in ("cpu", "cu130")}
    assert [variant for variant, page in pages.items() if "without check" in page] == ["cpu"]


def test_what_is_declared_external_is_remembered(torchyard: Command, tmp_path: Path) -> None:
    """So the check of the index agrees with the publication."""
    place = tmp_path / "channel"
    make_wheel(tmp_path / "dist", requires=["numpy", "nvidia-x", "tests ; extra == 'dev'"])
    words = ("--external", "num*", "--external", "nvidia-*")
    assert torchyard("publish", tmp_path / "dist", "--to", place).code == 15
    assert torchyard("publish", tmp_path / "dist", "--to", place, *words).code == 0
    for index in (place, place / "simple"):
        assert torchyard("channel", "check", index).code == 0
    make_wheel(tmp_path / "more", "other", requires=["numpy"])
    again = torchyard("publish", tmp_path / "more", "--to", place)
    assert again.code == 0, again.err
    assert Channel.at(str(place)).head().external == ("num*", "nvidia-*")
    make_wheel(tmp_path / "third", "third", requires=["unknown"])
    assert torchyard("publish", tmp_path / "third", "--to", place).code == 15


def test_a_hint_for_seventy_names_is_short(torchyard: Command, tmp_path: Path) -> None:
    nvidia = [f"nvidia-{number}" for number in range(30)]
    make_wheel(tmp_path / "few", requires=[*nvidia, "numpy", "sympy"])
    few = torchyard("publish", tmp_path / "few", "--to", tmp_path / "channel")
    assert "--external numpy --external 'nvidia-*' --external sympy" in few.err
    make_wheel(tmp_path / "many", requires=[*nvidia, *(f"p{number}" for number in range(40))])
    many = torchyard("publish", tmp_path / "many", "--to", tmp_path / "channel")
    assert many.err.rstrip().endswith("or by --external '*'")
    assert len(many.err) < 600
    done = torchyard("publish", tmp_path / "many", "--to", tmp_path / "channel", "--external", "*")
    assert done.code == 0, done.err


MARKERS = {
    "": False,
    "; extra == 'x'": True,
    "; 'x' == extra and python_version < '4'": True,
    "; os_name == 'nt' and (extra == 'x' or extra == 'y')": True,
    "; extra == 'x' or os_name == 'nt'": False,
    "; os_name == 'nt' or extra == 'x' and python_version > '3'": False,
    "; extra != 'x'": False,
    "; extra == ''": False,
    "; platform_version == 'extra'": False,
    "; extra <= 'x'": False,
    "; extra not in 'x'": False,
    "; 'x' in extra": False,
}


@pytest.mark.parametrize("marker", MARKERS)
def test_requirements_of_extras(marker: str) -> None:
    """A marker that is true on some machine without an extra hides no name from the gate."""
    assert is_excluded(Requirement(f"demo {marker}")) is MARKERS[marker]


def test_a_channel_that_demands_smoke_tests_has_them_run(inputs: Inputs) -> None:
    """A publish job does not, as it must not run code of packages."""
    demands = Demands(smoke="required")
    with pytest.raises(PublishError, match="has not passed its smoke tests"):
        inputs.submit(demands)
    (wheel,) = inputs.place("package").iterdir()
    digest = sha256(wheel.read_bytes()).hexdigest()
    with pytest.raises(PublishError, match="has not passed its smoke tests"):
        inputs.submit(demands, lambda _packages, _around: set())
    assert inputs.published() == []
    inputs.submit(demands, lambda _packages, _around: {digest})
    assert inputs.published() == [wheel.name]


def test_a_channel_can_refuse_what_was_made_without_a_sandbox(inputs: Inputs) -> None:
    demands = Demands(sandbox="required")
    with pytest.raises(PublishError, match="was not made in a sandbox from a clean start"):
        inputs.submit(demands)
    (inputs.folder / CONFINED).write_text(f"{LABEL}/{SCOPE}-not", encoding="utf-8")
    with pytest.raises(PublishError, match="was not made in a sandbox"):
        inputs.submit(demands)
    (inputs.folder / CONFINED).write_text(f"x\n{LABEL}/{SCOPE}", encoding="utf-8")
    inputs.submit(demands)
    assert len(inputs.published()) == 1


@pytest.mark.skipif(shutil.which("bwrap") is None, reason="bubblewrap is not installed")
@pytest.mark.parametrize("kind", ["bwrap", "view", "none"])
def test_results_say_in_which_sandbox_they_were_made(tmp_path: Path, kind: SandboxKind) -> None:
    machine = Machine(tmp_path)
    assert machine.run("touch {out}/made", kind=kind).error == ""
    store = Store.at(str(tmp_path / "store"))
    (result,) = store.results(store.fingerprints())
    assert store.is_confined(result) == (kind == "bwrap")
    task = msgspec.structs.replace(result.spec.task, fingerprint="f" * 64)
    spec = msgspec.structs.replace(result.spec, tasks=(task, *result.spec.tasks))
    assert not store.is_confined(msgspec.structs.replace(result, spec=spec)), "one is gone"


@pytest.mark.parametrize("kind", ["view", "none"])
@pytest.mark.skipif(shutil.which("bwrap") is None, reason="bubblewrap is not installed")
def test_a_step_can_not_write_what_its_result_says_of_the_sandbox(
    tmp_path: Path, kind: SandboxKind
) -> None:
    """What it left may still write when it has ended."""
    machine = Machine(tmp_path)
    said = json.dumps({"sandbox": "bwrap"}).replace("{", "{{").replace("}", "}}")
    forge = f"cd {tmp_path}/work/core-*; while test -e log; do echo '{said}' > state.json; done"
    left = f"setsid sh -c {shlex.quote(forge)} > /dev/null 2>&1 &"
    assert machine.run(f"{left} touch {{out}}/made", kind=kind).error == ""
    store = Store.at(str(tmp_path / "store"))
    (result,) = store.results(store.fingerprints())
    assert result.facts["sandbox"] == kind


@pytest.mark.skipif(shutil.which("bwrap") is None, reason="bubblewrap is not installed")
@pytest.mark.parametrize("steps", [True, False])
def test_a_source_that_steps_of_the_file_made_needs_a_sandbox(tmp_path: Path, steps: bool) -> None:
    """They may be any program; torchyard's own steps for the source are in none."""
    machine = Machine(tmp_path)
    machine.run("touch {out}/source", kind="none")
    store = Store.at(str(tmp_path / "store"))
    (loose,) = store.results(store.fingerprints())
    machine.run("touch {out}/made")
    (made,) = (one for one in store.results(store.fingerprints()) if one.run != loose.run)
    assert store.is_confined(made)
    settings = loose.spec.task.settings if steps else {}
    source = msgspec.structs.replace(loose.spec.task, stage=Stage.SOURCE, settings=settings)
    spec = msgspec.structs.replace(made.spec, tasks=(source, *made.spec.tasks))
    assert store.is_confined(msgspec.structs.replace(made, spec=spec)) == (not steps)


@pytest.mark.skipif(shutil.which("bwrap") is None, reason="bubblewrap is not installed")
def test_a_spec_can_not_leave_out_what_was_made_without_a_sandbox(tmp_path: Path) -> None:
    machine = Machine(tmp_path)
    machine.run("touch {out}/made", kind="bwrap")
    store = Store.at(str(tmp_path / "store"))
    (result,) = store.results(store.fingerprints())
    task = msgspec.structs.replace(result.spec.task, inputs=("f" * 64,))
    spec = msgspec.structs.replace(result.spec, tasks=(task,))
    assert not store.is_confined(msgspec.structs.replace(result, spec=spec))
    spec = msgspec.structs.replace(spec, tasks=(sealed(task),))
    with pytest.raises(StoreError, match="it lacks some inputs"):
        run_job(spec, store, Conditions(work=tmp_path, file=""), print)


def sealed(task: Task) -> Task:
    return msgspec.structs.replace(task, fingerprint=fingerprint(task.payload))


def test_smoke_tests_of_a_job_are_enough(inputs: Inputs) -> None:
    (wheel,) = inputs.place("package").iterdir()
    package = {"sha256": sha256(wheel.read_bytes()).hexdigest(), "tried": True, "works": True}
    report = inputs.place("smoke") / "smoke.json"
    report.write_text(json.dumps({"packages": [package]}), encoding="utf-8")
    inputs.submit(Demands(smoke="required"))
    assert inputs.published() == [wheel.name]


def test_what_a_partial_publication_lacks_is_named(tmp_path: Path) -> None:
    spec = spec_for(plan_of(SMALL), "cu130-mkl/cp312/wheel")
    make_wheel(tmp_path / "dist", "torch", "2.14.0+cu130", tag=TAG, spec=spec)
    cells = frozenset(f"{LABEL}/linux-x86_64/cu130-mkl/{py}/wheel" for py in ("cp311", "cp312"))
    channel = Channel.at(str(tmp_path / "channel"), make=True)
    cell = f"{LABEL}/linux-x86_64/cu130-mkl/cp312/wheel"
    packages = read_staged(
        [tmp_path / "dist"], "compute", "2026-11-15T10:00:00Z", cell_for=lambda _path, _sha256: cell
    )
    demands = Demands(cells=cells, partial=True, evidence=Evidence(finished=cells))
    partial = judge_all(channel, channel.head(), packages, demands)
    assert not partial.refusals
    lacking = f"`{LABEL}/linux-x86_64/cu130-mkl/cp311/wheel`"
    assert partial.notes == [f"1 of 2 packages are missing: {lacking}"]


def test_a_package_of_the_plan_without_a_known_cell_is_refused(tmp_path: Path) -> None:
    """Without its cell it is not known what else is missing, nor whether it was tested."""
    make_wheel(tmp_path / "dist", "torch", "2.14.0+cu130", tag=TAG)
    make_wheel(tmp_path / "dist", "torch", "2.15.0+cu130", tag=TAG)
    channel = Channel.at(str(tmp_path / "channel"), make=True)
    packages = read_staged([tmp_path / "dist"], "compute", "2026-11-15T10:00:00Z")
    demands = Demands(cells=frozenset([f"{LABEL}/linux-x86_64/cu130-mkl/cp312/wheel"]))
    verdict = judge_all(channel, channel.head(), packages, demands)
    assert [refusal.what for refusal in verdict.refusals] == [
        f"the plan's cell of `torch-2.14.0+cu130-{TAG}.whl` is unknown",
        f"1 of 1 packages are missing: `{LABEL}/linux-x86_64/cu130-mkl/cp312/wheel`",
    ]


def test_the_spec_that_a_package_carries_is_no_proof_of_where_it_is_from(tmp_path: Path) -> None:
    """Anybody can put the order of a release into another package, and skip its smoke tests."""
    spec = spec_for(plan_of(SMALL), "cu130-mkl/cp312/wheel")
    make_wheel(tmp_path / "dist", "torch", "2.14.0+cu130", tag=TAG, spec=spec)
    channel = Channel.at(str(tmp_path / "channel"), make=True)
    (package,) = read_staged([tmp_path / "dist"], "compute", "2026-11-15T10:00:00Z")
    cell = f"{LABEL}/linux-x86_64/cu130-mkl/cp312/wheel"
    assert package.entry.cell == cell, "so it is listed, in a channel of no plan"
    demands = Demands(cells=frozenset([cell]), evidence=Evidence(finished=frozenset([cell])))
    verdict = judge_all(channel, channel.head(), [package], demands)
    assert [refusal.what for refusal in verdict.refusals] == [
        f"the plan's cell of `torch-2.14.0+cu130-{TAG}.whl` is unknown"
    ]
