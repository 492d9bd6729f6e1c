"""What a job need not do again: after any edit, packages are those of a clean build."""

import json
import random
import re
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.support.forked import TORCHYARD
from tests.support.helpers import ROOT
from tests.support.recipe import call, run

from torchyard.model.recipe import Stage
from torchyard.model.result import SAME_AS, Result
from torchyard.store.keys import result_key
from torchyard.store.store import Store

pytestmark = [
    pytest.mark.integration,
    pytest.mark.skipif(
        not all(map(shutil.which, ("gcc", "bwrap"))), reason="there is no gcc or no bwrap here"
    ),
]

SAMPLE = ROOT / "tests/projects/readtorch"
PACKAGES = "package:*"

TEXTS = {
    ".cpp": "// {}\n",
    ".h": "// {}\n",
    ".py": "# {}\n",
    ".md": "{}\n",
    ".txt": "# {}\n",
    ".in": "// {}\n",
}
"""What is added to a file, by the end of its name."""

NEW = {
    "ops/op{}.cpp": "int op{0}() {{ return {0}; }}\n",
    "ops/op{}.h": "#define OP{0} {0}\n",
    "templates/t{}.txt": "{}\n",
    "docs/page{}.md": "# {}\n",
    "test/test_{}.py": "# {}\n",
    "mini/part{}.py": "part = {}\n",
    "csrc/unused{}.cpp": "// {}\n",
}
LINKS = {
    "templates/link.txt": "version.txt",
    "mini/link.txt": "data.txt",
    "docs/link.md": "LICENSE",
}
FREE = ("docs/", "test/", "README.md", "mini/", "csrc/module.cpp")
"""What no core reads."""


class Edits:
    """Random edits of a project, which is built after each."""

    def __init__(self, folder: Path, seed: int) -> None:
        self.folder = shutil.copytree(SAMPLE, folder)
        self.store = Store.at(str(folder.parent / "store"))
        self.random = random.Random(seed)  # noqa: S311 - the same edits each time
        self.count = 0
        rare = [self.add, self.rename, self.remove, self.change_mode, self.link, self.empty]
        self.ways: list[Callable[[], bool]] = [*[self.write_free] * 7, *[self.write] * 3, *rare]

    def files(self, *folders: str) -> list[Path]:
        found = (path for name in folders or (".",) for path in (self.folder / name).rglob("*"))
        return sorted(
            path
            for path in found
            if path.is_file() and not path.is_symlink() and path.suffix in TEXTS
            if ".torchyard" not in path.parts
        )

    def edit(self) -> bool:
        """Edit the project; return whether only contents that no core reads have changed."""
        self.count += 1
        return self.random.choice(self.ways)()

    def is_free(self, path: Path) -> bool:
        return path.relative_to(self.folder).as_posix().startswith(FREE)

    def write(self) -> bool:
        return self.append(self.files())

    def write_free(self) -> bool:
        return self.append([path for path in self.files() if self.is_free(path)])

    def append(self, files: list[Path]) -> bool:
        path = self.random.choice(files)
        was_empty = not path.stat().st_size
        with path.open("a", encoding="utf-8") as file:
            file.write(TEXTS[path.suffix].format(self.count))
        return self.is_free(path) and not was_empty

    def empty(self) -> bool:
        path = self.random.choice(self.files("docs", "templates", "test"))
        was_empty = not path.stat().st_size
        path.write_text("", encoding="utf-8")
        return self.is_free(path) or was_empty

    def add(self) -> bool:
        name, text = self.random.choice(sorted(NEW.items()))
        path = self.folder / name.format(self.count)
        path.write_text(text.format(self.count), encoding="utf-8")
        return False

    def rename(self) -> bool:
        path = self.random.choice(self.files("ops", "templates", "docs", "test"))
        if path.name not in ("ops.h", "one.txt"):
            path.rename(path.with_stem(f"{path.stem.partition('_')[0]}_{self.count}"))
        return False

    def remove(self) -> bool:
        path = self.random.choice(self.files("ops", "templates", "docs", "test"))
        if path.name not in ("ops.h", "add.cpp", "one.txt"):
            path.unlink()
        return False

    def change_mode(self) -> bool:
        path = self.random.choice(self.files())
        path.chmod(path.stat().st_mode ^ 0o111)
        return False

    def link(self) -> bool:
        name, target = self.random.choice(sorted(LINKS.items()))
        path = self.folder / name
        path.unlink(missing_ok=True)
        above = "" if name.startswith("mini") else "../"
        path.symlink_to(f"{above}{self.random.choice((target, f'./{target}'))}")
        return False

    def build(self, store: Path | None = None) -> dict[str, bytes]:
        """Build all packages, and return their bytes by name."""
        out = self.folder.parent / "out"
        shutil.rmtree(out, ignore_errors=True)
        url = store or self.store.objects.folder
        words = ("build", PACKAGES, "-o", out, "--store", url, "-f", self.folder / "torchyard.toml")
        call(*TORCHYARD, *words)
        return {p.relative_to(out).as_posix(): p.read_bytes() for p in out.rglob("*.[wz]*")}

    def clean_build(self) -> dict[str, bytes]:
        """Build as on a new machine."""
        store = self.folder.parent / "clean"
        made = self.build(store)
        shutil.rmtree(store)
        return made

    def results(self, stage: Stage) -> list[Result]:
        return [r for r in self.store.results() if r.spec.task.stage is stage]

    def reused(self) -> dict[Stage, int]:
        """Return how many results were not made again, by stage."""
        stages = (Stage.CORE, Stage.BINDINGS)
        return {s: sum(SAME_AS in r.facts for r in self.results(s)) for s in stages}


