"""The subject of a rule: a package, what it should be, and the packages beside it."""

from functools import cached_property

from torchyard.checks.expected import Expected, expected_of
from torchyard.checks.policy import CheckPolicy
from torchyard.package.contents import Contents


class Subject:
    """A package under a policy. `others` are the packages that are checked together with it."""

    def __init__(
        self, contents: Contents, policy: CheckPolicy, others: tuple[Contents, ...] = ()
    ) -> None:
        self.contents = contents
        self.policy = policy
        self.others = others

    @cached_property
    def expected(self) -> Expected:
        """What the file's name promises, and the job specification that the package may carry."""
        return expected_of(self.contents)
