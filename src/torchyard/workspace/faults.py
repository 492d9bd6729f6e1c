"""Prepare errors for display and storage: as TorchyardErrors, without secrets."""

from torchyard.errors import Diagnostic, ElsewhereError, HostError, TorchyardError
from torchyard.host.files import is_full


def host_error(error: OSError) -> TorchyardError:
    """Return a HostError for an error of the operating system."""
    if is_full(error):
        hint = "free some space, and run the same command again"
        return ElsewhereError(f"the disk is full: {error}", hint=hint, reason="disk")
    return HostError(f"the machine refused: {error}")


def redacted_diagnostics(error: TorchyardError) -> tuple[Diagnostic, ...]:
    """Return the diagnostics of an error with the caller's secrets replaced."""
    from torchyard.config.credentials import without_secrets

    return tuple(
        Diagnostic(
            without_secrets(found.what),
            found.span and found.span._replace(text=without_secrets(found.span.text)),
            found.hint and without_secrets(found.hint),
        )
        for found in error.diagnostics
    )
