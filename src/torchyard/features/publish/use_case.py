"""Publish packages in a channel: from files and results, or from another channel."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial as bound
from pathlib import Path
from tempfile import TemporaryDirectory

from torchyard.checks.policies import load_policy, parse_policy
from torchyard.checks.policy import CheckPolicy
from torchyard.config.credentials import take_credentials
from torchyard.errors import TorchyardError, UsageError
from torchyard.features.publish.report import PublishReport
from torchyard.index.address import parse_index_url
from torchyard.model.config import ChannelConfig, Config
from torchyard.model.recipe import CELL_STAGES, Stage
from torchyard.model.result import Result
from torchyard.package.delivered import is_package_name
from torchyard.publish.channel.draft import ChangeReason
from torchyard.publish.gates import Demands, accept
from torchyard.publish.ops.promote import (
    Local,
    Route,
    gather_packages,
    head_for,
    promote,
    refuse_unsound_wheels,
    without_local,
)
from torchyard.publish.package_gates import parse_override
from torchyard.publish.plan_results import PlanResults
from torchyard.publish.select import parse_selection
from torchyard.publish.staged import Grouping, Package
from torchyard.publish.submit import Means, PublishRequest, Submitted, submit
from torchyard.recipes.publishing import CONFINED, input_path
from torchyard.smoke.package_under_test import read_package_under_test
from torchyard.smoke.request import smoke_request
from torchyard.smoke.smoke import smoke_here
from torchyard.store.makers import load_trust
from torchyard.store.trees import fetch_tree
from torchyard.workspace.channel_config import (
    channel_named,
    check_origin,
    load_if_present,
    plan_channel,
    planned_cells,
)
from torchyard.workspace.clock import current_date, current_moment
from torchyard.workspace.locations import channel_url, filling, made_home, open_channel, open_store
from torchyard.workspace.progress import Meter, ignore_line, no_meter, read_metered
from torchyard.workspace.toolchain_id import with_toolchain_id
from torchyard.workspace.torch_releases import kept_torches


def publish_packages(
    channel: str,
    packages: Sequence[str | Path] = (),
    *,
    file: str = "torchyard.toml",
    changes: Sequence[str] = (),
    store: str | None = None,
    partial: bool = False,
    external: Sequence[str] = (),
    upstream: Sequence[str] = (),
    overrides: Sequence[str] = (),
    variants: Grouping | None = None,
    policy: str | None = None,
    dry_run: bool = False,
    meter: Meter = no_meter,
    on_line: Callable[[str], None] = ignore_line,
) -> PublishReport:
    """Publish packages in a channel, all at once or not at all, and return the changes.

    Args:
        channel: Name of a channel of the file, or the address or directory of any.
        packages: Files and directories; by default all packages built for the channel.
        file: The configuration; optional if `channel` is an address.
        changes: Changes to it, each as `KEY=VALUE`.
        store: Store with the built packages, instead of the file's.
        partial: Publish although packages of the plan are missing.
        external: Globs of names that packages may require although the channel lacks them.
        upstream: Addresses of simple indexes with these; the channel stores both.
        overrides: Gates to ignore for a file, each as `GATE:FILE=REASON`.
        variants: What has a separate index, in a new channel.
        policy: How strictly to check, instead of the file's policy.
        dry_run: Only return what would be published.
        meter: Shows progress.
        on_line: Called with each line of smoke tests, if the channel requires these.

    Raises:
        PublishError: The channel refuses the packages; each diagnostic is a reason.
    """
    config = load_if_present(file, changes)
    known = channel_named(config, channel, file)
    check_origin(known, None, file)
    if not packages and (config is None or known is None):
        msg = f"it is unclear what to publish to `{channel}`? It is no channel of `{file}`"
        raise UsageError(msg, hint="name packages, or directories with packages")
    level = config.smoke.level if config else "ops"
    request = PublishRequest(
        paths=tuple(map(Path, packages)),
        policy=_policy(policy, config),
        demands=Demands(
            external=(*(known.external if known else ()), *external),
            upstream=(*(known.upstream if known else ()), *map(_index_url, upstream)),
            partial=partial,
            smoke=known.smoke if known else "planned",
            sandbox=known.sandbox if known else "any",
            overrides=tuple(map(parse_override, overrides)),
        ),
        trust=load_trust(),
        try_out=bound(_try_out, level=level, on_line=on_line),
        name=known.name if known else "",
        grouping=variants or (known.variants if known else None),
        dry_run=dry_run,
    )
    url = channel_url(channel, file)
    if config is None or known is None:
        return publish_request(url, request, meter)
    cells = planned_cells(plan_channel(config, known))
    demands = request.demands._replace(cells=cells, outputs=config.conda_outputs)
    with _stored_results(config, known, file, store, packages=not packages) as results:
        return publish_request(url, request._replace(demands=demands, results=results), meter)


def publish_request(url: str, request: PublishRequest, meter: Meter) -> PublishReport:
    """Run all checks and publish, or raise with every reason against it."""
    means = Means(
        now=current_moment(),
        torches=kept_torches,
        read=bound(read_metered, meter=meter),
        sending=bound(meter, "sending"),
    )
    with filling(url, dry_run=request.dry_run) as channel:
        done = submit(channel, request, means)
    return PublishReport.of(url, done, partial=request.demands.partial, dry_run=request.dry_run)


@contextmanager
def _stored_results(
    config: Config, channel: ChannelConfig, file: str, store_url: str | None, *, packages: bool
) -> Iterator[PlanResults | None]:
    """Yield a temporary layout of the reports of a plan's jobs, and of packages if wanted.

    If they are not, yield None on a machine without the store, or without the toolchain in
    fingerprints: then the plan's jobs are unknown.
    """
    try:
        store = open_store(store_url, file, config, make=False)
        plan = plan_channel(with_toolchain_id(config, file), channel)
    except TorchyardError:
        if packages:
            raise
        yield None
        return
    names = [job.fingerprint for job in plan.jobs if job.stage in CELL_STAGES]
    made: dict[str, str] = {}
    confined: list[str] = []
    with TemporaryDirectory(prefix="publish-", dir=made_home(file)) as folder:
        for result in store.results(names):
            task = result.spec.task
            if task.stage is Stage.PACKAGE:
                made.update(_packages_of(result))
                if channel.sandbox == "required" and store.is_confined(result):
                    confined.append(task.cell)
            if packages or task.stage is not Stage.PACKAGE:
                home = Path(folder, input_path(task, trusted=store.trust is not None))
                home.mkdir(parents=True)
                fetch_tree(store, result.delivery, home)
        Path(folder, CONFINED).write_text("\n".join(confined), encoding="utf-8")
        yield PlanResults(Path(folder), plan.label, made, config.conda_outputs)


def _packages_of(result: Result) -> dict[str, str]:
    """Return the cell of a package job's result, by the sha256 of its packages."""
    cell = result.spec.task.cell
    top = (file for file in result.tree.files if "/" not in file.path)
    return {file.digest: cell for file in top if is_package_name(file.path)}


