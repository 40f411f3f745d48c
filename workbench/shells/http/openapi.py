"""The OpenAPI 3.1 document of the HTTP interface, generated from the catalogue and the table of `rest`.

It uses the operations' own schemas, so it always describes what is checked.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Any

from pydantic import TypeAdapter

from workbench.model import Level, __version__
from workbench.ops import Catalogue, Op, RestRoute
from workbench.shells.http import rest

Json = dict[str, Any]

STATUSES = {
    "400": "The request itself is wrong; sending it again cannot help.",
    "401": "The caller is unknown: there is no token, or a wrong one.",
    "403": "The caller is known but may not do this.",
    "404": "What the request names does not exist, or is not visible to this caller.",
    "409": "The request is valid, but conflicts with the present state.",
    "429": "Too many requests without a valid token; Retry-After says how many seconds to wait.",
    "503": "A resource outside the request failed.",
}
ERROR_ANSWER: Json = {
    "type": "object",
    "required": ["success", "error"],
    "properties": {
        "success": {"const": False},
        "error": {
            "type": "object",
            "required": ["code", "message", "details", "status"],
            "properties": {
                "code": {"type": "string", "description": "Stable; its meaning never changes."},
                "message": {"type": "string", "description": "What is wrong, and the next step."},
                "details": {"type": "object"},
                "hint": {
                    "type": "object",
                    "description": "The next step, at the end of the message: the operation to call, if that is one.",
                },
                "status": {"type": "integer"},
            },
        },
    },
}
PAGE_HEADERS: Json = {
    "X-Total-Count": {"description": "How many there are in all.", "schema": {"type": "integer"}},
    "X-Next-Cursor": {"description": "`cursor` of the next page; absent on the last.", "schema": {"type": "string"}},
}
TOKEN: Json = {"type": "http", "scheme": "bearer", "description": "An agent's token (`wba_…`) or the operator's."}
FOR_ALL: list[Json] = [{}, {"token": []}]
DESCRIPTION = (
    "Every operation is `POST /api/ops/<name>` with its arguments as a JSON object. Some also have their own path: "
    "under `/api` in the same envelope, and without a prefix as plain JSON."
)


def document(catalogue: Catalogue) -> Json:
    """The whole document, JSON-ready."""
    schemas = _Schemas(catalogue)
    paths: dict[str, Json] = {}
    for path, method, described in (*_operations(catalogue, schemas), *_rest(catalogue, schemas), *_others(schemas)):
        paths.setdefault(path, {})[method] = described
    return {
        "openapi": "3.1.0",
        "info": {"title": "Workbench", "version": __version__, "description": DESCRIPTION},
        "servers": [{"url": "/"}],
        "security": [{"token": []}],
        "paths": paths,
        "components": {
            "schemas": schemas.shared | {"ErrorAnswer": ERROR_ANSWER},
            "responses": {status: _answer(text, {"$ref": _ref("ErrorAnswer")}) for status, text in STATUSES.items()},
            "securitySchemes": {"token": TOKEN},
        },
    }


class _Schemas:
    """The schemas of the operations' arguments and results, as references to shared ones."""

    def __init__(self, catalogue: Catalogue) -> None:
        inputs: list[Any] = []
        for op in catalogue.values():
            inputs += [(op.name, "validation", TypeAdapter(op.arguments)), (op.name, "serialization", op.result)]
        self._found, whole = TypeAdapter.json_schemas(inputs, ref_template=_ref("{model}"))
        self.shared: Json = whole.get("$defs", {})

    def arguments(self, op: str) -> Json:
        """The schema of an operation's arguments."""
        return self._found[op, "validation"]

    def result(self, op: str) -> Json:
        """The schema of an operation's result."""
        return self._found[op, "serialization"]

    def fields(self, schema: Json) -> Json:
        """The properties of a referenced object."""
        properties: Json = self.shared[schema["$ref"].rpartition("/")[2]].get("properties", {})
        return properties

    def required(self, op: str) -> list[str]:
        """The required arguments of an operation."""
        names: list[str] = self.shared[self.arguments(op)["$ref"].rpartition("/")[2]].get("required", [])
        return names


def _ref(model: str) -> str:
    return f"#/components/schemas/{model}"


Described = Iterator[tuple[str, str, Json]]


def _operations(catalogue: Catalogue, schemas: _Schemas) -> Described:
    """`POST /api/ops/<name>`, for every operation."""
    for op in catalogue.values():
        body = _body(schemas.arguments(op.name), required=bool(schemas.required(op.name)))
        answer = _answer("Done.", _enveloped(schemas.result(op.name)))
        yield f"/api/ops/{op.name}", "post", _operation(op, op.name, "operations", answer) | body


