from config.settings import Settings


def make_settings(**changes: object) -> Settings:
    return Settings.model_validate(changes)


def test_documents_define_the_scope_unless_a_scope_is_given() -> None:
    assert make_settings().has_scope_of_documents
    assert make_settings(domain_scope=" ").has_scope_of_documents
    assert not make_settings(domain_scope="billing").has_scope_of_documents
    assert make_settings(domain_scope="billing", documents_define_scope=True).has_scope_of_documents
    assert not make_settings(documents_define_scope=False).has_scope_of_documents


def test_each_assistant_states_for_itself_whether_its_documents_define_its_scope() -> None:
    one = {"assistant": "one", "domain_name": "One", "domain_scope": "billing"}
    settings = make_settings(
        documents_define_scope=True,
        assistants=[one, {**one, "assistant": "two", "documents_define_scope": True}],
    )

    found = {made.assistant: made.has_scope_of_documents for made in settings.of_assistants()}

    assert found == {"default": True, "one": False, "two": True}
