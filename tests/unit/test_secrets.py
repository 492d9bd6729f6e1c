"""What is told has no secret in it."""

import pytest

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
