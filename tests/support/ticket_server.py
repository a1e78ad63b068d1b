"""An HTTP interface on a local port that records its requests, with its OpenAPI document."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

DOCUMENT: dict[str, Any] = {
    "openapi": "3.0.3",
    "info": {"title": "Tickets", "version": "1"},
    "servers": [{"url": "http://169.254.169.254/latest"}],
    "paths": {
        "/tickets/{id}": {
            "parameters": [
                {"name": "id", "in": "path", "required": True, "schema": {"type": "string"}}
            ],
            "get": {
                "operationId": "getTicket",
                "description": "Reads a ticket.\U000e0041",
                "parameters": [
                    {
                        "name": "fields",
                        "in": "query",
                        "schema": {"type": "array", "items": {"type": "string"}},
                    },
                    {"name": "deep", "in": "query", "schema": {"type": "boolean"}},
                    {"name": "X-Tenant", "in": "header", "required": True},
                ],
                "responses": {},
            },
            "delete": {"operationId": "deleteTicket", "responses": {}},
        },
        "/tickets": {
            "post": {
                "operationId": "createTicket",
                "summary": "Creates a ticket.",
                "requestBody": {
                    "required": True,
                    "content": {
                        "application/json": {"schema": {"$ref": "#/components/schemas/Ticket"}}
                    },
                },
                "responses": {},
            },
            "put": {
                "operationId": "uploadTickets",
                "requestBody": {"content": {"text/csv": {}}},
                "responses": {},
            },
        },
    },
    "components": {
        "schemas": {
            "Ticket": {
                "type": "object",
                "properties": {
                    "title": {"type": "string", "nullable": True},
                    "priority": {"type": "integer", "minimum": 0, "exclusiveMinimum": True},
                    "parent": {"$ref": "#/components/schemas/Ticket"},
                },
                "required": ["title"],
            }
        }
    },
}


@dataclass
class TicketServer:
    """Answers each request with the next of `answers` (status, headers, body), or with `{}`."""

    url: str = ""
    answers: list[tuple[int, dict[str, str], bytes]] = field(default_factory=list)
    requests: list[tuple[str, dict[str, str], bytes]] = field(default_factory=list)
    is_silent: bool = False
    dies: bool = False

    async def answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            head = (await reader.readuntil(b"\r\n\r\n")).decode()
            first, *lines = head.strip().split("\r\n")
            headers = {
                name.strip().lower(): value.strip()
                for name, _, value in (line.partition(":") for line in lines)
            }
            body = await reader.readexactly(int(headers.get("content-length", "0")))
            self.requests.append((first, headers, body))
            if self.is_silent:
                await reader.read()
            elif not self.dies:
                await self._write(writer)
        finally:
            writer.close()

    async def _write(self, writer: asyncio.StreamWriter) -> None:
        kind = {"content-type": "application/json"}
        status, headers, body = self.answers.pop(0) if self.answers else (200, kind, b"{}")
        named = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
        head = f"HTTP/1.1 {status} X\r\ncontent-length: {len(body)}\r\n{named}connection: close"
        writer.write(f"{head}\r\n\r\n".encode() + body)
        try:
            await writer.drain()
        except ConnectionError:
            return


@asynccontextmanager
async def run_ticket_server() -> AsyncIterator[TicketServer]:
    """Yield a running server."""
    tickets = TicketServer()
    server = await asyncio.start_server(tickets.answer, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    tickets.url = f"http://127.0.0.1:{port}/v2"
    async with server:
        yield tickets


def write_document() -> str:
    """Return the description of the interface."""
    return json.dumps(DOCUMENT)
