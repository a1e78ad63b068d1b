"""Names the reason why a file is not read, by its suffix."""

from collections.abc import Iterable, Mapping
from pathlib import PurePosixPath

MOST_NAMED = 5
"""Files of one suffix that are named; the others are counted."""

_REASONS: Mapping[str, str] = {
    "a picture; text in pictures is not read":
        "png jpg jpeg gif svg webp ico bmp tif tiff heic avif drawio",
    "an office format that is not read; save it as .docx, .xlsx, .pptx or .pdf":
        "doc dot xls xlsb ppt pps rtf odt ods odp pages numbers key vsd vsdx one msg pub wpd",
    "an archive; unpack it first": "tar gz tgz bz2 xz 7z rar zst",
    "an archive in an archive; unpack the outer one first": "zip",
    "a recording; speech is not read":
        "mp3 wav ogg flac m4a aac mp4 m4v mov avi mkv webm",
    "part of a website and no text": "css scss less js mjs cjs map woff woff2 ttf otf eot",
    "a program, settings or data":
        "py pyi ipynb ts tsx jsx java kt go rs c h cc cpp hpp cs rb php sh bash bat ps1 sql toml "
        "ini cfg conf env lock xml xsd proto graphql parquet sqlite db log tf vue svelte swift",
}  # fmt: skip
_BY_SUFFIX = {
    f".{suffix}": reason for reason, suffixes in _REASONS.items() for suffix in suffixes.split()
}
_MEDIA = ("a picture", "an archive", "a recording", "part of a website")
_UNKNOWN = "no reader knows this format"
_NO_SUFFIX = "it has no suffix, by which formats are recognised"


def explain_skip(path: PurePosixPath) -> str:
    """Return why a file with a suffix that no reader knows is not read."""
    suffix = path.suffix.lower()
    return _BY_SUFFIX.get(suffix, _UNKNOWN if suffix else _NO_SUFFIX)


def is_media(suffix: str) -> bool:
    """Return whether a suffix is one of pictures, recordings, archives or parts of a website."""
    return _BY_SUFFIX.get(suffix.lower(), "").startswith(_MEDIA)


def list_skipped(paths: Iterable[PurePosixPath]) -> list[tuple[PurePosixPath, str]]:
    """Return files with the reasons why they are not read; many of one suffix become one line."""
    by_suffix: dict[str, list[PurePosixPath]] = {}
    for path in sorted(paths):
        by_suffix.setdefault(path.suffix.lower(), []).append(path)
    listed: list[tuple[PurePosixPath, str]] = []
    for suffix, found in sorted(by_suffix.items()):
        listed += ((path, explain_skip(path)) for path in found[:MOST_NAMED])
        left = len(found) - MOST_NAMED
        if left > 0:
            named = f"{left} more files {suffix or 'without a suffix'}"
            listed.append((PurePosixPath(named), explain_skip(found[0])))
    return listed