def _rest(catalogue: Catalogue, schemas: _Schemas) -> Described:
    """Both families of the endpoints of `rest`."""
    for path, methods in rest.by_path(catalogue).items():
        for method, op in methods.items():
            assert op.rest is not None
            taken, result = _taken(op.name, op.rest, schemas), schemas.result(op.name)
            enveloped = _answer("Done.", _enveloped(result) if op.rest.enveloped else result)
            plain = _plain(op.rest, result, schemas)
            yield path, method.lower(), _operation(op, f"plain_{op.name}", "plain", plain) | taken
            yield f"/api{path}", method.lower(), _operation(op, f"rest_{op.name}", "rest", enveloped) | taken


def _others(schemas: _Schemas) -> Described:
    """The endpoints that are neither an operation nor in `rest`."""
    anything: Json = {"type": "object"}
    health = {"type": "object", "properties": {"status": {"const": "ok"}, "nonce": {"type": ["string", "null"]}}}
    for path in ("/health", "/healthz"):
        yield (
            path,
            "get",
            {"summary": "Whether the server answers.", "security": FOR_ALL} | _answers(_answer("It does.", health)),
        )
    listed = _answer("The operations.", _enveloped(anything))
    yield (
        "/api/ops",
        "get",
        {"summary": "The operations that the caller may call.", "security": FOR_ALL} | _answers(listed),
    )
    yield "/api/openapi.json", "get", {"summary": "This description."} | _answers(_answer("OpenAPI 3.1.", anything))
    if "list_events" in schemas.shared:
        events = _answer("A page of events, or a stream of them.", _enveloped(schemas.result("list_events")))
        events["content"]["text/event-stream"] = {"schema": {"type": "string"}}
        taken = {
            "parameters": [
                _parameter("query", *field) for field in schemas.fields(schemas.arguments("list_events")).items()
            ]
        }
        yield (
            "/api/events",
            "get",
            {"summary": "The feed. A stream without `after` begins with what happens next."} | taken | _answers(events),
        )


def _operation(op: Op, operation_id: str, tag: str, answer: Json) -> Json:
    described: Json = {
        "operationId": operation_id,
        "tags": [tag],
        "summary": op.summary,
        "description": op.help,
        "x-least-caller": op.allow.name.lower(),
        **_answers(answer),
    }
    return described | ({"security": FOR_ALL} if op.allow is Level.ANONYMOUS else {})


def _taken(op: str, endpoint: RestRoute, schemas: _Schemas) -> Json:
    """Path, query string and body of an endpoint."""
    fields = schemas.fields(schemas.arguments(op))
    required = schemas.required(op)
    in_path = re.findall(r"{(\w+)}", endpoint.path)
    others = [name for name in fields if name not in in_path]
    parameters = [_parameter("path", name, fields[name], required=True) for name in in_path]
    if endpoint.method in ("GET", "DELETE") or endpoint.body:
        in_query = [name for name in others if name != endpoint.body]
        parameters += [_parameter("query", name, fields[name], required=name in required) for name in in_query]
        body = _body(fields[endpoint.body], required=endpoint.body in required) if endpoint.body else {}
    else:
        body = _body(_object(fields, others, required), required=bool({*required} & {*others})) if others else {}
    return ({"parameters": parameters} if parameters else {}) | body


def _parameter(place: str, name: str, schema: Json, *, required: bool = False) -> Json:
    described: Json = {"name": name, "in": place, "required": required}
    if "description" in schema:
        described["description"] = schema["description"]
    if schema.get("type") == "object":
        return described | {"content": {"application/json": {"schema": schema}}}
    listed = {"style": "form", "explode": False} if schema.get("type") == "array" else {}
    return described | listed | {"schema": schema}


def _object(fields: Json, names: Iterable[str], required: Iterable[str]) -> Json:
    schema: Json = {"type": "object", "additionalProperties": False, "properties": {n: fields[n] for n in names}}
    needed = [name for name in required if name in schema["properties"]]
    return schema | ({"required": needed} if needed else {})


def _body(schema: Json, *, required: bool) -> Json:
    return {"requestBody": {"required": required, "content": {"application/json": {"schema": schema}}}}


def _plain(endpoint: RestRoute, result: Json, schemas: _Schemas) -> Json:
    if endpoint.rows is None:
        return _answer("Done.", result)
    return _answer("The rows.", schemas.fields(result)[endpoint.rows]) | {"headers": PAGE_HEADERS}


def _enveloped(data: Json) -> Json:
    properties = {"success": {"const": True}, "data": data}
    return {"type": "object", "required": ["success", "data"], "properties": properties}


def _answer(text: str, schema: Json) -> Json:
    return {"description": text, "content": {"application/json": {"schema": schema}}}


def _answers(answer: Json) -> Json:
    refused = {status: {"$ref": f"#/components/responses/{status}"} for status in STATUSES}
    return {"responses": {"200": answer, **refused}}
