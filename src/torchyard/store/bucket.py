"""Opening a bucket: its address, its credentials, and how long to wait for its server."""

import os
from datetime import timedelta
from typing import TYPE_CHECKING, cast

from obstore.exceptions import BaseError
from obstore.store import S3Store

from torchyard.errors import UsageError
from torchyard.host.files import read_text
from torchyard.host.network_settings import network_settings
from torchyard.host.secrets import taken
from torchyard.store import retries
from torchyard.store.refusals import plain_message
from torchyard.store.urls import URL_FORMS, bucket_name

if TYPE_CHECKING:
    from obstore.store import ClientConfig, S3Config

SILENCE = 30.0
"""Seconds without a byte of a response after which a request counts as lost."""


def open_bucket(url: str) -> S3Store:
    """Open a bucket; server and credentials come from AWS's own variables."""
    if "@" in bucket_name(url):
        msg = f"`{url}` holds a name or a password, which logs and results would reveal"
        raise UsageError(msg, hint="set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY instead")
    try:
        return S3Store.from_url(
            url,
            config={"copy_if_not_exists": "header:if-none-match:*", **_credentials()},
            client_options={
                "allow_http": True,
                "connect_timeout": timedelta(seconds=5),
                "read_timeout": timedelta(seconds=SILENCE),
                "timeout": timedelta(seconds=10 * SILENCE),
                **_network(),
            },
            retry_config={
                "max_retries": 6,
                "retry_timeout": timedelta(seconds=retries.PATIENCE),
            },
        )
    except BaseError as error:
        msg = f"`{url}` is not the address of a store: {plain_message(error)}"
        raise UsageError(msg, hint=URL_FORMS) from error


def _credentials() -> "S3Config":
    """Return the credentials that torchyard took out of the environment, hidden from obstore."""
    names = [name for name in taken() if name.startswith("AWS_") and name not in os.environ]
    return cast("S3Config", {name.lower(): taken()[name] for name in names})


def _network() -> "ClientConfig":
    """Return this machine's proxy and certificate authorities."""
    settings = network_settings()
    server = os.environ.get("AWS_ENDPOINT_URL_S3") or os.environ.get("AWS_ENDPOINT_URL")
    found: ClientConfig = {}
    if proxy := settings.proxy_for(server or "https://s3.amazonaws.com"):
        found["proxy_url"] = proxy
    if settings.authorities:
        found["root_certificate"] = read_text(settings.authorities)
    return found
