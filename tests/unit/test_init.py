"""`torchyard init` writes down what a project says, with its reasons, or says why it does not."""

import hashlib
import subprocess
import tarfile
import tomllib
from collections.abc import Mapping
from io import BytesIO
from pathlib import Path
from typing import Protocol

import msgspec
import pytest
from tests.support.helpers import Command, Output
from tests.unit.test_reading import CMAKE, PYPROJECT, SETUP, USES

from torchyard.config.load import load_config
from torchyard.config.starter import declare_download
from torchyard.errors import HostError, UsageError
from torchyard.model.config import DeclaredDownload
from torchyard.toolchain.reading.source_text import Download, DownloadKind

AWAY = "https://example.invalid/part"
FETCHED = DownloadKind.FETCH_CONTENT
CELL = ("--torch", "2.13", "--python", "cp311", "--platform", "linux-x86_64")
CPU = "from torch.utils.cpp_extension import CppExtension\nsetup(ext_modules=[CppExtension()])\n"


class Init(Protocol):
    """Runs `init` in a directory with some files."""

    def __call__(self, files: Mapping[str, str], *options: str) -> Output: ...


@pytest.fixture
def init(tmp_path: Path, torchyard: Command) -> Init:
    def run(files: Mapping[str, str], *options: str) -> Output:
        for name, text in files.items():
            path = tmp_path / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
        return torchyard("init", "-f", tmp_path / "torchyard.toml", *options)

    return run


def written(folder: Path, table: str) -> dict[str, object]:
    found = tomllib.loads((folder / "torchyard.toml").read_text(encoding="utf-8"))[table]
    assert isinstance(found, dict)
    return found


def test_init_reads_a_repository(init: Init, torchyard: Command, tmp_path: Path) -> None:
    """A tag is written as it is, and else the present commit; submodules are no downloads."""
    origin = tmp_path / "origin"
    plain = SETUP.replace("modules = [", "modules = [CppExtension(), ")
    module = '[submodule "m"]\n  path = m\n  url = https://example.invalid/m\n'
    files = {"origin/setup.py": plain, "origin/.gitmodules": module}
    assert init(files, *CELL).code == 0  # of an empty directory
    git = ("git", "-C", str(origin), "-c", "user.name=a", "-c", "user.email=a@example.org")
    for words in ("init -q", "add .", "commit -q -m one", "tag v1"):
        subprocess.run([*git, *words.split()], check=True)
    commit = subprocess.check_output([*git, "rev-parse", "HEAD"], text=True).strip()
    again = init({}, *CELL, "--force", "--git", str(origin))
    assert again.code == 0, again.err
    assert written(tmp_path, "project")["name"] == "my_ext"
    assert written(tmp_path, "source") == {"git": str(origin), "commit": commit}
    assert init({}, *CELL, "--force", "--git", str(origin), "--rev", "v1").code == 0
    assert written(tmp_path, "source") == {"git": str(origin), "rev": "v1"}
    for away in (("--rev", "v2"), ("--git", str(tmp_path / "gone"))):
        unread = init({}, *CELL, "--force", "--recipe", "extension", "--git", str(origin), *away)
        assert unread.code == 0, unread.err
        assert "Nothing of it was read" in unread.err
        assert "run `torchyard init` there" in " ".join(unread.err.split())


def test_init_reads_the_checkout_that_it_is_in(
    init: Init, torchyard: Command, tmp_path: Path
) -> None:
    plain = SETUP.replace("modules = [", "modules = [CppExtension(), ")
    assert init({"setup.py": plain}, *CELL).code == 0
    file = tmp_path / "torchyard.toml"
    text = file.read_text(encoding="utf-8")
    for line in ('# From setup.py:7.\nname = "my_ext"', 'path = "."'):
        assert f"{line}\n" in text
    cells = torchyard("plan", "-f", file, "--list", "cells").out.split()
    assert cells == [
        f"my_ext-1.2.2/linux-x86_64/{compute}-torch2.13/cp311/wheel" for compute in ("cpu", "cu130")
    ]


def test_options_that_are_given_again_add_up(init: Init, tmp_path: Path) -> None:
    more = ("--torch", "2.14", "--python", "cp312,cp313", "--compute", "cpu", "--compute", "cu130")
    assert init({"setup.py": CPU}, *CELL, *more).code == 0
    matrix = written(tmp_path, "matrix")
    assert matrix["torch"] == ["torch2.13", "torch2.14"]
    assert matrix["python"] == ["cp311", "cp312", "cp313"]
    assert matrix["compute"] == ["cpu", "cu130"]
    again = init({}, *CELL, "--torch", "2.13", "--force")
    assert (again.code, "`torch2.13` is listed twice" in again.err) == (UsageError.exit_code, True)


