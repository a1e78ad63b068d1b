"""E-mail of unknown origin is parsed in linear time, and an odd part of it costs only itself."""

import sys
from collections.abc import Callable

import pytest

from knowledge.documents.errors import WrongFormatError
from knowledge.documents.interchange.mail_parsing import LONGEST_HEADER, parse_mail

ENCODED_ADDRESS = b"=?utf-8?q?ada=40acme=2Etest=2C?="


def count_calls(data: bytes) -> int:
    """The calls of functions of Python that parsing takes, on any machine the same."""
    count = 0

    def note(_frame: object, event: str, _given: object) -> None:
        nonlocal count
        count += event in ("call", "c_call")

    sys.setprofile(note)
    try:
        parse_mail(data)
    finally:
        sys.setprofile(None)
    return count


@pytest.mark.parametrize(
    "write",
    [
        lambda size: b"From: " + b"a@b.c, " * size + b"\r\n\r\nx",
        lambda size: b"To: " + b'"' * size + b"\r\n\r\nx",
        lambda size: b"Content-Type: text/plain" + b"; a*0=b" * size + b"\r\n\r\nx",
        lambda size: b"Subject: " + b"=?utf-8?q?a?= " * size + b"\r\n\r\nx",
        lambda size: b"Content-Type: multipart/mixed; boundary=" + b"b" * size + b"\r\n\r\nx",
    ],
)
def test_a_header_of_any_length_takes_no_more_time_than_the_longest_one_that_is_read(
    write: Callable[[int], bytes],
) -> None:
    limited, long = count_calls(write(2 * LONGEST_HEADER)), count_calls(write(20 * LONGEST_HEADER))

    assert long < 1.5 * limited + 1_000


@pytest.mark.parametrize(
    "header",
    [
        b"Content-Type: text/plain; a*",
        b"Content-Disposition: inline; filename*=x'y",
        b"Content-Transfer-Encoding: \xff\xfe",
        b"From: " + b"(" * 5_000,
        b"Date: Mon, 99 Foo 99999 99:99:99 +9999999",
        b"Content-Type: text/plain; charset=no-such",
        b"Content-Type: text/plain; charset=punycode",
        b"Content-Type: text/plain; charset=hex",
    ],
)
def test_an_odd_header_costs_only_itself(header: bytes) -> None:
    mail = parse_mail(header + b"\r\nSubject: Leave\r\n\r\nThirty days.")

    assert (mail.read_header("Subject"), mail.text) == ("Leave", "Thirty days.")


def test_an_address_in_an_encoded_name_is_no_address() -> None:
    mail = parse_mail(b"From: " + ENCODED_ADDRESS + b" <eve@evil.test>\r\n\r\nx")

    assert mail.addresses["from"] == ["eve@evil.test"]


def test_the_addresses_of_a_header_that_was_cut_are_not_read() -> None:
    padded = b"ada@acme.test" + b" " * LONGEST_HEADER + b", eve@evil.test"

    assert parse_mail(b"From: " + padded + b"\r\n\r\nx").addresses["from"] == []


def test_the_text_of_an_attached_mail_is_not_that_of_the_mail() -> None:
    parts = (
        b"Content-Type: text/html\r\n\r\n<p>Yes.</p><blockquote>No.</blockquote>",
        b"Content-Type: message/rfc822\r\nContent-Disposition: attachment\r\n\r\n"
        b"Content-Type: text/plain\r\n\r\nForged.",
    )
    head = b"Content-Type: multipart/mixed; boundary=b\r\n\r\n"
    mail = parse_mail(head + b"".join(b"--b\r\n" + part + b"\r\n" for part in parts) + b"--b--")

    assert mail.text.strip() == "Yes."


def test_a_mail_of_endless_parts_inside_each_other_is_named_as_damaged() -> None:
    with pytest.raises(WrongFormatError):
        parse_mail(b"Content-Type: message/rfc822\r\n\r\n" * 20_000 + b"x")
