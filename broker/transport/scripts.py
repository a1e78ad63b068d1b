"""Runs Lua scripts by digest (`EVALSHA`), and sends the source if the server does not have the
script.
"""

import hashlib
from collections.abc import Sequence
from importlib.resources import files
from typing import TYPE_CHECKING, Any

from redis.exceptions import NoScriptError

if TYPE_CHECKING:
    from redis.asyncio import Redis

Argument = str | bytes | int | float


class LuaScript:
    """A script, composed of the shared prelude, a `header`, the files in `needs`, and the script's
    own file.
    """

    def __init__(self, name: str, *, needs: Sequence[str] = (), header: str = "") -> None:
        folder = files("broker") / "lua"
        prelude, *needed, body = (
            (folder / f"{file}.lua").read_text("utf-8") for file in ("prelude", *needs, name)
        )
        self.text = "\n".join((prelude, header, *needed, body))
        self.digest = hashlib.sha1(self.text.encode(), usedforsecurity=False).hexdigest()

    async def run(self, client: "Redis", keys: Sequence[str], args: Sequence[Argument]) -> Any:
        """Return the script's result; concurrent calls share a round trip."""
        try:
            return await client.evalsha(self.digest, len(keys), *keys, *args)
        except NoScriptError:
            return await client.eval(self.text, len(keys), *keys, *args)


SUBMIT = LuaScript("submit", needs=["closing", "admission"])
DISCARD = LuaScript("discard", needs=["closing"])
RENEW = LuaScript("renew")
PEEK = LuaScript("peek")
DUE = LuaScript("due", needs=["closing", "branches"])
RECLAIM = LuaScript("reclaim")
SWEEP = LuaScript("sweep")
RETURN = LuaScript("return")
LEAVE = LuaScript("leave")
RECOVER = LuaScript("recover")
CANCEL = LuaScript("cancel", needs=["closing"])
FORGET = LuaScript("forget", needs=["closing"])
MARK = LuaScript("mark")
BEGUN = LuaScript("begun")
WRITTEN = LuaScript("written")
DEAD = LuaScript("dead")
ENDED = LuaScript("ended")
DRAFT = LuaScript("draft")
