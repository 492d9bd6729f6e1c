"""Commands and engines of other distributions: found when they are wanted, and only then."""

import json
import subprocess
import sys
from pathlib import Path
from zipfile import ZipFile

import pytest
from tests.support.helpers import make_project

COMMAND = """
import click
import msgspec
from typing import Annotated
from torchyard.model.build_result import BuildResult
from torchyard.model.event import Noted
class Digger(msgspec.Struct):
    spade: Annotated[str, msgspec.Meta(description="What to dig with.")] = "hands"
    def build(self, plan, store, context, on_event):
        on_event(Noted(text=f"digs {len(plan)} holes with {self.spade}"))
        return BuildResult(plan.label, [], [], "")
@click.command("dig")
def command() -> None:
    "Dig a hole."
    click.echo("dug")
"""


@pytest.fixture
def plug_in(tmp_path: Path) -> Path:
    """A directory in which a distribution is installed that brings the command `dig`."""
    metadata = tmp_path / "digger-1.0.dist-info"
    metadata.mkdir()
    (metadata / "METADATA").write_text("Name: digger\nVersion: 1.0\n", encoding="utf-8")
    points = "[torchyard.commands]\ndig = digger:command\nplan = digger:command\n"
    points += "[torchyard.engines]\ndig = digger:Digger\nlocal = digger:Digger\n"
    (metadata / "entry_points.txt").write_text(points, encoding="utf-8")
    (tmp_path / "digger.py").write_text(COMMAND, encoding="utf-8")
    return tmp_path


def run(place: Path, *args: str) -> subprocess.CompletedProcess[str]:
    code = f"import sys; sys.path.append({str(place)!r}); from torchyard.cli.main import main; "
    code += f"sys.argv = ['torchyard', *{args!r}]; main()"
    return subprocess.run([sys.executable, "-c", code], check=False, capture_output=True, text=True)


def test_a_command_of_another_distribution_is_run_and_listed(plug_in: Path) -> None:
    assert run(plug_in, "dig").stdout == "dug\n"
    assert "Dig a hole." in run(plug_in, "--help").stdout
    assert "dig" in run(plug_in, "digg").stderr


def test_our_own_commands_cannot_be_replaced(plug_in: Path) -> None:
    assert "Dig a hole." not in run(plug_in, "plan", "--help").stdout


def test_one_that_cannot_be_loaded_is_told(plug_in: Path) -> None:
    (plug_in / "digger.py").write_text("import nothing_of_this_name", encoding="utf-8")
    ended = run(plug_in, "dig")
    assert ended.returncode == 7
    assert "comes from digger, which can't be loaded: No module named" in ended.stderr


def test_a_broken_engine_leaves_the_help_of_build(plug_in: Path) -> None:
    (plug_in / "digger.py").write_text("", encoding="utf-8")
    shown = run(plug_in, "build", "--help")
    assert shown.returncode == 0
    assert "--keep-going" in shown.stdout
    assert "which can't be loaded: module 'digger' has no" in " ".join(shown.stdout.split())
    refused = run(plug_in, "build", "--engine", "dig")
    assert refused.returncode == 7
    assert "install it again: pip install digger" in refused.stderr


def test_an_engine_of_another_distribution_builds(plug_in: Path) -> None:
    file = str(make_project(plug_in / "project"))
    built = run(plug_in, "build", "-f", file, "--engine", "dig")
    assert (built.returncode, built.stderr) == (0, "note     digs 10 holes with hands\n")
    built = run(plug_in, "build", "-f", file, "--engine=dig", "--spade", "a spade")
    assert (built.returncode, built.stderr) == (0, "note     digs 10 holes with a spade\n")
    refused = run(plug_in, "build", "-f", file, "--engine", "digg")
    assert refused.returncode == 2
    assert "there is no engine `digg`" in refused.stderr
    assert "did you mean `dig`?" in refused.stderr
    assert "holes" not in run(plug_in, "build", "-f", file).stderr


