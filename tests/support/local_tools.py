"""Receipts and a budget of tool calls that live in the process of a test."""

from tools.calls import ReceiptKey, ReceiptState, ToolCall


class LocalReceipts:
    """Receipts of this process, where nothing is delivered twice."""

    def __init__(self) -> None:
        self._known: dict[str, tuple[str, bytes]] = {}
        self._unknown: set[str] = set()

    async def claim(self, key: ReceiptKey, *, was_approved: bool = False) -> tuple[str, bytes]:
        known = self._known.get(key.name)
        if known is not None:
            return known
        if key.action in self._unknown and not was_approved:
            return ReceiptState.UNKNOWN, b""
        return self._known.setdefault(key.name, (ReceiptState.CLAIMED, b""))

    async def finish(self, key: ReceiptKey, result: bytes) -> None:
        self._known[key.name] = (ReceiptState.DONE, result)

    async def mark_unknown(self, key: ReceiptKey) -> None:
        self._known[key.name] = (ReceiptState.UNKNOWN, b"")
        self._unknown.add(key.action)


class CallLimit:
    """A budget of at most `most_calls` calls in this process."""

    def __init__(self, most_calls: int) -> None:
        self._left = most_calls

    async def reserve(self, call: ToolCall) -> bool:
        if self._left <= 0:
            return False
        self._left -= 1
        return True
