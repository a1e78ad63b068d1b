"""Recognises a sentence that only says yes or no, in twelve languages."""

_SPOKEN = (
    "yes no yeah nope correct exactly ja nein doch sí si oui non sì sim não да нет так ні "
    "はい いいえ 是 是的 不 不是 否 可以 不可以 نعم لا हाँ हां नहीं जी"
)
_WORDS = frozenset(_SPOKEN.split())
_SIGNS = " \t.!,;:*_\u3002\uff01\uff0c\u0964\u060c"
_MOST_WORDS = 2
_LONGEST = 20


def is_yes_or_no(sentence: str) -> bool:
    """Return whether `sentence` consists of a yes or a no alone."""
    if len(sentence) > _LONGEST:
        return False
    words = [word.strip(_SIGNS) for word in sentence.casefold().split()]
    spoken = [word for word in words if word]
    return 0 < len(spoken) <= _MOST_WORDS and all(word in _WORDS for word in spoken)
