"""The JSON schema of `torchyard.toml`, for editors and for the reference."""

from typing import Any

import msgspec

from torchyard.config.recipes import known_recipes
from torchyard.config.spec import FileSpec
from torchyard.model.recipe import Dimension, Stage
from torchyard.model.tables import Tables

_OPEN = (Dimension.COMPUTE, Dimension.TORCH, Dimension.PYTHON)
"""Dimensions with values that [tables] can add."""

DIALECT = {"$schema": "https://json-schema.org/draft/2020-12/schema"}
Schema = dict[str, Any]  # type: ignore[explicit-any] # JSON


def file_schema(tables: Tables) -> Schema:
    """Return the schema of the file; closed sets of values are listed as enumerations.

    The file may add values of some dimensions, so editors only suggest known values.
    """
    schema = msgspec.json.schema(FileSpec)
    definitions = schema["$defs"]
    known = {
        dimension.value: values
        for recipe in reversed(known_recipes().values())
        for dimension, values in tables.known(recipe).items()
    }
    definitions["ProjectSpec"]["properties"]["recipe"]["enum"] = sorted(known_recipes())
    for table in ("MatrixSpec", "CoupleSpec"):
        for dimension, values in known.items():
            for option in definitions[table]["properties"][dimension]["anyOf"]:
                if option.get("type") == "array":
                    listed = {"type": "string", "enum": list(values)}
                    is_open = dimension in _OPEN
                    option["items"] = {"anyOf": [listed, {"type": "string"}]} if is_open else listed
    for option in definitions["OverrideSpec"]["properties"]["stage"]["anyOf"]:
        word = option if option.get("type") == "string" else option["items"]
        word["enum"] = list(Stage)
    return {**DIALECT, **schema}
