"""Builds the documentation site in `dist/site`: `python -m deploy.generate.site`.

The pages are those in `docs/`, as well as README, CONTRIBUTING, SECURITY and CHANGELOG. Zensical
generates the HTML and the search. `llms.txt` lists the pages for programs, and `llms-full.txt`
contains them in full. A broken link fails the build.
"""

import re
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping
from html.parser import HTMLParser
from pathlib import Path, PurePosixPath
from posixpath import normpath
from urllib.parse import unquote, urlsplit

ROOT = Path(__file__).parent.parent.parent
DIST = ROOT / "dist"
TOP = {
    "README.md": "index.md",
    "CONTRIBUTING.md": "contributing.md",
    "SECURITY.md": "security-policy.md",
    "CHANGELOG.md": "changelog.md",
}
"""Pages outside of `docs/`, with their names in the site."""
SECTIONS: Mapping[str, tuple[str, ...]] = {
    "Add documents": ("formats", "sources", "languages", "access"),
    "Choose how it answers": ("ways", "local-models", "reviews", "tools"),
    "Answer people": ("widget", "channels", "handover", "links"),
    "Connect programs": ("http", "mcp", "webhooks"),
    "Run it": ("deployment", "capacity", "settings", "operations", "upgrading"),
    "Improve answers": ("console", "evaluation", "checks"),
    "Look up": ("security", "injection", "limits", "model_servers", "glossary"),
}
"""The navigation by task, in the order in which an owner needs the pages; all other pages follow,
grouped by folder.
"""
FOLDERS: Mapping[str, str] = {
    "Internals": "internal",
    "Measurements": "internal/measurements",
    "Decisions": "internal/adr",
    "Project": "",
}
"""The groups of all other pages; a group contains the pages directly in a folder, without its
subfolders.
"""
_LINK = re.compile(r"(!?\[[^\]\n]{0,300}\])\(([^)\s]{1,300})\)")
CONFIG = """\
[project]
site_name = "Refdesk"
site_description = "Answers from an organisation's documents, with the source of every claim."
docs_dir = "pages"
site_dir = "site"
use_directory_urls = false
nav = [
{nav}
]

[project.theme]
features = ["content.code.copy", "navigation.sections", "navigation.top", "search.highlight"]
font = false

[[project.theme.palette]]
media = "(prefers-color-scheme: light)"
scheme = "default"

[[project.theme.palette]]
media = "(prefers-color-scheme: dark)"
scheme = "slate"

[project.markdown_extensions.toc]
permalink = true

[project.markdown_extensions.tables]

[project.markdown_extensions.pymdownx.superfences]
custom_fences = [
  {{ name = "mermaid", class = "mermaid", format = "pymdownx.superfences.fence_code_format" }},
]
"""


class SiteError(Exception):
    """The site could not be built, or contains a broken link."""


class _Addresses(HTMLParser):
    """Collects the links in a page, and its ids, which are valid link targets."""

    def __init__(self) -> None:
        super().__init__()
        self.links: list[str] = []
        self.ids: set[str] = set()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        known = dict(attrs)
        self.ids |= {anchor for anchor in (known.get("id"), known.get("name")) if anchor}
        link = known.get("href") if tag == "a" else known.get("src")
        if link:
            self.links.append(link)


def list_pages(root: Path = ROOT) -> dict[str, Path]:
    """Return the pages, by path in the site."""
    docs = root / "docs"
    pages = {path.relative_to(docs).as_posix(): path for path in sorted(docs.rglob("*.md"))}
    return {**{name: root / source for source, name in TOP.items()}, **pages}


def rewrite_links(text: str, source: PurePosixPath, place: str, names: Mapping[str, str]) -> str:
    """Return a page whose links lead to pages of the site; links to code are replaced with their
    labels.

    `source` is the page in the repository, and `place` is its path in the site; `names` contains
    all pages, by path in the repository.
    """

    def rewrite(match: re.Match[str]) -> str:
        label, target = match.group(1), match.group(2)
        path, _, anchor = target.partition("#")
        if not path or "://" in target or target.startswith("mailto:"):
            return match.group(0)
        aim = normpath((source.parent / path).as_posix())
        name = names.get(aim)
        if name is None and aim.startswith("docs/") and not path.endswith(".md"):
            name = aim.removeprefix("docs/")
        if name is None:
            return f"`{aim}`" if label[1:-1] in (aim, path) else label[1:-1]
        up = "../" * (len(PurePosixPath(place).parts) - 1)
        return f"{label}({up}{name}{'#' + anchor if anchor else ''})"

    return _LINK.sub(rewrite, text)


