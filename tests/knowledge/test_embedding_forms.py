import pytest

from knowledge.embedding_forms import NO_FORMS, TextForms, find_forms, read_forms


@pytest.mark.parametrize(
    ("model", "question", "document"),
    [
        ("intfloat/multilingual-e5-small", "query: text", "passage: text"),
        ("e5-large-v2", "query: text", "passage: text"),
        ("nomic-ai/nomic-embed-text-v1.5", "search_query: text", "search_document: text"),
        ("Snowflake/snowflake-arctic-embed-l-v2.0", "query: text", "text"),
        ("BAAI/bge-m3", "text", "text"),
        ("all-MiniLM-L6-v2", "text", "text"),
        ("text-embedding-3-small", "text", "text"),
    ],
)
def test_questions_and_documents_get_the_prefixes_their_model_was_trained_with(
    model: str, question: str, document: str
) -> None:
    forms = find_forms(model)

    assert forms.make_questions(["text"]) == [question]
    assert forms.make_documents(["text"]) == [document]


@pytest.mark.parametrize("model", ["BAAI/bge-small-en-v1.5", "intfloat/e5-mistral-7b-instruct"])
def test_some_models_have_an_instruction_for_questions_alone(model: str) -> None:
    forms = find_forms(model)

    assert forms.question.endswith((": ", "Query: "))
    assert forms.document == ""


def test_forms_that_do_nothing_have_no_name() -> None:
    assert NO_FORMS.name == ""
    assert TextForms("query: ").name == "'query: ' and ''"


@pytest.mark.parametrize("before", ["", "RETRIEVAL_QUERY and RETRIEVAL_DOCUMENT; "])
@pytest.mark.parametrize(
    "forms", [NO_FORMS, TextForms("query: "), TextForms("it's; \"a\" and 'b'", "\n; x")]
)
def test_prefixes_are_read_again_from_the_name_that_an_index_keeps(
    before: str, forms: TextForms
) -> None:
    assert read_forms(before + forms.name) == forms
