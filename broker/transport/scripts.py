"""Runs the Lua scripts by their digest, and loads them again when the server lost them."""

import hashlib
from collections.abc import Callable, Coroutine, Sequence
from importlib.resources import files
from typing import TYPE_CHECKING, Any

from redis.exceptions import NoScriptError

from broker.transport.auto_pipelining import AutoPipeliningRedis

if TYPE_CHECKING:
    from redis.asyncio import Redis

Argument = str | bytes | int | float
RunScript = Callable[["Redis", Sequence[str], Sequence[Argument]], Coroutine[Any, Any, Any]]


class LuaScript:
    """One script: the shared prelude, the files in `needs`, a `header`, and the script's file."""

    def __init__(self, name: str, *, needs: Sequence[str] = (), header: str = "") -> None:
        folder = files("broker") / "lua"
        prelude, *needed, body = (
            (folder / f"{file}.lua").read_text("utf-8") for file in ("prelude", *needs, name)
        )
        self.text = "\n".join((prelude, *needed, header, body))
        self.digest = hashlib.sha1(self.text.encode(), usedforsecurity=False).hexdigest()

    async def run(self, client: "Redis", keys: Sequence[str], args: Sequence[Argument]) -> Any:
        """Return the script's result; concurrent calls share a round trip."""
        try:
            return await client.evalsha(self.digest, len(keys), *keys, *args)
        except NoScriptError:
            return await client.eval(self.text, len(keys), *keys, *args)

    async def run_at_once(
        self, client: "Redis", keys: Sequence[str], args: Sequence[Argument]
    ) -> Any:
        """Return the script's result; its round trip starts now, whatever else is in flight.

        Only for a caller that collects and bounds its calls, as `broker.settle.pipeline` does.
        """
        if not isinstance(client, AutoPipeliningRedis):
            return await self.run(client, keys, args)
        [answer] = await client.send_trip([("EVALSHA", self.digest, len(keys), *keys, *args)])
        if isinstance(answer, NoScriptError):
            [answer] = await client.send_trip([("EVAL", self.text, len(keys), *keys, *args)])
        if isinstance(answer, Exception):
            raise answer
        return answer


SUBMIT = LuaScript("submit", needs=["admission"])
DISCARD = LuaScript("discard")
RENEW = LuaScript("renew", needs=["branches"])
PEEK = LuaScript("peek")
DUE = LuaScript("due", needs=["branches"])
RECLAIM = LuaScript("reclaim")
SWEEP = LuaScript("sweep")
RETURN = LuaScript("return")
LEAVE = LuaScript("leave")
RECOVER = LuaScript("recover")
CANCEL = LuaScript("cancel")
FORGET = LuaScript("forget")
MARK = LuaScript("mark")
BEGUN = LuaScript("begun")
WRITTEN = LuaScript("written")
DEAD = LuaScript("dead")
ENDED = LuaScript("ended")
DRAFT = LuaScript("draft")