def _try_out(
    packages: Sequence[Package],
    around: Sequence[Package],
    *,
    level: str,
    on_line: Callable[[str], None],
) -> set[str]:
    """Install packages in fresh environments, and return the sha256 of those that work."""
    take_credentials()  # no test sees them
    own = {id(package) for package in packages}
    tested = [read_package_under_test(package.path) for package in packages]
    beside = [read_package_under_test(p.path) for p in around if id(p) not in own]
    request = smoke_request(current_date(), level=level)
    results = smoke_here(tested, request, beside, tell=on_line)
    return {result.sha256 for result in results if result.works}


def _index_url(url: str) -> str:
    try:
        parsed = parse_index_url(url)
    except ValueError as error:
        raise UsageError(str(error), hint="--upstream https://… names a simple index") from error
    if "@" in parsed:
        msg = "an upstream contains a user name or password, which every reader would see"
        raise UsageError(msg, hint="remove them: installers have their own")
    return f"{parsed}/"


def _policy(name: str | None, config: Config | None) -> CheckPolicy:
    """Return the named policy, the file's, or the default one."""
    if name is None and config is not None and config.check.text:
        return parse_policy(config.check.policy, config.check.text)
    return load_policy(name or (config.check.policy if config else "default"))


def promote_packages(
    source: str,
    target: str,
    selectors: Sequence[str],
    *,
    variants: Sequence[str] = (),
    files: Sequence[str] = (),
    local: Local = "keep",
    partial: bool = False,
    external: Sequence[str] = (),
    overrides: Sequence[str] = (),
    dry_run: bool = False,
    file: str = "torchyard.toml",
    changes: Sequence[str] = (),
) -> PublishReport:
    """Copy files of one channel to another unchanged, and return the changes.

    Args:
        source: The channel to take files from: a name in the file, an address or a directory.
        target: The channel that gets them.
        selectors: Requirements that name the files: `torch==2.14.0`.
        variants: Globs; only files of these variants.
        files: Globs; only files of these names.
        local: Whether wheels and zips keep the local part of their version (`+cu130`) or drop it.
        partial: Promote although packages of the plan are missing.
        external: Globs of names that packages may require although the channel lacks them.
        overrides: Gates to ignore for a file, each as `GATE:FILE=REASON`.
        dry_run: Only return what would be promoted.
        file: The configuration.
        changes: Changes to it, each as `KEY=VALUE`.

    Raises:
        PublishError: The channel refuses the packages; each diagnostic is a reason.
    """
    demands = _demands(source, target, file, changes)
    demands = demands._replace(
        external=(*demands.external, *external),
        partial=partial,
        smoke="off",  # already smoke-tested by the source channel
        overrides=tuple(map(parse_override, overrides)),
    )
    selection = parse_selection(selectors, variants, files)
    origin = open_channel(source, file)
    now = current_moment()
    found = gather_packages(origin, selection, now, load_trust())
    url = channel_url(target, file)
    with (
        filling(url, dry_run=dry_run) as channel,
        TemporaryDirectory(prefix="promote-", dir=made_home(file)) as scratch,
    ):
        head = head_for(origin, channel, target)
        route = Route(origin, channel, Path(scratch))
        refuse_unsound_wheels(route, head, found)
        if local == "drop":
            found = without_local(route, head, found)
        packages = [promotion.package for promotion in found]
        demands = demands._replace(upstream=(*demands.upstream, *origin.head().upstream))
        head, verdict = accept(channel, head, packages, demands)
        left_out = dict.fromkeys(promotion.note for promotion in found if promotion.note)
        notes = (*verdict.notes, *left_out)
        done = Submitted(head.generation, verdict.packages, verdict.new, notes)
        if not dry_run:
            pairs = zip(found, verdict.packages, strict=True)
            found = [pair._replace(package=package) for pair, package in pairs]
            reason = ChangeReason(f"promote {selection} from {source}", now)
            promoted = promote(route, head, found, reason)
            done = done._replace(generation=promoted.head.generation, new=promoted.new)
    return PublishReport.of(url, done, partial=partial, dry_run=dry_run)


def _demands(source: str, target: str, file: str, changes: Sequence[str]) -> Demands:
    """Return the file's requirements for packages in their channel."""
    config = load_if_present(file, changes)
    channel = channel_named(config, target, file)
    if config is None or channel is None:
        return Demands()
    check_origin(channel, source, file)
    return Demands(
        cells=planned_cells(plan_channel(config, channel)),
        outputs=config.conda_outputs,
        external=channel.external,
        upstream=channel.upstream,
    )
