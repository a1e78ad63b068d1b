from base64 import b64encode
from email.message import EmailMessage

import pytest

from knowledge.documents.errors import WrongFormatError
from knowledge.documents.interchange import mail
from knowledge.documents.page import BlockKind

QUESTION = "Which courier do we use for Norway?\n\nThe old one stopped in May."
REPLY = """Hello Ann,

we use Posten for Norway now.

On Mon, 4 May 2026 at 10:00, Ann <ann@example.com> wrote:
> Which courier do we use
> for Norway?
>
> The old one stopped in May.
{signature}
Bob, Logistics
""".replace("{signature}", "-- ")


def message(subject: str, text: str, sender: str = "bob@example.com") -> EmailMessage:
    made = EmailMessage()
    made["Subject"] = subject
    made["From"] = sender
    made["To"] = "team@example.com"
    made["Date"] = "Mon, 04 May 2026 10:00:00 +0200"
    made.set_content(text)
    return made


def box(*messages: EmailMessage) -> bytes:
    return b"".join(b"From a@example.com Mon May  4\n" + bytes(made) + b"\n" for made in messages)


def test_a_message_is_a_section_with_its_sender_and_date() -> None:
    page = mail.read(bytes(message("Re: Couriers", "Posten.")), "a.eml")

    assert page.title == "Couriers"
    assert [block.text for block in page.blocks] == [
        "Re: Couriers, bob@example.com, 2026-05-04 10:00",
        "From: bob@example.com; To: team@example.com",
        "Posten.",
    ]
    assert page.blocks[0].anchor == "message=1"


def test_text_that_a_reply_repeats_from_the_thread_is_left_out() -> None:
    page = mail.read(box(message("Couriers", QUESTION), message("Re: Couriers", REPLY)), "a.mbox")

    texts = [block.text for block in page.blocks if block.kind is BlockKind.TEXT]

    assert texts[1:3] == ["Which courier do we use for Norway?", "The old one stopped in May."]
    assert texts[4:] == ["Hello Ann,", "we use Posten for Norway now."]
    assert [(part.what, part.count) for part in page.left_out] == [
        ("signature paragraph", 1),
        ("repeated paragraph", 2),
    ]


def test_a_quotation_below_an_answer_is_a_section_that_names_who_wrote_it() -> None:
    page = mail.read(bytes(message("Re: Couriers", REPLY)), "a.eml")

    assert "Logistics" not in page.content
    assert [block.text for block in page.blocks if block.level] == [
        "Re: Couriers, bob@example.com, 2026-05-04 10:00",
        "On Mon, 4 May 2026 at 10:00, Ann <ann@example.com> wrote",
    ]
    assert [block.text for block in page.blocks][-3:-1] == [
        "On Mon, 4 May 2026 at 10:00, Ann <ann@example.com> wrote",
        "Which courier do we use\nfor Norway?",
    ]


def test_an_answer_below_what_it_quotes_stays_in_its_section() -> None:
    quoted = (
        "On Mon, 4 May 2026 at 10:00, Ann <ann@example.com> wrote:\n> Which courier?\n\nPosten."
    )
    page = mail.read(bytes(message("Re: Couriers", quoted)), "a.eml")

    assert [block.level for block in page.blocks] == [2, 0, 0, 0, 0]
    assert [block.text for block in page.blocks[2:]] == [
        "On Mon, 4 May 2026 at 10:00, Ann <ann@example.com> wrote:", "> Which courier?", "Posten.",
    ]  # fmt: skip


def test_html_is_read_where_no_plain_text_is_and_attachments_are_named() -> None:
    made = message("Prices", "")
    made.set_content("<html><body><p>Now <b>5</b> EUR.</p></body></html>", subtype="html")
    made.add_attachment(b"1", maintype="application", subtype="pdf", filename="list.pdf")
    encoded = bytes(made).replace(b'"list.pdf"', b'"=?utf-8?q?list?= =?utf-8?q?=2Epdf?="')

    page = mail.read(encoded, "a.eml")

    assert page.blocks[-1].text == "Now 5 EUR."
    assert [(part.what, part.names) for part in page.left_out] == [("attachment", ("list.pdf",))]


def test_encoded_subjects_and_bodies_are_text() -> None:
    made = message("Größe und Maß", "Die Größe ist 5 €.")

    assert "Größe und Maß" in mail.read(bytes(made), "a.eml").blocks[0].text


