"""Repair packages; one that the checks find worse than before is not written."""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from shutil import rmtree

from torchyard.checks.check import apply_rules
from torchyard.checks.checked import CheckedPackage
from torchyard.checks.policies import load_policy
from torchyard.errors import CheckError, UsageError
from torchyard.features.repair.report import RepairedPackage, RepairReport
from torchyard.host.locks import locked
from torchyard.host.own_files import make_own_directory
from torchyard.model.quantity import show_count
from torchyard.package.repair.operations import (
    EVERYWHERE,
    Bundle,
    Operation,
    ReplaceNeeded,
    Retag,
    Reversion,
    SetRpath,
    Strip,
)
from torchyard.package.repair.repair import Repaired, new_name, repair, repair_target
from torchyard.package.wheel.platform_tags import refuse_unknown_platforms
from torchyard.workspace.clock import current_date
from torchyard.workspace.progress import Meter, no_meter, read_metered
from torchyard.workspace.torch_releases import kept_torches

_MOST_ERRORS = 3
"""The most new errors to name in a refusal; others are counted."""
_NONE = "none"
_POLICY = "policy"


def repair_packages(
    packages: Sequence[str | Path],
    *,
    output: str | Path,
    version: str | None = None,
    local: str | None = None,
    python_tag: str = "",
    abi_tag: str = "",
    platform_tag: str = "",
    rpath: str | None = None,
    needed: Sequence[str] = (),
    strip: bool = False,
    members: Sequence[str] = (),
    bundle: Sequence[str | Path] = (),
    compute: str = "",
    policy: str = "default",
    no_check: bool = False,
    meter: Meter = no_meter,
) -> RepairReport:
    """Check changed packages, and write them into a directory unless any is worse than before.

    Packages get their names in the directory only when all of them are made and checked. The
    arguments are the options of `torchyard repair`.

    Raises:
        CheckError: A package would have more errors than before; nothing is written.
    """
    globs = tuple(members) or EVERYWHERE
    tags = Retag(python=python_tag, abi=abi_tag, platform=platform_tag)
    operations = [
        *_labels(version, local, tags),
        *([Strip(members=globs)] if strip else []),
        *_rpaths(rpath, globs),
        *(_replaced(text, globs) for text in needed),
        *([Bundle(folders=tuple(map(Path, bundle)))] if bundle else []),
    ]
    if not operations:
        msg = "there is nothing to repair"
        raise UsageError(msg, hint="say what to change, such as --local cu130 or --rpath policy")
    if members and not (strip or needed or rpath is not None):
        msg = "--members has no effect without --rpath, --needed or --strip"
        raise UsageError(msg, hint="say what to do with them")
    paths = [Path(package) for package in packages]
    _refuse_twins(paths, operations)
    targets = [repair_target(path, operations, Path(output)) for path in paths]
    make_own_directory(Path(output))
    with _scratch(targets[0]) as scratch:
        made = [repair(path, operations, scratch, compute=compute) for path in paths]
        checked = None if no_check else _checked(paths, [p.path for p in made], policy, meter)
        placed = [_placed(*given) for given in zip(paths, made, targets, strict=True)]
    return RepairReport(packages=placed, check=checked)


@contextmanager
def _scratch(target: Path) -> Iterator[Path]:
    """Yield an empty directory beside a package; remove leftovers of killed processes."""
    folder, lock = (target.with_name(f".{target.name}{end}") for end in (".repair", ".lock"))
    with locked(lock, wait=True):
        rmtree(folder, ignore_errors=True)
        folder.mkdir()
        try:
            yield folder
        finally:
            rmtree(folder, ignore_errors=True)
            lock.unlink()


def _checked(
    before: Sequence[Path], after: Sequence[Path], policy: str, meter: Meter
) -> list[CheckedPackage]:
    """Check packages; refuse them if one has more errors than before."""
    found = _check(after, policy, meter)
    if any(package.errors for package in found):
        for old, new in zip(_check(before, policy, meter), found, strict=True):
            _refuse_worse(old, new)
    return found


def _check(paths: Sequence[Path], policy: str, meter: Meter) -> list[CheckedPackage]:
    contents = [read_metered(path, meter) for path in paths]
    return apply_rules(contents, load_policy(policy), current_date(), torches=kept_torches)


def _placed(source: Path, made: Repaired, target: Path) -> RepairedPackage:
    """Move a package and its debug information to the target."""
    debug = made.debug and made.debug.replace(target.with_name(made.debug.name))
    return RepairedPackage(
        source=str(source),
        path=str(made.path.replace(target)),
        bytes=target.stat().st_size,
        debug=str(debug) if debug else None,
        changes=made.changed,
        notes=made.notes,
    )


def _refuse_worse(old: CheckedPackage, new: CheckedPackage) -> None:
    """Raise CheckError if a package has more errors than the one that it was made of."""
    had, has = old.errors, new.errors
    if len(has) <= len(had):
        return
    rules = Counter(finding.rule for finding in had)
    grown = Counter(finding.rule for finding in has) - rules
    known = {(finding.rule, finding.member, finding.what) for finding in had}
    fresh = [f for f in has if f.rule in grown and (f.rule, f.member, f.what) not in known]
    listed = "; ".join(f"{f.rule}: {f.member} {f.what}" for f in fresh[:_MOST_ERRORS])
    more = len(fresh) - _MOST_ERRORS
    count = show_count(len(has), "error")
    msg = (
        f"`{new.file}` would have {count} where `{old.file}` has {len(had)}, so nothing was "
        f"written. New: {listed}{f'; and {more} more' if more > 0 else ''}"
    )
    hint = "change fewer files (--members), or write it anyway: --no-check"
    raise CheckError(msg, hint=hint)


def _labels(version: str | None, local: str | None, tags: Retag) -> Iterator[Operation]:
    if version is not None and local is not None:
        msg = "--version and --local contradict each other"
        raise UsageError(msg, hint="--version 2.13.0+cu130 sets both")
    if version is not None or local is not None:
        yield Reversion(version=version, local="" if local == _NONE else local)
    if tags.platform:
        refuse_unknown_platforms(tags.platform)
    if tags != Retag():
        yield tags


def _rpaths(rpath: str | None, globs: tuple[str, ...]) -> Iterator[Operation]:
    if rpath is not None:
        yield SetRpath(value=None if rpath == _POLICY else rpath, members=globs)


def _replaced(text: str, globs: tuple[str, ...]) -> Operation:
    old, equals, new = text.partition("=")
    if not equals or not (old or new):
        msg = f"`--needed {text}` does not show which library replaces which"
        raise UsageError(msg, hint="write OLD=NEW; OLD= to need it no longer, =NEW for one more")
    if not old and globs == EVERYWHERE:
        msg = f"`--needed {text}` would make every library need one more"
        raise UsageError(msg, hint="name the ones to change: --members torch/lib/libtorch_cpu.so")
    return ReplaceNeeded(old=old, new=new, members=globs)


def _refuse_twins(packages: Iterable[Path], operations: Sequence[Operation]) -> None:
    """Refuse two packages that would get the same name, before writing."""
    seen: dict[str, Path] = {}
    for package in packages:
        name = new_name(package.name, operations)
        if seen.setdefault(name, package) is not package:
            msg = f"`{seen[name]}` and `{package}` would both become `{name}`"
            raise UsageError(msg, hint="repair them separately, into two directories")
