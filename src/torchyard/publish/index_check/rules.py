"""What can be wrong with an index, how bad that is, and why anybody should care."""

from collections import Counter
from collections.abc import Iterable, Mapping
from enum import StrEnum
from typing import NamedTuple

from torchyard.checks.rule import Severity

KEPT = 100
"""Findings of a rule that are told; of an index with millions of files, more help nobody."""


class IndexRule(StrEnum):
    """Everything that an index is looked at for."""

    PAGE = "index-page"
    HTML = "index-html"
    DIFFER = "index-json-html-differ"
    VERSION = "index-version"
    NAME = "index-name"
    LINK = "index-link-broken"
    ABSOLUTE = "index-absolute-link"
    HASH_MISSING = "index-hash-missing"
    HASH = "index-hash-wrong"
    SIZE = "index-size"
    PACKAGE = "index-package"
    SIDECAR_NONE = "index-sidecar-none"
    SIDECAR_MISSING = "index-sidecar-missing"
    SIDECAR = "index-sidecar-wrong"
    METADATA = "index-metadata-differs"
    PYTHON = "index-requires-python"
    PYTHON_NONE = "index-requires-python-none"
    YANKED = "index-yanked"
    UNRESOLVED = "index-unresolved"
    REPODATA = "index-repodata-differs"
    SHARD = "index-shard"
    RECORD = "index-record"
    NOARCH = "index-noarch"


class Judged(NamedTuple):
    """How bad what a rule finds is, and why."""

    severity: Severity
    reason: str


_ERROR, _WARNING, _NOTE = Severity.ERROR, Severity.WARNING, Severity.NOTE

RULES: Mapping[IndexRule, Judged] = {
    IndexRule.PAGE: Judged(_ERROR, "a page is not there, or can't be read"),
    IndexRule.HTML: Judged(_WARNING, "a page is not as PEP 503 wants it; some installers object"),
    IndexRule.DIFFER: Judged(
        _ERROR, "who reads one page is told other things than who reads another"
    ),
    IndexRule.VERSION: Judged(_ERROR, "a page breaks what its API version promises"),
    IndexRule.NAME: Judged(_ERROR, "installers won't find it, or take it for another project"),
    IndexRule.LINK: Judged(_ERROR, "a file that is offered is not there"),
    IndexRule.ABSOLUTE: Judged(_NOTE, "who mirrors the pages still sends readers to this address"),
    IndexRule.HASH_MISSING: Judged(_WARNING, "nobody can tell whether the file is the right one"),
    IndexRule.HASH: Judged(_ERROR, "installers refuse the file: its bytes are others"),
    IndexRule.SIZE: Judged(_ERROR, "the file is larger or smaller than the index says"),
    IndexRule.PACKAGE: Judged(_ERROR, "the file is no whole package"),
    IndexRule.SIDECAR_NONE: Judged(_NOTE, "resolvers have to download wheels to read METADATA"),
    IndexRule.SIDECAR_MISSING: Judged(_ERROR, "resolvers fail: promised METADATA is not there"),
    IndexRule.SIDECAR: Judged(_ERROR, "what is resolved is not what gets installed"),
    IndexRule.METADATA: Judged(_ERROR, "resolvers read one wheel's metadata for all of a version"),
    IndexRule.PYTHON: Judged(_ERROR, "installers choose files for the wrong Pythons"),
    IndexRule.PYTHON_NONE: Judged(_NOTE, "installers fetch files that their Python can't use"),
    IndexRule.YANKED: Judged(_NOTE, "only some files of a version are taken back"),
    IndexRule.UNRESOLVED: Judged(_ERROR, "whoever registers that name elsewhere gets installed"),
    IndexRule.REPODATA: Judged(_ERROR, "solvers see different channels, by what they read"),
    IndexRule.SHARD: Judged(_ERROR, "solvers that read shards fail"),
    IndexRule.RECORD: Judged(_ERROR, "what the index says of a package is not what it is"),
    IndexRule.NOARCH: Judged(_ERROR, "conda refuses a channel without noarch"),
}


class Finding(NamedTuple):
    """What a rule found, and on which page or in which file."""

    rule: IndexRule
    where: str
    what: str

    @property
    def severity(self) -> Severity:
        return RULES[self.rule].severity


class Findings:
    """Counts findings, and keeps some of each rule."""

    def __init__(self) -> None:
        self.counts: Counter[IndexRule] = Counter()
        self.kept: list[Finding] = []

    def add(self, findings: Iterable[Finding]) -> None:
        for finding in findings:
            self.counts[finding.rule] += 1
            if self.counts[finding.rule] <= KEPT:
                self.kept.append(finding)
