"""Projects whose source is a local git repository."""

import subprocess
from pathlib import Path

from tests.support.helpers import WORKS
from tests.support.publishing import MAKE, PUBLISHES

_WHO = ("-c", "user.name=somebody", "-c", "user.email=somebody@example.org")

_SOURCE = 'path = "code"', 'git = "{url}"\nrev = "main"'

NIGHTLY = WORKS.replace(*_SOURCE) + '\n[subset.nightly]\npython = "cp312"\n'

PUBLISHED = (
    PUBLISHES.replace(*_SOURCE)
    .replace('url = "channel"', 'url = "{channel}"\nsubset = "nightly"')
    .replace("[steps]\nsmoke = []\n", '[smoke]\nlevel = "import"\n')
) + '\n[subset.nightly]\npython = "cp311"\n'
"""The same project, whose nightlies are tested and published."""


class Repository:
    """A repository with a branch `main`."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._git("init", "--quiet", "--initial-branch=main")
        (folder / "make.py").write_text(MAKE, encoding="utf-8")
        self.commit("first")

    @property
    def url(self) -> str:
        return self.folder.as_uri()

    def commit(self, text: str) -> str:
        """Commit a change, and return the commit."""
        (self.folder / "a.txt").write_text(f"{text}\n", encoding="utf-8")
        self._git("add", ".")
        self._git(*_WHO, "commit", "--quiet", "-m", text)
        return self._git("rev-parse", "HEAD").strip()

    def branch(self, name: str) -> None:
        self._git("branch", name)

    def _git(self, *words: str) -> str:
        done = subprocess.run(["git", *words], cwd=self.folder, check=True, capture_output=True)
        return done.stdout.decode()


def make_project(folder: Path, text: str = NIGHTLY) -> tuple[Repository, Path]:
    """Create a repository, and a project whose nightly is built from its branch."""
    (folder / "code").mkdir(parents=True)
    repository = Repository(folder / "code")
    text = text.replace("{url}", repository.url)
    file = folder / "torchyard.toml"
    file.write_text(text.replace("{channel}", (folder / "channel").as_uri()), encoding="utf-8")
    return repository, file
