"""A small project that publishes to a channel wheels that pass every check."""

import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

MAKE = """\
import sys, zipfile
from base64 import urlsafe_b64encode
from hashlib import sha256

version, python, spec, out = sys.argv[1:]
about = f"demo-{version}.dist-info"
tag = f"{python}-none-any"
files = {
    "demo/__init__.py": "x = 1\\n",
    f"{about}/METADATA": f"Metadata-Version: 2.1\\nName: demo\\nVersion: {version}\\n",
    f"{about}/WHEEL": f"Wheel-Version: 1.0\\nGenerator: t\\nRoot-Is-Purelib: true\\nTag: {tag}\\n",
    f"{about}/torchyard-spec.json": open(spec).read(),
}
digest = lambda text: urlsafe_b64encode(sha256(text.encode()).digest()).rstrip(b"=").decode()
record = [f"{path},sha256={digest(text)},{len(text.encode())}" for path, text in files.items()]
files[f"{about}/RECORD"] = "\\n".join([*record, f"{about}/RECORD,,"]) + "\\n"
with zipfile.ZipFile(f"{out}/demo-{version}-{tag}.whl", "w") as archive:
    for path, text in files.items():
        archive.writestr(zipfile.ZipInfo(path), text)
"""

PUBLISHES = """\
[project]
name = "demo"
version = "1.0"

[source]
path = "code"

[matrix]
platform = ["linux-x86_64"]
compute = ["cpu"]
blas = ["openblas"]
python = ["cp311", "cp312"]
package = ["wheel"]

[channel.nightly]
url = "channel"

[[steps.core]]
run = "cp {source}/make.py {out}"

[[steps.bindings]]
run = "touch {out}/nothing"

[[steps.package]]
run = "python3 {core}/make.py {version} {python} {spec} {out}"

[steps]
smoke = []
"""


def make_publishing_project(folder: Path, text: str = PUBLISHES) -> Path:
    """Write the project, and return its file."""
    (folder / "code").mkdir(parents=True)
    (folder / "code" / "make.py").write_text(MAKE, encoding="utf-8")
    file = folder / "torchyard.toml"
    file.write_text(text, encoding="utf-8")
    return file


def torchyard(
    *args: object, env: Mapping[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    """Run the installed program, with only the given AWS variables in its environment."""
    plain = {name: value for name, value in os.environ.items() if not name.startswith("AWS_")}
    whole = {**plain, "COLUMNS": "200", "NO_COLOR": "1", **(env or {})}
    argv = [sys.executable, "-m", "torchyard", *map(str, args)]
    return subprocess.run(argv, env=whole, capture_output=True, text=True, check=False)
