"""A source directory is what git sees in it, without anything that torchyard wrote."""

import os
import subprocess
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.support.examples import examples
from tests.support.helpers import WORKS, Command, make_project

from torchyard.errors import HostError
from torchyard.host import tree
from torchyard.host.git import export_tree
from torchyard.host.own_files import SECRET, STAMP, WRITTEN, make_own_directory
from torchyard.host.snapshot import copy_folder
from torchyard.host.tree import SourceContent, read_source_tree
from torchyard.publish.channel.channel import Channel
from torchyard.reports.templates import render_template
from torchyard.store.store import Store
from torchyard.store.trees import Writer

HERE = WORKS.replace('path = "code"', 'path = "."').replace("{source}/", "{source}/code/")


def git(folder: Path, *words: object) -> None:
    own = ("user.name=a", "user.email=a@example.org", "protocol.file.allow=always")
    argv = ["git", *(word for one in own for word in ("-c", one)), *map(str, words)]
    subprocess.run(argv, cwd=folder, check=True, capture_output=True)


def write(path: Path, text: str = "text\n") -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    return path


def commit_all(folder: Path) -> None:
    git(folder, "init", "-q")
    git(folder, "add", "-A")
    git(folder, "commit", "-qm", "all", "--allow-empty")


def paths_in(found: SourceContent) -> list[str]:
    return sorted(file.path for file in found.files)


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """A checkout with a tracked, a changed, a deleted, an untracked and two ignored files."""
    folder = tmp_path / "checkout"
    write(folder / ".gitignore", "*.o\n/build/\n")
    for name in ("tracked", "changed", "deleted", "lib/deep.c"):
        write(folder / name)
    write(folder / "kept.o")
    git(folder, "init", "-q")
    git(folder, "add", "-f", "kept.o")
    commit_all(folder)
    write(folder / "changed", "changed\n")
    (folder / "deleted").unlink()
    write(folder / "new.c")
    write(folder / "lib/ignored.o")
    write(folder / "build/out.c")
    (folder / "empty").mkdir()
    return folder


def test_a_checkout_is_what_git_sees_of_its_working_tree(checkout: Path, tmp_path: Path) -> None:
    (checkout / "link").symlink_to("tracked")
    found = read_source_tree(str(checkout))
    wanted = [".gitignore", "changed", "kept.o", "lib/deep.c", "link", "new.c", "tracked"]
    assert paths_in(found) == wanted
    assert found.left_out == {"build/": "git ignores", "lib/ignored.o": "git ignores"}
    copy_folder(checkout, found.digest, tmp_path / "out", ())
    assert paths_in(read_source_tree(str(tmp_path / "out"))) == wanted
    assert (tmp_path / "out/changed").read_text("utf-8") == "changed\n"
    assert (tmp_path / "out/link").is_symlink()
    part = read_source_tree(str(checkout / "lib"))
    assert (paths_in(part), part.left_out) == (["deep.c"], {"ignored.o": "git ignores"})


def test_ignored_files_are_taken_if_the_file_says_so(checkout: Path, tmp_path: Path) -> None:
    found = read_source_tree(str(checkout), include_ignored=True)
    assert {"build/out.c", "lib/ignored.o"} <= {*paths_in(found)}
    copy_folder(checkout, found.digest, tmp_path / "out", (), include_ignored=True)
    assert (tmp_path / "out/build/out.c").is_file()


def test_a_directory_that_git_ignores_is_taken_whole(checkout: Path) -> None:
    assert paths_in(read_source_tree(str(checkout / "build"))) == ["out.c"]


