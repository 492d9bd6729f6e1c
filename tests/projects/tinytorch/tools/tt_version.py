"""The version: for setup.py, for scikit-build-core, and as tinytorch/version.py.

PYTORCH_BUILD_VERSION decides; else it is version.txt, with the commit if that is known.
"""

import argparse
import os
import subprocess
from collections.abc import Mapping
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
UNKNOWN = "Unknown"


def git_hash() -> str:
    if (ROOT / ".git").exists():
        command = ["git", "rev-parse", "HEAD"]
        return subprocess.run(command, cwd=ROOT, stdout=-1, text=True, check=True).stdout.strip()
    return os.environ.get("TT_GIT_HASH", UNKNOWN)


def version() -> str:
    if given := os.environ.get("PYTORCH_BUILD_VERSION"):
        return given
    release = (ROOT / "version.txt").read_text("utf-8").strip()
    commit = git_hash()
    return release if commit == UNKNOWN else f"{release}+git{commit[:7]}"


def dynamic_metadata(
    settings: Mapping[str, object], project: Mapping[str, object]
) -> dict[str, str]:
    """Answer scikit-build-core, which asks for what pyproject.toml calls dynamic."""
    return {"version": version()}


def main() -> None:
    parser = argparse.ArgumentParser(description="Write tinytorch/version.py.")
    parser.add_argument("--cuda", default="")
    parser.add_argument("--hip", default="")
    parser.add_argument("target", type=Path)
    args = parser.parse_args()
    values = {
        "__version__": version(),
        "git_version": git_hash(),
        "cuda": args.cuda or None,
        "hip": args.hip or None,
    }
    lines = [f"{name} = {value!r}\n" for name, value in values.items()]
    args.target.write_text('"""What was built."""\n\n' + "".join(lines), "utf-8")


if __name__ == "__main__":
    main()
