"""The script that settles, with the readers that its layout needs."""

from broker.settle.lua_header import render_header
from broker.transport.scripts import LuaScript

SETTLE = LuaScript("settle", needs=["branches"], header=render_header())