def test_a_file_that_is_not_a_message_is_reported() -> None:
    with pytest.raises(WrongFormatError, match="not a header"):
        mail.read(b"hello\nworld", "a.eml")
    with pytest.raises(WrongFormatError, match="not a header"):
        mail.read(b"", "a.eml")


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-le", "utf-16-be"])
def test_a_message_that_an_editor_saved_as_utf_16_is_read(encoding: str) -> None:
    made = "Subject: Fees\nContent-Type: text/plain; charset=iso-8859-1\n\nGröße: 40 €\n"

    page = mail.read(made.encode(encoding), "a.eml")

    assert (page.title, page.blocks[-1].text) == ("Fees", "Größe: 40 €")


def test_a_message_of_a_damaged_header_is_read() -> None:
    page = mail.read(b"Subject: =?utf-8?b?!!!?=\nFrom: <<\nDate: never\n\nText.\n", "a.eml")

    assert page.blocks[-1].text == "Text."


COPY = """We use Posten now.

Bob

-----Original Message-----
From: Ann Lee
Sent: Monday, May 4, 2026 8:14 AM
To: team@example.com
Subject: Couriers

Which courier do we use for Norway?
"""


@pytest.mark.parametrize("separator", ["-----Original Message-----\n", ""])
def test_a_copy_without_marks_is_no_text_of_the_sender(separator: str) -> None:
    copy = COPY.replace("-----Original Message-----\n", separator)

    blocks = mail.read(bytes(message("Re: Couriers", copy)), "a.eml").blocks

    assert [(block.level, block.text) for block in blocks[2:]] == [
        (0, "We use Posten now."),
        (0, "Bob"),
        (3, "Ann Lee, Monday, May 4, 2026 8:14 AM"),
        (0, "Which courier do we use for Norway?"),
    ]


@pytest.mark.parametrize("text", [REPLY, COPY])
def test_a_reply_need_not_repeat_what_another_file_has(text: str) -> None:
    data = bytes(message("Re: Couriers", text))

    texts = [block.text for block in mail.read(data, "a.eml", keeps_quotations=False).blocks]

    assert "Norway?" not in " ".join(texts)
    assert any("Posten" in word for word in texts)


def test_a_comparison_keeps_its_sign_although_it_looks_like_a_quotation() -> None:
    text = "Rates:\n> 100 kg: 1240\n>= €500: on request\n\nLimit:\n\n> 3 boxes\n"
    shown = ["Rates:", "> 100 kg: 1240", ">= €500: on request", "Limit:", "> 3 boxes"]

    for keeps_quotations in (True, False):
        data = bytes(message("Rates", text))
        page = mail.read(data, "a.eml", keeps_quotations=keeps_quotations)
        assert [block.text for block in page.blocks[2:]] == shown
        assert page.left_out == ()


def test_text_around_an_older_quotation_stays_below_its_author() -> None:
    text = (
        "Agreed.\n\nOn Tue, 5 May 2026, Ann wrote:\n> It costs 5.\n>\n"
        "> On Mon, 4 May 2026, Bob wrote:\n> > It costs 6.\n> >\n> > > 3 boxes\n>\n> Not 7.\n"
    )

    page = mail.read(bytes(message("Re: Rates", text)), "a.eml")

    assert [block.text for block in page.blocks[2:]] == [
        "Agreed.", "On Tue, 5 May 2026, Ann wrote", "It costs 5.", "On Mon, 4 May 2026, Bob wrote",
        "It costs 6.", "> 3 boxes", "On Tue, 5 May 2026, Ann wrote", "Not 7.",
    ]  # fmt: skip


def test_an_answer_between_quoted_lines_keeps_them() -> None:
    data = bytes(message("Re: Couriers", "> Which courier?\n\nPosten.\n"))

    page = mail.read(data, "a.eml", keeps_quotations=False)

    assert [block.text for block in page.blocks[2:]] == ["> Which courier?", "Posten."]


def test_text_behind_a_picture_and_an_invitation_are_read_in_their_order() -> None:
    made = EmailMessage()
    made["Subject"] = "Plan"
    made.set_content("Before.")
    made.add_attachment(b"\x89PNG", "image", "png", disposition="inline", filename="a.png")
    made.add_attachment("After.", disposition="inline")
    event = (
        "BEGIN:VCALENDAR\nBEGIN:VEVENT\nSUMMARY:Audit\\, part 2\nDTSTART;TZID=Europe/Paris:"
        "20250203T100000\nDTEND:20250203T100000Z\nORGANIZER:mailto:ada@example.org\n"
        "RRULE:FREQ=WEEKLY\nDURATION:PT2H\nATTENDEE;CN=Bo:mailto:bo@example.org\n"
        "DESCRIPTION:Bring\n  the list\n"
        "BEGIN:VALARM\nDESCRIPTION:Reminder\nEND:VALARM\nEND:VEVENT\nEND:VCALENDAR\n"
    )
    made.add_attachment(event, "calendar", disposition="inline")

    page = mail.read(made.as_bytes(), "a.eml")

    assert [block.text for block in page.blocks[2:]] == [
        "Before.",
        "After.",
        "Summary: Audit, part 2\nDtstart: 2025-02-03 10:00 Europe/Paris\n"
        "Dtend: 2025-02-03 10:00 UTC\nOrganizer: ada@example.org\n"
        "Rrule: FREQ=WEEKLY\nDuration: PT2H\nAttendee: bo@example.org\n"
        "Description: Bring the list",
    ]
    assert [(part.what, part.names) for part in page.left_out] == [("attachment", ("a.png",))]