def test_init_says_what_it_guessed(init: Init, tmp_path: Path) -> None:
    guessed = init({"setup.py": SETUP.replace("'1.2.2'", "read()")}, "--name", "mine")
    assert guessed.code == 0
    assert "version: A guess: correct it, or --version." in " ".join(guessed.err.split())
    text = (tmp_path / "torchyard.toml").read_text(encoding="utf-8")
    assert '# A guess: correct it, or --version.\nversion = "0.1.0"\n' in text
    assert '\n[project]\nname = "mine"\n' in text


def test_a_project_of_pure_python_is_no_extension(init: Init, tmp_path: Path) -> None:
    setup = {"setup.py": "setup(name='torchsde', install_requires=['torch'])"}
    refused = init(setup)
    assert refused.code == UsageError.exit_code
    assert "torchsde is pure Python: nothing in it is compiled" in refused.err
    assert not (tmp_path / "torchyard.toml").exists()
    assert init({}, "--recipe", "extension", *CELL).code == 0


def test_a_project_that_is_not_compiled_against_torch_is_refused(init: Init) -> None:
    refused = init({"setup.py": "setup(name='x',\n  ext_modules=[Extension('x')])"})
    assert "x is compiled (setup.py:2), and nothing shows that it is against torch" in refused.err


def test_a_project_for_cuda_only_gets_no_cell_for_the_cpu(init: Init, tmp_path: Path) -> None:
    refused = init({"setup.py": SETUP}, *CELL, "--compute", "cpu")
    assert refused.code == UsageError.exit_code
    assert "compiles for CUDA only: CUDAExtension in setup.py:6" in refused.err
    assert "pass --compute cu130" in refused.err
    assert init({}, *CELL).code == 0
    assert written(tmp_path, "matrix")["compute"] == ["cu130"]
    forced = init({}, *CELL, "--compute", "cpu", "--recipe", "extension", "--force")
    assert forced.code == 0
    assert written(tmp_path, "matrix")["compute"] == ["cpu"]


def test_the_newest_torch_that_the_project_takes_is_chosen(init: Init, tmp_path: Path) -> None:
    text = PYPROJECT.replace("torch>=2.10", "torch>=2.8,<2.13")
    assert init({"pyproject.toml": text}, "--python", "cp311").code == 0
    assert written(tmp_path, "matrix")["torch"] == ["torch2.12"]
    other = init({}, "--torch", "2.13", "--python", "cp39", "--force")
    said = " ".join(other.err.split())
    assert "torch: It asks for torch <2.13,>=2.8 (pyproject.toml:3). That is not 2.13." in said
    assert "python: It asks for Python >=3.10 (pyproject.toml:8). That is not 3.9." in said


def test_downloads_switches_and_requirements_are_lines_of_the_file(
    init: Init, tmp_path: Path
) -> None:
    setup = "import os, packaging\nos.getenv('WITH_X', '0') == '1'\nos.getenv('B{}'.format(x))\n"
    done = init({"setup.py": setup + CPU, "CMakeLists.txt": CMAKE}, *CELL)
    assert done.code == 0
    text = (tmp_path / "torchyard.toml").read_text("utf-8")
    git = "https://github.com/metatensor/gpu-lite.git"
    by = f"# Its build downloads gpulite, by FetchContent: {git} at\n# {'ceb0' * 10} "
    assert f"{by}(CMakeLists.txt:7).\n[[source.also]]\n" in text
    fmt = '# [[source.also]]\n# git = "https://github.com/fmtlib/fmt"\n# rev = "11.0"\n'
    assert fmt in text
    assert load_config(str(tmp_path / "torchyard.toml")).source.also == (
        DeclaredDownload(git=git, commit="ceb0" * 10),
        DeclaredDownload(archive="https://gitlab.com/libeigen/eigen.tar.bz2", sha256="aa" * 32),
    )
    assert written(tmp_path, "build")["requires"] == ["packaging"]
    assert '"packaging",  # setup.py:1\n' in text
    said = " ".join(done.err.split())
    assert "this downloads (see [[source.also]]): gpulite, by FetchContent" in said
    assert "switches: It reads WITH_X=0." in said
    commented = text[text.index("# [[override]]") :].split("\n\n")[0]
    file = tmp_path / "torchyard.toml"
    file.write_text(text.replace(commented, commented.replace("# ", "", 3).replace("# W", "W")))
    (override,) = load_config(str(file)).overrides
    assert override.env == {"WITH_X": "0"}


