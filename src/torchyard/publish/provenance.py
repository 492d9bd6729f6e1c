"""Provenances (PEP 740) of files: verified with sigstore, or not published."""

import logging
from threading import Lock

from torchyard.errors import PublishError
from torchyard.host.entry_points import require_module

LARGEST_PROVENANCE = 1 << 20

_LOCK = Lock()
"""The library writes sigstore's keys to a cache when it is first used, and reads them there."""

_HINT = "write it again, or remove it"


def check_provenance(file: str, data: bytes, sha256: str) -> None:
    """Raise PublishError unless all attestations of a provenance are genuine, and about this file.

    The bundle's publisher has signed each of them, by a certificate of sigstore, and the signature
    is in sigstore's log. No server is asked: sigstore's keys came with the library, or a program of
    sigstore has fetched them for this user since.
    """
    require_module("pypi_attestations", "provenances", "pypi-attestations")
    from pypi_attestations import Distribution, Provenance  # noqa: PLC0415 - an optional extra

    logging.getLogger("sigstore").setLevel(logging.ERROR)  # it warns that it is offline
    try:
        provenance = Provenance.model_validate_json(data)
    except ValueError as error:
        msg = f"the provenance of `{file}` is none (PEP 740): {str(error).splitlines()[0]}"
        raise PublishError(msg, hint=_HINT) from error
    attested = [(b.publisher, a) for b in provenance.attestation_bundles for a in b.attestations]
    if not attested:
        msg = f"the provenance of `{file}` has no attestation"
        raise PublishError(msg, hint=_HINT)
    try:
        with _LOCK:
            for publisher, attestation in attested:
                attestation.verify(publisher, Distribution(name=file, digest=sha256), offline=True)
    except Exception as error:  # certificates and log entries of anybody raise errors of any kind
        msg = f"the provenance of `{file}` can't be verified: {error}"
        raise PublishError(msg, hint=_HINT) from error
