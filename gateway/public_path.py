"""Serves the HTTP application below a path, as in `PUBLIC_URL=https://acme.com/desk`."""

from urllib.parse import unquote

from starlette.requests import Request
from starlette.types import ASGIApp, Message, Receive, Scope, Send


class PublicPath:
    """Removes the path of the public URL from requests; a proxy may strip it or leave it.

    The path is added to redirects and cookies here; pages begin their links with `public_path`.
    """

    def __init__(self, app: ASGIApp, path: str) -> None:
        self._app = app
        self._path = path.encode()
        self._decoded = unquote(path)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        path: str = scope["path"]
        if path == self._decoded or path.startswith(f"{self._decoded}/"):
            scope = {**scope, "path": path.removeprefix(self._decoded) or "/"}
        scope.setdefault("state", {})["public_path"] = self._path.decode()

        async def answer(message: Message) -> None:
            if message["type"] == "http.response.start":
                message["headers"] = [
                    (name, self._add_path(name, value)) for name, value in message["headers"]
                ]
            await send(message)

        await self._app(scope, receive, answer)

    def _add_path(self, name: bytes, value: bytes) -> bytes:
        if name == b"location" and value.startswith(b"/"):
            return self._path + value
        if name == b"set-cookie":
            return value.replace(b"; Path=/", b"; Path=" + self._path + b"/")
        return value


def public_path(request: Request) -> str:
    """Return the path of the public URL, such as `/desk`, or an empty string."""
    return str(getattr(request.state, "public_path", ""))
