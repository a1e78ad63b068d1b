"""Finds addresses in a text, and compares URLs by the page that they open.

An address is any text that a channel, a mail program, or a terminal may turn into a link: a URL
with or without a scheme (`//host`, `www.host`, `host.com/path`), an email address, or a script.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from urllib.parse import quote

_END = '\\s<>"`|\u3001\u3002\uff0c\uff01\uff1a\uff1b\uff1f\uff09\u300d\u300f\u3011\u300b\\x00'
_REST = rf"[^{_END}\[\]]"
_OPAQUE = "javascript|vbscript|mailto|tel|sms|xmpp|skype|callto|tg|intent|view-source|blob|about"
_ADDRESS = re.compile(
    rf"(?P<web>(?:https?|ftp|file|wss?):[/\\]*(?:\[[0-9A-Fa-f:.]{{2,45}}\])?{_REST}+)"
    rf"|(?P<scheme>(?<![A-Za-z0-9])[A-Za-z][A-Za-z0-9+.-]{{0,20}}:[/\\]{{2}}{_REST}+)"
    rf"|(?P<opaque>(?<![A-Za-z0-9])(?:{_OPAQUE}):{_REST}+)"
    rf"|(?P<data>(?<![A-Za-z0-9])data:[\w.+-]{{0,64}}[/;,]{_REST}+)"
    rf"|(?P<relative>(?<![\w/\\])[/\\]{{2}}(?=[\w-]{{1,63}}\.\w){_REST}+)"
    rf"|(?P<www>(?<![\w.-])www\.{_REST}+)"
    r"|(?P<mail>[\w.+-]{1,64}@[\w-]{1,63}(?:\.[\w-]{1,63}){1,8})"
    r"|(?P<host>(?<![\w@./\\:-])(?:[\w-]{1,63}\.){1,8}(?P<top>xn--[\w-]{1,59}|[A-Za-z]{2,24})"
    rf"(?![\w-]|\.\w)(?P<path>(?::\d{{1,5}})?(?:[/?#]{_REST}*)?))",
    re.IGNORECASE,
)
_TRAILING = ".,;:!?*_~'\u2026\u201d\u2019"
_TOPS_WORDS = (
    "com net org info biz name pro mobi app dev page site online website web store shop blog "
    "cloud click link live news club xyz top vip icu work works world today space tech host zip "
    "mov cfd support help email download run fun buzz life wiki edu gov mil int bank pay "
    "finance money loan test example invalid local localhost onion arpa"
)
_TOPS = frozenset(_TOPS_WORDS.split())
_ENDINGS_WORDS = "md py rs sh pl cc js ts cs go rb ps vb so mk in id to is it at"
_ENDINGS = frozenset(_ENDINGS_WORDS.split())
"""Country domains that are also file extensions, or words that may follow a full stop."""
_WEB = re.compile(
    r"(?P<scheme>https?)://(?P<host>\[[0-9a-f:.]{2,45}\]|[^\s/?#@\\:\[\]<>\"'`{}|^%\x00-\x1f\x7f]+)"
    r"(?::(?P<port>\d{1,5}))?(?P<path>[/?][^\s#<>\"\\`\x00-\x1f\x7f]*)?"
    r"(?:#(?P<fragment>[^\s<>\"\\`\x00-\x1f\x7f]*))?",
    re.IGNORECASE,
)
_AUTHORITY = re.compile(
    r"(?P<name>(?:[^\W_][\w-]{0,62}\.){0,8}(?P<last>[^\W_][\w-]{0,62})|\[[0-9A-Fa-f:.]{2,45}\])"
    r"(?P<port>:\d{1,5})?"
)
_IP = re.compile(r"\d{1,3}(?:\.\d{1,3}){3}")
_AROUND_WORD = ".,;:!?()<>{}\"'`*_/\u201c\u201d\u201e\u00ab\u00bb\u2018\u2019\u3002\uff0c"
_FILES_WORDS = (
    "ac am cab cc cs go js mk ml mm mo mov pl pm properties ps pub py rb rs sh so tf ts vb"
)
_FILES = frozenset((*_FILES_WORDS.split(), "md", "zip"))
"""File extensions that are also domains. A word that ends with one of them is treated as a file
name.
"""
_SCHEME_ALONE = re.compile(r"[A-Za-z][A-Za-z0-9+.-]{0,20}:[/\\]{2}")
_ESCAPED = re.compile(r"%[0-9a-fA-F]{2}")
_DEFAULT_PORTS = {"http": "80", "https": "443"}
_IN_PATH = "!#$%&'()*+,-./:;=?@[]_{|}~^"


@dataclass(frozen=True, slots=True)
class FoundAddress:
    """An address found in a text, from `start` to `end` (exclusive); `bare` is true if the address
    is only a host name, `is_mail` if it is an email address without a scheme.
    """

    start: int
    end: int
    text: str
    bare: bool
    is_mail: bool


def find_addresses(text: str, *, any_name: bool = False) -> Iterator[FoundAddress]:
    """Yield the addresses of the text, in order.

    If `any_name` is true, names that are more likely files than hosts, such as `rules.md`, are
    included. A scheme that is not followed by anything is not an address, as in "it begins with
    `https://`".
    """
    start_at = 0
    while (match := _ADDRESS.search(text, start_at)) is not None:
        address = _trim(match[0])
        start_at = match.start() + max(1, len(address))
        if match["host"] is not None and not (any_name or _is_host(match)):
            continue
        if address and not _is_scheme_alone(address, text[match.end() : match.end() + 1]):
            bare = match["host"] is not None and not match["path"].strip("/?#.:")
            end, is_mail = match.start() + len(address), match["mail"] is not None
            yield FoundAddress(match.start(), end, address, bare, is_mail)


def addresses_of(text: str) -> frozenset[str]:
    """Return the addresses in the text, except those that are more likely file names."""
    return frozenset(address.text for address in find_addresses(text))


def page_of(address: str) -> str | None:
    """Return a canonical URL that is the same for all URLs of a page.

    Returns None if the address is not a plain web URL, or includes a user name. Scheme and host are
    converted to lower case and IDNA; the default port and the fragment are omitted.
    """
    match = _WEB.fullmatch(address)
    host = None if match is None else _host(match["host"])
    if match is None or host is None:
        return None
    scheme, port = match["scheme"].lower(), match["port"]
    port = "" if port is None or port == _DEFAULT_PORTS[scheme] else f":{port}"
    path = _ESCAPED.sub(_unquote, quote(match["path"] or "", safe=_IN_PATH))
    return f"{scheme}://{host}{port}{path.rstrip('/')}"


def fragment_of(address: str) -> str:
    """Return the fragment (after `#`) of an address, or an empty string."""
    match = _WEB.fullmatch(address)
    return "" if match is None else (match["fragment"] or "")


def host_of(address: str) -> str:
    """Return the host of an address, with or without a scheme, in lower case, or an empty
    string.
    """
    rest = re.sub(r"\A[A-Za-z][A-Za-z0-9+.-]{0,20}:", "", address).lstrip("/\\")
    authority = re.split(r"[/\\?#]", rest, maxsplit=1)[0].rpartition("@")[2]
    return (_host(authority.partition(":")[0]) or authority.lower()).removeprefix("www.")


def origins_of(text: str) -> frozenset[str]:
    """Return the web origins (`https://host:port`) that occur in the text.

    These are the origins of the URLs in the text. For each word that is only a host, such as
    `localhost:3000` or `api.acme.test`, both schemes are returned. A word that may be a file name,
    such as `setup.py`, is not a host.
    """
    origins = filter(None, map(origin_of, addresses_of(text)))
    hosts = (origin.partition("://")[2] for origin in origins)
    words = (word.strip(_AROUND_WORD) for word in text.split())
    named = (
        word
        for word in words
        if (authority := _AUTHORITY.fullmatch(word)) and _names_host(authority)
    )
    both = (f"{scheme}://{host}" for host in (*hosts, *named) for scheme in _DEFAULT_PORTS)
    return frozenset(filter(None, map(page_of, both)))


def origin_of(address: str) -> str:
    """Return the canonical origin (scheme, host, port) of a URL, or an empty string if it is
    invalid.
    """
    page = page_of(address)
    return "" if page is None else "/".join(re.split("[/?]", page, maxsplit=3)[:3])


def host_and_port(address: str) -> str:
    """Return the host of a URL, with the port unless it is the default."""
    return origin_of(address).partition("//")[2]


def _unquote(escaped: re.Match[str]) -> str:
    sign = chr(int(escaped[0][1:], 16))
    is_same = sign.isascii() and (sign.isalnum() or sign in "()-._~")
    return sign if is_same else escaped[0].upper()


def _is_scheme_alone(address: str, following: str) -> bool:
    """Return whether an address is only a scheme that the next character does not continue."""
    is_end = not following or following.isspace() or following == "`"
    return is_end and _SCHEME_ALONE.fullmatch(address) is not None


def _host(name: str) -> str | None:
    lower = name.lower().removesuffix(".")
    if lower.startswith("[") or (lower.isascii() and lower):
        return lower
    try:
        return lower.encode("idna").decode("ascii") or None
    except UnicodeError:
        return None


def _is_host(match: re.Match[str]) -> bool:
    top = match["top"]
    if top.lower() in _TOPS or top.lower().startswith("xn--"):
        return True
    is_country = len(top) == 2 and top.lower() not in _ENDINGS
    has_path = match["path"][:1] == "/" and len(top) == 2
    return (is_country and not top.istitle()) or has_path


def _names_host(word: re.Match[str]) -> bool:
    """Return whether a word is definitely a host name, with or without a port."""
    name, last = word["name"], word["last"]
    if name.startswith("[") or _IP.fullmatch(name) or name.lower() == "localhost":
        return True
    if last == name:
        return word["port"] is not None and not name.isdecimal()
    is_domain = last.isalpha() and len(last) > 1 and last.lower() not in _FILES
    return is_domain or last.lower().startswith("xn--")


def _trim(address: str) -> str:
    """Remove trailing punctuation that belongs to the surrounding sentence from an address."""
    end = len(address)
    unopened = address.count(")") - address.count("(")
    while end:
        sign = address[end - 1]
        if sign not in _TRAILING and not (sign == ")" and unopened > 0):
            break
        unopened -= sign == ")"
        end -= 1
    return address[:end]
