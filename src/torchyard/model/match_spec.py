"""Requirements of conda packages, as solvers read them."""

import re

_LONGEST = 1000
"""Longer requirements are hostile: they would take long to read."""

_SPEC = re.compile(
    r"(?:[^\s:\[\]]++::)?(?P<name>[\w.-]++|\*)"
    r"(?P<version>\s*+[^\s\[;]++)?+(?P<build>\s++[^\s\[;]++)?+\s*+(?:\[[^\[\]]*+\])?(?:;.*)?"
)
_AROUND = re.compile(r"(?<=[=!<>~,|])\s+|\s+(?=[,|])")
_CLAUSE = re.compile(r"\(*(?:(?:[=!<>~]=|[=<>])?(?:\d++!)?[\w.*+-]+(?:=[\w.*+]+)?|\^\S*\$)\)*")


def match_spec_fault(text: str) -> str:
    """Return why solvers can't read a requirement such as `numpy >=2,<3`, or ""."""
    found = _SPEC.fullmatch(_AROUND.sub("", text.strip())) if len(text) < _LONGEST else None
    if found is None:
        return "is no name with a version and a build"
    version = (found["version"] or "").strip()
    wrong = [clause for clause in re.split(r"[,|]", version) if not _CLAUSE.fullmatch(clause)]
    return f"has `{wrong[0]}` as a version" if version and wrong else ""
