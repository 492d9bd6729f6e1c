"""What a channel has to try: its files, to be installed from where users find them."""

from collections.abc import Iterable, Iterator

from torchyard.index.sort_keys import version_key
from torchyard.publish.channel.layout import parse_part
from torchyard.publish.resolve.compatibility import flavour_of
from torchyard.publish.select import Chosen, project_of
from torchyard.smoke.package_under_test import PackageUnderTest


def newest(chosen: Iterable[Chosen]) -> list[Chosen]:
    """Of files that differ in nothing but their version, the newest; none that was taken back."""
    found: dict[tuple[str, str, str], Chosen] = {}
    for one in chosen:
        if one.entry.yanked is not None:
            continue
        key = (one.part, one.entry.variant, _kin(one))
        if key not in found or version_key(found[key].entry.version) < version_key(
            one.entry.version
        ):
            found[key] = one
    return list(found.values())


def _kin(one: Chosen) -> str:
    """Return what a file shares with the same file of other versions."""
    entry = one.entry
    if entry.cell:
        return f"{project_of(parse_part(one.part), entry)}/{entry.cell.partition('/')[2]}"
    if parse_part(one.part).rules.MANY_PROJECTS:
        return project_of(parse_part(one.part), entry)
    return entry.file.replace(entry.version.replace("-", "_"), "", 1)


def packages_under_test(chosen: Iterable[Chosen], address: str) -> Iterator[PackageUnderTest]:
    """The same as packages to be tried; `address` is where readers find the channel."""
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
