"""Check that the relative links in the repository's Markdown files have targets.

A link must name a file or folder of the repository, and its `#fragment`, if any, a heading of
the Markdown file that it names. Links to other sites are not followed.
"""

import re
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from urllib.parse import unquote

ROOT = Path(__file__).resolve().parents[1]

FENCE = re.compile(r"^ *(```+|~~~+).*?^ *\1 *$", re.MULTILINE | re.DOTALL)
CODE = re.compile(r"(`+).+?\1")
HEADING = re.compile(r"^#{1,6} +(.+?)[ #]*$", re.MULTILINE)
LINK = re.compile(
    r"""
      \]\( \s* <? ([^)>\s]+) >? [^)]* \)   # [text](target "title"), ![image](target)
    | ^ \s* \[[^\]]+\]: \s* <? ([^>\s]+)   # [label]: target
    """,
    re.MULTILINE | re.VERBOSE,
)
ELSEWHERE = re.compile(r"[a-z][a-z0-9+.-]*:|//", re.IGNORECASE)


def markdown_files() -> list[Path]:
    """Return the Markdown files that git tracks or would track."""
    command = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard", "*.md"]
    listed = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True)
    return [path for name in listed.stdout.split("\0") if name and (path := ROOT / name).is_file()]


@cache
def anchors(path: Path) -> frozenset[str]:
    """Return the fragments of a file's headings, as the usual Markdown hosts make them."""
    found: set[str] = set()
    seen: Counter[str] = Counter()
    for heading in HEADING.findall(FENCE.sub("", path.read_text())):
        slug = re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")
        found.add(f"{slug}-{seen[slug]}" if seen[slug] else slug)
        seen[slug] += 1
    return frozenset(found)


def broken_links(path: Path) -> Iterator[str]:
    text = CODE.sub("", FENCE.sub("", path.read_text()))
    for link in LINK.finditer(text):
        target = link[1] or link[2]
        if ELSEWHERE.match(target):
            continue
        name, _, fragment = unquote(target).partition("#")
        goal = (path.parent / name).resolve() if name else path
        if not (goal.is_relative_to(ROOT) and goal.exists()):
            yield f"{target}: no such file"
        elif fragment and goal.suffix == ".md" and fragment not in anchors(goal):
            yield f"{target}: no such heading"


def main() -> int:
    files = markdown_files()
    broken = [f"{path.relative_to(ROOT)}: {why}" for path in files for why in broken_links(path)]
    print(*broken, f"{len(files)} Markdown files, {len(broken)} broken links", sep="\n")
    return int(bool(broken))


if __name__ == "__main__":
    sys.exit(main())
