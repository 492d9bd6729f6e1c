"""Generated CI has only jobs that can run; what is left out is named with the reason."""

from pathlib import Path

import pytest
import yaml
from tests.support.dependency_tree import write_files
from tests.support.helpers import EXAMPLE, Command, config_of

from torchyard.ci.generate import generate_files
from torchyard.ci.registry import provider_names
from torchyard.errors import PlanError
from torchyard.plan.build import make_plan
from torchyard.plan.select import PlanSelection

COMMIT = "08187d9e0fba026dc8217405802ab5381dc88d90"
PROJECT = f"""
[project]
name = "torch"
version = "2.14.0"
[source]
git = "https://example.org/pytorch"
commit = "{COMMIT}"
[toolchain]
compiler = "gcc"
[build]
tree = "full"
[matrix]
platform = ["linux-x86_64"]
compute = ["cpu"]
blas = ["openblas"]
python = ["cp311", "cp312"]
package = ["wheel"]
[requirements.core]
memory = "6 GB"
[store]
url = "s3://bucket/store"
[ci]
install = "python -m pip install './torchyard{{extras}}'"
"""


def generate(text: str, provider: str = "github") -> dict[str, str]:
    config = config_of(text)
    return generate_files(
        provider, config, lambda name: make_plan(config, PlanSelection(name)), file="torchyard.toml"
    )


def text_of(text: str, provider: str = "github", pipeline: str = "pull-request") -> str:
    """Return the file of a pipeline."""
    named = (f"{pipeline}.yml", "config.yml")
    return next(text for path, text in generate(text, provider).items() if path.endswith(named))


@pytest.fixture
def repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    write_files(tmp_path, {".git/HEAD": "ref: refs/heads/main\n"})
    (tmp_path / "torchyard.toml").write_text(PROJECT, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ('[toolchain]\ncompiler = "gcc"\n[build]\ntree = "full"\n', "", "add [toolchain] with"),
        (f'commit = "{COMMIT}"', 'rev = "v2.14.0"', "can be another commit tomorrow"),
        ('"linux-x86_64"', '"macos-arm64"', "torchyard can't build on macos-arm64"),
        ('"linux-x86_64"', '"linux-s390x"', "GitHub Actions has none"),
        ("6 GB", "120 GB", "needs 120 GB of memory, and `ubuntu-24.04` has 16 GB"),
        ('memory = "6 GB"', 'disk = "20 GB"', "needs 20 GB of disk, and `ubuntu-24.04` has 14 GB"),
        ('memory = "6 GB"', 'capabilities = ["amx"]', "needs `amx`, and `ubuntu-24.04` is not"),
        ('["cpu"]', '["cu130"]', "needs the toolkit of cu130"),
        ("install =", "python = '3.12' #", "is not on PyPI: jobs can't install it"),
    ],
)
def test_a_file_of_which_nothing_can_run_is_refused(
    old: str, new: str, said: str, *, torchyard: Command, repository: Path
) -> None:
    """None of these was refused: the first job of the workflow would have failed."""
    file = repository / "torchyard.toml"
    assert torchyard("ci", "generate", "github").code == 0
    assert old in PROJECT
    text = PROJECT.replace(old, new).replace('"openblas"', '"openblas", "accelerate"')
    file.write_text(text, encoding="utf-8")
    refused = torchyard("ci", "generate", "github")
    assert refused.code == 4
    assert said in " ".join(refused.err.split())


def test_what_no_machine_can_build_is_left_out_and_named(
    torchyard: Command, repository: Path
) -> None:
    text = PROJECT.replace('["linux-x86_64"]', '["linux-x86_64", "linux-aarch64", "macos-arm64"]')
    text = text.replace('["openblas"]', '["openblas", "accelerate"]')
    text += '[[override]]\nstage = "core"\nplatform = "*-aarch64"\nneeds = { memory = "64 GB" }\n'
    (repository / "torchyard.toml").write_text(text, encoding="utf-8")
    made = torchyard("ci", "generate", "github")
    assert made.code == 0, made.err
    said = " ".join(made.err.split())
    assert (
        "2 packages left out: stage core needs 64 GB of memory, and `ubuntu-24.04-arm` has 16 GB; "
        'name another machine: [[ci.runner]] labels = "…", stage = "core"'
    ) in said
    assert "4 packages left out: torchyard can't build on macos-arm64;" in said
    workflow = (repository / ".github/workflows/torchyard-pull-request.yml").read_text("utf-8")
    assert "linux-x86_64/cpu-openblas" in workflow
    assert "aarch64/" not in workflow
    assert "macos" not in workflow


