"""The systems that a wheel supports, by auditwheel's policies: `data/manylinux.toml`."""

import re
from collections.abc import Iterable, Iterator
from functools import cache
from itertools import pairwise

import msgspec

from torchyard.errors import BuildError
from torchyard.host.data_tables import parse_table
from torchyard.host.files import read_data
from torchyard.model.values import Value

_TAG = re.compile(r"manylinux_(\d{1,9})_(\d{1,9})_(\w+)")
_NUMBER = re.compile(r"\d{1,9}(\.\d{1,9})*")


class Manylinux(Value, kw_only=True):
    """A policy: its glibc, and the newest symbol versions that libraries may need.

    `words` are versions without numbers that no older policy has. `alias` is the
    policy's name before PEP 600, `image` a container image for building its wheels.
    """

    glibc: str
    alias: str = ""
    image: str = ""
    newest: dict[str, str]
    words: tuple[str, ...] = ()

    def allows(self, version: str) -> bool:
        """Return whether a policy allows a numeric version: `GLIBCXX_3.4.30`."""
        family, _, number = version.partition("_")
        if not _NUMBER.fullmatch(number):
            return False
        return _numbers(number) <= _numbers(self.newest[family])


class ManylinuxTable(Value, kw_only=True):
    """The whole table."""

    policies: tuple[Manylinux, ...]


def true_tag(platform_tag: str, versions: Iterable[str]) -> str:
    """Return a platform tag for the systems that the libraries support.

    It is that of the oldest policy with all versions of symbols, but not older than promised.
    """
    promised = _TAG.fullmatch(platform_tag)
    if promised is None:
        return platform_tag
    policies = load_manylinux().policies
    missing = {v for v in versions if v.partition("_")[0] in policies[0].newest}
    for policy in policies:
        missing = {v for v in missing if v not in policy.words and not policy.allows(v)}
        if not missing and _numbers(policy.glibc) >= (int(promised[1]), int(promised[2])):
            return f"manylinux_{policy.glibc.replace('.', '_')}_{promised[3]}"
    msg = (
        f"libraries need {', '.join(sorted(missing)) or platform_tag}, which no manylinux policy "
        "has: the compiler's libstdc++, or the system's glibc, is newer than any of them"
    )
    hint = "compile with an older toolchain; if there is a newer policy, add it to manylinux.toml"
    raise BuildError(msg, hint=hint)


def above_ceiling(platform_tags: Iterable[str], versions: Iterable[str]) -> tuple[str, set[str]]:
    """Return the oldest glibc that platform tags promise, and the versions it lacks.

    Without a manylinux tag, nothing is promised. A tag may name a glibc between two policies: then
    the older policy's libstdc++ and other libraries apply.
    """
    promised = [glibc for tag in platform_tags if (glibc := promised_glibc(tag))]
    if not promised:
        return "", set()
    glibc = min(promised, key=_numbers)
    first, *later = load_manylinux().policies
    policies = [first, *(p for p in later if _numbers(p.glibc) <= _numbers(glibc))]
    words = {word for policy in policies for word in policy.words}
    needed = {v for v in versions if v.partition("_")[0] in first.newest} - words
    newest = policies[-1].newest | {"GLIBC": glibc}
    policy = msgspec.structs.replace(policies[-1], newest=newest)
    return glibc, {version for version in needed if not policy.allows(version)}


def promised_glibc(platform_tag: str) -> str:
    """Return the glibc of a manylinux tag, old or new; "" for other tags."""
    if tag := _TAG.fullmatch(platform_tag):
        return f"{tag[1]}.{tag[2]}"
    aliases = (policy for policy in load_manylinux().policies if policy.alias)
    return next((p.glibc for p in aliases if platform_tag.startswith(f"{p.alias}_")), "")


def image_for(glibc: str, machine: str) -> str:
    """Return the newest image whose wheels run with a glibc; "" if all images are newer."""
    rows = (row for row in load_manylinux().policies if _numbers(row.glibc) <= _numbers(glibc))
    images = [row.image for row in rows if row.image]
    return images[-1].replace("{machine}", machine) if images else ""


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(map(int, version.split(".")))


@cache
def load_manylinux() -> ManylinuxTable:
    """Read the table and check it."""
    return parse_manylinux(read_data("manylinux.toml"))


def parse_manylinux(text: str) -> ManylinuxTable:
    """Read the text of the table."""
    return parse_table("manylinux.toml", text, ManylinuxTable, _problems)


def _problems(table: ManylinuxTable) -> Iterator[str]:
    if not table.policies:
        yield "has no policies"
    for policy in table.policies:
        for number in (policy.glibc, *policy.newest.values()):
            if not _NUMBER.fullmatch(number):
                yield f"has a version that is not a number: `{number}`"
    for old, new in pairwise(table.policies):
        if _numbers(old.glibc) >= _numbers(new.glibc):
            yield f"has the policy for glibc {new.glibc} after that for {old.glibc}"
        if old.newest.keys() != new.newest.keys():
            yield f"has policies for {old.glibc} and {new.glibc} for different libraries"
        elif any(_numbers(new.newest[name]) < _numbers(old.newest[name]) for name in old.newest):
            yield f"has a policy for {new.glibc} that allows less than that for {old.glibc}"
