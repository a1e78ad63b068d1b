import pytest

from tools.builtin.calculator import Calculator
from tools.calls import EffectClass
from tools.catalog import ToolCatalog, list_builtin


def test_every_module_below_builtin_is_a_tool_without_a_list() -> None:
    from pathlib import Path

    import tools.builtin

    folder = Path(next(iter(tools.builtin.__path__)))
    modules = [path for path in folder.rglob("*.py") if path.name != "__init__.py"]

    assert len(list_builtin()) == len(modules)
    assert {path.stem for path in modules} == {tool.name for tool in list_builtin()}


def test_the_builtin_tools_only_read() -> None:
    assert {tool.effect for tool in list_builtin()} == {EffectClass.READ}


def test_an_alias_is_the_tool_itself(catalog: ToolCatalog) -> None:
    assert catalog.find("compare_docs") is catalog.find("compare_documents")
    assert "compare_docs" not in catalog.names()


def test_the_nearest_name_is_one_that_is_allowed(catalog: ToolCatalog) -> None:
    assert catalog.find_nearest("hybird_search") == "hybrid_search"
    assert catalog.find_nearest("hybird_search", {"lookup"}) is None
    assert catalog.find_nearest("zzzz") is None


def test_two_tools_of_one_name_are_refused() -> None:
    with pytest.raises(ValueError, match="expected one tool named 'calculator'"):
        ToolCatalog([Calculator(), Calculator()])
