"""The folder in which an unpacked wheel speaks of itself, and its list of files."""

import csv
from base64 import urlsafe_b64encode
from collections.abc import Iterable
from io import StringIO
from pathlib import Path

from torchyard.errors import BuildError
from torchyard.package.archive import Written


def find_dist_info(image: Path) -> Path:
    """The one folder in which an unpacked wheel speaks of itself."""
    found = sorted(image.glob("*.dist-info"))
    if len(found) != 1:
        names = ", ".join(f"`{folder.name}`" for folder in found) or "none"
        msg = f"`{image}` should have one folder *.dist-info, but has {names}"
        raise BuildError(msg, hint="unpack the wheel of the project's backend there, and only it")
    return found[0]


def record(files: Iterable[Written], own_name: str) -> str:
    """The text of RECORD, which lists itself last; a file without a digest gets no size either."""
    text = StringIO()
    rows = csv.writer(text, lineterminator="\n")
    for file in files:
        digest = urlsafe_b64encode(file.digest).rstrip(b"=").decode()
        rows.writerow((file.name, f"sha256={digest}", file.size) if digest else (file.name, "", ""))
    rows.writerow((own_name, "", ""))
    return text.getvalue()
