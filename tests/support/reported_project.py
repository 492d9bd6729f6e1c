"""A small project that was built twice, with all that `torchyard report` shows."""

import os
import shutil
from pathlib import Path

from tests.support.dependency_tree import SEED_FILES, write_files
from tests.support.forked import run_torchyard
from tests.support.helpers import ROOT

_CONFIGURED = 'run = ["cmake", "-S", "{source}", "-B", ".", "-DCMAKE_BUILD_TYPE=Release"]'
_ASKED = (
    'run = "mkdir -p .cmake/api/v1/query && touch .cmake/api/v1/query/codemodel-v2 && '
    'cmake -S {source} -B . -DCMAKE_BUILD_TYPE=Release"'
)
_COMPILED = 'run = ["ninja"]'
_KEPT = 'run = "ninja && mkdir -p {out}/build && cp -r .cmake .ninja_log build.ninja {out}/build"'


def torchyard(folder: Path, *words: object) -> str:
    """Run a command in the project's directory, which has to succeed."""
    done = run_torchyard(words, os.environ, folder)
    assert done.returncode == 0, done.stderr
    return done.stdout


def make_reported_project(folder: Path) -> Path:
    """Build the small example twice; cores keep what ninja left, and checks are torchyard's own."""
    project = folder / "small"
    ignored = shutil.ignore_patterns(".torchyard", "build")
    shutil.copytree(ROOT / "examples/small", project, ignore=ignored)
    file = project / "torchyard.toml"
    text = file.read_text()
    for old, new in ((_CONFIGURED, _ASKED), (_COMPILED, _KEPT)):
        assert old in text
        text = text.replace(old, new)
    file.write_text(text)
    write_files(project / "tree", SEED_FILES)
    torchyard(project, "build", "--set", "project.version=0.9")
    torchyard(project, "build")
    return project
