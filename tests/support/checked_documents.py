"""Documents of a small desk, and a change of them, for checks."""

from pathlib import Path

PAGES = {
    "accounts/invite.md": """\
# Invite users

To invite a colleague, open Users, choose Invite and enter an address. The invitation is valid for
7 days, and every colleague who accepts it becomes an Analyst until an Owner changes the role.
""",
    "accounts/password.md": """\
# Reset a password

## Requirements

A new password has at least 12 characters and differs from the last five passwords.

## Steps

Choose Forgot password on the sign-in page, enter the address, and follow the link in the message.
""",
    "api/limits.md": """\
# Rate limits of the API

An account may make 50 requests per second. Further requests are refused with status 429.
""",
    "api/errors.md": """\
# Errors of the API

Error 4013 means that the recipient has opted out of messages from this sender.
""",
    "billing.md": """\
# Invoices

Invoices are sent on the first day of each month to the address of the account's owner.
""",
}


def write_pages(folder: Path, pages: dict[str, str]) -> Path:
    for name, text in pages.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text, "utf-8")
    return folder


def change(docs: Path) -> Path:
    """Move one page, delete one, and change two."""
    (docs / "people").mkdir()
    (docs / "accounts/invite.md").rename(docs / "people/invitations.md")
    (docs / "api/errors.md").unlink()
    limits = docs / "api/limits.md"
    limits.write_text(limits.read_text().replace("50 requests per", "60 requests each"))
    (docs / "billing.md").write_text(
        f"{PAGES['billing.md']}\n## Refunds\n\nApproved refunds are paid within 5 days.\n"
    )
    return docs
