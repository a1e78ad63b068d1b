"""How many processors an ingestion uses in a container."""

from pathlib import Path

import pytest

from deploy.assembly.ingestion import count_processors

MANY = 1_000_000


@pytest.mark.parametrize(
    ("files", "processors"),
    [
        ({"cpu.max": "50000 100000\n"}, 1),
        ({"cpu.max": "100000 100000\n"}, 1),
        ({"cpu/cpu.cfs_quota_us": "100000\n", "cpu/cpu.cfs_period_us": "100000\n"}, 1),
    ],
)
def test_the_quota_of_a_container_limits_the_processors(
    files: dict[str, str], processors: int, tmp_path: Path
) -> None:
    write(tmp_path, files)

    assert count_processors(tmp_path) == processors


@pytest.mark.parametrize(
    "files",
    [
        {},
        {"cpu.max": "max 100000\n"},
        {"cpu.max": f"{MANY} 1\n"},
        {"cpu/cpu.cfs_quota_us": "-1\n", "cpu/cpu.cfs_period_us": "100000\n"},
    ],
)
def test_without_a_quota_all_processors_are_used(files: dict[str, str], tmp_path: Path) -> None:
    write(tmp_path, files)

    assert count_processors(tmp_path) == count_processors(tmp_path / "none")


def write(folder: Path, files: dict[str, str]) -> None:
    for name, text in files.items():
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text(text)
