"""The HTTP interface of a Qdrant server before the local mode of `qdrant-client`.

Every request is checked: its method and path are of the table below, its parameters have the names
of Qdrant's, and its body fits the models of `qdrant-client`, which are generated from the OpenAPI
document that Qdrant publishes and accept no field that the document does not name. If
`QDRANT_OPENAPI` names a copy of that document, requests are checked against the document itself.
"""

import json
import os
import re
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
from jsonschema_rs import Draft202012Validator
from pydantic import BaseModel, TypeAdapter, ValidationError
from qdrant_client import AsyncQdrantClient, models
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.routing import Route

OPENAPI_VARIABLE = "QDRANT_OPENAPI"
_WRITES = frozenset({"wait", "ordering", "timeout"})
_READS = frozenset({"consistency", "timeout"})
MOST_BYTES = 32 * 2**20
"""The longest body that a server reads unless its `max_request_size_mb` says otherwise."""
_ANY: TypeAdapter[Any] = TypeAdapter(Any)

Answer = Callable[[AsyncQdrantClient, str, Any], Awaitable[Any]]
"""Receives the local mode, the name of the collection and the body; returns the result."""


@dataclass(frozen=True)
class Operation:
    """One operation of Qdrant: its body and the names of its parameters."""

    method: str
    path: str
    parameters: frozenset[str]
    body: Any
    answer: Answer


async def _exists(local: AsyncQdrantClient, name: str, _body: None) -> object:
    return {"exists": await local.collection_exists(name)}


async def _create(local: AsyncQdrantClient, name: str, body: models.CreateCollection) -> object:
    return await local.create_collection(
        name, vectors_config=body.vectors, sparse_vectors_config=body.sparse_vectors
    )


async def _make_index(local: AsyncQdrantClient, name: str, body: models.CreateFieldIndex) -> object:
    return await local.create_payload_index(name, body.field_name, body.field_schema)


async def _upsert(local: AsyncQdrantClient, name: str, body: models.PointsList) -> object:
    return await local.upsert(
        name, body.points, update_filter=body.update_filter, update_mode=body.update_mode
    )


async def _delete(local: AsyncQdrantClient, name: str, body: Any) -> object:
    return await local.delete(name, body)


async def _retrieve(local: AsyncQdrantClient, name: str, body: models.PointRequest) -> object:
    return await local.retrieve(
        name,
        body.ids,
        with_payload=body.with_payload or False,
        with_vectors=body.with_vector or False,
    )


async def _scroll(local: AsyncQdrantClient, name: str, body: models.ScrollRequest) -> object:
    points, following = await local.scroll(
        name,
        scroll_filter=body.filter,
        limit=body.limit or 10,
        offset=body.offset,
        with_payload=body.with_payload or False,
        with_vectors=body.with_vector or False,
    )
    return {"points": points, "next_page_offset": following}


async def _count(local: AsyncQdrantClient, name: str, body: models.CountRequest) -> object:
    return await local.count(name, count_filter=body.filter, exact=body.exact is not False)


async def _facet(local: AsyncQdrantClient, name: str, body: models.FacetRequest) -> object:
    return await local.facet(name, body.key, facet_filter=body.filter, limit=body.limit or 10)


async def _query(local: AsyncQdrantClient, name: str, body: models.QueryRequestBatch) -> object:
    return await local.query_batch_points(name, body.searches)


async def _update(local: AsyncQdrantClient, name: str, body: models.UpdateOperations) -> object:
    return await local.batch_update_points(name, body.operations)


async def _aliases(local: AsyncQdrantClient, _name: str, _body: None) -> object:
    return await local.get_aliases()


async def _change_aliases(
    local: AsyncQdrantClient, _name: str, body: models.ChangeAliasesOperation
) -> object:
    return await local.update_collection_aliases(body.actions)


async def _drop(local: AsyncQdrantClient, name: str, _body: None) -> object:
    return await local.delete_collection(name)


_COLLECTION = "/collections/{collection_name}"
OPERATIONS = (
    Operation("GET", "/aliases", frozenset(), None, _aliases),
    Operation(
        "POST",
        "/collections/aliases",
        frozenset({"timeout"}),
        models.ChangeAliasesOperation,
        _change_aliases,
    ),
    Operation("DELETE", _COLLECTION, frozenset({"timeout"}), None, _drop),
    Operation("GET", f"{_COLLECTION}/exists", frozenset(), None, _exists),
    Operation("PUT", _COLLECTION, frozenset({"timeout"}), models.CreateCollection, _create),
    Operation("PUT", f"{_COLLECTION}/index", _WRITES, models.CreateFieldIndex, _make_index),
    Operation("PUT", f"{_COLLECTION}/points", _WRITES, models.PointInsertOperations, _upsert),
    Operation("POST", f"{_COLLECTION}/points/delete", _WRITES, models.PointsSelector, _delete),
    Operation("POST", f"{_COLLECTION}/points/batch", _WRITES, models.UpdateOperations, _update),
    Operation("POST", f"{_COLLECTION}/points", _READS, models.PointRequest, _retrieve),
    Operation("POST", f"{_COLLECTION}/points/scroll", _READS, models.ScrollRequest, _scroll),
    Operation("POST", f"{_COLLECTION}/points/count", _READS, models.CountRequest, _count),
    Operation("POST", f"{_COLLECTION}/facet", _READS, models.FacetRequest, _facet),
    Operation(
        "POST", f"{_COLLECTION}/points/query/batch", _READS, models.QueryRequestBatch, _query
    ),
)
"""The operations that the server index uses."""


