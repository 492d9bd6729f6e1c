"""Who can write to a store forges a package and the report of its check: it is not published."""

import json
import shutil
import zipfile
from hashlib import sha256
from pathlib import Path

import msgspec
import pytest
from tests.support.hostile_store import file_result
from tests.support.makers import Makers
from tests.support.publishing import make_publishing_project, torchyard

from torchyard.model.canonical import canonical_json
from torchyard.model.recipe import Stage
from torchyard.model.result import Result
from torchyard.publish.channel.channel import Channel
from torchyard.store.makers import KEY, TRUST
from torchyard.store.store import Store
from torchyard.store.trees import Writer, fetch_tree

pytestmark = pytest.mark.integration


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Packages that were checked and tested, all signed by one maker."""
    folder = tmp_path_factory.mktemp("built")
    with pytest.MonkeyPatch.context() as patch:
        makers = Makers(folder / "makers", patch)
        makers.add("builder")
        make_publishing_project(folder / "project")
        env = {KEY: str(folder / "makers/builder"), TRUST: str(makers.trust_file)}
        file = folder / "project/torchyard.toml"
        done = torchyard("build", "-f", file, "package:*", "check:*", "smoke:*", env=env)
    assert done.returncode == 0, done.stderr
    return folder


@pytest.fixture
def project(built: Path, tmp_path: Path) -> Path:
    shutil.copytree(built, tmp_path, dirs_exist_ok=True, symlinks=True)
    return tmp_path / "project"


def forge(project: Path, member: str) -> None:
    """Add a member to the first wheel, and its digest to the report of its check."""
    store = Store.at(str(project / ".torchyard/store"))
    scratch = project.parent / "scratch"

    def replaced(stage: Stage) -> Result:
        found = (result for result in store.results() if result.spec.task.stage is stage)
        result = min(found, key=lambda result: result.id)
        shutil.rmtree(scratch, ignore_errors=True)
        fetch_tree(store, result.tree, scratch)
        return result

    def put_back(result: Result) -> None:
        tree = Writer(store).add_tree(scratch)
        forged = msgspec.structs.replace(result, tree=tree)
        file_result(store, canonical_json(forged), result.fingerprint)

    package = replaced(Stage.PACKAGE)
    (wheel,) = scratch.glob("*.whl")
    was = sha256(wheel.read_bytes()).hexdigest()
    with zipfile.ZipFile(wheel, "a") as archive:
        archive.writestr(member, "evil")
    digest = sha256(wheel.read_bytes()).hexdigest()
    put_back(package)
    check = replaced(Stage.CHECK)
    report = scratch / "check.json"
    text = report.read_text(encoding="utf-8")
    assert was in text
    report.write_text(text.replace(was, digest), encoding="utf-8")
    assert not json.loads(report.read_bytes())["findings"].get("error")
    put_back(check)


def published(project: Path) -> int:
    return Channel.at(str(project / "channel"), make=True).head().generation


@pytest.mark.parametrize(
    ("member", "why"),
    [("../../../evil.pth", "../../../evil.pth"), ("demo/evil.py", "[record-complete]")],
)
def test_without_trust_publishing_checks_again(project: Path, member: str, why: str) -> None:
    forge(project, member)
    file = project / "torchyard.toml"
    done = torchyard("publish", "--to", "nightly", "-f", file)
    assert (done.returncode, why in done.stderr) == (15, True), done.stderr
    job = torchyard("build", "-f", file)
    assert (job.returncode, why in job.stderr) == (15, True), job.stderr
    assert published(project) == 0


def test_with_trust_what_was_forged_does_not_count(project: Path) -> None:
    forge(project, "demo/evil.py")
    env = {TRUST: str(project.parent / "makers/trust.toml")}
    done = torchyard("publish", "--to", "nightly", "-f", project / "torchyard.toml", env=env)
    assert "it was changed after builder signed it" in done.stderr
    assert published(project) == 0


def test_only_a_maker_trusted_for_checks_gives_evidence_of_them(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = project / "torchyard.toml"
    makers = Makers(project.parent / "makers", monkeypatch)
    text = makers.trust_file.read_text(encoding="utf-8")
    env = {TRUST: str(makers.trust_file)}
    makers.trust_file.write_text(text.replace('"check", ', ""), encoding="utf-8")
    done = torchyard("publish", "--to", "nightly", "-f", file, env=env)
    assert "its maker builder is not trusted for `check`" in done.stderr
    assert published(project) == 0
    makers.trust_file.write_text(text, encoding="utf-8")
    done = torchyard("publish", "--to", "nightly", "-f", file, env=env)
    assert done.returncode == 0, done.stderr
    assert published(project) == 1


def test_who_made_a_package_is_beside_it(project: Path) -> None:
    file, out = project / "torchyard.toml", project / "dist"
    env = {TRUST: str(project.parent / "makers/trust.toml")}
    done = torchyard("build", "-f", file, "package:*", "-o", out, env=env)
    assert done.returncode == 0, done.stderr
    assert sorted(path.name for path in out.iterdir() if not path.name.startswith(".")) == [
        "demo-1.0-cp311-none-any.whl",
        "demo-1.0-cp311-none-any.whl.intoto.jsonl",
        "demo-1.0-cp312-none-any.whl",
        "demo-1.0-cp312-none-any.whl.intoto.jsonl",
    ]
    env[KEY] = str(project.parent / "makers/builder")
    done = torchyard("build", "-f", file, env=env)  # with its publish job
    assert done.returncode == 0, done.stderr
    for where in (out, project / "channel"):
        done = torchyard("verify", where, "--json", env=env)
        assert done.returncode == 0, done.stderr
        first, _ = json.loads(done.stdout)["packages"]
        assert (first["maker"], first["job"]) == (
            "builder",
            "package:demo-1.0/linux-x86_64/cpu-openblas/cp311/wheel",
        )
