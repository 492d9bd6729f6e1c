"""Generated CI: files, drift, and which job runs what."""

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest
import yaml
from tests.support.dependency_tree import write_files
from tests.support.helpers import EXAMPLE, EXTENSION, WORKS, Command, config_of, make_project
from tests.support.helpers import SMALL as PLANNED
from tests.support.workflows import WorkflowRun, runner_environment

from torchyard.ci.explain import JobIndex
from torchyard.ci.generate import fold_all, generate_files
from torchyard.ci.provider import load_provider_table, parse_provider_table
from torchyard.ci.registry import provider_names
from torchyard.ci.yaml import CiFile, read_header, render
from torchyard.errors import ConfigError, DataError, PlanError
from torchyard.model.config import Config
from torchyard.plan.build import make_plan
from torchyard.plan.select import PlanSelection
from torchyard.toolchain.index_wheels import IndexWheel

Node = dict[str, Any]  # type: ignore[explicit-any] # what a YAML file holds

COMMIT = "08187d9e0fba026dc8217405802ab5381dc88d90"
BUILDABLE = """
[toolchain]
compiler = "gcc"
[build]
tree = "full"
[[ci.runner]]
labels = "cuda-builder"
compute = "cu130"
[channel.nightly]
url = "channel"
"""
SMALL = PLANNED.partition("[channel.")[0].replace('rev = "v2.14.0"', f'commit = "{COMMIT}"')
SMALL += BUILDABLE
"""The small matrix with all that a build needs."""