@pytest.mark.parametrize(
    ("memory", "label"),
    [("8 GB", "small"), ("9 GB", "medium"), ("120 GB", "2xlarge")],
)
def test_the_smallest_machine_that_can_hold_a_job_is_taken(memory: str, label: str) -> None:
    text = text_of(PROJECT.replace("6 GB", memory), "gitlab")
    tags = [line.strip() for line in text.splitlines() if "- saas-linux" in line]
    assert tags == [
        "- saas-linux-small-amd64",
        f"- saas-linux-{label}-amd64",
        "- saas-linux-small-amd64",
    ]


def test_the_files_own_machines_hold_whatever_they_are_named_for() -> None:
    runner = '[[ci.runner]]\nlabels = "giant"\nstage = "core"\nplatform = "linux-x86_64"\n'
    text = text_of(PROJECT.replace("6 GB", "120 GB") + runner)
    assert "runs-on: giant" in text
    with pytest.raises(PlanError, match=r"`ubuntu-24\.04` has 16 GB"):
        text_of(PROJECT.replace("6 GB", "120 GB") + runner.replace("giant", "ubuntu-24.04"))


def test_jobs_install_the_parts_of_torchyard_that_their_cells_need() -> None:
    assert "pip install './torchyard'" in text_of(PROJECT)
    conda = PROJECT.replace('"wheel"]', '"wheel", "conda"]')
    assert "pip install './torchyard[conda]'" in text_of(conda)


