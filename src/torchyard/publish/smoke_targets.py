"""The files of a channel to smoke-test, installed from the users' address."""

from collections.abc import Iterable, Iterator

from torchyard.index.sort_keys import version_key
from torchyard.publish.channel.layout import parse_part
from torchyard.publish.resolve.compatibility import flavour_of
from torchyard.publish.select import Chosen, project_of
from torchyard.smoke.package_under_test import PackageUnderTest


def newest(chosen: Iterable[Chosen]) -> list[Chosen]:
    """Return the newest, without yanked ones, of files that differ only in their version."""
    found: dict[tuple[str, str, str], Chosen] = {}
    for file in chosen:
        if file.entry.yanked is not None:
            continue
        key = (file.part, file.entry.variant, _kin(file))
        if key not in found or version_key(found[key].entry.version) < version_key(
            file.entry.version
        ):
            found[key] = file
    return list(found.values())


def _kin(file: Chosen) -> str:
    """Return what identifies the same file in other versions."""
    entry = file.entry
    if entry.cell:
        return f"{project_of(parse_part(file.part), entry)}/{entry.cell.partition('/')[2]}"
    if parse_part(file.part).rules.MANY_PROJECTS:
        return project_of(parse_part(file.part), entry)
    return entry.file.replace(entry.version.replace("-", "_"), "", 1)


def packages_under_test(chosen: Iterable[Chosen], address: str) -> Iterator[PackageUnderTest]:
    """Return the files as packages under test; `address` is the channel's for readers."""
    for name, entry in chosen:
        part = parse_part(name)
        compute, _ = flavour_of(entry)
        found = part.rules.source(part.name, entry, address)
        yield PackageUnderTest(
            path=entry.file,
            format=part.rules.FORMAT,
            name=found.name,
            build=found.build,
            subdir=found.subdir,
            index=found.url,
            version=entry.version,
            compute=compute,
            commit=entry.commit,
        )
