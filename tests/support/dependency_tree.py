"""A source tree with the shape of PyTorch's, for tests of `torchyard deps`."""

import os
import subprocess
from collections.abc import Mapping
from pathlib import Path

_ENV = {
    **os.environ,
    **{f"GIT_{who}_{what}": "t" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")},
    "GIT_CONFIG_GLOBAL": os.devnull,
    "GIT_TEMPLATE_DIR": "",
    "GIT_CONFIG_COUNT": "1",
    "GIT_CONFIG_KEY_0": "protocol.file.allow",
    "GIT_CONFIG_VALUE_0": "always",
}

SUBMODULES = {
    "third_party/nccl/nccl": (
        "v2.21.5-1",
        "makefiles/version.mk",
        "##### version\nNCCL_MAJOR   := 2\nNCCL_MINOR   := 21\nNCCL_PATCH   := 5\n",
    ),
    "third_party/protobuf": (
        "v3.7.0-rc.2",
        "configure.ac",
        "AC_PREREQ(2.59)\nAC_INIT([Protocol Buffers],[3.7.0-rc-2],[p@example.com],[protobuf])\n",
    ),
    "third_party/sleef": (
        "3.6",
        "CMakeLists.txt",
        "enable_testing()\nset(SLEEF_VERSION_MAJOR 3)\nset(SLEEF_VERSION_MINOR 6)\n",
    ),
    "third_party/NNPACK": (
        "",
        "cmake/DownloadSix.cmake",
        "ExternalProject_Add(six\n\tURL https://example.com/packages/16/six-1.11.0.tar.gz\n)\n",
    ),
}
"""Paths, with the tag of the commit before the last, a file, and its text."""

SEED_FILES = {
    "version.txt": "2.5.1\n",
    "torch/csrc/Module.cpp": "",
    "setup.py": """\
    install_requires = [
        "filelock",
        "typing-extensions>=4.8.0",
        'setuptools ; python_version >= "3.12"',
        'sympy==1.13.1 ; python_version >= "3.9"',
        "networkx",
        "jinja2",
        "fsspec",
    ]
""",
    "requirements.txt": "# Python dependencies\nfilelock\npyyaml\nrequests\nsympy\n",
    ".ci/docker/build.sh": """\
case "$image" in
  pytorch-linux-focal-cuda12.4-cudnn9-py3-gcc9)
    CUDA_VERSION=12.4.1
    ;;
  pytorch-linux-focal-cuda12.1-cudnn9-py3-gcc9)
    CUDA_VERSION=12.1.1
    ;;
  pytorch-linux-focal-cuda11.8-cudnn9-py3-gcc9)
    CUDA_VERSION=11.8.0
    ;;
esac
""",
    ".ci/docker/common/install_magma.sh": """\
function do_install() {
    MAGMA_VERSION="2.6.1"
}
""",
    ".ci/docker/common/install_mkl.sh": "#!/bin/bash\nMKL_VERSION=2024.2.0\n",
    ".ci/docker/triton_version.txt": "3.1.0\n",
    ".ci/docker/requirements-ci.txt": """\
#pyyaml
#Pinned versions: 6.0.2
pyyaml==6.0.2
requests==2.32.3
""",
    ".github/requirements/pip-requirements-macOS.txt": "PyYAML==5.4.1\nrequests==2.28.1\n",
    ".ci/pytorch/build.sh": """\
    # Install numpy-2.0.2 for builds which are backward compatible with 1.X
    python -mpip install numpy==2.0.2
""",
}


def git(folder: Path, *words: str) -> str:
    """Run git in a folder, without the settings of this machine."""
    done = subprocess.run(
        ["git", *words], cwd=folder, env=_ENV, capture_output=True, text=True, check=True
    )
    return done.stdout


def write_files(folder: Path, files: Mapping[str, str]) -> None:
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


def make_tree(folder: Path, files: Mapping[str, str] = SEED_FILES) -> Path:
    """Make a clone with submodules; each has a commit on top of its tag."""
    tree = folder / "pytorch"
    tree.mkdir()
    write_files(tree, files)
    git(tree, "init", "--quiet", "--initial-branch=main")
    for path, (tag, file, text) in SUBMODULES.items():
        other = folder / "upstream" / Path(path).name
        write_files(other, {file: text})
        git(other, "init", "--quiet", "--initial-branch=main")
        git(other, "add", ".")
        git(other, "commit", "--quiet", "--message=first")
        if tag:
            git(other, "tag", "--annotate", "--message=release", tag)
        git(other, "commit", "--quiet", "--allow-empty", "--message=on top")
        git(tree, "submodule", "--quiet", "add", str(other), path)
    git(tree, "add", ".")
    git(tree, "commit", "--quiet", "--message=tree")
    return tree