@pytest.fixture(autouse=True)
def released(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let torchyard be on PyPI: where it is installed from is only asked in one test."""
    monkeypatch.setattr("torchyard.ci.generate.ON_PYPI", True)


def texts(provider: str, config: Config) -> dict[str, str]:
    return generate_files(
        provider, config, lambda name: make_plan(config, PlanSelection(name)), file="torchyard.toml"
    )


def workflow(text: str, name: str = "nightly") -> Node:
    made = texts("github", config_of(text))
    document: Node = yaml.safe_load(made[f".github/workflows/torchyard-{name}.yml"])
    return document


@pytest.fixture
def repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Make a repository with a file in it, and go there."""
    write_files(tmp_path, {".git/HEAD": "ref: refs/heads/main\n"})
    (tmp_path / "torchyard.toml").write_text(SMALL, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_the_same_file_gives_the_same_bytes_and_the_header_says_what_to_edit() -> None:
    first, second = (texts("github", config_of(SMALL)) for _ in range(2))
    assert first == second
    text = first[".github/workflows/torchyard-nightly.yml"]
    assert text.startswith("# Written by torchyard ")
    assert "then run: torchyard ci generate" in text
    header = read_header(text)
    assert header
    assert not header.is_edited
    assert read_header(text.replace("nightly", "daily")) == header._replace(is_edited=True)
    assert read_header("on: push\n") is None


def test_each_command_of_a_workflow_is_a_torchyard_command() -> None:
    jobs = workflow(SMALL)["jobs"]
    commands = [step["run"] for job in jobs.values() for step in job["steps"] if "run" in step]
    others = {command for command in commands if not command.startswith("torchyard ")}
    assert others == {
        "sudo apt-get update -qq",
        "sudo apt-get install -y -qq g++ bubblewrap",
        "sudo sysctl -q kernel.apparmor_restrict_unprivileged_userns=0",
        "python -m pip install 'torchyard==0.1.0'",
    }
    assert not [step for job in jobs.values() for step in job["steps"] if "if" in step]


def test_only_the_publisher_can_prove_who_it_is_and_it_waits_for_all() -> None:
    document = workflow(SMALL)
    assert document["permissions"] == {}
    jobs = document["jobs"]
    publish = jobs.pop("publish")
    assert publish["permissions"] == {"contents": "read", "id-token": "write"}
    assert publish["environment"] == "nightly"
    assert {str(job["permissions"]) for job in jobs.values()} == {"{'contents': 'read'}"}
    needed = {name for job in jobs.values() for name in job.get("needs", ())}
    assert set(publish["needs"]) == set(jobs) - needed
    assert publish["steps"][-2]["run"] != ""
    assert "secrets" not in str(document)


def test_only_a_pull_request_is_cancelled_by_its_next_commit() -> None:
    published, asked = (workflow(SMALL, name) for name in ("nightly", "pull-request"))
    assert published["concurrency"] == {
        "group": "${{ github.workflow }}",
        "cancel-in-progress": False,
    }
    assert asked["concurrency"]["cancel-in-progress"] is True
    assert "pull_request.number || github.run_id" in asked["concurrency"]["group"]


def test_actions_are_pinned_by_hash_and_commented_by_tag() -> None:
    text = texts("github", config_of(SMALL))[".github/workflows/torchyard-nightly.yml"]
    used = [line for line in text.splitlines() if "uses:" in line]
    pins = load_provider_table("github").actions
    assert used
    for line in used:
        action, _, rest = line.rpartition("uses: ")[2].partition("@")
        assert rest == f"{pins[action].commit} # {pins[action].tag}"


def test_results_pass_through_a_store_with_an_address_and_as_artifacts_through_a_directory() -> (
    None
):
    carried = str(workflow(SMALL))
    assert "store pull .torchyard/carried/core" in carried
    stored = str(workflow(SMALL + '\n[store]\nurl = "s3://bucket/store"\n'))
    assert "store" not in stored.replace("s3://bucket/store", "")
    assert "carried" not in stored


def test_a_job_beyond_the_time_limit_goes_on_in_another() -> None:
    text = SMALL.replace('time = "2 h"', 'time = "9 h"')
    jobs = workflow(text)["jobs"]
    first, second = (jobs[f"core-linux-x86_64-cu130-mkl{end}"] for end in ("", "-r2"))
    assert '--time-limit "324 min"' in str(first["steps"])
    assert "--time-limit" not in str(second["steps"])
    assert second["needs"][0] == "core-linux-x86_64-cu130-mkl"
    assert jobs["packages-linux-x86_64-cu130-mkl"]["needs"] == [
        "source",
        "core-linux-x86_64-cu130-mkl-r2",
    ]


def test_an_extension_has_no_cores() -> None:
    jobs = workflow(EXTENSION, "pull-request")["jobs"]
    assert {name.split("-")[0] for name in jobs} == {"impact", "source", "packages"}


def test_the_example_has_the_packages_of_its_plan_and_fits_in_a_file() -> None:
    config = config_of(EXAMPLE.read_text(encoding="utf-8"))
    folded = fold_all(
        "github",
        config,
        lambda name: make_plan(config, PlanSelection(name)),
        file="torchyard.toml",
    )
    for pipeline, plan in folded:
        places = JobIndex(pipeline)
        for job in plan.jobs:
            assert len(places.find(job)) == (job.stage != "publish"), job.identifier


def test_what_no_folding_can_keep_within_the_limits_is_refused(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    table = load_provider_table("github")
    tight = msgspec.structs.replace(table, limits={**table.limits, "file_bytes": 1000})
    monkeypatch.setattr("torchyard.ci.generate.load_provider_table", lambda name: tight)
    with pytest.raises(PlanError, match=r"GitHub Actions allows 1,000 file bytes, and \.github"):
        texts("github", config_of(SMALL))


def test_a_matrix_beyond_the_limit_is_cut(monkeypatch: pytest.MonkeyPatch) -> None:
    table = load_provider_table("github")
    tight = msgspec.structs.replace(table, limits={**table.limits, "matrix_jobs": 2})
    monkeypatch.setattr("torchyard.ci.generate.load_provider_table", lambda name: tight)
    jobs = workflow(SMALL)["jobs"]
    cut = [name for name in jobs if name.startswith("packages-linux-x86_64-cpu-mkl")]
    assert [jobs[name]["strategy"]["matrix"]["part"] for name in cut] == [
        ["cp311", "cp312"],
        ["any"],
    ]


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("08c6903cd8c0fde910a37f88322edcfb5dd907a8", "v5"),
        ("job_minutes = 360", "job_minutes = 0"),
        ("memory = 16", 'memory = "16 GB"'),
        ("[limits]", "[limit]"),
    ],
)
def test_a_table_that_is_wrong_is_refused(old: str, new: str) -> None:
    import torchyard.host.files as host_files  # noqa: PLC0415 - only here

    text = host_files.read_data("ci/github.toml")
    assert old in text
    with pytest.raises(DataError):
        parse_provider_table("github", text.replace(old, new, 1))


def test_texts_of_several_lines_and_empty_values_are_readable() -> None:
    text = render(
        CiFile("a.yml", {"on": {"push": None}, "text": "a\nb", "no": "on"}, {}),
        source="torchyard.toml",
        command="x",
    )
    assert text.endswith("'on':\n  push:\ntext: |-\n  a\n  b\n'no': 'on'\n")


# ------------------------------------------------------------------------------------- commands


def test_generate_writes_and_check_agrees(torchyard: Command, repository: Path) -> None:
    made = torchyard("ci", "generate", "github")
    assert made.code == 0, made.err
    assert "torchyard-nightly.yml" in made.out
    assert torchyard("ci", "check").code == 0
    assert not [line for line in torchyard("ci", "generate").out.splitlines() if "written" in line]


def edit_a_file(repository: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = repository / ".github/workflows/torchyard-nightly.yml"
    file.write_text(file.read_text().replace("ubuntu-24.04", "my-runner", 1))


def edit_the_matrix(repository: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = repository / "torchyard.toml"
    file.write_text(file.read_text().replace('"cpu", ', ""))


def update_the_tool(repository: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for module in ("ci.generate", "ci.yaml", "ci.drift"):
        monkeypatch.setattr(f"torchyard.{module}.__version__", "99.0")


def remove_a_file(repository: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (repository / ".github/workflows/torchyard-nightly.yml").unlink()


def remove_a_pipeline(repository: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = repository / "torchyard.toml"
    file.write_text(file.read_text().partition("[channel.")[0])


@pytest.mark.parametrize(
    ("change", "said", "mended"),
    [
        (edit_a_file, "was edited by hand", "ci generate github --force"),
        (edit_the_matrix, "is older than the matrix or [ci]", "ci generate github"),
        (update_the_tool, "was written by another version of torchyard", "ci generate github"),
        (remove_a_file, "is missing", "ci generate github"),
        (remove_a_pipeline, "belongs to a pipeline that no longer exists", "ci generate github"),
    ],
)
def test_drift_is_caught_with_the_command_that_mends_it(
    change: Callable[[Path, pytest.MonkeyPatch], None],
    said: str,
    mended: str,
    *,
    torchyard: Command,
    repository: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert torchyard("ci", "generate", "github").code == 0
    change(repository, monkeypatch)
    found = torchyard("ci", "check")
    assert found.code == 17
    assert said in found.err
    assert f"`torchyard {mended}`" in found.err
    assert torchyard(*mended.split()).code == 0
    assert torchyard("ci", "check").code == 0


def test_edits_are_not_overwritten_by_chance(torchyard: Command, repository: Path) -> None:
    assert torchyard("ci", "generate", "github").code == 0
    file = repository / ".github/workflows/torchyard-nightly.yml"
    file.write_text("name: mine\n", encoding="utf-8")
    refused = torchyard("ci", "generate")
    assert refused.code == 7
    assert "is not torchyard's" in refused.err
    assert file.read_text(encoding="utf-8") == "name: mine\n"


def test_a_file_below_the_top_is_named_in_the_commands(
    torchyard: Command, repository: Path
) -> None:
    (repository / "build").mkdir()
    (repository / "torchyard.toml").rename(repository / "build/torchyard.toml")
    assert torchyard("ci", "generate", "github", "-f", "build/torchyard.toml").code == 0
    text = (repository / ".github/workflows/torchyard-nightly.yml").read_text(encoding="utf-8")
    assert "torchyard build -f build/torchyard.toml " in text


def test_explain_names_machine_and_command(torchyard: Command, repository: Path) -> None:
    job = "smoke:torch-2.14.0/linux-x86_64/cu130-mkl/cp312/wheel"
    said = torchyard("ci", "explain", job, "github", "--json")
    assert said.code == 0, said.err
    rows = msgspec.json.decode(said.out)["jobs"]
    (row,) = [row for row in rows if row["pipeline"] == "nightly"]
    assert row["labels"] == ["cuda-builder"]
    assert row["planned"] == [job]
    built = 'torchyard build -o .torchyard/packages "*:*/linux-x86_64/cu130-mkl/cp312/*"'
    assert built in row["commands"]
    text = torchyard("ci", "explain", "core-linux-x86_64-cpu-mkl", "github").out
    assert "core:torch-2.14.0/linux-x86_64/cpu-mkl" in text
    assert torchyard("ci", "explain", "core:nothing", "github").code == 5


def test_a_provider_has_to_be_named_once(torchyard: Command, repository: Path) -> None:
    asked = torchyard("ci", "generate")
    assert asked.code == 2
    assert "`github`" in asked.err
    assert torchyard("ci", "generate", "githib").code == 2


def test_a_provider_is_a_module_and_a_table() -> None:
    for name in provider_names():
        assert load_provider_table(name).title


def test_a_build_stops_at_its_time_limit_and_goes_on(torchyard: Command, tmp_path: Path) -> None:
    file = make_project(tmp_path)
    early = torchyard("build", "-f", file, "--time-limit", "0 s")
    assert early.code == 0, early.err
    assert "out of time" in early.err
    assert "jobs left" in early.err
    assert torchyard("build", "-f", file, "--time-limit", "soon").code == 2


# ---------------------------------------------------------------------------------------- impact


def commit_all(folder: Path, message: str) -> None:
    who = ("-c", "user.name=A", "-c", "user.email=a@example.org", "-c", "commit.gpgsign=false")
    subprocess.run(["git", *who, "add", "--all"], cwd=folder, check=True)
    subprocess.run(["git", *who, "commit", "-q", "-m", message], cwd=folder, check=True)


def test_impact_is_what_fingerprints_say(torchyard: Command, tmp_path: Path) -> None:
    subprocess.run(["git", "init", "-q", "-b", "main"], cwd=tmp_path, check=True)
    file = make_project(tmp_path)
    commit_all(tmp_path, "first")
    (tmp_path / "README.md").write_text("new\n", encoding="utf-8")
    commit_all(tmp_path, "docs")
    text = file.read_text(encoding="utf-8")
    file.write_text(text.replace("echo {python}", "echo -n {python}"), encoding="utf-8")
    commit_all(tmp_path, "bindings")
    (tmp_path / "code/a.txt").write_text("other code\n", encoding="utf-8")

    def stages(span: str) -> dict[str, int]:
        said = torchyard("ci", "impact", span, "-f", file, "--json")
        assert said.code == 0, said.err
        found = msgspec.json.decode(said.out)["stages"]
        return {stage: counts["affected"] for stage, counts in found.items()}

    assert set(stages("HEAD~2..HEAD~1").values()) == {0}
    changed = {"source": 0, "core": 0, "bindings": 2, "package": 2, "check": 2, "smoke": 2}
    assert stages("HEAD~1..HEAD") == changed
    assert stages("HEAD..") == {**changed, "source": 1, "core": 1}
    shown = torchyard("ci", "impact", "HEAD~1..HEAD", "-f", file).out
    assert "package:demo-1.0/linux-x86_64/cpu-openblas/cp312/wheel" in shown
    assert torchyard("ci", "impact", "HEAD", "-f", file).code == 2
    assert torchyard("ci", "impact", "nothing..HEAD", "-f", file).code == 7
    assert torchyard("ci", "impact", "--output=x..HEAD", "-f", file).code != 0
    status = subprocess.run(["git", "status", "--short"], cwd=tmp_path, stdout=-1, check=True)
    assert status.stdout == b" M code/a.txt\n"


NARROWED = """
[ci]
install = "torchyard --version"
[ci.pipeline.pull-request]
on = ["pull-request", "manual"]
"""


@pytest.fixture
def changes(tmp_path: Path) -> Path:
    """Make a repository with one commit for each kind of change; return it."""
    project = tmp_path / "project"
    subprocess.run(["git", "init", "-q", "-b", "main", project], check=True)
    file = make_project(project, WORKS + NARROWED)
    commit_all(project, "first")
    (project / "README.md").write_text("new\n", encoding="utf-8")
    commit_all(project, "docs")
    text = file.read_text(encoding="utf-8")
    file.write_text(text.replace('"cp312"]', '"cp312", "cp313"]'), encoding="utf-8")
    commit_all(project, "matrix")
    (project / "code/a.txt").write_text("other code\n", encoding="utf-8")
    commit_all(project, "code")
    return project


BLOCK = "linux-x86_64-cpu-openblas"


@pytest.mark.parametrize(
    ("message", "wanted"),
    [
        ("docs", {}),
        ("matrix", {"source": True, f"core-{BLOCK}": True, f"packages-{BLOCK}": ["cp313"]}),
        (
            "code",
            {
                "source": True,
                f"core-{BLOCK}": True,
                f"packages-{BLOCK}": ["cp311", "cp312", "cp313"],
            },
        ),
    ],
)
def test_a_pull_request_runs_what_its_change_affects(
    message: str, wanted: Node, *, torchyard: Command, changes: Path
) -> None:
    subprocess.run(["git", "checkout", "-q", f":/{message}"], cwd=changes, check=True)
    asked = ("ci", "impact", "HEAD^1..", "-f", changes / "torchyard.toml")
    said = torchyard(*asked, "--provider", "github", "--pipeline", "pull-request")
    assert said.code == 0, said.err
    assert msgspec.json.decode(said.out.removeprefix("parts=")) == wanted
    child = torchyard(*asked, "--provider", "gitlab", "--pipeline", "pull-request")
    jobs = yaml.safe_load(child.out)
    assert jobs.pop("stages")
    named = {name.partition(":")[2] for name in jobs}
    assert named == ({*wanted} or {"none"})
    if wanted:
        rows = jobs[f"pull-request:packages-{BLOCK}"]["parallel"]["matrix"]
        assert rows == [{"PART": wanted[f"packages-{BLOCK}"]}]
    words = ("--provider", "github", "--pipeline", "pull-request")
    everything = torchyard("ci", "impact", "..", *asked[3:], *words)
    assert len(msgspec.json.decode(everything.out.removeprefix("parts="))) == 3


@pytest.mark.parametrize(
    ("message", "wanted"),
    [
        ("[torchyard skip]", []),
        ("[torchyard build cp312]", ["cp312"]),
        ("[torchyard build cp311 cp313]", ["cp311", "cp313"]),
        ("[torchyard of any other kind]", ["cp311", "cp312", "cp313"]),
    ],
)
@pytest.mark.parametrize("is_merge", [True, False])
def test_the_message_of_a_commit_says_what_runs(
    message: str, wanted: list[str], *, is_merge: bool, torchyard: Command, changes: Path
) -> None:
    """A provider tries a pull request as a merge, or its newest commit."""
    (changes / "code/a.txt").write_text("again\n", encoding="utf-8")
    subprocess.run(["git", "checkout", "-q", "-b", "asked"], cwd=changes, check=True)
    commit_all(changes, f"again\n\n{message}")
    if is_merge:
        who = ("-c", "user.name=A", "-c", "user.email=a@example.org")
        subprocess.run(["git", "checkout", "-q", "main"], cwd=changes, check=True)
        merge = ["git", *who, "merge", "-q", "--no-ff", "-m", "merge", "asked"]
        subprocess.run(merge, cwd=changes, check=True)
    words = ("-f", changes / "torchyard.toml", "--provider", "github", "--pipeline", "pull-request")
    said = torchyard("ci", "impact", "HEAD^1..", *words)
    assert said.code == 0, said.err
    parts = msgspec.json.decode(said.out.removeprefix("parts="))
    assert parts.get(f"packages-{BLOCK}", []) == wanted
    everything = torchyard("ci", "impact", "..", *words)
    assert len(msgspec.json.decode(everything.out.removeprefix("parts="))) == 3


def test_a_source_is_what_is_not_left_out(torchyard: Command, tmp_path: Path) -> None:
    """In a repository that is the source, documentation and generated files rebuild nothing."""
    text = WORKS.replace('path = "code"', 'path = "."\nleave_out = ["docs/", ".gitlab-ci.yml"]')
    file = make_project(tmp_path, text.replace("{source}/*.txt", "{source}/code/*.txt"))
    subprocess.run(["git", "init", "-q", tmp_path], check=True)
    commit_all(tmp_path, "first")
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs/a.md").write_text("new", encoding="utf-8")
    (tmp_path / ".gitlab-ci.yml").write_text("x: y", encoding="utf-8")
    child = tmp_path / ".torchyard/affected.yml"
    words = ("--provider", "gitlab", "--pipeline", "pull-request", "-o", child)
    assert torchyard("ci", "impact", "HEAD..", "-f", file, *words).code == 0
    assert "pull-request:none" in yaml.safe_load(child.read_text(encoding="utf-8"))
    built = torchyard("build", "-f", file, "source:*")
    assert built.code == 0, built.err
    listed = torchyard("store", "show", "source:*", "-f", file).out
    assert "code/a.txt" in listed
    assert "docs" not in listed
    (tmp_path / "code/a.txt").write_text("new", encoding="utf-8")
    assert torchyard("ci", "impact", "HEAD..", "-f", file, *words).code == 0
    assert "pull-request:source" in yaml.safe_load(child.read_text(encoding="utf-8"))


@pytest.mark.parametrize(
    ("source", "said"),
    [
        ('path = "."\nleave_out = ["../a"]', "is not in the source directory"),
        ('path = "."\nleave_out = ["/a"]', "is not in the source directory"),
        ('git = "https://example.org/a"\nrev = "v1"\nleave_out = ["a"]', "belongs to `path`"),
    ],
)
def test_only_a_part_of_a_directory_is_left_out(source: str, said: str) -> None:
    with pytest.raises(ConfigError) as refused:
        config_of(WORKS.replace('path = "code"', source))
    assert any(said in one.what for one in refused.value.diagnostics), refused.value.diagnostics


def test_all_jobs_run_where_nothing_can_be_compared(torchyard: Command, changes: Path) -> None:
    words = ("-f", changes / "torchyard.toml", "--provider", "github", "--pipeline")
    said = torchyard("ci", "impact", "nothing..", *words, "pull-request")
    assert said.code == 0, said.err
    assert "all jobs run" in said.err
    assert len(msgspec.json.decode(said.out.removeprefix("parts="))) == 3
    assert torchyard("ci", "impact", "HEAD..HEAD", *words, "pull-request").code == 2
    assert torchyard("ci", "impact", "HEAD..", *words, "other").code == 5
    assert torchyard("ci", "impact", "HEAD..", *words[:-1]).code == 2


def test_files_run_only_what_is_affected_unless_told_otherwise() -> None:
    text = SMALL + '[ci.pipeline.pull-request]\non = ["pull-request"]\n'
    document = workflow(text, "pull-request")
    jobs = document["jobs"]
    impact = jobs.pop("impact")
    assert impact["steps"][0]["with"]["fetch-depth"] == 2
    for name, job in jobs.items():
        assert job["needs"][0] == "impact"
        assert f"['{name}'] != null" in job["if"]
    gitlab = {path: yaml.safe_load(made) for path, made in texts("gitlab", config_of(text)).items()}
    (include,) = gitlab[".gitlab-ci.yml"]["include"]
    affected = gitlab[include["local"]]
    assert affected["pull-request:affected"]["trigger"]["include"][0]["job"] in affected
    assert "impact" not in str(workflow(text + "all_jobs = true\n", "pull-request"))
    assert "impact" not in str(workflow(SMALL))


def test_a_workflow_runs_what_a_change_affects(
    torchyard: Command, changes: Path, tmp_path: Path
) -> None:
    assert torchyard("ci", "generate", "github", "-f", changes / "torchyard.toml").code == 0
    (file,) = changes.glob(".github/workflows/*.yml")
    env = runner_environment(Path(sys.executable).parent)

    def run(name: str, event: str) -> list[str]:
        return WorkflowRun(changes, tmp_path / name, env, event).run(file)

    subprocess.run(["git", "checkout", "-q", ":/docs"], cwd=changes, check=True)
    assert run("docs", "pull_request") == ["impact"]


def test_pins_are_the_newest_releases(torchyard: Command, tmp_path: Path) -> None:
    commits = {}
    for action in load_provider_table("github").actions:
        folder = tmp_path / action
        folder.mkdir(parents=True)
        subprocess.run(["git", "init", "-q"], cwd=folder, check=True)
        for tag in ("v9.0.0", "v10.2.0", "v2"):
            (folder / "a").write_text(tag, encoding="utf-8")
            commit_all(folder, tag)
            kind = ["-a", "-m", tag] if tag == "v10.2.0" else []
            who = ("-c", "user.name=A", "-c", "user.email=a@example.org", "-c", "tag.gpgsign=false")
            subprocess.run(["git", *who, "tag", *kind, tag], cwd=folder, check=True)
        asked = ["git", "rev-parse", "v10.2.0^{commit}"]
        commits[action] = subprocess.run(asked, cwd=folder, check=True, stdout=-1, text=True).stdout
    said = torchyard("ci", "pins", "--host", tmp_path.as_uri())
    assert said.code == 0, said.err
    wanted = [f'"{action}" = "{commit.strip()} # v10.2.0"' for action, commit in commits.items()]
    assert said.out.splitlines() == ["[ci.actions]", *wanted]
    assert config_of(SMALL + said.out).ci.actions


# --------------------------------------------------------------------------------------- refresh


REFRESHED = EXTENSION.replace('"torch2.13", "torch2.14"', '"torch2.12", "torch2.13"')
REFRESHED += "[ci.refresh]\ntorch = 2\npython = 3\n"


def offer(version: str, python: str = "cp312") -> IndexWheel:
    file = f"torch-{version}-{python}-{python}-manylinux_2_28_x86_64.whl"
    return IndexWheel(name="torch", file=file, version=version, url=f"https://example.org/{file}")


def test_refresh_plans_the_missing_cells_and_nothing_else(
    torchyard: Command, repository: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = repository / "torchyard.toml"
    text = REFRESHED.replace("torch = [", "torch = [ # kept up to date\n ")
    file.write_text(text, encoding="utf-8")
    found = [offer("2.14.1"), offer("2.13.0"), offer("2.12.1")]
    pythons = [offer("2.14.1", python) for python in ("cp311", "cp312", "cp313", "cp313t")]
    monkeypatch.setattr("torchyard.features.ci.use_case.find_releases", lambda *_: found)
    monkeypatch.setattr("torchyard.toolchain.index_wheels.release_wheels", lambda *_: pythons)
    shown = torchyard("ci", "refresh", "--json")
    assert shown.code == 0, shown.err
    assert file.read_text(encoding="utf-8") == text
    found_matrix = msgspec.json.decode(shown.out)
    assert found_matrix["changes"]["torch"] == ["torch2.13", "torch2.14"]
    diff = found_matrix["diff"]
    news = {(cell.split("-torch")[1][:4], cell.split("/")[3]) for cell in appeared(diff)}
    assert news == {(t, p) for t in ("2.13", "2.14") for p in ("cp311", "cp312", "cp313")} - {
        ("2.13", "cp311"),
        ("2.13", "cp312"),
    }
    assert diff["rebuilt"] == []
    assert torchyard("ci", "refresh", "--write").code == 0
    assert 'torch = ["torch2.13", "torch2.14"]' in file.read_text(encoding="utf-8")
    again = torchyard("ci", "refresh")
    assert "up to date" in again.out


def appeared(diff: Node) -> list[str]:
    return [change["cell"] for change in diff["appeared"]]


def test_refresh_needs_a_rule(torchyard: Command, repository: Path) -> None:
    said = torchyard("ci", "refresh")
    assert said.code == 3
    assert "[ci.refresh]" in said.err


# -------------------------------------------------------------------------------------- settings


SIGN = "./.github/workflows/sign.yml"
CI = """
[ci]
install = "pip install ./tool"
python = "3.12"
time_limit = "100 min"
[ci.actions]
"actions/checkout" = "1111111111111111111111111111111111111111"
[[ci.runner]]
labels = ["self-hosted", "gpu"]
stage = "smoke"
compute = "cu*"
[[ci.runner]]
labels = "large-builder"
stage = "core"
prepare = ["sudo swapon /swap"]
image = "builder:1"
[ci.pipeline.nightly]
title = "Binaries"
on = ["schedule", "tag", "push", "manual"]
cron = "7 3 * * *"
tags = ["v*"]
branches = ["main"]
channel = "nightly"
environment = "guarded"
role = "arn:aws:iam::1:role/publish"
region = "eu-west-1"
[[ci.pipeline.nightly.hook]]
at = "after-build"
uses = "./.github/workflows/sign.yml"
permissions = { id-token = "write" }
"""


def test_settings_are_in_the_workflow() -> None:
    compiler = '[toolchain]\ncompiler = "gcc"\n[build]\ntree = "full"\n'
    document = workflow(SMALL.replace(compiler, "") + CI)  # else only like machines can publish
    jobs = document["jobs"]
    assert document["name"] == "Binaries"
    assert document["on"] == {
        "schedule": [{"cron": "7 3 * * *"}],
        "push": {"tags": ["v*"], "branches": ["main"]},
        "workflow_dispatch": None,
    }
    core = jobs["core-linux-x86_64-cu130-mkl"]
    assert (core["runs-on"], core["container"], core["timeout-minutes"]) == (
        "large-builder",
        "builder:1",
        100,
    )
    assert core["steps"][0]["uses"] == f"actions/checkout@{'1' * 40}"
    assert [step["run"] for step in core["steps"] if "run" in step][:2] == [
        "sudo swapon /swap",
        "pip install ./tool",
    ]
    packages = jobs["packages-linux-x86_64-cpu-mkl"]["steps"]
    assert [step["with"]["python-version"] for step in packages if "setup-python" in str(step)] == [
        "3.11\n3.12"
    ]
    smoke = jobs["smoke-linux-x86_64-cu130-mkl"]
    assert smoke["runs-on"] == ["self-hosted", "gpu"]
    assert smoke["needs"][-1] == "packages-linux-x86_64-cu130-mkl"
    assert '--skip "smoke:*"' in str(jobs["packages-linux-x86_64-cu130-mkl"])
    assert '--skip "smoke:*"' not in str(jobs["packages-linux-x86_64-cpu-mkl"])
    publish = jobs["publish"]
    assert (publish["environment"], publish["needs"]) == ("guarded", ["after-build-1"])
    assert jobs["after-build-1"]["permissions"] == {"id-token": "write"}
    given = [step.get("with", {}).get("role-to-assume") for step in publish["steps"]]
    assert "arn:aws:iam::1:role/publish" in given


def test_a_pipeline_has_its_own_store() -> None:
    """Pull requests share nothing with releases, and need no credentials."""
    stored = f'{SMALL}[store]\nurl = "s3://bucket/store"\n[ci.pipeline.pull-request]\n'
    text = f'{stored}on = ["pull-request"]\nstore = "results"\n'
    text += '[ci.pipeline.nightly]\non = ["manual"]\nchannel = "nightly"\n'
    asked, published = (str(workflow(text, name)) for name in ("pull-request", "nightly"))
    assert "torchyard build --store results " in asked
    assert "torchyard store pull --store results .torchyard/carried/source" in asked
    assert "--store" not in published
    assert "carried" not in published


@pytest.mark.parametrize("name", ["${{ github.head_ref }}", "<< pipeline.git.branch >>", "$(id)"])
def test_what_a_provider_would_replace_is_in_no_command(name: str) -> None:
    text = f'{SMALL}[subset."{name}"]\n[ci.pipeline.a]\non = ["manual"]\nsubset = "{name}"\n'
    with pytest.raises(PlanError, match="as an expression"):
        texts("github", config_of(text))


def test_names_are_quoted_for_the_shell() -> None:
    text = f'{SMALL}[subset."a; id"]\n[ci.pipeline.a]\non = ["manual"]\nsubset = "a; id"\n'
    assert "torchyard build --subset 'a; id' " in str(
        workflow(text, "a")["jobs"]["source"]
    ).replace("\\", "")


def test_settings_change_no_fingerprint() -> None:
    plain, changed = (make_plan(config_of(text)) for text in (SMALL, SMALL + CI))
    assert plain.fingerprints == changed.fingerprints


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ('"1111111111111111111111111111111111111111"', '"v5"', "`v5` pins nothing"),
        ('time_limit = "100 min"', 'time_limit = "soon"', "is not a number with one of the units"),
        ('stage = "core"', 'stage = "check"', "stage `check` has no machines of its own"),
        ('compute = "cu*"', 'python = "cp312"', "machines can't be chosen by `python`"),
        ('cron = "7 3 * * *"', 'cron = "daily"', "`daily` is not a schedule"),
        ('cron = "7 3 * * *"\n', "", "`schedule` in `on` and `cron` go together"),
        ('channel = "nightly"', 'channel = "nightli"', "there is no [channel.nightli]"),
        ('"manual"]', '"pull-request"]', "a pull request can't publish"),
        ('region = "eu-west-1"\n', "", "`role` and `region` must be set"),
        ('channel = "nightly"', 'channel = "nightly"\nsubset = "pr"', "publishes everything"),
        (
            "[ci.pipeline.nightly]",
            "[ci.pipeline.A]\non = []\n[ci.pipeline.nightly]",
            "`A` is not a valid name",
        ),
        ('environment = "guarded"', 'label = "it\'s"', "is not a valid label"),
        (SIGN, "a/b/.github/workflows/sign.yml@main", "pins nothing"),
        (f'"{SIGN}"', f'"{SIGN}"\nname = "publish"', "`publish` is not a valid name of a hook"),
        (f'"{SIGN}"', f'"{SIGN}"\nname = "a b"', "`a b` is not a valid name of a hook"),
    ],
)
def test_settings_that_contradict_themselves_are_refused(old: str, new: str, said: str) -> None:
    assert old in CI
    text = SMALL + CI.replace(old, new, 1)
    with pytest.raises(ConfigError) as refused:
        config_of(text)
    assert any(said in one.what for one in refused.value.diagnostics), refused.value.diagnostics


def test_other_providers_say_what_they_cannot_express() -> None:
    stored = f'{SMALL}[store]\nurl = "s3://bucket/store"\n'
    with pytest.raises(PlanError, match="CircleCI can't carry results"):
        texts("circleci", config_of(SMALL))
    for provider in ("gitlab", "circleci", "azure"):
        assert texts(provider, config_of(stored))
        with pytest.raises(PlanError, match="can't express `role`"):
            texts(provider, config_of(stored + CI))
