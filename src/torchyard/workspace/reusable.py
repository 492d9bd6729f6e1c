"""Jobs of a plan that need not run: nothing that they read has changed since another result."""

from torchyard.config.load import source_exclusions
from torchyard.errors import TorchyardError
from torchyard.host.files import absolute, dirname, join
from torchyard.host.tree import read_source_tree
from torchyard.model.config import Config
from torchyard.model.reads import show_reads
from torchyard.model.recipe import Stage
from torchyard.model.result import File, Tree
from torchyard.plan.graph import Job, Plan
from torchyard.plan.job_specs import make_job_spec
from torchyard.run.reuse import same_result
from torchyard.store.store import Store
from torchyard.store.urls import store_folder


def local_store(file: str, config: Config) -> Store | None:
    """Return the store of a file if it is a directory that exists: no other is asked unasked."""
    url = config.store if "://" in config.store else join(dirname(absolute(file)), config.store)
    folder = store_folder(url)
    return Store.at(str(folder), make=False) if folder and folder.is_dir() else None


def reusable_jobs(plan: Plan, store: Store, file: str) -> dict[str, str]:
    """Return the jobs without a result that need not run, by identifier, each with the reason."""
    return _Finder(plan, store, file).find()


class _Finder:
    """Follows the inputs of jobs, whose trees are those of results, or follow from them."""

    def __init__(self, plan: Plan, store: Store, file: str) -> None:
        self.plan, self.store, self.file = plan, store, file
        self.known = store.known(plan.fingerprints)
        self.found: dict[str, str] = {}
        self._trees: dict[int, Tree | None] = {}

    def find(self) -> dict[str, str]:
        for job in self.plan.jobs:
            if job.stage in (Stage.CORE, Stage.BINDINGS) and job.fingerprint not in self.known:
                self._tree(job)
        return self.found

    def _tree(self, job: Job) -> Tree | None:
        if job.number not in self._trees:
            try:
                self._trees[job.number] = self._find_tree(job)
            except (TorchyardError, UnicodeEncodeError):  # the job will say so
                self._trees[job.number] = None
        return self._trees[job.number]

    def _find_tree(self, job: Job) -> Tree | None:
        if job.fingerprint in self.known:
            result = self.store.find(job.fingerprint)
            return result.tree if result else None
        if job.stage is Stage.SOURCE:
            return self._read_source()
        inputs = {self.plan.jobs[n].fingerprint: self._tree(self.plan.jobs[n]) for n in job.inputs}
        trees = {name: tree for name, tree in inputs.items() if tree}
        result = same_result(make_job_spec(self.plan, job), trees, self.store)
        if result is None or result.reads is None:
            return None
        self.found[job.identifier] = show_reads(result.reads)
        return result.tree

    def _read_source(self) -> Tree | None:
        """Return what the snapshot of a directory would be; sizes and times play no part."""
        config, source = self.plan.config, self.plan.config.source
        if source.path is None or source.also or config.patches.texts:
            return None
        folder = join(dirname(absolute(self.file)), source.path)
        excluded = source_exclusions(source, self.file)
        found = read_source_tree(folder, excluded, include_ignored=source.include_ignored)
        if found.digest != source.digest:
            return None
        files = (
            File(path=path, digest=content, size=0, mtime=0, executable=kind == "program")
            for path, kind, content in found.files
            if kind != "link"
        )
        links = {path: content for path, kind, content in found.files if kind == "link"}
        return Tree(files=tuple(files), links=links)
