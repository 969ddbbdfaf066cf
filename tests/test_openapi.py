"""The OpenAPI document and the reference made from it: whole, and in step with the routes."""

import json
from pathlib import Path
from typing import Any

import pytest

from windlass.server import openapi
from windlass.server.app import create_app
from windlass.server.reference import reference
from windlass.server.services import Services

REFERENCE = Path(__file__).parent.parent / "docs" / "http.md"
PAGES = {"/", "/page/{page_file}", "/page/{edition}/{page_file}", "/docs", "/openapi.json"}


def served() -> set[tuple[str, str]]:
    """Every method and path of the API that the router answers."""
    app = create_app(Services(*[None] * 6))  # type: ignore[arg-type]
    return {
        (method.lower(), route.path_format)
        for route in app.routes
        for method in getattr(route, "methods", ())
        if method != "OPTIONS" and route.path_format not in PAGES
    }


def operations() -> dict[tuple[str, str], dict[str, Any]]:
    paths = openapi.document()["paths"]
    return {(method, path): operation for path, methods in paths.items() for method, operation in methods.items()}


def references(value: Any) -> set[str]:
    """Every `$ref` in it."""
    if isinstance(value, dict):
        own = {value["$ref"]} if "$ref" in value else set()
        return own.union(*(references(part) for part in value.values()))
    return set().union(*(references(part) for part in value)) if isinstance(value, list) else set()


def test_the_document_is_json() -> None:
    """No tool could read it."""
    document = json.loads(json.dumps(openapi.document()))
    assert document["openapi"].startswith("3.") and document["info"]["title"] == "Windlass"


def test_every_route_is_in_the_document() -> None:
    """A route that is not described is one that clients cannot be made for."""
    assert set(operations()) == served()


def test_every_route_says_what_it_is_for() -> None:
    """A reader of /docs would see a path and have to guess."""
    silent = [name for name, operation in operations().items() if not operation.get("description")]
    assert not silent


def test_every_operation_has_a_name_of_its_own() -> None:
    """Generated clients would have two methods of one name."""
    names = [operation["operationId"] for operation in operations().values()]
    assert len(names) == len(set(names))


def test_every_reference_points_at_a_shape_that_is_there() -> None:
    """A generated client would not compile."""
    schemas = openapi.document()["components"]["schemas"]
    assert references(openapi.document()) <= {f"#/components/schemas/{name}" for name in schemas}


@pytest.mark.parametrize("name", operations(), ids=" ".join)
def test_errors_are_described_as_they_are(name: tuple[str, str]) -> None:
    """A client would look for the framework's fields in an error, and find ours (A40)."""
    responses = operations()[name]["responses"]
    assert [status for status in responses if status >= "400"] == ["default"]
    schema = responses["default"]["content"]["application/json"]["schema"]
    assert schema == {"$ref": "#/components/schemas/ErrorBody"}


def test_docs_http_md_is_what_the_generator_prints() -> None:
    """The reference that people read would tell of routes that are no more (`python -m windlass.server.reference`)."""
    assert REFERENCE.read_text() == reference()