def test_the_event_in_an_attached_calendar_is_read_once() -> None:
    event = "BEGIN:VEVENT\nDTSTART:20261107T150000\nSUMMARY:Two rooms\nLOCATION:Kusatsu 386-2\n"
    calendar = f"BEGIN:VCALENDAR\n{event}END:VEVENT\nEND:VCALENDAR\n".encode()
    reply = message("Booking", "Confirmed.")
    for name in ("booking.ics", "again.ics"):
        reply.add_attachment(calendar, maintype="text", subtype="calendar", filename=name)

    page = mail.read(bytes(reply), "a.eml")

    assert page.content.count("Kusatsu 386-2") == 1
    assert [(one.what, one.count) for one in page.left_out] == [("repeated paragraph", 1)]


def test_a_plain_text_that_only_stands_for_the_html_is_not_read_instead_of_it() -> None:
    made = EmailMessage()
    made["Subject"] = "News"
    made.set_content("Please use a program that shows HTML.")
    made.add_alternative("<p>The canteen closes at 14:10.</p>", subtype="html")

    page = mail.read(made.as_bytes(), "a.eml")

    assert page.blocks[-1].text == "The canteen closes at 14:10."
    assert "program" not in page.content


def test_lines_that_a_program_wrapped_are_joined_and_others_stay_lines() -> None:
    flowed = message("Plan", "")
    flowed.set_content(
        "The rehearsal moves to the hall, because the heating was repaired for 1 \r\n250 kr:  \r\n"
        "https://choir.example/ \r\nplan\r\nMonday: 8-12\r\nTuesday: 9-13\r\n",
    )
    flowed.set_param("format", "flowed")
    flowed.set_param("delsp", "yes")

    page = mail.read(bytes(flowed), "a.eml")

    assert page.blocks[-1].text == (
        "The rehearsal moves to the hall, because the heating was repaired for 1250 kr: "
        "https://choir.example/plan\nMonday: 8-12\nTuesday: 9-13"
    )


def test_a_message_that_is_encoded_as_a_whole_and_a_folded_boundary_are_read() -> None:
    inner = b64encode(b"Subject: Rent\r\n\r\nIt is 700 EUR.\r\n").decode()
    data = (
        'Subject: Two\nContent-Type: multipart/mixed; boundary="a\n b"\n\n--a b\n'
        f"Content-Type: message/rfc822\nContent-Transfer-Encoding: base64\n\n{inner}\n--a b--\n"
    )
    lost = "Subject: One\nContent-Type: multipart/mixed; boundary=c\n\nThe canteen is closed.\n"

    texts = [block.text for block in mail.read(data.encode(), "a.eml").blocks]

    assert texts[2:] == ["Rent", "It is 700 EUR."]
    assert mail.read(lost.encode(), "a.eml").blocks[-1].text == "The canteen is closed."


def test_a_line_that_begins_like_a_message_of_a_mailbox_stays_in_its_message() -> None:
    first = message("Hours", "Hello.\n\nFrom now on we close at 17:30.\nSee you.\n")
    escaped = message("Rent", "It rises.\n").as_bytes() + b"\n>From May on, it is 700 EUR.\n"
    start = b"From a@example.com Mon May  4\n"

    page = mail.read(start + bytes(first) + b"\n" + start + escaped, "a.mbox")

    assert [block.text for block in page.blocks if "From: " not in block.text] == [
        "Hours, bob@example.com, 2026-05-04 10:00", "Hello.",
        "From now on we close at 17:30.\nSee you.",
        "Rent, bob@example.com, 2026-05-04 10:00", "It rises.", "From May on, it is 700 EUR.",
    ]  # fmt: skip


def test_a_deleted_message_that_is_still_in_the_file_of_a_mailbox_is_left_out() -> None:
    deleted, current = message("Stock", "310 boxes"), message("Stock", "295 boxes")
    deleted["X-Mozilla-Status"], current["X-Mozilla-Status"] = "0009", "0001"

    page = mail.read(box(deleted, current), "Inbox.mbox")

    assert [block.text for block in page.blocks[2:]] == ["295 boxes"]
    assert page.blocks[0].anchor == "message=2"
    assert [(part.what, part.count) for part in page.left_out] == [("message", 1)]


