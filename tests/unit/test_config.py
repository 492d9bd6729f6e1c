"""A good torchyard.toml, and where its values came from."""

import os
import subprocess
from pathlib import Path

import msgspec
import pytest
from tests.support.helpers import SMALL, config_of, plan_of

from torchyard.config.document import Document
from torchyard.config.load import load_config
from torchyard.config.show import settings
from torchyard.errors import HostError, UsageError
from torchyard.model.matrix import Needs
from torchyard.model.recipe import Stage
from torchyard.model.values import COMMAND_LINE, DEFAULT


def origins(*changes: str) -> dict[str, tuple[str, str]]:
    document = Document("torchyard.toml", SMALL, changes)
    return {s.key: (s.value, str(s.origin)) for s in settings(document)}


def test_every_value_knows_its_origin() -> None:
    found = origins("project.version=2.13.0", "store.url=/data")
    assert found["project.name"] == ('"torch"', "torchyard.toml:2")
    assert found["project.version"] == ('"2.13.0"', "command line")
    assert found["project.recipe"] == ('"pytorch"', "default")
    assert found["matrix.python"] == ('["cp311","cp312"]', "torchyard.toml:13")
    assert found["override[0].env.USE_MAGMA"] == ('"0"', "torchyard.toml:28")
    assert found["override[0].needs.memory"] == ('"64 GB"', "torchyard.toml:29")
    assert found["store.url"] == ('"/data"', "command line")


def test_the_yard_remembers_origins() -> None:
    config = config_of(SMALL, "source.rev=main")
    assert str(config.origin("matrix.compute[1]")) == "torchyard.toml:11"
    assert config.origin("source.rev") == COMMAND_LINE
    assert config.origin("source.submodules") == DEFAULT


def test_set_takes_toml_or_plain_words() -> None:
    config = config_of(SMALL, 'matrix.python=["cp313"]', "source.submodules=false", "source.rev=v9")
    assert config.matrix.values[3] == ("cp313",)
    assert not config.source.submodules
    assert config.source.rev == "v9"


@pytest.mark.parametrize("text", ["2.14", "1234567", "12e4567", "1979-05-27"])
def test_set_means_strings_unless_it_can_not(text: str) -> None:
    assert config_of(SMALL, f"source.rev={text}").source.rev == text


def test_set_reads_quoted_keys() -> None:
    config = config_of(SMALL, 'subset."a b".python="cp312"')
    assert "a b" in config.subsets


@pytest.mark.parametrize("change", ["project.version", "=1", "project..x=1", "project.name.x=1"])
def test_set_refuses_nonsense(change: str) -> None:
    with pytest.raises(UsageError):
        config_of(SMALL, change)


def test_needs_of_an_override_lie_over_those_of_the_stage() -> None:
    plan = plan_of(SMALL)
    cuda = plan.find(Stage.CORE, "linux-x86_64/cu130-mkl").settings.needs
    cpu = plan.find(Stage.CORE, "linux-x86_64/cpu-mkl").settings.needs
    assert cuda == Needs(memory=64 * 10**9, time=7200)
    assert cpu == Needs(memory=16 * 10**9, time=1800)


def test_needs_do_not_change_results() -> None:
    before = plan_of(SMALL).find(Stage.CORE, "linux-x86_64/cpu-mkl")
    after = plan_of(SMALL.replace("16 GB", "99 GB")).find(Stage.CORE, "linux-x86_64/cpu-mkl")
    assert before.fingerprint == after.fingerprint


