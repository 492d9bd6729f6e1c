"""The values of a configuration."""

from collections.abc import Sequence
from typing import Literal

from torchyard.config.show import Setting
from torchyard.model.values import Reported
from torchyard.terminal.tables import Lines, folded, table, word


class ConfigReport(Reported, kw_only=True):
    """`torchyard config show --json`."""

    version: Literal[1] = 1
    values: Sequence[Setting]


def config_show_text(report: ConfigReport) -> Lines:
    """List the key, value and origin of every setting."""
    columns = (word("key"), folded("value"), folded("from"))
    yield table(columns, ((value.key, value.value, value.origin) for value in report.values))
