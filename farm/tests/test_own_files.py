"""A farm in the directory of its project is no part of the project, and its secrets stay in it."""

from contextlib import ExitStack
from datetime import UTC, datetime
from pathlib import Path

import pytest

from farm.tests.farms import TrialFarm, wait_until
from tests.support.helpers import WORKS, make_project
from torchyard.errors import HostError
from torchyard.host.tree import read_source_tree
from torchyard.store.store import Store
from torchyard.store.trees import Writer
from torchyard.workspace.plan import plan_packages
from torchyard_farm.settings.layout import farm_text, make_master

HERE = WORKS.replace('path = "code"', 'path = "."').replace("{source}/", "{source}/code/")
SLOW = HERE.replace("mkdir -p", "sleep 5; mkdir -p")


def make_farm(file: Path) -> Path:
    """Make the directory of a master beside a project's file."""
    text = farm_text(str(file), "sqlite:///state.sqlite", ["linux-x86_64"])
    text = text.replace("127.0.0.1:9989", "0.0.0.0:9989")  # with TLS, so with keys
    make_master(file.parent / "farm", text, datetime.now(UTC))
    return file.parent / "farm"


def test_a_farm_in_a_project_is_no_part_of_its_source(tmp_path: Path) -> None:
    file = make_project(tmp_path, HERE)
    before = plan_packages(str(file)).config.source.digest
    for _ in range(2):  # `farm init` brings an older farm up to date
        folder = make_farm(file)
        (folder / "state.sqlite").write_bytes(b"SQLite")
        config = plan_packages(str(file)).config
        assert config.source.digest == before
        assert config.left_out == {"farm/": "torchyard wrote"}
        assert (folder / ".gitignore").read_text("utf-8") == "*\n"
        (folder / ".torchyard-stamp").unlink()


def test_every_secret_of_a_farm_is_refused_wherever_it_is_copied(tmp_path: Path) -> None:
    folder = make_farm(make_project(tmp_path / "project"))
    secrets = [*(folder / "secrets").iterdir(), *(folder / "tls").glob("*.key")]
    assert {path.name for path in secrets} >= {"w1", "ca.key", "master.key"}
    out = tmp_path / "out"
    out.mkdir()
    for secret in secrets:
        copy = out / "harmless.txt"
        copy.write_bytes(secret.read_bytes())
        with pytest.raises(HostError, match=r"`harmless\.txt` is a secret of torchyard"):
            Writer(Store.at(str(tmp_path / "store"))).add_tree(out)
        with pytest.raises(HostError, match=r"harmless\.txt` is a secret of torchyard"):
            read_source_tree(str(out))


@pytest.mark.slow
@pytest.mark.integration
def test_a_plan_is_submitted_again_while_its_worker_works_in_the_source(tmp_path: Path) -> None:
    file = make_project(tmp_path, SLOW)
    with ExitStack() as stack:
        farm = TrialFarm(tmp_path / "trial", file, "sqlite:///state.sqlite", ("w1",))
        stack.enter_context(farm)
        (tmp_path / "trial/.torchyard-stamp").touch()  # the test's own output is there, too
        before = plan_packages(str(file)).config.source.digest
        farm.start_master()
        farm.start_workers()
        wait_until(lambda: farm.connected() == {"w1"}, 240, farm.log)
        plan = farm.submit()
        wait_until(lambda: farm.at_work() == "w1", 240, farm.log)
        (tmp_path / "trial/.torchyard-stamp").unlink()
        left_out = read_source_tree(str(tmp_path)).left_out
        assert {"trial/master/", "trial/w1/"} <= {*left_out}
        (tmp_path / "trial/.torchyard-stamp").touch()
        farm.submit()
        farm.wait_done(plan)
        assert plan_packages(str(file)).config.source.digest == before
