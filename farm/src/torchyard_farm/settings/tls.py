"""The master's certificate: issued by the farm's own authority, or configured."""

import os
import platform
import re
import ssl
from collections.abc import Iterable
from contextlib import suppress
from datetime import datetime, timedelta
from ipaddress import ip_address
from pathlib import Path
from typing import NamedTuple

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    load_pem_private_key,
)
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from torchyard.errors import HostError, UsageError
from torchyard.host.durable import replace_durably
from torchyard.host.own_files import SECRET
from torchyard_farm.settings.farm import Farm, escaped

FOLDER = "tls"
"""The master's directory of its authority and its certificate."""

AUTHORITY = "ca.pem"
"""The authority's certificate, which workers need a copy of."""

_VALID = timedelta(days=2 * 365)
_RENEWED = timedelta(days=365)
"""A starting master renews a certificate with less validity than this."""

_AUTHORITY_VALID = timedelta(days=20 * 365)
_SKEW = timedelta(hours=1)
"""Tolerated difference of workers' clocks."""

_CERTIFICATE = re.compile(rb"-----BEGIN CERTIFICATE-----.+?-----END CERTIFICATE-----", re.DOTALL)


class CertificateFiles(NamedTuple):
    """The files of a master's certificate and key."""

    certificate: Path
    key: Path


class _Issuer(NamedTuple):
    certificate: x509.Certificate
    key: ec.EllipticCurvePrivateKey


def certificate_files(folder: Path, farm: Farm) -> CertificateFiles:
    """Return the files of a master's certificate and key."""
    if farm.certificate:
        return CertificateFiles(folder / farm.certificate, folder / farm.key)
    return CertificateFiles(folder / FOLDER / "master.pem", folder / FOLDER / "master.key")


def worker_endpoint(folder: Path, farm: Farm) -> str:
    """Return the endpoint at which a master listens for workers, in Twisted's syntax."""
    if not farm.tls:
        return farm.listen.endpoint
    identity = certificate_files(folder, farm)
    chain = ""
    if len(split_certificates(identity.certificate)) > 1:
        chain = f":extraCertChain={escaped(str(identity.certificate))}"
    return (
        f"ssl:{farm.listen.port}:interface={escaped(farm.listen.host)}"
        f":certKey={escaped(str(identity.certificate))}:privateKey={escaped(str(identity.key))}"
    ) + chain


def ensure_certificate(folder: Path, farm: Farm, now: datetime) -> None:
    """Issue a certificate unless there is a valid one; refuse an invalid configured one."""
    if not farm.tls:
        return
    identity = certificate_files(folder, farm)
    if not farm.certificate:
        names = _names_of(farm)
        if not _is_good(identity, names, now):
            (folder / FOLDER).mkdir(mode=0o700, exist_ok=True)
            _issue(_authority(folder / FOLDER, now), identity, names, now)
    try:
        _load(identity)
    except OSError as error:
        msg = f"`{identity.certificate}` with `{identity.key}` can't be loaded: {error}"
        raise HostError(
            msg, hint="`certificate` and `key` in farm.toml must be two PEM files"
        ) from error


def split_certificates(path: Path) -> list[bytes]:
    """Return the certificates in a PEM file."""
    found: list[bytes] = _CERTIFICATE.findall(path.read_bytes())
    return found


def install_authorities(path: Path, folder: Path) -> None:
    """Write each authority of a file to a separate file in a directory, for Twisted."""
    found = split_certificates(path)
    if not found:
        msg = f"`{path}` contains no certificate"
        raise UsageError(msg, hint=f"copy {FOLDER}/{AUTHORITY} from the master's directory")
    folder.mkdir(exist_ok=True)
    for old in folder.glob("*.pem"):
        old.unlink()
    for number, data in enumerate(found):
        (folder / f"{number}.pem").write_bytes(data + b"\n")


def _names_of(farm: Farm) -> list[str]:
    """Return the names by which workers may reach a master."""
    names = [farm.listen.host, platform.node(), "localhost"]
    return list(dict.fromkeys((*farm.names, *(name for name in names if not _is_wild(name)))))


def _is_wild(host: str) -> bool:
    with suppress(ValueError):
        return ip_address(host).is_unspecified
    return False


def _load(identity: CertificateFiles) -> None:
    """Load a certificate and its key like a server."""
    ssl.create_default_context(ssl.Purpose.CLIENT_AUTH).load_cert_chain(*identity)


def _is_good(identity: CertificateFiles, names: Iterable[str], now: datetime) -> bool:
    try:
        _load(identity)
    except OSError:  # one is missing, or the writer was killed before finishing
        return False
    certificate = x509.load_pem_x509_certificate(identity.certificate.read_bytes())
    alternatives = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    return alternatives == _alternatives(names) and certificate.not_valid_after_utc - now > _RENEWED


def _alternatives(names: Iterable[str]) -> x509.SubjectAlternativeName:
    return x509.SubjectAlternativeName([_general_name(name) for name in names])


def _general_name(name: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ip_address(name))
    except ValueError:
        return x509.DNSName(name)


def _authority(folder: Path, now: datetime) -> _Issuer:
    """Return the farm's own authority, which is created only once, as workers have copies."""
    path, key_path = folder / AUTHORITY, folder / "ca.key"
    if path.exists():
        read = load_pem_private_key(key_path.read_bytes(), password=None)
        assert isinstance(read, ec.EllipticCurvePrivateKey)  # noqa: S101 - as it was written
        return _Issuer(x509.load_pem_x509_certificate(path.read_bytes()), read)
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "torchyard farm")])
    rights = x509.KeyUsage(
        digital_signature=False,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        key_cert_sign=True,
        crl_sign=True,
        encipher_only=False,
        decipher_only=False,
    )
    made = (
        _builder(name, name, key, now, _AUTHORITY_VALID)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(rights, critical=True)
        .sign(key, hashes.SHA256())
    )
    _write_key(key_path, key)
    replace_durably(path, made.public_bytes(Encoding.PEM))
    return _Issuer(made, key)


def _issue(issuer: _Issuer, identity: CertificateFiles, names: list[str], now: datetime) -> None:
    """Sign a certificate for these names."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "torchyard farm master")])
    server = x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH])
    key_id = issuer.certificate.extensions.get_extension_for_class(x509.SubjectKeyIdentifier).value
    by = x509.AuthorityKeyIdentifier.from_issuer_subject_key_identifier(key_id)
    made = (
        _builder(name, issuer.certificate.subject, key, now, _VALID)
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(_alternatives(names), critical=False)
        .add_extension(server, critical=False)
        .add_extension(by, critical=False)
        .sign(issuer.key, hashes.SHA256())
    )
    _write_key(identity.key, key)
    identity.certificate.write_bytes(made.public_bytes(Encoding.PEM))


def _builder(
    subject: x509.Name,
    issuer: x509.Name,
    key: ec.EllipticCurvePrivateKey,
    now: datetime,
    valid: timedelta,
) -> x509.CertificateBuilder:
    public = key.public_key()
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(public)
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - _SKEW)
        .not_valid_after(now + valid)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(public), critical=False)
    )


def _write_key(path: Path, key: ec.EllipticCurvePrivateKey) -> None:
    """Write a key; the file is never readable for other users."""
    path.unlink(missing_ok=True)
    data = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as out:
        out.write(f"{SECRET}key\n".encode() + data)
