"""Settings come from a file that a person knows of, wrote alone, and spelt right."""

import os
from pathlib import Path

import pytest

from cli.main import main
from config.env_file import HARMLESS, describe_env_file, find_env_file
from config.errors import SettingsError
from config.settings import Settings, load_settings
from tests.support.app_harness import refdesk

EMPTY = "the message is empty"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A working directory in which a file of settings may lie."""
    monkeypatch.delenv("REFDESK_ENV_FILE", raising=False)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def write(path: Path, text: str, mode: int = 0o600) -> Path:
    path.write_text(text, encoding="utf-8")
    path.chmod(mode)
    return path


def list_described(environment: dict[str, str] | None = None) -> list[str]:
    return describe_env_file(Settings, find_env_file(), environment or {})


@pytest.mark.slow
def test_a_command_first_prints_which_file_it_reads(folder: Path) -> None:
    file = write(folder / ".env", "DOMAIN_NAME=Acme\n")

    result = refdesk(folder, "ask", " ")

    assert result.stderr.splitlines()[0] == f"refdesk: settings are read from {file}"
    assert result.stdout == ""


def test_nothing_is_reported_if_no_file_is_read(folder: Path) -> None:
    assert list_described() == []
    assert load_settings().domain_name == "Documentation Assistant"


def test_a_file_in_the_working_directory_is_read(folder: Path) -> None:
    write(folder / ".env", 'DOMAIN_NAME="Acme Assistant"\n')

    assert load_settings().domain_name == "Acme Assistant"


def test_a_file_that_is_named_is_read_instead(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(folder / ".env", "DOMAIN_NAME=suggested\n")
    named = write(folder / "acme.env", "DOMAIN_NAME=named\n")
    monkeypatch.setenv("REFDESK_ENV_FILE", str(named))

    assert load_settings().domain_name == "named"
    assert list_described() == [f"settings are read from {named}"]


def test_a_person_can_have_no_file_read(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(folder / ".env", "DOMAIN_NAME=suggested\n")
    monkeypatch.setenv("REFDESK_ENV_FILE", "")

    assert load_settings().domain_name == "Documentation Assistant"
    assert list_described() == []


def test_a_named_file_that_is_not_there_is_an_error(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("REFDESK_ENV_FILE", "none.env")

    with pytest.raises(SettingsError, match=r"REFDESK_ENV_FILE: the file .* does not exist"):
        load_settings()


@pytest.mark.slow
def test_a_file_that_anybody_may_have_written_is_not_read(folder: Path) -> None:
    write(folder / ".env", "OPENAI_BASE_URL=https://evil.example/v1\n", 0o666)

    result = refdesk(folder, "ask", " ")

    assert result.returncode == 1
    assert "was not read" in result.stderr
    assert "REFDESK_ENV_FILE=" in result.stderr
    assert EMPTY not in result.stderr


@pytest.mark.parametrize(
    "line",
    [
        "OUTSIDE_TOOLS=tools.toml", "OPENAI_BASE_URL=https://evil.example/v1", "openai_api_key=x",
        "TOOL_SET=t.toml", "PROMPTS_FOLDER=p", "GEN_MODEL=x@own", "COMPATIBLE_SERVERS={}",
        "REDIS_URL=redis://evil.example", "BUDGET_USD=0", "ALLOWED_HOSTS=[]", "REFDESK_DATA=/tmp/x",
        "DOMAIN_NAME=${OPENAI_API_KEY}", "export OUTSIDE_TOOLS=tools.toml", "CHAT_GROUPS_FILE=g",
    ],
)  # fmt: skip
def test_an_implicit_file_only_sets_names_language_and_limits(
    folder: Path, monkeypatch: pytest.MonkeyPatch, line: str
) -> None:
    file = write(folder / ".env", f"DOMAIN_NAME=Acme\n{line}\n")

    with pytest.raises(SettingsError) as refused:
        load_settings()

    said = str(refused.value)
    assert said.startswith(f"{file} sets ")
    assert f"--env-file {file}" in said
    assert f"REFDESK_ENV_FILE={file}" in said
    monkeypatch.setenv("REFDESK_ENV_FILE", "")
    assert load_settings().domain_name == "Documentation Assistant"


def test_settings_of_an_implicit_file_cannot_redirect_data() -> None:
    fields = {name.upper(): field for name, field in Settings.model_fields.items()}

    assert fields.keys() >= HARMLESS
    for name in HARMLESS:
        kind = str(fields[name].annotation)
        assert not any(part in kind for part in ("Path", "Secret", "dict", "Settings")), name
        assert not name.endswith(("_URL", "_KEY", "_TOKEN", "_MODEL", "_USD", "_FILE", "_FOLDER"))


@pytest.mark.parametrize("place", ["before", "after", "joined"])
def test_an_option_of_each_command_names_the_file(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], place: str
) -> None:
    monkeypatch.setenv("REFDESK_ENV_FILE", "")  # what the command sets is undone at the end
    file = write(folder / "acme.env", f"REFDESK_DATA={folder}\n")
    words = {
        "before": ["--env-file", "acme.env", "ask", " "],
        "after": ["ask", " ", "--env-file", "acme.env"],
        "joined": ["--env-file=acme.env", "ask", " "],
    }[place]

    assert main(words) == 1

    said = capsys.readouterr().err
    assert f"settings are read from {file}" in said
    assert EMPTY in said
    assert os.environ["REFDESK_ENV_FILE"] == str(file)


@pytest.mark.skipif(os.getuid() != 0, reason="only root can give a file away")
def test_a_file_of_another_user_is_only_read_if_it_is_named(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = write(folder / ".env", "DOMAIN_NAME=theirs\n", 0o644)
    os.chown(file, 12345, 12345)

    with pytest.raises(SettingsError, match="other users own it or can write to it"):
        load_settings()
    monkeypatch.setenv("REFDESK_ENV_FILE", str(file))
    assert load_settings().domain_name == "theirs"


@pytest.mark.parametrize(
    "line", ["OPENAI_API_KEY=sk-x", "REDIS_URL=redis://:secret@redis:6379/0"], ids=["key", "url"]
)
def test_secrets_that_everybody_can_read_are_named_and_not_shown(folder: Path, line: str) -> None:
    file = write(folder / ".env", f"{line}\nDOMAIN_NAME=x\n", 0o644)

    [_, warning] = list_described()

    name, value = line.split("=", 1)
    assert f"can read {name} in {file}; run: chmod 600 {file}" in warning
    assert value not in warning
    file.chmod(0o640)
    assert len(list_described()) == 1


def test_a_file_without_secrets_may_be_read_by_everybody(folder: Path) -> None:
    write(folder / ".env", "DOMAIN_NAME=x\nOPENAI_API_KEY=\n", 0o644)

    assert len(list_described()) == 1


def test_unknown_settings_in_the_file_are_reported_with_the_nearest_name(folder: Path) -> None:
    file = write(folder / ".env", "GEN_MODLE=x\nDOMAIN_NAME=y\nNONSENSE_XQ=1\nCOMPOSE_PROFILES=z\n")

    assert list_described()[1:] == [
        f"warning: unknown settings in {file}: GEN_MODLE (did you mean GEN_MODEL?), NONSENSE_XQ"
    ]


def test_names_in_the_environment_are_named_where_they_resemble_a_setting(folder: Path) -> None:
    environment = {
        "GEN_MODLE": "x", "REFDESK_DATE": "y", "PATH": "/bin", "HOME": "/home/x", "TERM": "xterm",
        "SHELL": "sh", "LANG": "C", "GEN_MODEL": "offline", "REFDESK_PORT": "tcp://10.0.0.1:80",
        "REFDESK_SERVICE_HOST": "10.0.0.1", "REDIS_PORT_6379_TCP_PORT": "6379",
    }  # fmt: skip

    assert list_described(environment) == [
        "warning: unknown settings in the environment: GEN_MODLE (did you mean GEN_MODEL?), "
        "REFDESK_DATE (did you mean REFDESK_DATA?)"
    ]


def test_a_binary_file_is_a_one_line_error(folder: Path) -> None:
    (folder / ".env").write_bytes(b"DOMAIN_NAME=\xff\xfe\n")
    (folder / ".env").chmod(0o600)

    with pytest.raises(SettingsError, match="expected UTF-8"):
        load_settings()
