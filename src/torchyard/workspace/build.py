"""Build the packages of a file."""

from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

from torchyard.config.credentials import take_credentials
from torchyard.engines.builtin.local import LocalEngine
from torchyard.engines.engine import BuildContext, Engine
from torchyard.errors import UsageError
from torchyard.host.files import absolute
from torchyard.model.build_result import BuildResult
from torchyard.model.config import Config
from torchyard.model.event import Listener
from torchyard.model.recipe import Stage
from torchyard.plan.graph import Plan
from torchyard.store.store import Store
from torchyard.store.trees import fetch_all
from torchyard.workspace.build_request import BuildRequest
from torchyard.workspace.locations import compile_cache_url, home_directory
from torchyard.workspace.plan import refuse_proof
from torchyard.workspace.watch import new_folder, watching


def build_packages(request: BuildRequest, listeners: Iterable[Listener] = ()) -> BuildResult:
    """Build the packages of a file that are not in its store; return each job's outcome.

    Args:
        request: What to build, and how.
        listeners: Called with every event of the build.

    Raises:
        BuildError: Jobs failed; if all failed with the same TorchyardError, that is raised.
        KeyboardInterrupt: The build was interrupted; the same call continues it.
    """
    build = prepare_build(request)
    result = build.run(listeners)
    if error := result.error():
        raise error
    if result.is_interrupted:
        raise KeyboardInterrupt(result.onward)
    build.deliver()
    return result


class PreparedBuild(NamedTuple):
    """A build that is ready to run."""

    plan: Plan
    store: Store
    engine: Engine
    context: BuildContext
    output: Path | None

    @property
    def work(self) -> Path | None:
        """The directory of the jobs' directories, if they run on this machine."""
        if isinstance(self.engine, LocalEngine):
            return self.engine.work_directory(self.context.home)
        return None

    @property
    def unproven(self) -> str:
        """The stages of a package's proof that the selection omits, as the end of a sentence."""
        stages = {job.stage for job in self.plan.jobs}
        proofs = {Stage.CHECK: "checked", Stage.SMOKE: "smoke tested"}
        missing = [word for stage, word in proofs.items() if stage not in stages]
        return f"; not {' or '.join(missing)}, which is not selected" if missing else ""

    def run(self, listeners: Iterable[Listener] = ()) -> BuildResult:
        """Run the build, and return its outcome, even if jobs failed."""
        with watching(self.context.folder, listeners) as on_event:
            return self.engine.build(self.plan, self.store, self.context, on_event)

    def deliver(self) -> list[Path]:
        """Copy all packages to the output directory, and return their paths.

        Do nothing without an output directory.
        """
        if self.output is None:
            return []
        packages = (job for job in self.plan.jobs if job.stage is Stage.PACKAGE)
        results = [self.store.get(job.fingerprint, job.identifier) for job in packages]
        return fetch_all(self.store, results, self.output)


def prepare_build(request: BuildRequest) -> PreparedBuild:
    """Plan a build and open its store; refuse what would only fail after hours of compiling.

    Secret variables are removed from this process's environment first, so neither jobs nor the
    compilers that are asked for their versions inherit them.
    """
    take_credentials()
    plan = request.plan()
    file, output = request.file, request.output
    config = plan.config
    _refuse_inside(config, file, output)
    refuse_proof(config, file)
    return PreparedBuild(
        plan=plan,
        store=request.open_store(config),
        engine=request.engine or LocalEngine(),
        context=BuildContext(
            folder=new_folder(file),
            home=Path(home_directory(file)),
            file=absolute(file),
            cache=compile_cache_url(file, config),
            copies=config.copies,
            keep_going=request.keep_going,
        ),
        output=Path(output) if output else None,
    )


def _refuse_inside(config: Config, file: str, output: str | Path | None) -> None:
    """Refuse an output directory whose packages would be part of the next build's source.

    A new or empty directory is allowed: it is marked as torchyard's, and so no part of the source.
    """
    if output and config.source.path is not None:
        source = (Path(absolute(file)).parent / config.source.path).resolve()
        folder = Path(absolute(str(output)))
        left_out = (Path(home_directory(file)), *(source / name for name in config.left_out))
        is_ours = any(map(folder.is_relative_to, left_out)) or not (
            folder.exists() and any(folder.iterdir())
        )
        if folder.is_relative_to(source) and not is_ours:
            msg = f"`{output}` is inside the source directory, and would be part of the next build"
            raise UsageError(msg, hint="choose a directory beside it, or one under .torchyard")
