from tests.gateway.http.conftest import any_harness, harness

__all__ = ["any_harness", "harness"]
