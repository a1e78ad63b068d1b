"""What a website repeats on its pages is no passage; what pages say stays."""

from tests.knowledge.documents.conftest import Desk

PAGE = (
    "<html><body><article><h1>Article {0}</h1><p>Text of article {0}.</p>"
    "<h2>Parameters</h2><p>Parameter {0}.</p>"
    "<p>Was this article helpful?</p><p>17 out of 20 found this helpful</p>"
    "<h2>Related articles</h2><ul><li><a href='/a{1}'>Article about {1}</a></li>"
    "<li><a href='/b{1}'>Other article {1}</a></li></ul></article></body></html>"
)


async def test_text_repeated_on_most_pages_of_a_website_is_not_a_passage(desk: Desk) -> None:
    for number in range(6):
        desk.write(f"a{number}.html", PAGE.format(number, number + 1))

    await desk.ingest()

    content = desk.index.documents["docs/a3"].content
    assert content == "# Article 3\n\nText of article 3.\n\n## Parameters\n\nParameter 3."


async def test_the_end_that_most_pages_in_markdown_have_is_no_passage(desk: Desk) -> None:
    for number in range(6):
        desk.write(
            f"a{number}.md",
            f"# Article {number}\n\nRequires the role of an owner.\n\n"
            f"## Limits\n\n{number} a day.\n\n"
            f"## Related articles\n\n- [Article {number + 1}](a{number + 1}.md)\n\n"
            "Was this article helpful?\n\n[Tell us](https://help.example/form)\n",
        )

    await desk.ingest()

    content = desk.index.documents["docs/a3"].content
    assert content == "# Article 3\n\nRequires the role of an owner.\n\n## Limits\n\n3 a day."


async def test_a_few_pages_are_not_compared(desk: Desk) -> None:
    for number in range(2):
        desk.write(f"a{number}.html", PAGE.format(number, number + 1))

    await desk.ingest()

    assert "Was this article helpful?" in desk.index.documents["docs/a1"].content


async def test_a_page_that_only_lists_others_does_not_name_its_folder(desk: Desk) -> None:
    desk.write("billing/index.md", "# Contents\n\n- [Plans](plans.md)\n")
    desk.write("billing/plans.md", "# Plans\n\nA plan has a price.\n")
    desk.write("sms/index.md", "# Sending SMS\n\n- [Limits](limits.md)\n")
    desk.write("sms/limits.md", "# Limits\n\nTen a second.\n")

    await desk.ingest()

    assert desk.index.documents["docs/billing/plans"].crumbs == ("Billing", "Plans")
    assert desk.index.documents["docs/sms/limits"].crumbs == ("Sending SMS", "Limits")


async def test_a_title_that_several_folders_have_names_none_of_them(desk: Desk) -> None:
    for folder in ("billing", "sms"):
        desk.write(f"{folder}/index.md", "# Overview\n\nIt is easy to begin.\n")
        desk.write(f"{folder}/plans.md", "# Plans\n\nText.\n")

    await desk.ingest()

    assert desk.index.documents["docs/billing/plans"].crumbs == ("Billing", "Plans")
