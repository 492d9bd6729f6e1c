"""What a master needs to start."""

import socket
from contextlib import closing
from pathlib import Path

import pytest

from torchyard.errors import ElsewhereError, HostError
from torchyard_farm.master.db.connection import check_database
from torchyard_farm.settings.farm import parse_farm
from torchyard_farm.settings.layout import refuse_occupied, run_buildbot


def test_a_master_is_not_started_where_somebody_listens() -> None:
    with closing(socket.create_server(("127.0.0.1", 0))) as other:
        port = other.getsockname()[1]
        web = f'web = "127.0.0.1:{port}"'
        farm = parse_farm(f'file = "torchyard.toml"\nlisten = "127.0.0.1:0"\n{web}\n')
        with pytest.raises(HostError, match=f"can't listen at 127.0.0.1:{port}: another") as caught:
            refuse_occupied(farm)
    assert "change `web` in farm.toml" in (caught.value.diagnostics[0].hint or "")
    refuse_occupied(farm)


def test_a_database_that_does_not_answer_is_told_of_in_one_line() -> None:
    with pytest.raises(ElsewhereError, match=r"can't be reached: connection .*refused") as caught:
        check_database("postgresql://farm@127.0.0.1:1/farm")
    assert "Traceback" not in str(caught.value)
    assert "\n" not in str(caught.value)


def test_what_buildbot_says_is_in_its_log(tmp_path: Path) -> None:
    with pytest.raises(HostError, match="`buildbot start` failed") as caught:
        run_buildbot(tmp_path, "start")
    assert f"{tmp_path}/twistd.log" in (caught.value.diagnostics[0].hint or "")
