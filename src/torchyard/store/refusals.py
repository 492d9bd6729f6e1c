"""Readable messages for a store's errors."""

import re

from torchyard.errors import ElsewhereError
from torchyard.host.files import says_full

_S3_ERROR = re.compile(r"<Code>(.*?)</Code>\s*<Message>(.*?)</Message>", re.DOTALL)
"""Code and message in the XML of an S3 error."""

METADATA = "/latest/api/token"
"""The path that obstore requests from a metadata service if there are no credentials."""


def unreachable(url: str, what: str, error: Exception) -> ElsewhereError:
    """Return the error for a failed operation of a store."""
    reason = plain_message(error)
    msg = f"the store `{url}` could not {what}: {reason}"
    if says_full(reason):
        return ElsewhereError(msg, hint="make room: `torchyard store gc`", reason="disk")
    hint = "is it reachable, and do the credentials allow that?"
    if METADATA in reason:
        msg = f"the store `{url}` could not {what}: there are no credentials for it"
        hint = "set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY"
    return ElsewhereError(msg, hint=hint, reason="network")


def plain_message(error: Exception) -> str:
    """Return the message of an obstore error, without its debugging output."""
    text = str(error).partition("\n\nDebug source")[0].strip()
    refusal = _S3_ERROR.search(text)
    return f"{refusal[1]}: {refusal[2]}" if refusal else text
