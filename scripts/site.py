"""Build the documentation site from the Markdown of the repository into build/site.

python scripts/site.py [--serve]

Pages link to files outside docs/: examples, schemas, tests. Each such file becomes a page of the
site, so that one link works in a clone, on a code host and on the site. `--serve` builds, serves
the site on loopback, and prints its address.
"""

import argparse
import functools
import http.server
import os
import re
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path, PurePosixPath
from urllib.parse import unquote

ROOT = Path(__file__).resolve().parents[1]
STAGED = ROOT / "build/docs"
SITE = ROOT / "build/site"

# Pages that have another path on the site than below docs/.
MOVED = {
    "CHANGELOG.md": "changelog.md",
    "CONTRIBUTING.md": "contributing.md",
    "docs/evidence/README.md": "evidence/findings.md",
    "SECURITY.md": "report-a-vulnerability.md",
}
LANGUAGES = {".conf": "nginx", ".json": "json", ".py": "python", ".service": "ini", ".toml": "toml"}
NO_SEARCH = "---\nsearch:\n  exclude: true\n---\n\n"

CODE_OR_LINK = re.compile(
    r"""
      ^[ ]*(?P<fence>```+|~~~+) .*? ^[ ]*(?P=fence)[ ]*$         # a block of code
    | (?P<tick>`+) .+? (?P=tick)                                 # code within a line
    | (?P<open>\]\(\s*<?|<img\ src=") (?P<target>[^)>\s"]+)      # [text](target), <img src="target"
    """,
    re.MULTILINE | re.DOTALL | re.VERBOSE,
)
ELSEWHERE = re.compile(r"[a-z][a-z0-9+.-]*:|//|#", re.IGNORECASE)


class SiteError(Exception):
    """The pages cannot become a site: a link to a directory, or a page without an entry."""


def site_path(path: str) -> str:
    """Return the path in the staged tree of a file, both relative to their roots."""
    if path in MOVED:
        return MOVED[path]
    if path.startswith("docs/"):
        return path.removeprefix("docs/")
    path = path.removeprefix(".")  # the site leaves hidden files out
    return f"files/{path}" if path.endswith(".md") else f"files/{path}.md"


def relinked(path: str, text: str, linked: set[str]) -> str:
    """Return a page with its links as the staged tree needs them; add their targets to `linked`."""
    here = PurePosixPath(site_path(path)).parent

    def replace(match: re.Match[str]) -> str:
        target = match["target"]
        if not target or ELSEWHERE.match(target):
            return match[0]
        name, mark, fragment = unquote(target).partition("#")
        goal = os.path.normpath(PurePosixPath(path).parent / name)
        if (ROOT / goal).is_dir():
            msg = f"{path}: {target} is a directory: link to one of its files"
            raise SiteError(msg)
        linked.add(goal)
        return match["open"] + os.path.relpath(site_path(goal), here) + mark + fragment

    return CODE_OR_LINK.sub(replace, text)


def shown(path: str) -> str:
    """Return a page that shows a file that is not Markdown."""
    name = PurePosixPath(path)
    text = (ROOT / path).read_text(encoding="utf-8")
    fence = "`" * (max(map(len, re.findall("`+", text)), default=2) + 1)
    language = LANGUAGES.get(name.suffix, "bash" if text.startswith("#!") else "text")
    return f"{NO_SEARCH}# {name.name}\n\n`{path}`\n\n{fence}{language}\n{text}{fence}\n"


def stage() -> None:
    """Write the tree that the site is built from."""
    shutil.rmtree(STAGED, ignore_errors=True)
    own = {str(p.relative_to(ROOT)) for p in (ROOT / "docs").rglob("*") if p.is_file()}
    waiting = sorted(own | MOVED.keys())
    done = set(waiting)
    while waiting:
        path = waiting.pop()
        goal = STAGED / site_path(path)
        goal.parent.mkdir(parents=True, exist_ok=True)
        linked: set[str] = set()
        if path.endswith(".md"):
            text = relinked(path, (ROOT / path).read_text(encoding="utf-8"), linked)
            goal.write_text(text, encoding="utf-8")
        elif path in own:
            shutil.copyfile(ROOT / path, goal)
        else:
            goal.write_text(shown(path), encoding="utf-8")
        waiting += sorted(linked - done)
        done |= linked


def entries(navigation: object) -> Iterator[str]:
    """Yield the pages that a navigation names."""
    if isinstance(navigation, str):
        yield navigation
    elif isinstance(navigation, (dict, list)):
        for value in navigation.values() if isinstance(navigation, dict) else navigation:
            yield from entries(value)


def check_navigation() -> None:
    """Require that the navigation names every page of docs/ once."""
    with (ROOT / "zensical.toml").open("rb") as file:
        named = list(entries(tomllib.load(file)["project"]["nav"]))
    pages = [site_path(str(p.relative_to(ROOT))) for p in (ROOT / "docs").rglob("*.md")]
    wrong = sorted({*pages, *MOVED.values()}.symmetric_difference(named))
    wrong += sorted({page for page in named if named.count(page) > 1})
    if wrong:
        msg = f"zensical.toml: `nav` must name each page once; look at {', '.join(wrong)}"
        raise SiteError(msg)


def build() -> None:
    check_navigation()
    stage()
    shutil.rmtree(SITE, ignore_errors=True)
    command = ["zensical", "build", "--strict", "--clean"]
    subprocess.run(command, cwd=ROOT, check=True, env={**os.environ, "NO_COLOR": "1"})
    pages = sum(1 for _ in SITE.rglob("*.html"))
    print(f"{pages} pages in {SITE.relative_to(ROOT)}")


def serve() -> None:
    handler = functools.partial(http.server.SimpleHTTPRequestHandler, directory=SITE)
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        print(f"http://127.0.0.1:{server.server_port}/", flush=True)
        server.serve_forever()


def main() -> int:
    parser = argparse.ArgumentParser(description="Build the documentation site.")
    parser.add_argument("--serve", action="store_true", help="then serve it on loopback")
    arguments = parser.parse_args()
    try:
        build()
    except SiteError as error:
        print(error, file=sys.stderr)
        return 1
    except subprocess.CalledProcessError as error:
        return error.returncode
    if arguments.serve:
        serve()
    return 0


if __name__ == "__main__":
    sys.exit(main())
