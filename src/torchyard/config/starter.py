"""Write a first `torchyard.toml`: small, commented and valid."""

import re
from collections.abc import Mapping
from textwrap import indent, wrap
from typing import TYPE_CHECKING

import msgspec
from msgspec import field

from torchyard.config.recipes import known_recipes
from torchyard.host.files import read_data
from torchyard.host.git import is_commit
from torchyard.model.config import own_release
from torchyard.model.recipe import Dimension
from torchyard.model.tables import TORCH_PREFIX, Tables
from torchyard.model.values import Value
from torchyard.toolchain.reading.project import ProjectReading
from torchyard.toolchain.reading.source_text import Download, DownloadKind

if TYPE_CHECKING:
    from jinja2 import Template

_TEMPLATE = "templates/torchyard.toml"
_NAME = re.compile(r"[A-Za-z_]\w*")
_WIDTH = 100
_ADDRESS = re.compile(r"[a-z+]+://[\w./~%+=?&:@-]+")
"""A complete address; builds may also compose one from variables."""
_PINNED = re.compile(r'^(?:commit = "[0-9a-f]{40}|sha256 = "[0-9a-f]{64})"$', re.MULTILINE)


class Answers(Value, kw_only=True):
    """The choices for a new file.

    `source` has the keys of [source]. Jobs run in `image`; `offered` is the usual one for a
    comment, `glibc` the promise. `notes` explain choices, by their keys.
    """

    recipe: str
    name: str
    version: str
    source: Mapping[str, str]
    platform: tuple[str, ...]
    compute: tuple[str, ...]
    python: tuple[str, ...]
    package: tuple[str, ...]
    torch: tuple[str, ...]
    image: str = ""
    offered: str = ""
    glibc: str = ""
    notes: Mapping[str, str] = field(default_factory=dict)
    reading: ProjectReading = ProjectReading()


def template(name: str) -> "Template":
    """Return the template of a new file, by its name in the data."""
    from jinja2 import Environment, StrictUndefined  # noqa: PLC0415 - few commands need it

    environment = Environment(
        autoescape=False,  # noqa: S701 - filters write all values as TOML
        keep_trailing_newline=True,
        lstrip_blocks=True,
        trim_blocks=True,
        undefined=StrictUndefined,
    )
    environment.filters.update(json=_json, line=on_one_line, comment=_comment)
    environment.filters.update(shown=show_download, declared=_declared)
    return environment.from_string(read_data(name))


def starter(answers: Answers, tables: Tables) -> str:
    """Return the text of the file."""
    recipe, built = known_recipes()[answers.recipe], own_release(answers.version)
    variants = tuple(f"{TORCH_PREFIX}{release}" for release in answers.torch)
    couple = False
    if recipe.variant is Dimension.BLAS:
        rows = [tables.platforms.get(name) for name in answers.platform]
        variants = tuple(row.blas[0] if row else "" for row in rows)
        couple = len(set(variants)) > 1
        variants = variants if couple else variants[:1]
    given = {key: getattr(answers, key) for key in answers.__struct_fields__}
    switches = [switch for switch in answers.reading.switches if _NAME.fullmatch(switch.text)]
    return template(_TEMPLATE).render(
        given
        | {
            "recipe": recipe,
            "notes": dict.fromkeys(given) | dict.fromkeys(["blas", "env"]) | dict(answers.notes),
            "release": "" if recipe.is_extension or built == answers.torch[0] else answers.torch[0],
            "variant": recipe.variant,
            "variants": variants,
            "couple": couple,
            "build": tables.builds[tables.preset_for(built) or next(iter(tables.builds))],
            "switches": [switch for switch in switches if not switch.is_cmake],
        }
    )


def show_download(download: Download) -> str:
    """Return a download as text: its name, kind, address and line."""
    at = f" at {download.revision}" if download.revision else ""
    url = f": {download.url}" if download.url else ""
    return f"{download.text}, by {download.kind}{url}{at} ({download.where})"


def declare_download(download: Download) -> str:
    """Return the lines of TOML that declare a download; "" if its address is computed."""
    if download.kind is DownloadKind.PROGRAM or not _ADDRESS.fullmatch(download.url):
        return ""
    is_part = download.kind is DownloadKind.SUBMODULE
    digest, _, value = download.digest.partition("=")
    given = {
        "git" if is_part or download.revision else "archive": download.url,
        "commit" if is_commit(download.revision) else "rev": download.revision,
        "sha256": value if digest.lower() == "sha256" else "",
        "to": download.text if is_part else "",
    }
    lines = (f"{key} = {_json(value)}" for key, value in given.items() if value)
    return "\n".join(["[[source.also]]", *lines])


def _declared(download: Download) -> str:
    """Return the lines that declare a download, as a comment unless the source pins it."""
    text = declare_download(download)
    return text if _PINNED.search(text) else indent(text, "# ")


def on_one_line(text: str) -> str:
    """Return a text on one line, so that names in it can't end a comment."""
    return "".join(char if char.isprintable() else "?" for char in text)


def _comment(note: str, prefix: str = "# ") -> str:
    lines = wrap(
        on_one_line(note), _WIDTH - len(prefix), break_long_words=False, break_on_hyphens=False
    )
    return "\n".join(f"{prefix}{line}" for line in lines)


def _json(value: object) -> str:
    text = msgspec.json.encode(value).decode()
    return text.replace('","', '", "') if isinstance(value, tuple) else text
