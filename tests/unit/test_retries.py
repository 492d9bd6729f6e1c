"""Errors of a store: which are final, and which are waited for."""

import pytest
from obstore.exceptions import GenericError

from torchyard.errors import ElsewhereError
from torchyard.store.objects import Objects
from torchyard.store.refusals import METADATA
from torchyard.store.retries import Retries

_NO_SERVICE = "http://127.0.0.1:9"


def test_a_machine_without_credentials_is_refused_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """The client asks a metadata service, which only machines of a cloud have."""
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("AWS_METADATA_ENDPOINT", _NO_SERVICE)
    monkeypatch.setenv("AWS_ENDPOINT_URL", _NO_SERVICE)
    monkeypatch.setattr("time.sleep", lambda seconds: pytest.fail("it is tried again"))
    with pytest.raises(ElsewhereError) as refusal:
        Objects("s3://packages/test").head("channel.json")
    told = "the store `s3://packages/test` could not look for channel.json: "
    assert str(refusal.value) == f"{told}there are no credentials for it"
    assert refusal.value.diagnostics[0].hint == "set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY"


def test_a_metadata_service_that_has_given_credentials_is_asked_again() -> None:
    """Roles expire during long builds, and the service may be busy for a moment."""
    retries = Retries("s3://packages/test", is_bucket=True)
    failures = [GenericError(f"PUT http://127.0.0.1:9{METADATA}: busy")]

    def ask() -> str:
        if failures:
            raise failures.pop()
        return "answer"

    retries.progress()
    assert retries.run("read", ask) == "answer"
