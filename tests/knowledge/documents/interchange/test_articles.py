"""Exports of help centers and of SharePoint become one page for each article."""

import json
from collections.abc import Mapping
from pathlib import PurePosixPath

import pytest

from knowledge.documents import formats
from knowledge.documents.errors import NoDocumentError
from knowledge.documents.location import locate
from knowledge.documents.page import Page

PATH = PurePosixPath("export.json")
CANVAS = (
    '<div><div data-sp-canvascontrol=""><div data-sp-webpart="">'
    '<div data-sp-componentid="">c70391ea-0b10-4ee9-b2b4-006d3fcad0cd</div>'
    '<div data-sp-htmlproperties=""><div data-sp-prop-name="title">Quick links</div></div></div>'
    '</div><div data-sp-canvascontrol=""><div data-sp-rte=""><p>Rooms are open at 7.</p></div>'
    "</div></div>"
)


def read(export: object) -> list[Page]:
    data = json.dumps(export).encode()
    formats.refuse_other_data(data)
    return [formats.read(item, PATH, locate(PATH, ())) for item in formats.split(PATH, data)]


def describe(page: Page) -> Mapping[str, object]:
    return {
        "title": page.title,
        "content": page.content,
        "url": page.url,
        "crumbs": page.crumbs,
        "left_out": [str(part) for part in page.left_out],
    }


def test_articles_of_freshdesk_stand_in_their_folders_and_drafts_are_left_out() -> None:
    articles = [
        {"id": 1, "folder_id": 4, "title": "Refunds", "status": 2, "tags": ["money"],
         "description": "Within <b>14 days</b>.", "desc_un_html": "Within 14 days."},
        {"id": 2, "folder_id": 4, "title": "Prices", "status": 1, "description": "<p>Later</p>"},
    ]  # fmt: skip
    folders = [{"id": 4, "name": "Billing", "description": "", "articles": articles}]

    (page,) = read([{"category": {"id": 3, "name": "Shop", "all_folders": folders}}])

    assert describe(page) == {
        "title": "Refunds",
        "content": "Within 14 days.",
        "url": None,
        "crumbs": ("Shop", "Billing", "Refunds"),
        "left_out": ["1 article left out (Prices): not published"],
    }
    assert page.keywords == ("money",)


def test_translations_of_an_article_of_intercom_are_pages_of_the_same_name() -> None:
    english = {"title": "Setup", "body": "<p>Press start.</p>", "state": "published"}
    french = {"title": "Installation", "body": "<p>Appuyez.</p>", "state": "published",
              "url": "https://help.test/fr/articles/9"}  # fmt: skip
    german = {"title": "Einrichten", "body": "<p>Entwurf.</p>", "state": "draft"}
    article = {
        "id": "9",
        "default_locale": "en",
        "url": "https://help.test/en/articles/9",
        "translated_content": {"en": english, "fr": french, "de": german, "type": "x"},
        **english,
    }

    first, second = read({"type": "list", "data": [article], "total_count": 1})

    assert (first.title, first.language, first.url) == ("Setup", "en", article["url"])
    assert (second.title, second.language, second.url) == ("Installation", "fr", french["url"])
    assert first.name == second.name == "export.json/9"
    assert [part.names for part in first.left_out] == [("Einrichten",)]


@pytest.mark.parametrize(
    "page",
    [
        {
            "Id": 3,
            "Title": "Rooms",
            "AbsoluteUrl": "https://a.test/r.aspx",
            "CanvasContent1": CANVAS,
        },
        {
            "Id": 3,
            "Title": "Rooms",
            "AbsoluteUrl": "https://a.test/r.aspx",
            "CanvasContent1": json.dumps(
                [
                    {"controlType": 4, "innerHTML": "<p>Quick links</p>"},
                    {"controlType": 4, "innerHTML": "<p>Rooms are open at 7.</p>"},
                ]
            ),
        },
        {
            "id": "3",
            "title": "Rooms",
            "webUrl": "https://a.test/r.aspx",
            "publishingState": {"level": "published"},
            "canvasLayout": {
                "horizontalSections": [
                    {"columns": [{"webparts": [{"innerHtml": "<p>Quick links</p>"}]}]},
                    {"columns": [{"webparts": [{"innerHtml": "<p>Rooms are open at 7.</p>"}]}]},
                ]
            },
        },
    ],
)
def test_a_page_of_sharepoint_is_read_in_each_form_of_its_canvas(page: object) -> None:
    (read_page,) = read({"value": [page]})

    assert describe(read_page) == {
        "title": "Rooms",
        "content": "Quick links\n\nRooms are open at 7.",
        "url": "https://a.test/r.aspx",
        "crumbs": ("Rooms",),
        "left_out": [],
    }


def test_a_damaged_article_costs_only_itself() -> None:
    deep = "<div>" * 3000 + "x" + "</div>" * 3000
    bodies = {"Deep": deep, "Empty": None, "Fees": "<p>3 %</p>"}

    (page,) = read({"articles": [{"title": title, "body": bodies[title]} for title in bodies]})

    assert page.content == "3 %"
    assert [part.names for part in page.left_out] == [("Deep",), ("Empty",)]


@pytest.mark.parametrize(
    "value",
    [
        [{"title": "Broken build", "body": "It fails since Monday.", "id": 1}],
        {"articles": [{"title": "Draft", "body": "<p>Later</p>", "draft": True}]},
        [[[[{"body": 1}]]]],
    ],
)
def test_data_without_a_published_article_in_html_are_no_document(value: object) -> None:
    with pytest.raises(NoDocumentError, match="no published articles"):
        read(value)