@pytest.mark.slow
@pytest.mark.parametrize(("seed", "count"), [(1, 15), (2, 300)])
def test_packages_are_those_of_a_clean_build_after_each_edit(
    tmp_path: Path, seed: int, count: int
) -> None:
    edits = Edits(tmp_path / "mini", seed)
    assert len(edits.build()) == 2
    before = edits.reused()
    for _ in range(count):
        known = len(edits.results(Stage.CORE))
        is_free = edits.edit()
        made, after = edits.build(), edits.reused()
        if is_free and len(edits.results(Stage.CORE)) > known:
            assert after[Stage.CORE] > before[Stage.CORE]
        if after != before:  # else it was a clean build itself
            assert made == edits.clean_build()
        before = after
    assert before[Stage.CORE] > count // 5
    assert before[Stage.BINDINGS] > 0
    assert len(edits.results(Stage.CORE)) > before[Stage.CORE] + count // 5


def commit(folder: Path) -> None:
    """Commit all files of a project."""
    own = ("-c", "user.name=a", "-c", "user.email=a@b")
    for words in (("init", "-q"), ("add", "-A"), (*own, "commit", "-qm", "it")):
        call("git", *words, cwd=folder)


def test_an_edit_of_what_nothing_reads_compiles_nothing_and_the_plan_says_so(
    tmp_path: Path,
) -> None:
    edits = Edits(tmp_path / "mini", 0)
    (edits.folder / ".gitignore").write_text(".torchyard\n", encoding="utf-8")
    workflow = edits.folder / ".github/workflows/test.yml"
    workflow.parent.mkdir(parents=True)
    workflow.write_text("on: push\n", encoding="utf-8")
    commit(edits.folder)
    file = edits.folder / "torchyard.toml"
    edits.store = Store.at(str(edits.folder / ".torchyard/store"))
    edits.build()
    for name in ("README.md", "docs/guide.md", "test/test_mini.py", ".github/workflows/test.yml"):
        with (edits.folder / name).open("a", encoding="utf-8") as text:
            text.write("# edited\n")
    planned = run(*TORCHYARD, "plan", "-f", file)
    assert "core: of 21 files it reads 11, none of which changed\n" in planned.stderr
    assert re.search(
        r"\nbindings: of .* files it reads .*, none of which changed\n", planned.stderr
    )
    assert "none of which changed" not in planned.stdout
    affected = json.loads(call(*TORCHYARD, "ci", "impact", "HEAD..", "--json", "-f", file))
    assert [affected["stages"][stage]["affected"] for stage in ("core", "bindings")] == [0, 0]
    assert affected["stages"]["package"]["affected"] == 2
    assert all(name.startswith(("core:", "bindings:")) for name in affected["reused"])
    made = edits.build()
    assert edits.reused() == {Stage.CORE: 1, Stage.BINDINGS: 1}
    assert made == edits.clean_build()

    # The first result is no longer needed: what was made of it leads further.
    (first,) = (r for r in edits.results(Stage.CORE) if SAME_AS not in r.facts)
    edits.store.objects.delete([result_key(first.fingerprint)])
    with (edits.folder / "mini/__init__.py").open("a", encoding="utf-8") as text:
        text.write("# edited\n")
    made = edits.build()
    assert edits.reused() == {Stage.CORE: 2, Stage.BINDINGS: 1}
    assert made == edits.clean_build()