def download(kind: DownloadKind, url: str, **given: str) -> Download:
    return Download("part", "CMakeLists.txt", 1, kind=kind, url=url, **given)


@pytest.mark.parametrize(
    ("found", "lines"),
    [
        (download(FETCHED, AWAY, revision="v1"), f'git = "{AWAY}"\nrev = "v1"'),
        (download(FETCHED, AWAY, revision="1" * 40), f'git = "{AWAY}"\ncommit = "{"1" * 40}"'),
        (
            download(FETCHED, AWAY, digest=f"SHA256={'a' * 64}"),
            f'archive = "{AWAY}"\nsha256 = "{"a" * 64}"',
        ),
        (download(FETCHED, AWAY, digest="MD5=1"), f'archive = "{AWAY}"'),
        (download(DownloadKind.SUBMODULE, AWAY), f'git = "{AWAY}"\nto = "part"'),
        (download(FETCHED, f"{AWAY}/${{VERSION}}.zip"), ""),
        (download(DownloadKind.CARGO, ""), ""),
    ],
)
def test_a_download_is_declared_by_lines_of_the_file(found: Download, lines: str) -> None:
    declared = declare_download(found)
    assert declared == (f"[[source.also]]\n{lines}" if lines else "")
    also = tomllib.loads(declared).get("source", {}).get("also", [])
    assert len(msgspec.convert(also, list[DeclaredDownload])) == bool(lines)


def test_what_the_machine_and_the_index_add_is_said_before(init: Init) -> None:
    said = " ".join(init({"setup.py": CPU}, *CELL).err.split())
    assert "PyPI's torch for cpu is one with CUDA" in said
    assert "Wheels can need this machine's glibc" in said


def test_a_known_switch_is_set_and_said(init: Init) -> None:
    setup = CPU.replace("setup(", "setup(name='monai', version='1.0', ")
    said = " ".join(init({"setup.py": setup}, *CELL).err.split())
    assert "env: torchyard sets BUILD_MONAI=1: nothing is compiled otherwise" in said


def test_undeclared_imports_are_written_down(init: Init, tmp_path: Path) -> None:
    assert init({"setup.py": SETUP, "my_ext/x.py": USES}, *CELL).code == 0
    text = (tmp_path / "torchyard.toml").read_text("utf-8")
    assert "# my_ext/x.py:4 imports torch_scatter, which is not declared; `dependencies`" in text


def test_what_is_in_names_stays_in_a_comment(init: Init, tmp_path: Path) -> None:
    """Names of files and values are those of the project, which may not be trusted."""
    lines = 'x\n[sandbox]\nkind = "none"\n#\x1b]0;x\x07'
    text = PYPROJECT.replace('">=3.10"', '">=3.10\\n[sandbox]\\nkind = 1"')
    setup = f"import os\nos.getenv('A', {lines!r})\nos.getenv({lines!r})\nrequests.get({lines!r})"
    (tmp_path / "other_ext").mkdir()
    for name in (lines, "\udcff"):
        (tmp_path / f"other_ext/{name}.py").write_text(f"import missing_{len(name)}\n")
    (tmp_path / f"{lines}.cu").touch()
    (tmp_path / f"{lines}.cmake").write_text(f'option(B "x" "{lines}")\nfile(DOWNLOAD "{lines}")')
    done = init({"pyproject.toml": text, "setup.py": setup}, *CELL)
    assert done.code == 0, done.err
    file = tmp_path / "torchyard.toml"
    assert load_config(str(file)).sandbox.kind is None
    assert file.read_text("utf-8").count("imports missing_") == 2
    assert "\x1b" not in done.err + file.read_text("utf-8")
    assert not [line for line in done.err.splitlines() if line.startswith(("[", "kind", "#"))]


def sdist(index: Path, files: Mapping[str, str], more: str = "") -> str:
    """Put an sdist of my-ext 1.1 into an index, and return its digest."""
    archive = index / "my-ext/my_ext-1.1.tar.gz"
    archive.parent.mkdir(parents=True)
    with tarfile.open(archive, "w:gz") as packed:
        for name, text in files.items():
            member = tarfile.TarInfo(f"my_ext-1.1/{name}")
            member.size = len(text.encode())
            packed.addfile(member, BytesIO(text.encode()))
    digest = hashlib.sha256(archive.read_bytes()).hexdigest()
    link = f'<a href="{archive.name}#sha256={digest}">{archive.name}</a>{more}'
    page = f"<!DOCTYPE html><html><body>{link}</body></html>"
    (archive.parent / "index.html").write_text(page, encoding="utf-8")
    return digest


