"""Documents with everything in them that a page may have to show."""

from gateway.port import ReadableDocument, Section

CODE = "```bash\ncurl https://api.acme.test/v1/rules/and/further/and/further -H 'Accept: text'\n```"
ROWS = "\n".join(
    f"| 40{number} | limit_exceeded_{number} | too many requests came from here | wait | SMS, RCS |"
    for number in range(10, 20)
)
TABLE = f"| Code | Name | Meaning | What to do | Channels |\n|---|---|---|---|---|\n{ROWS}"
RULES = ReadableDocument(
    title="Configure SMS routing rules",
    crumbs=("Products", "Routing"),
    language="en",
    sections=(
        Section((), "rules", "Rules say which way a message takes.\n\n> Read once a minute."),
        Section(
            ("Create a rule",),
            "create-a-rule",
            f"1. Choose `New rule`.\n   - Name it.\n2. Save.\n\n{CODE}\n\nThat is all.",
            cited=True,
        ),
        Section(("Create a rule", "Errors"), "errors", f"{TABLE}\n\n---\n\n    indented code"),
    ),
)
ARABIC = ReadableDocument(
    title="ضبط قواعد التوجيه",
    crumbs=("المنتجات",),
    language="ar",
    sections=(
        Section(
            ("إنشاء قاعدة",),
            "create-a-rule",
            f"1. افتح التوجيه.\n2. API مطلوب.\n\n{CODE}\n\nAPI keys are needed.",
            cited=True,
        ),
        Section(("الأخطاء",), "errors", "| الرمز | المعنى |\n|---|---|\n| 4029 | no route |"),
    ),
)
DOCUMENTS = {"rules#1": RULES, "arabic#1": ARABIC}
