"""The store: blobs by the sha256 of their bytes, results by the fingerprint of their job.

A manifest is written last, and only if there is none, so a result is complete or absent, even after
a power cut: its blobs are synced first.
"""

from collections.abc import Collection, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor

from torchyard.errors import MISSING, StoreError, UsageError
from torchyard.host.decisions import decided
from torchyard.model.canonical import canonical_json
from torchyard.model.recipe import Stage
from torchyard.model.result import CONTINUED, Result
from torchyard.store.keys import RESULTS, UNFINISHED, key_name, result_key, unfinished_key
from torchyard.store.makers import KEY, Signer, Trust, load_signer, load_trust
from torchyard.store.manifest import decode_result
from torchyard.store.objects import Objects
from torchyard.store.signature import sign_result

THREADS = 16
"""Concurrent requests; they wait for the network, not for a processor."""

_FEW = 300
"""Up to this many results are requested one by one, which is faster than a listing."""

Unusable = dict[str, StoreError]
"""The reasons why manifests are unusable, by fingerprint."""


class Store:
    """Results and their files, kept in `objects`.

    With `trust`, only results of trusted makers count; with a `signer`, this machine is a maker.
    """

    def __init__(
        self, objects: Objects, signer: Signer | None = None, trust: Trust | None = None
    ) -> None:
        self.objects = objects
        self.trust = trust
        self.signer = signer

    @classmethod
    def at(cls, url: str, *, make: bool = True) -> "Store":
        return cls(Objects(url, make=make), load_signer(), load_trust())

    @property
    def url(self) -> str:
        return self.objects.url

    def has(self, fingerprint: str) -> bool:
        """Return whether there is a result; read it only if it must be signed."""
        if self.trust is None:
            return self.objects.head(result_key(fingerprint)) is not None
        try:
            return self.find(fingerprint) is not None
        except StoreError:
            return False

    def known(self, fingerprints: Collection[str]) -> set[str]:
        """Return the fingerprints that have a result."""
        if self.trust is None and len(fingerprints) > _FEW:
            return set(self.fingerprints()).intersection(fingerprints)
        with ThreadPoolExecutor(THREADS) as pool:
            found = pool.map(self.has, fingerprints)
            return {name for name, there in zip(fingerprints, found, strict=True) if there}

    def fingerprints(self) -> Iterator[str]:
        """Yield the fingerprint of every result."""
        for meta in self.objects.list(RESULTS):
            yield key_name(meta.key)

    def find(self, fingerprint: str) -> Result | None:
        data = self.objects.read(result_key(fingerprint))
        found = "no result" if data is None else "a result"
        decided(f"{self.url} has {found} {fingerprint[:12]}")
        return None if data is None else decode_result(data, fingerprint, self.trust)

    def is_confined(self, result: Result) -> bool:
        """Return whether a package and all its inputs were built from scratch in a sandbox.

        torchyard's own steps for the source need no sandbox; steps of the file may run any program.
        """
        tasks = (
            task
            for task in result.spec.tasks
            if task.stage is not Stage.SOURCE or "steps" in task.settings
        )
        made = (
            result if task.fingerprint == result.fingerprint else self.find(task.fingerprint)
            for task in tasks
        )
        return result.spec.is_whole and all(
            job is not None and job.facts.get("sandbox") == "bwrap" and CONTINUED not in job.facts
            for job in made
        )

    def get(self, fingerprint: str, what: str) -> Result:
        """Return the result of a job, or raise StoreError."""
        result = self.find(fingerprint)
        if result is None:
            msg = f"the store `{self.url}` has no result of {what}"
            hint = "`torchyard build` makes everything that a job needs"
            raise StoreError(msg, hint=hint, reason=MISSING)
        return result

    def results(
        self, fingerprints: Iterable[str] | None = None, unusable: Unusable | None = None
    ) -> Iterator[Result]:
        """Yield results, by default all; skip results removed meanwhile.

        The first unusable manifest raises StoreError, unless `unusable` collects them.
        """
        names = self.fingerprints() if fingerprints is None else fingerprints
        if unusable is None:
            with ThreadPoolExecutor(THREADS) as pool:
                yield from (found for found in pool.map(self.find, names) if found)
            return
        with ThreadPoolExecutor(THREADS) as pool:
            for name, found in pool.map(lambda name: (name, self._try(name)), names):
                if isinstance(found, StoreError):
                    unusable[name] = found
                elif found is not None:
                    yield found

    def _try(self, fingerprint: str) -> Result | StoreError | None:
        """Return a result, or why its manifest is unusable; raise if the store is unreachable."""
        try:
            key = result_key(fingerprint)
        except StoreError as error:
            return error
        data = self.objects.read(key)
        try:
            return None if data is None else decode_result(data, fingerprint, self.trust)
        except StoreError as error:
            return error

    def check_maker(self, stage: Stage) -> None:
        """Raise UsageError if results that this machine makes would not count here."""
        key = self.signer.key if self.signer else ""
        if self.trust and (why := self.trust.distrust(key, stage)):
            msg = f"a result of this machine would not count: {why}"
            raise UsageError(msg, hint=f"set {KEY}, and `torchyard store trust` its public key")

    def signed(self, result: Result, *, finished: bool = True) -> Result:
        """Return a result that this machine made, with its signature if it has a key."""
        return sign_result(result, self.signer, finished=finished) if self.signer else result

    def publish(self, result: Result) -> bool:
        """Write a manifest whose blobs all exist; return False if there was one already.

        The blobs are on the disk before the manifest; on return, the manifest is, too.
        """
        self.objects.sync()
        data = canonical_json(result)
        is_first = self.objects.create(result_key(result.fingerprint), data)
        self.objects.sync()
        return is_first

    def find_unfinished(self, fingerprint: str) -> Result | None:
        """Return what a job had finished when its time ran out, if a usable manifest was kept."""
        data = self.objects.read(unfinished_key(fingerprint))
        if data is None:
            return None
        try:
            return decode_result(data, fingerprint, self.trust, finished=False)
        except StoreError:  # nothing depends on it
            return None

    def all_unfinished(self) -> Iterator[Result]:
        """Yield the unfinished work of all jobs without a result."""
        names = {key_name(meta.key) for meta in self.objects.list(UNFINISHED)}
        for name in sorted(names - self.known(names)):
            if found := self.find_unfinished(name):
                yield found

    def keep_unfinished(self, result: Result) -> None:
        """Write a manifest of unfinished work whose blobs all exist, replacing an earlier one."""
        self.objects.sync()
        self.objects.write(unfinished_key(result.fingerprint), canonical_json(result))
