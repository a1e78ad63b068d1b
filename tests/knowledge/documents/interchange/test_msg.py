import struct

import pytest

from knowledge.documents.errors import WrongFormatError
from knowledge.documents.interchange import msg

SECTOR = 512
LEAST = 4096
FREE, END, FAT = 0xFFFFFFFF, 0xFFFFFFFE, 0xFFFFFFFD
Parts = dict[str, "bytes | Parts"]


def pack(parts: Parts) -> bytes:
    """Return a compound file ([MS-CFB]) whose streams are all in ordinary sectors."""
    entries: list[list[int | str]] = [["Root Entry", 5, FREE, FREE, END, 0]]
    data: list[bytes] = []
    sectors: list[int] = []

    def add(parts: Parts) -> int:
        first = FREE
        for name, content in reversed(parts.items()):
            entries.append([name, 2, first, FREE, END, 0])
            at = len(entries) - 1
            first = at
            if isinstance(content, dict):
                entries[at][1] = 1
                entries[at][3] = add(content)
                continue
            # Smaller streams would be in sectors of another size.
            entries[at][4:] = [len(sectors), LEAST]
            count = LEAST // SECTOR
            data.append(content.ljust(LEAST, b"\0"))
            sectors.extend([*range(len(sectors) + 1, len(sectors) + count), END])
        return first

    entries[0][3] = add(parts)
    listed = b"".join(
        name.encode("utf-16-le").ljust(64, b"\0")
        + struct.pack("<HBBIII", 2 * len(name) + 2, kind, 1, FREE, right, child)
        + bytes(36)
        + struct.pack("<IQ", start, size)
        for name, kind, right, child, start, size in entries
        if isinstance(name, str)
    )
    listed = listed.ljust(-(-len(listed) // SECTOR) * SECTOR, b"\0")
    directory = len(sectors)
    count = len(listed) // SECTOR
    sectors.extend([*range(directory + 1, directory + count), END])
    sectors.append(FAT)
    header = struct.pack(
        "<8s16xHHHHH6xIIIIIIIIII", b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1", 62, 3, 0xFFFE, 9, 6,
        0, 1, directory, 0, LEAST, END, 0, END, 0, len(sectors) - 1,
    ).ljust(SECTOR, b"\xff")  # fmt: skip
    table = struct.pack(f"<{len(sectors)}I", *sectors).ljust(SECTOR, b"\xff")
    return header + b"".join(data) + listed + table


def text(value: str) -> bytes:
    return value.encode("utf-16-le")


SENT = struct.pack("<IIQ", 0x00390040, 6, (1_767_225_600 + 11_644_473_600) * 10_000_000)
MESSAGE: Parts = {
    "__properties_version1.0": bytes(32) + SENT,
    "__substg1.0_0037001F": text("Pump P-101"),
    "__substg1.0_0C1A001F": text("Ann Lee"),
    "__substg1.0_5D01001F": text("ann@a.example"),
    "__substg1.0_0E04001F": text("Bob"),
    "__substg1.0_1000001F": text("It starts at 4.2 bar.\r\n\r\nCall me — please."),
    "__attach_version1.0_#00000000": {"__substg1.0_3707001F": text("plan.pdf")},
}


def test_a_message_of_outlook_is_read_as_an_e_mail() -> None:
    page = msg.read(pack(MESSAGE), "a.msg")

    assert page.title == "Pump P-101"
    assert [block.text for block in page.blocks] == [
        "Pump P-101, Ann Lee <ann@a.example>, 2026-01-01 00:00",
        "From: Ann Lee <ann@a.example>; To: Bob",
        "It starts at 4.2 bar.",
        "Call me — please.",
    ]
    assert [(part.what, part.names) for part in page.left_out] == [("attachment", ("plan.pdf",))]


def test_the_html_of_a_message_without_text_is_read() -> None:
    parts: Parts = {
        "__properties_version1.0": bytes(32),
        "__substg1.0_0037001E": b"Prices",
        "__substg1.0_10130102": b"<p>A plan costs <b>4 EUR</b>.</p>",
    }

    assert [block.text for block in msg.read(pack(parts), "a.msg").blocks][-1] == (
        "A plan costs 4 EUR."
    )


def test_text_that_only_the_html_of_a_message_strikes_out_is_marked() -> None:
    data = pack(
        {
            "__substg1.0_1000001F": text("It costs 5 EUR 4 EUR."),
            "__substg1.0_10130102": b"<p>It costs <s>5 EUR</s> 4 EUR.</p>",
        }
    )

    assert msg.read(data, "a.msg").blocks[-1].text == "It costs ~~5 EUR~~ 4 EUR."


def test_text_in_a_stated_code_page_and_an_attached_message_are_read() -> None:
    cyrillic = struct.pack("<IIQ", 0x3FFD0003, 6, 1251)
    inner: Parts = {
        "__properties_version1.0": bytes(24),
        "__substg1.0_0037001E": "Договор".encode("cp1251"),
        "__substg1.0_1000001E": "Цена 700".encode("cp1251"),
    }
    parts: Parts = {
        "__properties_version1.0": bytes(32) + cyrillic,
        "__substg1.0_0037001E": "Насос".encode("cp1251"),
        "__attach_version1.0_#00000000": {"__substg1.0_3701000D": inner},
    }

    page = msg.read(pack(parts), "a.msg")

    assert [block.text for block in page.blocks if block.text != "Message"] == [
        "Насос", "Договор", "Цена 700",
    ]  # fmt: skip


@pytest.mark.parametrize(
    "data", [b"Subject: x\n\ny", b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + b"\0" * 900, pack({})]
)
def test_a_file_that_is_not_an_outlook_message_is_reported(data: bytes) -> None:
    with pytest.raises(WrongFormatError, match=r"expected an Outlook message \(\.msg\)"):
        msg.read(data, "a.msg")