def test_a_directory_counts_by_its_content(tmp_path: Path) -> None:
    lines = 'git = "https://example.org/pytorch"\nrev = "v2.14.0"'
    file = tmp_path / "torchyard.toml"
    file.write_text(SMALL.replace(lines, 'path = "src"'), encoding="utf-8")
    subprocess.run(["git", "init", "--quiet", tmp_path / "src"], check=True)
    code = tmp_path / "src/code.cpp"
    digests: list[str | None] = []
    for content, mode in (("a", 0o644), ("b", 0o644), ("b", 0o755), ("a", 0o644)):
        code.write_text(content, encoding="utf-8")
        code.chmod(mode)
        (tmp_path / "src/.git/description").write_text(str(len(digests)), encoding="utf-8")
        digests.append(load_config(str(file)).source.digest)
    assert len(set(digests)) == 3
    assert digests[0] == digests[3]
    (tmp_path / "src/link").symlink_to("code.cpp")
    assert load_config(str(file)).source.digest not in digests


@pytest.fixture
def source(tmp_path: Path) -> Path:
    """A configuration whose source is the directory that it lies in."""
    lines = 'git = "https://example.org/pytorch"\nrev = "v2.14.0"'
    file = tmp_path / "torchyard.toml"
    file.write_text(SMALL.replace(lines, 'path = "."'), encoding="utf-8")
    return file


def test_torchyard_s_own_files_are_no_source(source: Path) -> None:
    before = load_config(str(source)).source.digest
    source.write_text(source.read_text(encoding="utf-8") + "# a comment\n", encoding="utf-8")
    (source.parent / ".torchyard/store").mkdir(parents=True)
    (source.parent / ".torchyard/store/blob").write_bytes(b"x")
    assert load_config(str(source)).source.digest == before
    (source.parent / "code.c").write_bytes(b"x")
    assert load_config(str(source)).source.digest != before


def test_names_and_contents_of_links_are_kept_apart(source: Path) -> None:
    (source.parent / "z").symlink_to("x y")
    first = load_config(str(source)).source.digest
    (source.parent / "z").unlink()
    (source.parent / "y z").symlink_to("x")
    assert load_config(str(source)).source.digest != first


def test_a_pipe_is_no_source(source: Path) -> None:
    os.mkfifo(source.parent / "pipe")
    with pytest.raises(HostError, match="neither a file, a link nor a directory"):
        load_config(str(source))


def test_any_file_name_is_digested(source: Path) -> None:
    before = load_config(str(source)).source.digest
    Path(os.fsdecode(bytes(source.parent) + b"/\xff")).write_bytes(b"x")
    assert load_config(str(source)).source.digest != before


def test_a_byte_order_mark_is_passed_over(tmp_path: Path) -> None:
    file = tmp_path / "torchyard.toml"
    file.write_bytes(b"\xef\xbb\xbf" + SMALL.replace("\n", "\r\n").encode())
    assert load_config(str(file)).project.name == "torch"


def test_a_directory_is_no_file(tmp_path: Path) -> None:
    with pytest.raises(HostError, match="is a directory"):
        load_config(str(tmp_path))


def test_two_loads_are_equal() -> None:
    assert config_of(SMALL) == config_of(SMALL)
    assert config_of(SMALL) != config_of("\n" + SMALL), "origins have other lines"


def test_a_missing_source_directory_is_told(tmp_path: Path) -> None:
    lines = 'git = "https://example.org/pytorch"\nrev = "v2.14.0"'
    file = tmp_path / "torchyard.toml"
    file.write_text(SMALL.replace(lines, 'path = "src"'), encoding="utf-8")
    with pytest.raises(HostError, match="there is no directory"):
        load_config(str(file))


def test_a_missing_file_is_told(tmp_path: Path) -> None:
    with pytest.raises(HostError) as caught:
        load_config(str(tmp_path / "torchyard.toml"))
    assert "torchyard init" in (caught.value.diagnostics[0].hint or "")


def test_a_file_that_is_no_text_is_told(tmp_path: Path) -> None:
    file = tmp_path / "torchyard.toml"
    file.write_bytes(b"\xff\xfe")
    with pytest.raises(HostError, match="can't be read"):
        load_config(str(file))


def test_models_are_frozen() -> None:
    config = config_of(SMALL)
    with pytest.raises(AttributeError):
        config.store = "elsewhere"  # type: ignore[misc]
    assert msgspec.structs.replace(config, store="elsewhere").store == "elsewhere"
