from tests.gateway.http.conftest import any_house, house

__all__ = ["any_house", "house"]
