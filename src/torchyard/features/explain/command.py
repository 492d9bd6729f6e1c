"""`torchyard explain`: why something is or is not in the plan, and the purpose of rules."""

import click

from torchyard.cli.lazy_group import HelpSection, in_section
from torchyard.cli.options import file_option, names_argument, set_option
from torchyard.cli.output import reports


@in_section(HelpSection.UNDERSTAND)
@click.command("explain")
@names_argument("words", nargs=-1, required=True, metavar="SELECTOR... | rule [RULE]")
@file_option
@set_option
@click.option("--against", metavar="OLD", help="Show changes since OLD: a file or a git revision.")
@reports("explain_names")
def command() -> None:
    """Explain why cells and jobs exist, and what they share.

    It lists what their fingerprints contain.

    `explain rule` lists the rules of `torchyard check` and `torchyard channel check`, and `explain
    rule RULE` shows why a rule matters, and how to fix its findings. RULE may be a glob, such as
    'index-*', which lists the matching rules.
    """