def stage(folder: Path, root: Path = ROOT) -> dict[str, str]:
    """Write the pages below `folder`, with their pictures; return their text."""
    pages = list_pages(root)
    names = {path.relative_to(root).as_posix(): name for name, path in pages.items()}
    texts = {
        name: rewrite_links(
            path.read_text("utf-8"), PurePosixPath(path.relative_to(root).as_posix()), name, names
        )
        for name, path in pages.items()
    }
    for name, text in texts.items():
        target = folder / name
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text, encoding="utf-8")
    for picture in (file for kind in ("*.png", "*.svg") for file in (root / "docs").rglob(kind)):
        shutil.copy(picture, folder / picture.relative_to(root / "docs"))
    return texts


def make_navigation(texts: Mapping[str, str]) -> str:
    """Return the navigation in the format of the configuration."""
    chosen = {f"{name}.md" for names in SECTIONS.values() for name in names} | {"index.md"}
    groups = {title: [f"{name}.md" for name in names] for title, names in SECTIONS.items()}
    for title, folder in FOLDERS.items():
        inside = (name for name in texts if name.rpartition("/")[0] == folder)
        groups[title] = [name for name in inside if name not in chosen]
    lines = ['  { "Refdesk" = "index.md" },']
    for title, names in groups.items():
        listed = ", ".join(f'"{name}"' for name in names if name in texts)
        lines.append(f'  {{ "{title}" = [{listed}] }},')
    return "\n".join(lines)


def describe_page(text: str) -> tuple[str, str]:
    """Return the title of a page and its first sentence."""
    title = re.search(r"^# (.{1,200})$", text, re.MULTILINE)
    body = text[title.end() :] if title else text
    paragraphs = (paragraph.strip() for paragraph in body.split("\n\n"))
    plain = (paragraph for paragraph in paragraphs if paragraph[:1].isalpha())
    first = " ".join(next(plain, "").split())
    return (title[1] if title else ""), first.partition(". ")[0].rstrip(".:")


def write_llms(folder: Path, texts: Mapping[str, str]) -> None:
    """Write `llms.txt` and `llms-full.txt` for programs that read the documentation."""
    title, about = describe_page(texts["index.md"])
    lines = [f"# {title}", "", f"> {about}.", "", "## Pages", ""]
    for name, text in texts.items():
        page, first = describe_page(text)
        lines.append(f"- [{page}]({name}): {first}.")
        target = folder / name
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text, encoding="utf-8")
    (folder / "llms.txt").write_text("\n".join(lines) + "\n", encoding="utf-8")
    whole = "\n\n".join(f"<!-- {name} -->\n{text}" for name, text in texts.items())
    (folder / "llms-full.txt").write_text(whole, encoding="utf-8")


def find_dead_links(folder: Path) -> Iterator[str]:
    """Yield each link of the built pages whose file or anchor does not exist."""
    pages = {}
    for file in sorted(folder.rglob("*.html")):
        pages[file] = parser = _Addresses()
        parser.feed(file.read_text("utf-8"))
    for file, page in pages.items():
        if file.name == "404.html":
            continue  # its links are absolute: it is shown at any address
        for link in page.links:
            parts = urlsplit(link)
            if parts.scheme or parts.netloc:
                continue
            aim = (file.parent / unquote(parts.path)).resolve() if parts.path else file
            aim = aim / "index.html" if aim.is_dir() else aim
            target = pages.get(aim)
            is_place = not parts.fragment or target is None or unquote(parts.fragment) in target.ids
            if not aim.exists() or not is_place:
                yield f"{file.relative_to(folder)}: {link}"


def build(dist: Path = DIST, root: Path = ROOT) -> Path:
    """Build the site and return its folder; raises `SiteError`."""
    work, site = dist / "site-source", dist / "site"
    for folder in (work, site):
        shutil.rmtree(folder, ignore_errors=True)
    texts = stage(work / "pages", root)
    config = CONFIG.format(nav=make_navigation(texts))
    (work / "zensical.toml").write_text(config, encoding="utf-8")
    program = Path(sys.executable).with_name("zensical")
    done = subprocess.run(  # noqa: S603 - the generator of this environment
        [str(program), "build", "--clean"], cwd=work, capture_output=True, text=True, check=False
    )
    if done.returncode:
        raise SiteError(done.stdout + done.stderr)
    shutil.move(work / "site", site)
    shutil.rmtree(work)
    write_llms(site, texts)
    dead = list(find_dead_links(site))
    if dead:
        raise SiteError("these links lead nowhere:\n" + "\n".join(dead))
    return site


def main() -> int:
    """Build the site."""
    try:
        folder = build()
    except SiteError as error:
        sys.stderr.write(f"{error}\n")
        return 1
    sys.stdout.write(f"{folder}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
