"""The subject of a rule: a package, what it should be, and the packages beside it."""

from collections.abc import Callable, Sequence
from functools import cached_property

from torchyard.checks.expected import Expected, expected_of
from torchyard.checks.policy import CheckPolicy
from torchyard.checks.torch_symbols import TorchSymbols
from torchyard.model.job_spec import JobSpec
from torchyard.package.contents import Contents

Torches = Callable[[], Sequence[TorchSymbols]]
"""A function that returns the torch releases with known symbols."""


class Subject:
    """A package under a policy. `others` are the packages checked together with it.

    `spec` is the specification of the job that delivered it, if known. It does not come
    from the package. `torches` returns the releases to compare an extension with.
    """

    def __init__(
        self,
        contents: Contents,
        policy: CheckPolicy,
        others: tuple[Contents, ...] = (),
        spec: JobSpec | None = None,
        torches: Torches = tuple,
    ) -> None:
        self.contents = contents
        self.policy = policy
        self.others = others
        self.spec = spec
        self.torches = torches

    @cached_property
    def expected(self) -> Expected:
        """The expectations from the file's name and the spec of its job."""
        return expected_of(self.contents, self.spec)
