"""The JSON schema of `torchyard.toml`, for editors and for the reference."""

from typing import Any

import msgspec

from torchyard.config.recipes import known_recipes
from torchyard.config.spec import FileSpec
from torchyard.model.recipe import Stage
from torchyard.model.tables import Tables

Schema = dict[str, Any]  # type: ignore[explicit-any] # JSON


def file_schema(tables: Tables) -> Schema:
    """Return the schema of the file; closed sets of values are listed as enumerations."""
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
                    option["items"] = {"type": "string", "enum": list(values)}
    for option in definitions["OverrideSpec"]["properties"]["stage"]["anyOf"]:
        word = option if option.get("type") == "string" else option["items"]
        word["enum"] = list(Stage)
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **schema}
