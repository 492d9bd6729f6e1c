"""Check the distributions in dist/ and list them; upload them to PyPI if asked to.

python scripts/release.py [--upload]

`nox -s release` builds them first. Credentials are those of `uv publish`: a token in
UV_PUBLISH_TOKEN, or trusted publishing.
"""

import argparse
import hashlib
import re
import subprocess
import sys
import tarfile
import tempfile
import tomllib
import zipfile
from collections.abc import Iterator
from pathlib import Path

from packaging.metadata import InvalidMetadata, Metadata

ROOT = Path(__file__).resolve().parents[1]
PROJECTS = {"torchyard": ROOT, "torchyard_farm": ROOT / "farm"}
RELATIVE_LINK = re.compile(r"\]\((?!https?:|#)([^)]*)\)")


def version_of(name: str) -> str:
    with (PROJECTS[name] / "pyproject.toml").open("rb") as file:
        path = tomllib.load(file)["tool"]["hatch"]["version"]["path"]
    text = (PROJECTS[name] / path).read_text(encoding="utf-8")
    versions: list[str] = re.findall(r'^__version__ = "(.+)"$', text, re.MULTILINE)
    return versions[0]


def files(folder: Path) -> list[Path]:
    """Return the paths of the four files of a release."""
    stems = [f"{name}-{version_of(name)}" for name in PROJECTS]
    names = [f"{stem}{end}" for stem in stems for end in (".tar.gz", "-py3-none-any.whl")]
    return [folder / name for name in names]


def metadata_of(path: Path) -> bytes:
    if path.suffix == ".whl":
        stem = "-".join(path.name.split("-")[:2])
        with zipfile.ZipFile(path) as wheel:
            return wheel.read(f"{stem}.dist-info/METADATA")
    with tarfile.open(path) as sdist, tempfile.TemporaryDirectory() as folder:
        name = f"{path.name.removesuffix('.tar.gz')}/PKG-INFO"
        sdist.extract(name, folder, filter="data")
        return Path(folder, name).read_bytes()


def faults_of(path: Path) -> Iterator[str]:
    """Yield the faults that PyPI would reject or display wrongly."""
    if not path.is_file():
        yield "is missing"
        return
    try:
        metadata = Metadata.from_email(metadata_of(path), validate=True)
    except ExceptionGroup as group:
        yield from map(str, group.exceptions)
        return
    except InvalidMetadata as error:
        yield str(error)
        return
    if metadata.description_content_type != "text/markdown" or not metadata.description:
        yield "has no description in Markdown"
    for link in RELATIVE_LINK.findall(metadata.description or ""):
        yield f"its description has the relative link {link}"
    for requirement in metadata.requires_dist or ():
        if requirement.url:
            yield f"requires {requirement}, an address, which PyPI rejects"
    if not metadata.license_expression:
        yield "has no licence expression"


def obstacles() -> Iterator[str]:
    """Yield what has to be done in the repository before an upload."""
    version = version_of("torchyard")
    if version_of("torchyard_farm") != version:
        yield f"torchyard_farm has version {version_of('torchyard_farm')}, and torchyard {version}"
    if f"\n## {version} (" not in (ROOT / "CHANGELOG.md").read_text(encoding="utf-8"):
        yield f"CHANGELOG.md has no section {version}: run `towncrier build --version {version}`"
    for fragment in sorted((ROOT / "changes").glob("*.*.md")):
        yield f"changes/{fragment.name} is not in the changelog: run `towncrier build`"
    if f"\nversion: {version}\n" not in (ROOT / "CITATION.cff").read_text(encoding="utf-8"):
        yield f"CITATION.cff is of another version than {version}"
    command = ["git", "status", "--porcelain"]
    if subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True).stdout:
        yield "the work tree has changes that are not committed"


def main() -> int:
    parser = argparse.ArgumentParser(description="Check, list and upload the distributions.")
    parser.add_argument("--upload", action="store_true", help="upload them to PyPI")
    upload = parser.parse_args().upload
    paths = files(ROOT / "dist")
    faults = [f"{path.name} {fault}" for path in paths for fault in faults_of(path)]
    if faults:
        print(*faults, sep="\n", file=sys.stderr)
        return 1
    for path in paths:
        digest = hashlib.sha256(path.read_bytes()).hexdigest()
        print(f"{path.name}  {path.stat().st_size:,} bytes  sha256 {digest}")
    before = list(obstacles())
    for obstacle in before:
        print(f"before an upload: {obstacle}", file=sys.stderr)
    command = ["uv", "publish", *(str(path.relative_to(ROOT)) for path in paths)]
    if not upload:
        print(f"would run: {' '.join(command)}")
        print("`nox -s release -- --upload` does. Then set `ON_PYPI` in version.py to True,")
        print("and run `nox -s gen`.")
        return 0
    return int(bool(before)) or subprocess.run(command, cwd=ROOT, check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
