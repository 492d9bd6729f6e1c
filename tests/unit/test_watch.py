"""Whoever watches a build hears of all of it, whatever else happens."""

from pathlib import Path

import pytest
from tests.unit.test_store import store_result, task_of

from torchyard.cli.build_display import build_display
from torchyard.model.build_result import BuildResult
from torchyard.model.event import Listener, ended_well
from torchyard.store.keys import blob_key
from torchyard.store.store import Store
from torchyard.workspace.watch import watching


def test_a_log_that_is_gone_does_not_keep_others_from_being_shown(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("GITHUB_ACTIONS", "true")
    store = Store.at(str(tmp_path / "store"))
    made = [store_result(store, tmp_path, task_of(name)) for name in ("first", "second")]

    def build(emit: Listener) -> BuildResult:
        store.objects.delete([blob_key(made[0].log.digest)])
        emit(ended_well(made[0], built=True))
        store.objects.write(blob_key(made[1].log.digest), b"")
        emit(ended_well(made[1], built=True))
        return BuildResult("demo-1.0", [], [], "")

    with (
        build_display(store, None, as_json=False) as listeners,
        watching(tmp_path / "build", listeners) as emit,
    ):
        build(emit)
    folds = [line for line in capsys.readouterr().err.splitlines() if "::group::" in line]
    assert folds == [f"::group::log of {result.id}" for result in made]