def test_once_released_torchyard_comes_from_pypi(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("torchyard.ci.generate.ON_PYPI", True)
    text = PROJECT.partition("[ci]")[0].replace('"wheel"]', '"wheel", "conda"]')
    assert "python -m pip install 'torchyard[conda]==0.1.0'" in text_of(text)


@pytest.mark.parametrize("provider", provider_names())
def test_jobs_have_bubblewrap_and_the_pythons_of_their_cells(provider: str) -> None:
    text = text_of(PROJECT, provider)
    assert text.count("apt-get install -y -qq g++ bubblewrap") >= 3
    if provider == "github":
        assert text.count("3.11\n            3.12\n            3.13") == 1
    else:
        assert text.count("uv python install 3.11 3.12") == 1


def test_the_image_has_the_python_that_runs_torchyard() -> None:
    assert "image: python:3.13" in text_of(PROJECT, "gitlab")
    other = PROJECT.replace("[ci]", '[ci]\npython = "3.12"')
    assert "image: python:3.12" in text_of(other, "gitlab")
    assert "uv python install 3.11\n" in text_of(other, "gitlab")


def test_an_image_of_the_files_own_gets_no_python_of_the_hosted_machine() -> None:
    runner = '[[ci.runner]]\nlabels = "giant"\nimage = "builder:1"\n'
    text = text_of(PROJECT + runner)
    assert "setup-python" not in text
    assert "run: uv python install 3.11 3.12" in text
    assert "apt-get" not in text


PUBLISHED = '[ci.pipeline.nightly]\non = ["manual"]\nchannel = "nightly"\n[channel.nightly]\nurl = '


@pytest.mark.parametrize("provider", provider_names())
def test_packages_are_artifacts(provider: str) -> None:
    text = text_of(f'{PROJECT}{PUBLISHED}"s3://bucket/channel"\n', provider, "nightly")
    assert 'torchyard build -o .torchyard/packages "*:*/linux-x86_64' in text
    kept = {
        "github": "path: .torchyard/packages",
        "gitlab": "- .torchyard/packages/",
        "circleci": "store_artifacts:\n          path: .torchyard/packages",
        "azure": "publish: .torchyard/packages",
    }
    assert kept[provider] in text
    assert "torchyard publish --to nightly" in text
    assert "--partial" not in text
    assert "carried" not in text


@pytest.mark.parametrize("added", ['image = "cuda:13.0"\ncompute = "cu130"\n', ""])
def test_no_machine_publishes_what_it_does_not_find(added: str) -> None:
    """Compilers are part of fingerprints: with others, it would publish a part, or nothing."""
    text = PROJECT.replace('["cpu"]', '["cpu", "cu130"]')
    text += f'{PUBLISHED}"s3://bucket/channel"\n[[ci.runner]]\nlabels = "builder"\n{added}'
    said: list[str] = []
    config = config_of(text)
    plan = make_plan(config)
    made = generate_files("github", config, lambda _: plan, file="torchyard.toml", say=said.append)
    is_published = "torchyard publish --to nightly" in str(made)
    assert is_published == (not added)
    assert [note for note in said if "nightly: publish is left out" in note] == said
    assert bool(said) == bool(added)


@pytest.mark.parametrize("url", ["../channel", "/srv/channel", "file:///srv/channel"])
def test_a_channel_that_is_lost_with_the_machine_is_refused(url: str) -> None:
    text = f'{PROJECT}{PUBLISHED}"{url}"\n'
    with pytest.raises(PlanError, match="which is lost with a hosted machine"):
        generate(text)
    own = '[[ci.runner]]\nlabels = "publisher"\nstage = "publish"\n'
    assert "channel-nightly" not in str(generate(text + own))


def test_the_example_can_be_built_on_paper(torchyard: Command, repository: Path) -> None:
    """All of its Linux packages have steps, and machines that can hold them."""
    (repository / "torchyard.toml").write_bytes(EXAMPLE.read_bytes())
    made = torchyard("ci", "generate", "github")
    assert made.code == 0, made.err
    notes = " ".join(made.err.split()).split("warning: ")[1:]
    assert len([note for note in notes if "torchyard can't build on" in note]) == 7
    published = [note for note in notes if "publish is left out" in note]
    assert len(notes) == 7 + len(published) == 9
    workflow = (repository / ".github/workflows/torchyard-test.yml").read_text("utf-8")
    assert "ubuntu-24.04" not in workflow
    assert "pip install '.[conda]'" in workflow
    assert "torchyard publish" not in workflow


IMAGE = f"quay.io/pypa/manylinux_2_28_x86_64@sha256:{'5' * 64}"
ROOT = f'{PROJECT}[root]\nimage = "{IMAGE}"\n'


def test_jobs_of_github_run_in_the_image_of_the_root() -> None:
    jobs = yaml.safe_load(text_of(ROOT))["jobs"]
    for job in jobs.values():
        assert job["container"] == IMAGE
        lines = [step["run"] for step in job["steps"] if "run" in step]
        assert lines[:3] == [
            'echo /opt/python/cp313-cp313/bin >> "$GITHUB_PATH"',
            f'echo TORCHYARD_IMAGE={IMAGE} >> "$GITHUB_ENV"',
            "python -m pip install './torchyard'",
        ]
        assert not [line for line in lines if "uv python" in line or "apt-get" in line]


def test_jobs_of_gitlab_run_in_the_image_of_the_root() -> None:
    jobs = yaml.safe_load(text_of(ROOT, "gitlab"))
    for job in jobs.values():
        assert job["image"] == IMAGE
        assert job["script"][:2] == [
            f"export PATH=/opt/python/cp313-cp313/bin:$PATH TORCHYARD_IMAGE={IMAGE}",
            "python -m pip install './torchyard'",
        ]


@pytest.mark.parametrize("provider", ["azure", "circleci"])
def test_machines_without_containers_pull_the_root(provider: str) -> None:
    text = text_of(ROOT, provider)
    assert "sudo apt-get install -y -qq g++ bubblewrap skopeo" in text
    assert "manylinux" not in text


def test_an_image_of_a_runner_is_taken_instead() -> None:
    own = '[[ci.runner]]\nlabels = "ubuntu-24.04"\nimage = "example.org/own"\n'
    jobs = yaml.safe_load(text_of(f"{ROOT}{own}"))["jobs"]
    assert {job["container"] for job in jobs.values()} == {"example.org/own"}


def test_an_image_that_is_not_locked_is_refused() -> None:
    with pytest.raises(PlanError, match="the digest of `almalinux`"):
        text_of(f'{PROJECT}[root]\nimage = "almalinux"\n')
