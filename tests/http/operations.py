"""Every operation that the service has, as its OpenAPI tells."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, NamedTuple

from fastapi import FastAPI

OPEN = {"/", "/healthz", "/readyz", "/ok"}
METHODS = ("get", "post", "put", "patch", "delete")
PARAMETER = re.compile(r"\{(\w+)(?::\w+)?\}")


class Operation(NamedTuple):
    """One method of one address."""

    method: str
    path: str
    spec: dict[str, Any]

    def __str__(self) -> str:
        return f"{self.method.upper()} {self.path}"

    @property
    def names(self) -> list[str]:
        return PARAMETER.findall(self.path)

    def at(self, **ids: str) -> str:
        return PARAMETER.sub(lambda found: ids[found[1]], self.path)


def operations(app: FastAPI) -> Iterator[Operation]:
    for path, methods in app.openapi()["paths"].items():
        for method in METHODS:
            if method in methods:
                yield Operation(method, path, methods[method])


def schema_of(app: FastAPI, operation: Operation) -> dict[str, Any] | None:
    """What the body of a request must look like."""
    content = operation.spec.get("requestBody", {}).get("content", {})
    schema = content.get("application/json", {}).get("schema")
    return None if schema is None else _resolved(schema, app.openapi())


def _resolved(schema: dict[str, Any], whole: dict[str, Any]) -> dict[str, Any]:
    name = schema.get("$ref", "").rpartition("/")[2]
    found: dict[str, Any] = whole["components"]["schemas"][name] if name else schema
    return found


def example_of(schema: dict[str, Any], whole: dict[str, Any]) -> Any:
    """The smallest value that a schema allows."""
    schema = _resolved(schema, whole)
    if "default" in schema:
        return schema["default"]
    for choice in (*schema.get("anyOf", ()), *schema.get("oneOf", ())):
        return example_of(choice, whole)
    if "enum" in schema or "const" in schema:
        return schema.get("const", next(iter(schema.get("enum", ())), None))
    kinds: dict[str, Any] = {
        "string": "x" * max(1, schema.get("minLength", 1)),
        "integer": schema.get("minimum", 0),
        "number": schema.get("minimum", 0),
        "boolean": False,
        "null": None,
    }
    kind = schema.get("type", "object")
    if kind == "array":
        return [example_of(schema.get("items", {}), whole) for _ in range(schema.get("minItems", 0))]
    if kind == "object":
        return {
            name: example_of(schema.get("properties", {}).get(name, {}), whole) for name in schema.get("required", ())
        }
    return kinds[kind]