def test_init_reads_the_sdist(init: Init, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    digest = sdist(tmp_path / "index", {"setup.py": CPU, "a.cu": ""})
    monkeypatch.setenv("UV_DEFAULT_INDEX", (tmp_path / "index").as_uri())
    assert init({}, "--sdist", "my-ext", "--torch", "2.13").code == 0
    assert "# It has code for CUDA: a.cu." in (tmp_path / "torchyard.toml").read_text("utf-8")
    assert written(tmp_path, "source") == {"sdist": "my-ext==1.1", "sha256": digest}
    assert written(tmp_path, "matrix")["compute"] == ["cpu", "cu130"]
    (tmp_path / "index/my-ext/my_ext-1.1.tar.gz").write_bytes(b"another archive")
    again = init({}, "--force", "--sdist", "my-ext")
    assert again.code == HostError.exit_code
    assert digest in again.err


def test_a_newer_release_without_an_sdist_is_named_with_its_repository(
    init: Init, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    wheels = "".join(
        f'<a href="my_ext-{version}-py3-none-any.whl">my_ext-{version}-py3-none-any.whl</a>'
        for version in ("0.9", "1.1", "2.0", "3.0rc1")
    )
    metadata = "Name: my_ext\nHome-page: https://github.com/me/my_ext\n"
    sdist(tmp_path / "index", {"setup.py": CPU, "PKG-INFO": metadata}, wheels)
    monkeypatch.setenv("UV_DEFAULT_INDEX", (tmp_path / "index").as_uri())
    said = " ".join(init({}, "--sdist", "my-ext", "--torch", "2.13").err.split())
    newer = (
        "2.0 is newer, and has no sdist: --git https://github.com/me/my_ext --rev TAG builds it."
    )
    assert f"source: {newer}" in said
    told = init({}, "--sdist", "my-ext==1.1", "--torch", "2.13", "--force")
    assert "2.0" not in told.err, "this version is the one that was asked for"


def test_an_sdist_of_pure_python_is_refused(
    init: Init, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sdist(tmp_path / "index", {"setup.py": "setup(name='my_ext')", "my_ext/libx.so": ""})
    monkeypatch.setenv("UV_DEFAULT_INDEX", (tmp_path / "index").as_uri())
    refused = init({}, "--sdist", "my-ext")
    assert refused.code == UsageError.exit_code
    assert "my-ext 1.1 has nothing to compile: it brings libraries, such as my_ext/libx.so" in (
        refused.err
    )
    assert not (tmp_path / "torchyard.toml").exists()


def test_an_image_for_older_systems_is_offered(init: Init, tmp_path: Path) -> None:
    """It is a comment: a machine that reaches no registry can build, too."""
    done = init({"setup.py": CPU}, *CELL)
    assert done.code == 0, done.err
    text = (tmp_path / "torchyard.toml").read_text(encoding="utf-8")
    assert '# [root]\n# image = "quay.io/pypa/manylinux_2_28_x86_64"\n' in text
    assert "--glibc 2.28 is for older systems" in done.err


@pytest.mark.parametrize(
    ("options", "image"),
    [
        (("--glibc", "2.28"), "quay.io/pypa/manylinux_2_28_x86_64"),
        (("--glibc", "2.33"), "quay.io/pypa/manylinux_2_28_x86_64"),
        (("--glibc", "2.34"), "quay.io/pypa/manylinux_2_34_x86_64"),
        (("--glibc", "2.31", "--image", "example.org/a:1"), "example.org/a:1"),
    ],
)
def test_an_older_glibc_is_promised_and_built_in_an_image(
    options: tuple[str, ...], image: str, init: Init, tmp_path: Path
) -> None:
    done = init({"setup.py": f"import numpy\n{CPU}"}, *CELL, *options)
    assert done.code == 0, done.err
    assert written(tmp_path, "root") == {"image": image}
    assert written(tmp_path, "build") == {"glibc": options[1], "requires": ["numpy"]}
    config = load_config(str(tmp_path / "torchyard.toml"))
    assert config.sandbox.root == f"docker://{image}"


@pytest.mark.parametrize(
    ("options", "why"),
    [
        (("--glibc", "2.5"), "no image of PyPA for glibc 2.5"),
        (("--glibc", "new"), "is no version, such as 2.28"),
        (("--glibc", "2.28", "--platform", "linux-aarch64"), "names no image"),
    ],
)
def test_a_glibc_without_an_image_is_refused(
    options: tuple[str, ...], why: str, init: Init
) -> None:
    refused = init({"setup.py": CPU}, *CELL, *options)
    assert refused.code == UsageError.exit_code
    assert why in refused.err
