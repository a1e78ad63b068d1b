from pathlib import Path

import pytest

from knowledge.documents.folder import walk
from knowledge.documents.snippets import read_with_snippets
from tests.knowledge.documents.conftest import Desk


def read(folder: Path, name: str = "a.md") -> tuple[str, list[str]]:
    warnings: list[str] = []
    (file,) = (file for file in walk(folder).files if str(file.path) == name)
    return read_with_snippets(file, warnings.append, warnings.append).decode(), warnings


def test_a_snippet_is_put_in_its_place_with_the_indent_of_its_marker(tmp_path: Path) -> None:
    (tmp_path / "code.txt").write_text("one\ntwo\nthree\n")
    (tmp_path / "a.md").write_text('- Step\n\n    --8<-- "code.txt:2:3"\n\n{!code.txt!}\n')

    assert read(tmp_path) == ("- Step\n\n    two\n    three\n\none\ntwo\nthree\n", [])


def test_a_section_of_a_snippet(tmp_path: Path) -> None:
    (tmp_path / "part.txt").write_text("x\n# --8<-- [start:mid]\ny\n# --8<-- [end:mid]\nz\n")
    (tmp_path / "a.md").write_text('--8<-- "part.txt:mid"\n')

    assert read(tmp_path) == ("y\n", [])


@pytest.mark.parametrize(
    "reference", ["../secret.txt", "/etc/passwd", "~/x", "link.txt", ".env", "https://a.example/b"]
)
def test_a_path_outside_the_folder_or_hidden_is_never_read(tmp_path: Path, reference: str) -> None:
    folder = tmp_path / "docs"
    folder.mkdir()
    (tmp_path / "secret.txt").write_text("secret")
    (folder / ".env").write_text("secret")
    (folder / "link.txt").symlink_to(tmp_path / "secret.txt")
    (folder / "a.md").write_text(f'Text.\n\n--8<-- "{reference}"\n')

    text, warnings = read(folder)

    assert text == "Text.\n\n"
    assert warnings == [reference]


def test_a_file_of_the_repository_outside_the_folder_is_read(tmp_path: Path) -> None:
    (tmp_path / ".git").mkdir()
    folder = tmp_path / "docs" / "en"
    folder.mkdir(parents=True)
    (tmp_path / "src").mkdir()
    (tmp_path / "src" / "app.py").write_text("x = 1\n")
    (folder / "a.md").write_text("{!../../src/app.py!}\n")

    assert read(folder) == ("x = 1\n", [])


@pytest.mark.parametrize(
    "name", [".hidden/a.py", "../outside.py", "secret/a.py", ".git/config.yml"]
)
def test_hidden_restricted_and_outside_files_are_never_read(tmp_path: Path, name: str) -> None:
    top = tmp_path / "repository"
    (top / ".git").mkdir(parents=True)
    (top / "refdesk.toml").write_text('[[documents]]\npath = "secret/**"\ngroups = ["board"]\n')
    folder = top / "docs"
    folder.mkdir()
    file = top / name
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text("secret")
    (folder / "a.md").write_text(f"Text.\n\n{{!../{name}!}}\n")

    assert read(folder) == ("Text.\n\n", [f"../{name}"])


async def test_a_page_includes_only_what_all_of_its_readers_may_read(desk: Desk) -> None:
    rule = '[[documents]]\npath = "{}"\ngroups = ["board"]\n'
    desk.write("refdesk.toml", rule.format("board/*") + rule.format("b.md"))
    desk.write("board/pay.txt", "Secret pay.")
    desk.write(".parts/hours.txt", "Open at nine.")
    for name in ("a.md", "b.md"):
        desk.write(name, '# A\n\n--8<-- "board/pay.txt"\n\n--8<-- ".parts/hours.txt"\n')

    await desk.ingest()

    contents = {name: each.content for name, each in desk.index.documents.items()}
    assert contents["docs/a"] == "# A\n\nOpen at nine."
    assert contents["docs/b"] == "# A\n\nSecret pay.\n\nOpen at nine."


async def test_many_files_that_are_missing_are_one_note(desk: Desk) -> None:
    for number in range(20):
        desk.write(f"{number}.md", f"# A\n\nText.\n\n{{!../src/{number}.py!}}\n")

    result = await desk.ingest()

    assert len(result.warned) == 1
    assert "20 files to which 20 pages refer were not found" in result.warned[0][1]


async def test_a_page_whose_snippet_changed_is_read_again(desk: Desk) -> None:
    desk.write("part.txt", "Old price.")
    desk.write("a.md", '# A\n\n--8<-- "part.txt"\n')
    await desk.ingest()
    desk.write("part.txt", "New price.")

    result = await desk.ingest()

    assert result.changed == 2
    assert "New price." in desk.index.documents["docs/a"].content


@pytest.mark.parametrize("name", ["secrets.ini", "id_rsa", "server.key", "app.conf", ".npmrc"])
def test_a_file_that_is_no_text_of_a_documentation_is_never_read(tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_text("secret")
    (tmp_path / "a.md").write_text(f"{{!{name}!}}\n\n```{{literalinclude}} {name}\n```\nEnd.\n")

    text, warnings = read(tmp_path)

    assert text == "\nEnd.\n"
    assert warnings == [name, name]


CODE = "import os\n\n# begin\ndef run():\n    return 1\n# end\nrun()\n"


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ("", CODE.rstrip()),
        (":lines: 1,4-5\n", "import os\ndef run():\n    return 1"),
        (":start-after: begin\n:end-before: end\n", "def run():\n    return 1"),
        (":start-at: def\n:end-at: return\n:emphasize-lines: 1\n", "def run():\n    return 1"),
    ],
)
def test_code_that_sphinx_includes_comes_byte_for_byte(
    tmp_path: Path, options: str, expected: str
) -> None:
    (tmp_path / "code").mkdir()
    (tmp_path / "code" / "a.py").write_text(CODE)
    (tmp_path / "a.md").write_text(
        f"Before.\n\n```{{literalinclude}} /code/a.py\n:language: python\n{options}```\nAfter.\n"
    )
    indented = "".join(f"   {line}\n" for line in options.splitlines())
    (tmp_path / "b.rst").write_text(
        f"Before.\n\n.. literalinclude:: code/a.py\n{indented}\nAfter.\n"
    )

    assert read(tmp_path) == (f"Before.\n\n```python\n{expected}\n```\nAfter.\n", [])
    code = "".join(f"   {line}\n" for line in expected.split("\n"))
    text = f"Before.\n\n.. code-block:: py\n\n{code}\n\nAfter.\n"
    assert read(tmp_path, "b.rst") == (text, [])


async def test_included_code_is_quoted_as_code(desk: Desk) -> None:
    desk.write("code/a.py", CODE)
    desk.write("a.rst", "Running\n=======\n\nCall it.\n\n.. literalinclude:: code/a.py\n")
    desk.write("b.md", "# Marks\n\n```{literalinclude} code/a.py\n```\n")

    await desk.ingest()

    texts = [
        "\n".join(chunk.text for chunk in document.chunks)
        for document in desk.index.documents.values()
    ]
    assert len(texts) == 2
    assert all("def run():\n    return 1\n" in text for text in texts)


def test_code_is_not_searched_for_further_snippets(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text("{!b.txt!}\n```\n")
    (tmp_path / "b.txt").write_text("other")
    (tmp_path / "a.md").write_text("```{literalinclude} a.py\n```\n")

    assert read(tmp_path) == ("````py\n{!b.txt!}\n```\n````\n", [])