def test_submodules_and_other_repositories_are_what_git_sees_of_them(
    checkout: Path, tmp_path: Path
) -> None:
    other = tmp_path / "other"
    write(other / ".gitignore", "*.tmp\n")
    write(other / "code.c")
    commit_all(other)
    git(checkout, "submodule", "--quiet", "add", other, "third_party/one")
    git(checkout, "submodule", "--quiet", "add", other, "third_party/bare")
    commit_all(checkout)
    git(checkout, "clone", "--quiet", other, "cloned")
    (checkout / "third_party/bare/.git").unlink()  # as an archive of a checkout has it
    for name in ("third_party/one", "third_party/bare", "cloned"):
        write(checkout / name / "new.c")
        write(checkout / name / "ignored.tmp")
    found = read_source_tree(str(checkout))
    assert {f"{name}/new.c" for name in ("third_party/one", "cloned")} <= {*paths_in(found)}
    assert "third_party/one/code.c" in paths_in(found)
    assert [path for path in paths_in(found) if path.endswith(".tmp")] == [
        "third_party/bare/ignored.tmp"
    ]
    assert found.left_out["cloned/ignored.tmp"] == "git ignores"


def test_variables_of_a_hook_name_no_other_repository(
    checkout: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    wanted = read_source_tree(str(checkout)).digest
    write(tmp_path / "other/a")
    commit_all(tmp_path / "other")
    monkeypatch.setenv("GIT_DIR", str(tmp_path / "other/.git"))
    monkeypatch.setenv("GIT_INDEX_FILE", str(tmp_path / "other/.git/index"))
    assert read_source_tree(str(checkout)).digest == wanted


def test_no_program_that_a_repository_names_is_run(checkout: Path, tmp_path: Path) -> None:
    spy = write(tmp_path / "spy", f"#!/bin/sh\ntouch {tmp_path}/ran\ncat\n")
    spy.chmod(0o755)
    for key in ("core.fsmonitor", "filter.spy.clean", "filter.spy.smudge", "filter.spy.process"):
        git(checkout, "config", key, spy)
    write(checkout / ".gitattributes", "* filter=spy\n")
    for hook in ("post-index-change", "post-checkout", "fsmonitor-watchman"):
        write(checkout / ".git/hooks" / hook, spy.read_text("utf-8")).chmod(0o755)
    (tmp_path / "ran").unlink(missing_ok=True)
    read_source_tree(str(checkout))
    assert not (tmp_path / "ran").exists()


def test_an_exported_tree_runs_no_program_of_its_repository(checkout: Path, tmp_path: Path) -> None:
    """`ci impact` exports the base of a pull request, whose settings a build step can change."""
    write(checkout / ".gitattributes", "*.txt filter=s'p=y\n*.c filter=mine\n")
    write(checkout / "a.txt", "text\n")
    write(checkout / "b.c", "code\n")
    commit_all(checkout)
    spy = write(tmp_path / "spy", f"#!/bin/sh\ntouch {tmp_path}/ran\ncat\n")
    spy.chmod(0o755)
    for key in (
        "core.fsmonitor",
        "filter.s'p=y.smudge",
        "filter.s'p=y.process",
        "filter.mine.smudge",
    ):
        git(checkout, "config", key, spy)
    git(checkout, "config", "filter.s'p=y.required", "true")
    write(checkout / ".git/hooks/post-checkout", spy.read_text("utf-8")).chmod(0o755)
    (tmp_path / "ran").unlink(missing_ok=True)
    export_tree("HEAD", checkout, tmp_path / "exported")
    assert not (tmp_path / "ran").exists()
    assert (tmp_path / "exported/a.txt").read_text("utf-8") == "text\n"
    assert (tmp_path / "exported/b.c").read_text("utf-8") == "code\n"


def test_no_link_of_a_checkout_leads_out_of_it(checkout: Path, tmp_path: Path) -> None:
    """Git's index has `lib/deep.c`, and `lib` is a link now: git sees the link, and no more."""
    write(tmp_path / "private/deep.c")
    (checkout / "lib").rename(tmp_path / "was")
    (checkout / "lib").symlink_to(tmp_path / "private")
    assert [path for path in paths_in(read_source_tree(str(checkout))) if "lib" in path] == ["lib"]


def test_git_that_refuses_is_told_with_a_way_out(checkout: Path) -> None:
    (checkout / ".git/HEAD").write_text("nothing", encoding="utf-8")
    with pytest.raises(HostError, match="git can't list the files of") as refused:
        read_source_tree(str(checkout))
    assert "include_ignored = true" in str(refused.value.diagnostics[0].hint)


def _work(path: Path) -> None:
    make_own_directory(path)
    write(path / "core-1/log")


def _page(path: Path) -> None:
    path.write_text(render_template("page.html", {}, title="A page"), encoding="utf-8")


WRITERS: dict[str, Callable[[Path], object]] = {
    "store": lambda path: Store.at(str(path)).objects.create("a/b", b"x"),
    "channel": lambda path: Channel.at(str(path), make=True),
    "work": _work,
    "page.html": _page,
    "report.json": lambda path: write(path, '{\n  "version": 1,\n  "torchyard": "0.1.0",\n}'),
    "trace.json": lambda path: write(path, f'{{"generator":"{WRITTEN}"}}'),
    "ci.yml": lambda path: write(path, f"# {WRITTEN} from torchyard.toml: edits are lost\n"),
    "deps.md": lambda path: write(path, f"<!-- {WRITTEN} -->\n| a |\n"),
    ".torchyard": lambda path: write(path / "store/x"),
}


@pytest.mark.parametrize("in_git", [True, False])
@settings(max_examples=examples(20))
@given(st.lists(st.tuples(st.sampled_from(sorted(WRITERS)), st.sampled_from(["", "a", "a/b"]))))
def test_nothing_that_torchyard_writes_changes_a_source(
    in_git: bool,
    tmp_path_factory: pytest.TempPathFactory,
    written: list[tuple[str, str]],
) -> None:
    folder = tmp_path_factory.mktemp("source")
    write(folder / "a/b/code.c")
    write(folder / "page.html.in", "<!doctype html>\n")
    if in_git:
        commit_all(folder)
    before = read_source_tree(str(folder))
    for name, place in written:
        if not (folder / place / name).exists():
            WRITERS[name](folder / place / name)
    after = read_source_tree(str(folder))
    assert after.digest == before.digest
    shown = {path.rstrip("/") for path in after.left_out}
    hidden = {f"{place}/{name}".lstrip("/") for name, place in written if name != ".torchyard"}
    assert shown == hidden, "what is left out is told"


@pytest.mark.parametrize(
    "text",
    [
        f"// {WRITTEN}\n",
        f"The page says: {WRITTEN}\n",
        "<!-- Written by torchyard's team -->",
        '{"name": "x", "torchyard": "1.0"}',
    ],
)
def test_a_file_that_only_mentions_torchyard_is_source(tmp_path: Path, text: str) -> None:
    write(tmp_path / "a.c", text)
    assert paths_in(read_source_tree(str(tmp_path))) == ["a.c"]


def test_a_directory_with_files_of_the_project_is_not_stamped(tmp_path: Path) -> None:
    write(tmp_path / "dist/mine.c")
    make_own_directory(tmp_path / "dist")
    assert paths_in(read_source_tree(str(tmp_path))) == ["dist/mine.c"]


def test_a_file_that_is_removed_meanwhile_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("a", "b"):
        write(tmp_path / name)

    def remove_other(_head: bytes, path: str) -> None:
        tmp_path.joinpath("b" if path.endswith("a") else "a").unlink()

    monkeypatch.setattr(tree, "refuse_secret", remove_other)
    with pytest.raises(HostError, match=r"`.*/[ab]` was removed while") as refused:
        read_source_tree(str(tmp_path))
    assert ".gitignore" in str(refused.value.diagnostics[0].hint)


def test_a_file_that_changed_since_the_plan_is_named(tmp_path: Path) -> None:
    source = tmp_path / "source"
    for name in ("a", "b"):
        os.utime(write(source / name), (1, 1))
    planned = read_source_tree(str(source)).digest
    write(source / "b", "new")
    with pytest.raises(HostError, match="has changed since the plan was made") as refused:
        copy_folder(source, planned, tmp_path / "out", ())
    assert "`b` was changed last: plan again" in str(refused.value.diagnostics[0].hint)


def test_a_secret_is_refused_by_name_in_a_source_and_in_a_result(tmp_path: Path) -> None:
    write(tmp_path / "copied/password", f"{SECRET}abc\n")
    for add in (
        partial(read_source_tree, str(tmp_path)),
        partial(Writer(Store.at(str(tmp_path / "store"))).add_tree, tmp_path / "copied"),
    ):
        with pytest.raises(HostError, match="password` is a secret of torchyard"):
            add()


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A project whose source is the directory of its file."""
    return make_project(tmp_path, HERE)


def jobs_to_do(torchyard: Command, file: Path) -> str:
    done = torchyard("build", "source:*", "-f", file)
    assert done.code == 0, done.err
    return next(line for line in done.err.splitlines() if "to do" in line)


@pytest.mark.parametrize("in_git", [True, False])
def test_a_report_and_generated_ci_make_no_job_necessary(
    torchyard: Command,
    project: Path,
    in_git: bool,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    if in_git:
        commit_all(project.parent)
    monkeypatch.chdir(project.parent)
    assert "1 of 1 job to do" in jobs_to_do(torchyard, project)
    assert "0 of 1 job to do" in jobs_to_do(torchyard, project)
    assert torchyard("report", "-f", project).code == 0
    assert {path.suffix for path in project.parent.glob("report.*")} == {".html", ".json"}
    assert "0 of 1 job to do" in jobs_to_do(torchyard, project)
    for provider in ("github", "gitlab"):
        install = "ci.install='pip install torchyard'"
        done = torchyard("ci", "generate", provider, "-f", project, "--set", install)
        assert done.code == 0, done.err
    assert list(project.parent.glob(".*.yml"))
    assert "0 of 1 job to do" in jobs_to_do(torchyard, project)
    told = torchyard("plan", "-f", project).out
    assert "report.html" in told
    assert "torchyard wrote it" in told


def test_packages_may_be_put_into_a_new_directory_of_the_source(
    torchyard: Command, project: Path
) -> None:
    for left in (6, 0):  # the second time, it is there
        done = torchyard("build", "*/cp312/wheel", "-f", project, "-o", project.parent / "dist")
        assert done.code == 0, done.err
        assert f"{left} of 6 jobs to do" in done.err
    refused = torchyard("build", "-f", project, "-o", project.parent / "code")
    assert refused.code == 2
    assert "would be part of the next build" in refused.err


def test_init_lets_git_ignore_what_torchyard_writes(torchyard: Command, tmp_path: Path) -> None:
    ignored = tmp_path / ".gitignore"
    init = ("init", "-f", tmp_path / "torchyard.toml", "--force")
    for before, after in (
        (None, "/.torchyard/\n"),
        ("*.o", "*.o\n/.torchyard/\n"),
        (".torchyard\n", ".torchyard\n"),
        ("a\n**/.torchyard/\n", "a\n**/.torchyard/\n"),
    ):
        ignored.unlink(missing_ok=True)
        if before is not None:
            ignored.write_text(before, encoding="utf-8")
        for _ in range(2):
            assert torchyard(*init).code == 0
            assert ignored.read_text("utf-8") == after


def test_init_writes_through_no_link(torchyard: Command, tmp_path: Path) -> None:
    other = write(tmp_path / "other", "mine\n")
    (tmp_path / "project").mkdir()
    (tmp_path / "project/.gitignore").symlink_to(other)
    assert torchyard("init", "-f", tmp_path / "project/torchyard.toml").code == 0
    assert other.read_text("utf-8") == "mine\n"


def test_a_key_of_directories_belongs_to_one(torchyard: Command, tmp_path: Path) -> None:
    text = WORKS.replace('path = "code"', 'git = "https://example.org/a"\nrev = "v1"')
    file = make_project(tmp_path, text.replace("rev =", "include_ignored = true\nrev ="))
    refused = torchyard("plan", "-f", file)
    assert refused.code == 3
    assert "`include_ignored` belongs to `path`" in refused.err


def test_the_stamp_of_a_step_s_output_is_no_part_of_its_result(tmp_path: Path) -> None:
    out = tmp_path / "out"
    make_own_directory(out)
    (out / "some.whl").write_bytes(b"wheel")
    assert (out / STAMP).exists()
    writer = Writer(Store.at(str(tmp_path / "store")))
    assert [file.path for file in writer.add_tree(out).files] == ["some.whl"]
