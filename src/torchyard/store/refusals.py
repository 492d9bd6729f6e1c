"""What a store says when it refuses, as people should read it."""

import errno
import re

from torchyard.errors import ElsewhereError

_SAID = re.compile(r"<Code>(.*?)</Code>\s*<Message>(.*?)</Message>", re.DOTALL)
"""What S3 says in the XML that it refuses with."""

_NOBODY = "169.254.169.254"
"""Where obstore asks who we are if no variable says it."""

_FULL = tuple(f"(os error {number})" for number in (errno.ENOSPC, errno.EDQUOT))


def unreachable(url: str, what: str, error: Exception) -> ElsewhereError:
    """Tell that a store could not do something, and what may help."""
    reason = plain_message(error)
    msg = f"the store `{url}` could not {what}: {reason}"
    if any(words in reason for words in _FULL):
        return ElsewhereError(msg, hint="make room: `torchyard store gc`", reason="disk")
    hint = "is it in reach, and may we do that there?"
    if _NOBODY in reason:
        hint = "let AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY say who we are"
    return ElsewhereError(msg, hint=hint, reason="network")


def plain_message(error: Exception) -> str:
    """What obstore says, without what only its authors want to know."""
    text = str(error).partition("\n\nDebug source")[0].strip()
    said = _SAID.search(text)
    return f"{said[1]}: {said[2]}" if said else text
