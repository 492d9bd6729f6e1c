"""Projects whose source is a git repository on this disk."""

import subprocess
from pathlib import Path

from tests.helpers import WORKS, make_yard

_WHO = ("-c", "user.name=somebody", "-c", "user.email=somebody@example.org")

NIGHTLY = WORKS.replace('path = "code"', 'git = "{url}"\nrev = "main"') + (
    '\n[subset.nightly]\npython = "cp312"\n'
)


class Repository:
    """A branch `main` that grows."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._git("init", "--quiet", "--initial-branch=main")
        self.commit("first")

    @property
    def url(self) -> str:
        return self.folder.as_uri()

    def commit(self, text: str) -> str:
        """Write something new, and return the commit's name."""
        (self.folder / "a.txt").write_text(f"{text}\n", encoding="utf-8")
        self._git("add", ".")
        self._git(*_WHO, "commit", "--quiet", "-m", text)
        return self._git("rev-parse", "HEAD").strip()

    def branch(self, name: str) -> None:
        self._git("branch", name)

    def _git(self, *words: str) -> str:
        done = subprocess.run(["git", *words], cwd=self.folder, check=True, capture_output=True)
        return done.stdout.decode()


def make_project(folder: Path) -> tuple[Repository, Path]:
    """A repository, and a file whose nightly is built from its branch."""
    file = make_yard(folder, NIGHTLY)
    repository = Repository(folder / "code")
    text = NIGHTLY.replace("{url}", repository.url)
    file.write_text(text, encoding="utf-8")
    return repository, file