def test_nobody_looks_for_plug_ins_who_wants_a_command_of_ours() -> None:
    code = "import sys; from torchyard.cli.main import torchyard; "
    code += "torchyard(['config', 'schema'], standalone_mode=False); "
    code += "sys.exit('importlib.metadata' in sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True, stdout=subprocess.DEVNULL)


RULE = """
from torchyard.checks.rule import Hit, Severity, rule
@rule("own-readme", Severity.WARNING, "readers look for it first")
def own_readme(subject):
    \"\"\"The wheel has no file `README.md`.

    Readers look for it first.

    Add one.\"\"\"
    if "README.md" not in subject.contents.files:
        yield Hit("there is no README.md")
"""


@pytest.fixture
def rules(plug_in: Path) -> Path:
    """The same, with a rule of its own beside the command."""
    points = plug_in / "digger-1.0.dist-info" / "entry_points.txt"
    text = points.read_text(encoding="utf-8")
    points.write_text(f"{text}[torchyard.rules]\ndig = digger_rules\n", encoding="utf-8")
    (plug_in / "digger_rules.py").write_text(RULE, encoding="utf-8")
    return plug_in


def test_a_rule_of_another_distribution_is_applied_and_explained(rules: Path) -> None:
    assert (
        "The wheel has no file `README.md`." in run(rules, "explain", "rule", "own-readme").stdout
    )
    with ZipFile(rules / "x-1-py3-none-any.whl", "w") as wheel:
        wheel.writestr("x.py", "")
    policy = rules / "own.toml"
    policy.write_text('[severity]\nown-readme = "error"\n', encoding="utf-8")
    for name, severity in (("default", "warning"), (str(policy), "error")):
        ended = run(rules, "check", str(rules / "x-1-py3-none-any.whl"), "--policy", name)
        assert f"{severity} own-readme\n  there is no README.md" in ended.stdout


def test_evidence_names_the_rules_of_other_distributions(rules: Path) -> None:
    with ZipFile(rules / "x-1-py3-none-any.whl", "w") as wheel:
        wheel.writestr("x.py", "")

    def digest() -> str:
        ended = run(rules, "check", str(rules / "x-1-py3-none-any.whl"), "--json")
        document: dict[str, str] = json.loads(ended.stdout)
        return document["policy_digest"]

    with_rule = digest()
    metadata = rules / "digger-1.0.dist-info" / "METADATA"
    metadata.write_text("Name: digger\nVersion: 1.1\n", encoding="utf-8")
    assert digest() != with_rule
    metadata.write_text("Name: digger\nVersion: 1.0\n", encoding="utf-8")
    assert digest() == with_rule
    (rules / "digger_rules.py").write_text(RULE.replace("own-readme", "other"), encoding="utf-8")
    with_other = digest()
    (rules / "digger_rules.py").write_text("", encoding="utf-8")
    assert len({with_rule, with_other, digest()}) == 3


def test_two_distributions_with_one_name_are_refused(rules: Path) -> None:
    metadata = rules / "other-1.0.dist-info"
    metadata.mkdir()
    (metadata / "METADATA").write_text("Name: other\nVersion: 1.0\n", encoding="utf-8")
    (metadata / "entry_points.txt").write_text("[torchyard.rules]\ndig = os\n", encoding="utf-8")
    ended = run(rules, "explain", "rule")
    assert ended.returncode == 7
    assert "both define `dig` for torchyard.rules" in ended.stderr


def test_a_rule_of_another_distribution_cannot_replace_ours(rules: Path) -> None:
    text = RULE.replace("own-readme", "top-level")
    (rules / "digger_rules.py").write_text(text, encoding="utf-8")
    ended = run(rules, "explain", "rule")
    assert ended.returncode == 7
    assert "there are two rules `top-level`" in ended.stderr


def test_rules_that_cannot_be_loaded_are_named(rules: Path) -> None:
    (rules / "digger_rules.py").write_text("import nothing_of_this_name", encoding="utf-8")
    ended = run(rules, "explain", "rule")
    assert ended.returncode == 7
    assert "`rules of dig` comes from digger, which can't be loaded" in ended.stderr