def test_text_that_only_the_html_of_a_message_strikes_out_is_marked() -> None:
    made = message("Chairs", "We ordered 120, 150 chairs.")
    made.add_alternative("<p>We ordered 120, <strike>150</strike> chairs.</p>", subtype="html")

    assert mail.read(bytes(made), "a.eml").blocks[-1].text == "We ordered 120, ~~150~~ chairs."


def test_a_text_file_between_the_parts_of_a_message_is_read_in_its_place() -> None:
    made = message("Cranes", "The plan of the cranes is below. Please answer by Monday.")
    made.add_alternative("<p>The plan of the cranes is below.</p>", subtype="html")
    html = made.get_payload(1)
    assert isinstance(html, EmailMessage)
    html.make_mixed()
    html.add_attachment("25.10. boats up to 7 m", filename="plan.txt", disposition="inline")
    html.add_attachment("<p>Please answer by Monday.</p>", subtype="html", disposition="inline")

    content = mail.read(bytes(made), "a.eml").content

    places = [content.index(text) for text in ("below", "25.10. boats up to 7 m", "Monday")]
    assert places == sorted(places)


def test_the_fields_of_a_report_about_a_delivery_are_read() -> None:
    made = (
        b"From: a@b.c\r\nContent-Type: multipart/report; boundary=b\r\n\r\n--b\r\n\r\nNot sent."
        b"\r\n--b\r\nContent-Type: message/delivery-status\r\n\r\nReporting-MTA: dns; mx.b.c"
        b"\r\n\r\nFinal-Recipient: rfc822; ada@b.c\r\nStatus: 5.1.1\r\n--b--"
    )

    texts = [block.text for block in mail.read(made, "a.eml").blocks[2:]]

    assert texts == [
        "Not sent.",
        "Reporting-MTA: dns; mx.b.c",
        "Final-Recipient: rfc822; ada@b.c\nStatus: 5.1.1",
    ]


_TYPE = bytes.fromhex("3082010006092a864886f70d0107")
"""The beginning of S/MIME content; the next byte is the type (2 signed, 3 encrypted)."""


@pytest.mark.parametrize(
    ("name", "data", "reason"),
    [
        ("winmail.dat", b"\x78\x9f\x3e\x22" + bytes(40), "packed in a format of Outlook"),
        ("smime.p7m", _TYPE + b"\x03" + bytes(40), "encrypted; decrypt the message"),
        ("smime.p7m", _TYPE + b"\x02" + bytes(40), "inside a signature"),
        ("smime.p7s", _TYPE + b"\x02" + bytes(40), "signatures contain no text"),
        ("a.asc", b"-----BEGIN PGP MESSAGE-----\n\nhQ==\n", "encrypted; decrypt the message"),
        ("a.asc", b"-----BEGIN PGP SIGNATURE-----\n\nhQ==\n", "signatures contain no text"),
    ],
)
def test_content_that_only_a_mail_program_opens_is_named_as_such(
    name: str, data: bytes, reason: str
) -> None:
    made = message("Chairs", "See the attachment.")
    made.add_attachment(data, "application", "octet-stream", filename=name)

    (left_out,) = mail.read(bytes(made), "a.eml").left_out

    assert (left_out.what, left_out.names) == ("attachment", (name,))
    assert left_out.reason.startswith(reason)


def test_the_text_of_a_signed_message_is_read_without_its_armour() -> None:
    signed = (
        "-----BEGIN PGP SIGNED MESSAGE-----\nHash: SHA256\n\nOffer:\n- - 3 chairs for 400 euros\n"
        "-----BEGIN PGP SIGNATURE-----\n\niQEzBA==\n-----END PGP SIGNATURE-----\n"
    )
    encrypted = "-----BEGIN PGP MESSAGE-----\n\nhQEMA5vJzk7bMt1Z\n-----END PGP MESSAGE-----\n"

    page = mail.read(bytes(message("Chairs", f"{signed}\n{encrypted}")), "a.eml")

    assert [block.text for block in page.blocks[2:]] == ["Offer:\n- 3 chairs for 400 euros"]
    assert [part.what for part in page.left_out] == ["signature", "encrypted text"]


def test_openpgp_text_that_is_not_a_message_is_kept() -> None:
    key = "-----BEGIN PGP PUBLIC KEY BLOCK-----\n\nmQEN\n-----END PGP PUBLIC KEY BLOCK-----"

    page = mail.read(bytes(message("Key", key)), "a.eml")

    assert "\n\n".join(block.text for block in page.blocks[2:]) == key
