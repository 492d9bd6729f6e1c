"""What is told has no secret in it."""

import pytest
from tests.support.helpers import Command

from torchyard.host import secrets
from torchyard.host.secrets import redact


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("key=word, token=wordy-token", "key=***, token=***"),
        ('{"token": "a\\"b\\"c"}', '{"token": "***"}'),
        ("https://me:it@example.org/x", "https://***@example.org/x"),
        ("nothing", "nothing"),
    ],
)
def test_no_secret_is_told_not_even_the_rest_of_one(text: str, told: str) -> None:
    assert redact(text, ["word", "wordy-token", 'a"b"c']) == told


@pytest.fixture
def earlier(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let an earlier test have run a command in this process that took a secret."""
    monkeypatch.setattr(secrets, "_taken", {"AWS_SECRET_ACCESS_KEY": "wrong"})


@pytest.mark.usefixtures("earlier")
def test_a_secret_of_another_test_hides_nothing(torchyard: Command) -> None:
    assert "wrong.toml" in torchyard("plan", "-f", "wrong.toml").err
