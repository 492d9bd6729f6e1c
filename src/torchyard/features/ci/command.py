"""`torchyard ci`: files for CI providers, generated from the matrix."""

import click

from torchyard.cli.lazy_group import HelpSection, LazyGroup, in_section
from torchyard.cli.options import (
    file_option,
    names_argument,
    set_option,
    store_option,
    subset_option,
)
from torchyard.cli.output import calls, reports

providers_argument = click.argument("providers", nargs=-1, metavar="[PROVIDER]...")


@in_section(HelpSection.OPERATE)
@click.group("ci", cls=LazyGroup)
def command() -> None:
    """Generate the files of CI providers from the matrix.

    Each job of a generated file is a torchyard command; the file has no logic of its own.
    """


@command.command("check")
@providers_argument
@file_option
@reports("compare_ci_files")
def ci_check() -> None:
    """Fail if a generated file was edited, or is out of date.

    It shows the difference, and the command that fixes it.
    """


@command.command("explain")
@names_argument("job")
@providers_argument
@file_option
@reports("explain_ci_job")
def ci_explain() -> None:
    """Show the machine and command of JOB, and the jobs it waits for.

    JOB is a selector of jobs of the plan (core:cu130), or the name of a job in a generated
    file.
    """


@command.command("generate")
@providers_argument
@file_option
@set_option
@subset_option
@click.option("--force", is_flag=True, help="Overwrite edits, and files not written by torchyard.")
@reports("write_ci_files")
def ci_generate() -> None:
    """Write the files of PROVIDER, such as github or gitlab.

    By default, those of [ci], or of providers with files in the repository. With --subset, only the
    pipelines that build it. Packages that no machine of the provider can build are left out, with
    a reason. Commit the files: `torchyard ci check` compares them.
    """


@command.command("impact")
@click.argument("span", metavar="BASE..[HEAD]")
@file_option
@subset_option
@click.option("--provider", help="Print the text with which this provider runs only those jobs.")
@click.option("--pipeline", metavar="NAME", help="Pipeline of the jobs.")
@click.option("-o", "--output", metavar="FILE", help="Write that to a file.")
@store_option
@reports("find_impact")
def ci_impact() -> None:
    """Show which jobs a change of the repository affects.

    Both commits are planned with all their files, including a source directory. All other jobs keep
    their results from BASE. Jobs that compile, and read nothing that has changed, are not affected
    either, if the store has their results.

    Generated files use --provider and --pipeline: then these are the provider's jobs that run
    affected jobs or make their inputs. Without BASE, these are all.
    """


@command.command("pins")
@click.option("--host", metavar="URL", help="Address of the actions' repositories.")
@calls("newest_pins")
def ci_pins() -> None:
    """Print [ci.actions] with the newest release of each action.

    Releases are named by the hash of their commit. After a review of their changes, put them into
    the file to use them instead of torchyard's pins.
    """


@command.command("refresh")
@file_option
@click.option("--write", is_flag=True, help="Edit the file, and lock new environments.")
@reports("refresh_matrix")
def ci_refresh() -> None:
    """Show the matrix for the newest torch releases of the index.

    [ci.refresh] in the file says how many of the newest to build for. Only packages that appear
    have to be built: others keep their fingerprints.
    """
