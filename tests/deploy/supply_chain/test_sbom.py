"""The bill of materials holds what the image holds."""

import json
from pathlib import Path

import pytest

from deploy.supply_chain.lock import LOCKS, read_lock
from deploy.supply_chain.sbom import SbomError, write_sbom


@pytest.mark.slow
def test_the_bill_of_materials_holds_every_locked_release_with_its_digests(tmp_path: Path) -> None:
    write_sbom(tmp_path / "bill.json")

    bill = json.loads((tmp_path / "bill.json").read_text())
    assert bill["metadata"]["component"]["name"] == "refdesk"
    [image] = [lock for lock in LOCKS if lock.name == "image"]
    locked = {(one.name, one.version): set(one.digests) for one in read_lock(image.path)}
    held = {
        (one["name"], one["version"]): {
            digest["content"] for digest in one["externalReferences"][0]["hashes"]
        }
        for one in bill["components"]
    }
    assert held == locked
    assert all(one["purl"].startswith("pkg:pypi/") for one in bill["components"])


@pytest.mark.long
def test_the_same_lock_makes_the_same_bill_in_the_form_of_the_standard(tmp_path: Path) -> None:
    first, second = tmp_path / "first.json", tmp_path / "second.json"

    write_sbom(first)
    write_sbom(second)

    assert first.read_text() == second.read_text()
    _validate(first.read_text())


@pytest.mark.slow
def test_a_lock_that_is_not_there_makes_no_bill(tmp_path: Path) -> None:
    with pytest.raises(SbomError, match=r"bill of materials of none\.txt"):
        write_sbom(tmp_path / "bill.json", tmp_path / "none.txt")


def _validate(bill: str) -> None:
    # Imported here: it compiles forty grammars, which every process that collects tests would wait
    # for.
    from cyclonedx.schema import SchemaVersion
    from cyclonedx.validation.json import JsonStrictValidator

    assert JsonStrictValidator(SchemaVersion.V1_6).validate_str(bill) is None
