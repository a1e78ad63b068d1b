from tests.tools.conftest import catalog, executor, parts

__all__ = ["catalog", "executor", "parts"]
