"""Generate files for CI providers from a file, and compare them with the existing ones."""

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from torchyard.ci.drift import GUARDED, ComparedFile, FileState, compare_file
from torchyard.ci.explain import PlacedJob, find_placed
from torchyard.config.load import load_config
from torchyard.errors import HostError, SelectionError, UsageError
from torchyard.host.files import absolute
from torchyard.model.config import Config
from torchyard.model.quantity import listed

if TYPE_CHECKING:  # slow to import
    from torchyard.ci.generate import Planner
    from torchyard.plan.graph import Plan


class CiWriter(NamedTuple):
    """The CI of a configuration file, in its repository."""

    config: Config
    file: str
    """The path of the configuration, relative to the repository."""
    top: Path
    providers: tuple[str, ...]

    @classmethod
    def of(
        cls, file: str, providers: Sequence[str] = (), changes: Sequence[str] = ()
    ) -> "CiWriter":
        """Load a file; its providers are those named here, in the file, or with files already."""
        from torchyard.ci.registry import find_provider
        from torchyard.host.git import is_checkout

        config = load_config(file, tuple(changes))
        path = Path(absolute(file))
        folders = [path.parent, *path.parent.parents]
        top = next(filter(is_checkout, folders), path.parent)
        names = tuple(providers) or config.ci.providers or tuple(_providers_in(top))
        if not names:
            from torchyard.ci.registry import provider_names

            msg = f"no CI provider is named; there are {listed(provider_names())}"
            hint = "name one, as in `torchyard ci generate github`, or set `providers` in [ci]"
            raise UsageError(msg, hint=hint)
        for name in names:
            find_provider(name)
        return cls(config, path.relative_to(top).as_posix(), top, names)

    def plan(self, subset: str | None) -> "Plan":
        """Return the plan of a subset, without the identity of this machine's compilers."""
        from torchyard.engines.builtin.local import check_steps
        from torchyard.plan.build import make_plan
        from torchyard.plan.select import PlanSelection

        plan = make_plan(self.config, PlanSelection(subset))
        check_steps(plan, {job.number for job in plan.jobs})
        return plan

    def possible_plan(self, subset: str | None) -> "Plan":
        """Return the plan of a subset; refuse it if no machine can build the source."""
        from torchyard.engines.admission import refuse_project
        from torchyard.workspace.plan import refuse_proof

        plan, file = self.plan(subset), str(self.top / self.file)
        refuse_proof(self.config, file)
        refuse_project(plan, range(len(plan)), file)
        return plan

    def compare(
        self,
        subset: str | None = None,
        say: Callable[[str], object] = str,
        planner: "Planner | None" = None,
    ) -> list[ComparedFile]:
        """Compare the files of all providers, or only those for one subset.

        `say` is called with each omitted part and the reason.
        """
        from torchyard.ci.generate import generate_files

        found = []
        for name in self.providers:
            texts = generate_files(
                name, self.config, planner or self.plan, file=self.file, only=subset, say=say
            )
            found += [self._compare(name, path, text) for path, text in texts.items()]
            if subset is None:
                found += self._left_over(name, texts)
        return found

    def _compare(self, provider: str, path: str, text: str) -> ComparedFile:
        target = self.top / path
        old = target.read_bytes().decode(errors="replace") if target.exists() else None
        return compare_file(provider, path, old, text)

    def _left_over(self, provider: str, texts: dict[str, str]) -> Iterator[ComparedFile]:
        """Yield files that torchyard wrote for a pipeline that no longer exists."""
        from torchyard.ci.provider import load_provider_table

        for path in _files_in(self.top, load_provider_table(provider).files):
            if path not in texts:
                yield ComparedFile(provider, path, FileState.LEFT_OVER)

    def write(
        self, subset: str | None = None, *, force: bool = False, say: Callable[[str], object] = str
    ) -> list[ComparedFile]:
        """Write outdated files, and remove leftovers.

        Overwrite edits, and files that torchyard did not write, only with `force`.
        """
        files = self.compare(subset, say, self.possible_plan)
        guarded = [file for file in files if file.state in GUARDED]
        if guarded and not force:
            first = guarded[0]
            problem = "has edits" if first.state is FileState.EDITED else "is not torchyard's"
            msg = f"`{first.path}` {problem}, which would be lost"
            hint = "[ci] has settings for machines, times and hooks; --force overwrites the file"
            raise HostError(msg, hint=hint)
        for compared in files:
            path = self.top / compared.path
            if compared.state is FileState.LEFT_OVER:
                path.unlink()
            elif compared.state is not FileState.CURRENT:
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(compared.text, encoding="utf-8", newline="")
        return files

    def explain(self, job: str) -> list[PlacedJob]:
        """Return where a job of the plan runs, or what a provider's job runs."""
        from torchyard.ci.generate import fold_all

        found = [
            running
            for name in self.providers
            for running in find_placed(
                name, fold_all(name, self.config, self.plan, file=self.file), job
            )
        ]
        if not found:
            msg = f"`{job}` is neither a job of the generated CI nor a job of the plan that it runs"
            raise SelectionError(
                msg, hint="`torchyard plan --list jobs` lists the jobs of the plan"
            )
        return found


def _providers_in(top: Path) -> Iterator[str]:
    """Yield the providers with files in a repository."""
    from torchyard.ci.provider import load_provider_table
    from torchyard.ci.registry import provider_names

    for name in provider_names():
        if any(_files_in(top, load_provider_table(name).files)):
            yield name


def _files_in(top: Path, globs: Sequence[str]) -> Iterator[str]:
    """Yield the paths of files written by torchyard."""
    from torchyard.ci.yaml import read_header

    for glob in globs:
        for path in sorted(top.glob(glob)):
            if read_header(path.read_text(encoding="utf-8", errors="replace")):
                yield path.relative_to(top).as_posix()
