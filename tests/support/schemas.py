"""Validates what commands read and print by the schemas that `torchyard config schema` prints."""

import json
from functools import cache

import click
import jsonschema

from torchyard.cli.main import torchyard
from torchyard.cli.schemas import schema_text


def validate(document: object, name: str) -> None:
    """Raise `jsonschema.ValidationError` unless a document follows its schema."""
    _validator(name).validate(document)


@cache
def _validator(name: str) -> jsonschema.Draft202012Validator:
    schema = json.loads(schema_text(name, click.Context(torchyard, info_name="torchyard")))
    jsonschema.Draft202012Validator.check_schema(schema)
    return jsonschema.Draft202012Validator(schema)
