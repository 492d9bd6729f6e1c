"""What the file says of checking packages and trying them, in the jobs that do it."""

from pathlib import Path

import pytest
from tests.support.helpers import Command

from torchyard import __version__
from torchyard.config.load import load_config
from torchyard.errors import ConfigError, HostError, UsageError
from torchyard.host.files import read_folder
from torchyard.model.recipe import Stage
from torchyard.plan.build import make_plan
from torchyard.plan.graph import Job, Plan
from torchyard.smoke.suite import read_suite

FILE = """
[project]
name = "torch"
version = "2.14.0"

[source]
git = "https://example.org/pytorch"
rev = "v2.14.0"

[matrix]
platform = ["linux-x86_64"]
compute = ["cpu"]
blas = ["mkl"]
python = ["cp312"]
package = ["wheel", "conda", "conda-libtorch"]
"""
OURS = {"torchyard": __version__}
"""Its rules and tests are others with each version."""

PROOF = """
[check]
policy = "checks.toml"

[smoke]
level = "ops"
tests = "smoke"
channels = ["channel", "s3://ours/conda"]
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "torchyard.toml").write_text(FILE + PROOF)
    (tmp_path / "checks.toml").write_text('budget = "1 GB"\n')
    (tmp_path / "smoke/consumer").mkdir(parents=True)
    (tmp_path / "smoke/add.py").write_text("# level: ops\n")
    (tmp_path / "smoke/consumer/main.cpp").write_text("// level: full\n")
    return tmp_path


def plan_in(folder: Path) -> Plan:
    return make_plan(load_config(str(folder / "torchyard.toml")))


def job_of(plan: Plan, stage: Stage, python: str, package: str) -> Job:
    job = plan.get(stage, ("linux-x86_64", "cpu", "mkl", python, package))
    assert job is not None
    return job


def test_a_file_that_says_nothing_is_checked_all_the_same(tmp_path: Path) -> None:
    (tmp_path / "torchyard.toml").write_text(FILE)
    plan = plan_in(tmp_path)
    assert job_of(plan, Stage.CHECK, "cp312", "wheel").settings.values == {
        **OURS,
        "policy": "default",
    }
    assert job_of(plan, Stage.SMOKE, "cp312", "wheel").settings.values == {**OURS, "level": "full"}


def test_indexes_for_a_torch_release_are_for_extensions(tmp_path: Path) -> None:
    file = tmp_path / "torchyard.toml"
    file.write_text(f'{FILE}[smoke]\nindexes = ["https://a.example/{{compute}}/"]\n')
    settings = job_of(plan_in(tmp_path), Stage.SMOKE, "cp312", "wheel").settings
    assert settings.values["indexes"] == ("https://a.example/cpu/",)
    file.write_text(f'{FILE}[smoke]\nindexes = ["https://a.example/{{release}}/"]\n')
    with pytest.raises(ConfigError, match="is not built against a torch release"):
        plan_in(tmp_path)


def test_jobs_have_the_texts_of_a_policy_and_of_tests(folder: Path) -> None:
    plan = plan_in(folder)
    check = job_of(plan, Stage.CHECK, "cp312", "wheel").settings
    assert check.values == {**OURS, "policy": {"checks.toml": 'budget = "1 GB"\n'}}
    smoke = job_of(plan, Stage.SMOKE, "cp312", "wheel").settings
    tests = {
        "smoke/add.py": "# level: ops\n",
        "smoke/consumer/main.cpp": "// level: full\n",
    }
    assert smoke.values == {**OURS, "level": "ops", "tests": tests}
    (said,) = smoke.history["tests"]
    assert said.text.startswith("smoke/add.py smoke/consumer/main.cpp (")
    assert str(said.origin) == "torchyard.toml:22"


def test_another_torchyard_proves_packages_again_and_builds_nothing(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = {job.identifier: job.fingerprint for job in plan_in(folder).jobs}
    monkeypatch.setattr("torchyard.plan.settings.__version__", "99.0")
    after = {job.identifier: job.fingerprint for job in plan_in(folder).jobs}
    changed = {identifier for identifier in before if before[identifier] != after[identifier]}
    assert changed == {name for name in before if name.startswith(("check:", "smoke:"))}


def test_only_conda_packages_have_channels(folder: Path) -> None:
    plan = plan_in(folder)
    conda = job_of(plan, Stage.SMOKE, "cp312", "conda").settings.values
    assert conda["channels"] == ("channel", "s3://ours/conda")
    assert "channels" not in job_of(plan, Stage.SMOKE, "cp312", "wheel").settings.values


def test_libraries_of_the_channel_are_a_matter_of_conda_packages(folder: Path) -> None:
    before = {job.identifier: job.fingerprint for job in plan_in(folder).jobs}
    for kind, changed in (("bundled", False), ("channel", True)):
        text = f'{FILE}{PROOF}\n[conda]\nlibraries = "{kind}"\n'
        (folder / "torchyard.toml").write_text(text)
        plan = plan_in(folder)
        for job in plan.jobs:
            concerned = changed and "conda" in job.identifier
            assert (job.fingerprint != before[job.identifier]) == concerned, job.identifier
            said = "channel" if concerned and job.stage is Stage.PACKAGE else None
            assert job.settings.values.get("libraries") == said


def test_an_edited_test_is_run_again_and_nothing_else(folder: Path) -> None:
    before = {job.identifier: job.fingerprint for job in plan_in(folder).jobs}
    (folder / "smoke/add.py").write_text("# level: import\n")
    after = {job.identifier: job.fingerprint for job in plan_in(folder).jobs}
    changed = {identifier for identifier in before if before[identifier] != after[identifier]}
    assert changed == {identifier for identifier in before if identifier.startswith("smoke:")}


def test_a_conda_package_is_tried_with_others_of_its_build(folder: Path) -> None:
    plan = plan_in(folder)
    inputs = job_of(plan, Stage.SMOKE, "cp312", "conda").inputs
    stages = [plan.jobs[number].stage for number in inputs]
    assert stages == [Stage.CORE, Stage.BINDINGS, Stage.PACKAGE]
    inputs = job_of(plan, Stage.SMOKE, "cp312", "wheel").inputs
    assert [plan.jobs[number].stage for number in inputs] == [Stage.PACKAGE]


def test_steps_of_ones_own_need_no_proof_of_ours(folder: Path) -> None:
    text = f"{FILE}{PROOF}\n[steps]\ncheck = []\nsmoke = []\n"
    (folder / "torchyard.toml").write_text(text)
    plan = plan_in(folder)
    assert job_of(plan, Stage.CHECK, "cp312", "conda").settings.values == {"steps": ()}
    smoke = job_of(plan, Stage.SMOKE, "cp312", "conda")
    assert smoke.settings.values == {"steps": ()}
    assert [plan.jobs[number].stage for number in smoke.inputs] == [Stage.PACKAGE]


def test_a_missing_policy_or_folder_is_told(folder: Path) -> None:
    (folder / "checks.toml").unlink()
    with pytest.raises(HostError, match=r"there is no file `.*checks.toml`"):
        plan_in(folder)
    (folder / "torchyard.toml").write_text(f'{FILE}[smoke]\ntests = "nowhere"\n')
    with pytest.raises(HostError, match=r"there is no directory `.*nowhere`"):
        plan_in(folder)


@pytest.mark.parametrize(
    ("name", "text", "said"),
    [
        ("checks.toml", 'severity = { linking-rpth = "off" }', "there is no rule `linking-rpth`"),
        ("smoke/add.py", "# level: all", "can't be used: its header lacks `about`"),
        ("smoke/known.toml", "[[known]]", "lacks the required key"),
    ],
)
def test_what_is_wrong_is_told_before_anything_is_built(
    torchyard: Command, folder: Path, name: str, text: str, said: str
) -> None:
    (folder / "smoke/consumer/main.cpp").unlink()
    (folder / "smoke/add.py").write_text("# level: ops\n# about: adds\n")
    (folder / name).write_text(f"{text}\n")
    result = torchyard("build", "-f", folder / "torchyard.toml", "--any-platform")
    assert result.code in {ConfigError.exit_code, UsageError.exit_code}
    assert said in result.err
    assert not (folder / ".torchyard").exists()


def test_a_policy_of_another_name_is_told_before_anything_is_built(
    torchyard: Command, tmp_path: Path
) -> None:
    (tmp_path / "torchyard.toml").write_text(f'{FILE}[check]\npolicy = "strickt"\n')
    result = torchyard("build", "-f", tmp_path / "torchyard.toml", "--any-platform")
    assert result.code == UsageError.exit_code
    assert "there is no policy `strickt`" in result.err
    assert "strict" in result.err


def test_tests_have_the_same_names_wherever_they_are_run(folder: Path) -> None:
    (folder / "smoke/add.py").write_text("# level: ops\n# about: adds\n")
    (folder / "smoke/consumer/main.cpp").unlink()
    given = job_of(plan_in(folder), Stage.SMOKE, "cp312", "wheel").settings.values["tests"]
    assert isinstance(given, dict)
    assert [test.name for test in read_suite(folder / "smoke")] == list(given)


def test_words_that_say_nothing_are_refused(tmp_path: Path) -> None:
    proof = '[check]\npolicy = ""\n[smoke]\nchannels = [""]\n'
    (tmp_path / "torchyard.toml").write_text(FILE + proof)
    with pytest.raises(ConfigError, match="the policy can't be empty") as caught:
        plan_in(tmp_path)
    assert len(caught.value.diagnostics) == 2


def test_a_folder_for_every_job_is_small(tmp_path: Path) -> None:
    (tmp_path / "large.py").write_text("#" * (1 << 21))
    with (tmp_path / "larger.py").open("wb") as file:
        file.truncate(1 << 40)  # nobody could read all of it
    with pytest.raises(HostError, match=r"bytes or more; the limit is 1,048,576"):
        read_folder(str(tmp_path))