class RecordingClient(AsyncQdrantClient):
    """A client that records the names of its methods that were used."""

    used: frozenset[str] = frozenset()

    def __getattribute__(self, name: str) -> Any:
        if not name.startswith("_"):
            RecordingClient.used |= {name}
        return super().__getattribute__(name)


class QdrantFront:
    """Answers requests; `seen` has the operations, `rejected` why requests were not accepted."""

    url = "http://qdrant.test:6333"

    def __init__(self) -> None:
        self.seen: set[tuple[str, str]] = set()
        self.rejected: list[str] = []
        self._local = AsyncQdrantClient(":memory:")
        self._document = _read_document()
        self.app = Starlette(
            routes=[
                Route(operation.path, self._make_endpoint(operation), methods=[operation.method])
                for operation in OPERATIONS
            ]
        )

    def connect(self) -> AsyncQdrantClient:
        """Return a client of this server."""
        return RecordingClient(
            url=self.url, check_compatibility=False, transport=httpx.ASGITransport(self.app)
        )

    async def close(self) -> None:
        await self._local.close()

    def _make_endpoint(self, operation: Operation) -> Callable[[Request], Awaitable[JSONResponse]]:
        async def answer(request: Request) -> JSONResponse:
            self.seen.add((operation.method, operation.path))
            try:
                body = self._check(operation, request, await request.body())
            except (ValidationError, ValueError) as error:
                self.rejected.append(f"{operation.method} {operation.path}: {error}")
                return JSONResponse({"status": {"error": str(error)}}, status_code=400)
            name = request.path_params.get("collection_name", "")
            result = await operation.answer(self._local, name, body)
            return JSONResponse({"result": _encode(result), "status": "ok", "time": 0.0})

        return answer

    def _check(self, operation: Operation, request: Request, body: bytes) -> Any:
        if len(body) > MOST_BYTES:
            raise ValueError(f"JSON payload ({len(body)} bytes) is larger than allowed")
        unknown = set(request.query_params) - operation.parameters
        if unknown:
            raise ValueError(f"expected parameters of {operation.parameters}, found {unknown}")
        if operation.body is None:
            if body:
                raise ValueError("expected no body, found one")
            return None
        read = TypeAdapter[Any](operation.body).validate_json(body)
        if self._document:
            _check_document(self._document, operation, json.loads(body))
        return read


def _encode(result: object) -> object:
    def plain(value: object) -> object:
        return value.model_dump(mode="json") if isinstance(value, BaseModel) else value

    if isinstance(result, list):
        return [_encode(item) for item in result]
    if isinstance(result, dict):
        return {name: _encode(one) for name, one in result.items()}
    return _ANY.dump_python(plain(result), mode="json")


def _read_document() -> Mapping[str, Any]:
    named = os.environ.get(OPENAPI_VARIABLE)
    document: Mapping[str, Any] = json.loads(Path(named).read_text()) if named else {}
    return {name: _state_null(part) for name, part in document.items()}


def _state_null(part: Any) -> Any:
    """Return a part of an OpenAPI 3.0 document in the words of JSON Schema: null is a type."""
    if isinstance(part, list):
        return [_state_null(item) for item in part]
    if not isinstance(part, dict):
        return part
    stated = {name: _state_null(one) for name, one in part.items() if name != "nullable"}
    if part.get("nullable") is not True:
        return stated
    return {"anyOf": [stated, {"type": "null"}]} if stated else {"type": "null"}


def _check_document(document: Mapping[str, Any], operation: Operation, body: object) -> None:
    """Raise `ValueError` if a body does not fit Qdrant's own document."""
    result = document["paths"][operation.path][operation.method.lower()]
    schema = result["requestBody"]["content"]["application/json"]["schema"]
    names = {parameter["name"] for parameter in result["parameters"] if parameter["in"] == "query"}
    if not operation.parameters <= names:
        raise ValueError(f"expected parameters of {names}, found {operation.parameters}")
    whole = {**schema, "components": document["components"]}
    errors = [error.message for error in Draft202012Validator(whole).iter_errors(body)]
    if errors:
        raise ValueError(re.sub(r"\s+", " ", "; ".join(errors))[:500])
