"""The table `[ci]` as written: the settings of generated CI files."""

from typing import Annotated

from msgspec import Meta, field

from torchyard.config.cell_spec import CellSpec, Globs
from torchyard.model.ci import CiEvent, HookPoint
from torchyard.model.values import Value


class CiRunnerSpec(CellSpec, kw_only=True):
    """Machines for some jobs, instead of the usual ones; the last entry that fits applies."""

    labels: Annotated[
        Globs, Meta(description="Label or labels of the machines: `self-hosted`, tags, a pool.")
    ]
    stage: Annotated[
        Globs | None,
        Meta(description="`source`, `core`, `package` (and bindings, check), `smoke`, `publish`."),
    ] = None
    capabilities: Annotated[
        list[str], Meta(description="Only for jobs with these needs, by [requirements].")
    ] = field(default_factory=list)
    image: Annotated[str, Meta(description="Container image that the jobs run in.")] = ""
    prepare: Annotated[
        list[str],
        Meta(description="Commands to run first, such as to free disk space or to add swap."),
    ] = field(default_factory=list)


class CiHookSpec(Value, kw_only=True):
    """A reusable workflow of your own, at a point of a pipeline."""

    at: Annotated[HookPoint, Meta(description="When it runs.")]
    name: Annotated[str, Meta(description="Name of its job; default: `after-build-1`.")] = ""
    uses: Annotated[
        str,
        Meta(
            description="`./.github/workflows/sign.yml`; for GitLab, a file with jobs to include."
        ),
    ]
    permissions: Annotated[
        dict[str, str], Meta(description="Permissions of its token; none by default.")
    ] = field(default_factory=dict)


class CiPipelineSpec(Value, kw_only=True):
    """When a part of the matrix is built, and where it is published."""

    on: Annotated[list[CiEvent], Meta(description="What starts it.")]
    title: Annotated[str, Meta(description="Name shown by the provider.")] = ""
    subset: Annotated[
        str | None,
        Meta(description="Subset to build; default: that of the channel, or everything."),
    ] = None
    cron: Annotated[str, Meta(description="When `schedule` starts it, in UTC: `7 3 * * *`.")] = ""
    branches: Annotated[
        list[str], Meta(description="Branches whose commits start it (`push`); default: all.")
    ] = field(default_factory=list)
    tags: Annotated[list[str], Meta(description="Globs over tags that start it (`tag`).")] = field(
        default_factory=list
    )
    label: Annotated[
        str, Meta(description="Only for pull requests that have this label (GitHub).")
    ] = ""
    channel: Annotated[str | None, Meta(description="Channel to publish to in the end.")] = None
    environment: Annotated[
        str,
        Meta(description="Environment that guards publishing; default: the name of the channel."),
    ] = ""
    role: Annotated[
        str, Meta(description="AWS role that the publisher takes on, by OpenID Connect.")
    ] = ""
    region: Annotated[str, Meta(description="AWS region of that role.")] = ""
    hook: Annotated[list[CiHookSpec], Meta(description="Your own jobs.")] = field(
        default_factory=list
    )
    store: Annotated[
        str,
        Meta(
            description="Store of its own: an address, or a directory, whose results are handed "
            "from job to job. Default: that of [store]."
        ),
    ] = ""
    all_jobs: Annotated[
        bool,
        Meta(description="Run all jobs for a pull request, also those that it does not affect."),
    ] = False


class RefreshSpec(Value, kw_only=True):
    """The rule of `torchyard ci refresh`."""

    torch: Annotated[
        Annotated[int, Meta(ge=0, le=20)],
        Meta(description="Build for this many of the newest torch releases (extension)."),
    ] = 0
    python: Annotated[
        Annotated[int, Meta(ge=0, le=20)],
        Meta(description="Build for this many of the newest Pythons that torch has wheels for."),
    ] = 0


class CiSpec(Value, kw_only=True):
    """The settings of generated CI files. They are part of no fingerprint."""

    providers: Annotated[
        list[str], Meta(description="Providers to write files for, such as `github`.")
    ] = field(default_factory=list)
    install: Annotated[
        str,
        Meta(
            description="Command that installs torchyard; `{extras}` becomes the optional parts "
            "that the cells need. Default, once PyPI has it: pip, in exactly this version."
        ),
    ] = ""
    python: Annotated[str, Meta(description="Python that runs torchyard.")] = ""
    time_limit: Annotated[
        str | None,
        Meta(description="How long a job may take, such as `5 h`; default: the provider's limit."),
    ] = None
    actions: Annotated[
        dict[str, str],
        Meta(description="Commits of actions, replacing torchyard's pins (GitHub)."),
    ] = field(default_factory=dict)
    refresh: Annotated[RefreshSpec, Meta(description="How the matrix follows new releases.")] = (
        RefreshSpec()
    )
    runner: Annotated[list[CiRunnerSpec], Meta(description="Machines for some jobs.")] = field(
        default_factory=list
    )
    pipeline: Annotated[
        dict[str, CiPipelineSpec],
        Meta(description="Pipelines; default: `pull-request`, and a manual one for each channel."),
    ] = field(default_factory=dict)
