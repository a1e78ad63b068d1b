"""Documents with everything in them that a page may have to show."""

from gateway.port import ReadableDocument, ReadableSection

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
        ReadableSection(
            (), "rules", "Rules say which way a message takes.\n\n> Read once a minute."
        ),
        ReadableSection(
            ("Create a rule",),
            "create-a-rule",
            f"1. Choose `New rule`.\n   - Name it.\n2. Save.\n\n{CODE}\n\nThat is all.",
            cited=True,
        ),
        ReadableSection(
            ("Create a rule", "Errors"), "errors", f"{TABLE}\n\n---\n\n    indented code"
        ),
    ),
)
ARABIC = ReadableDocument(
    title="ضبط قواعد التوجيه",
    crumbs=("المنتجات",),
    language="ar",
    sections=(
        ReadableSection(
            ("إنشاء قاعدة",),
            "create-a-rule",
            f"1. افتح التوجيه.\n2. API مطلوب.\n\n{CODE}\n\nAPI keys are needed.",
            cited=True,
        ),
        ReadableSection(
            ("الأخطاء",), "errors", "| الرمز | المعنى |\n|---|---|\n| 4029 | no route |"
        ),
    ),
)
DOCUMENTS = {"rules#1": RULES, "arabic#1": ARABIC}
