from knowledge import rule_descriptions
from knowledge.documents.markup import markdown
from knowledge.documents.page import Page, Prepared

TEXT = """# Rate plans

A rate plan says what a message costs. It belongs to one account.

## Peak hours

Between 8 and 18 o'clock messages cost more. Set `peak_hours` to change it.

```python
client.set(peak_hours=None)
```

## Terms

'Grace period' means the days before a plan ends. \u201cTop-up\u201d refers to money paid ahead.
"""


def page(text: str = TEXT, **claims: object) -> Page:
    read = markdown.read(text.encode(), "plans.md")
    return Page(source=read.source, title=read.title, blocks=read.blocks, **claims)  # type: ignore[arg-type]


def test_the_description_is_how_the_page_begins() -> None:
    description = rule_descriptions.describe(page()).description

    assert description == "A rate plan says what a message costs. It belongs to one account."


def test_the_summary_is_the_first_sentence_of_each_section() -> None:
    assert rule_descriptions.describe(page()).summary == (
        "A rate plan says what a message costs. Between 8 and 18 o'clock messages cost more. "
        "'Grace period' means the days before a plan ends."
    )


def test_key_points_name_the_section_and_what_it_says_first() -> None:
    assert rule_descriptions.describe(page()).keypoints[1] == (
        "Peak hours: Between 8 and 18 o'clock messages cost more."
    )


def test_defined_terms_identifiers_and_headings_are_keywords() -> None:
    keywords = rule_descriptions.describe(page()).keywords

    assert keywords[:6] == (
        "Grace period",
        "Top-up",
        "peak_hours",
        "Rate plans",
        "Peak hours",
        "Terms",
    )


def test_terms_defined_in_other_languages_are_keywords() -> None:
    texts = (
        "\u201eSperrfrist\u201c bedeutet eine Zeit.",
        "\u00abTarif\u00bb significa un precio.",
        "\u00ab\u0422\u0430\u0440\u0438\u0444\u00bb "
        "\u043e\u0437\u043d\u0430\u0447\u0430\u0435\u0442 \u0446\u0435\u043d\u0443.",
        "\u300c\u6599\u91d1\u300d\u3068\u306f\u5024\u6bb5\u3067\u3059\u3002",
    )

    results = [rule_descriptions.keywords(page(text))[0] for text in texts]

    assert results == ["Sperrfrist", "Tarif", "\u0422\u0430\u0440\u0438\u0444", "\u6599\u91d1"]


def test_frequent_words_are_keywords_and_usual_words_are_not() -> None:
    result = rule_descriptions.keywords(page("Which gateway would gateway gateway which which."))

    assert result == ("gateway",)


def test_existing_descriptions_are_kept() -> None:
    prepared = Prepared(summary="Said", keypoints=("said",), chunks=("said",))

    description = rule_descriptions.describe(
        page(description="Stated", keywords=("k",), prepared=prepared)
    )

    assert description == rule_descriptions.Description("Stated", "Said", ("said",), ("k",))


def test_an_endless_first_sentence_is_shortened() -> None:
    description = rule_descriptions.describe(page("word " * 10_000))

    assert len(description.description) <= 240
    assert description.description.endswith("\u2026")
