"""Frequent words that do not describe a page, by language, and question words.

Words of fewer than four letters are omitted, because `knowledge.rule_descriptions` does not count
them.

The lists are in `function_words.toml` and are read once.
"""

import tomllib
from collections.abc import Iterable
from functools import cache
from pathlib import Path

_BY_LANGUAGE = {
    "en": "about above after also because been before being below between both could does doing "
    "down during each from further have having here into itself just like make more most "
    "must need once only other over same should some such than that their them then there "
    "these they this those through under until used uses using very well were what when "
    "where which while will with would your following example however without within",
    "de": "aber alle also auch dann dass dies diese dieser dieses durch eine einem einen einer "
    "eines haben hier ihre ihren ihrer kann können muss nach nicht noch oder sein sich sind "
    "über wenn werden wird zwischen sollte müssen wurde",
    "es": "algo antes como contra cual cuando desde donde ella ellas ellos entre esta estas este "
    "esto estos hasta para pero poco porque puede pueden sobre también tiene todo unas unos "
    "usted",
    "fr": "afin ainsi alors aussi autre avec cela cette chaque comme dans donc dont elle elles "
    "être fait leur leurs lors mais même nous peut peuvent plus pour quand sans sont sous "
    "tous tout toute votre vous",
    "it": "alla alle anche come dalla degli della delle dello deve essere hanno loro nella però "
    "quando quella quello questa queste questi questo sono stato sulla tutti tutto",
    "pt": "antes cada como deve elas eles entre essa esse esta este isso isto mais muito para "
    "pela pelo pode podem porque quando seus sobre suas também você",
    "ru": "более была были было быть весь всех если есть когда который которые которая либо между "
    "можно надо также такой того только через чтобы этого этой этот нужно",
    "uk": "була були було бути вона вони його коли який котрий лише можна може також такий тільки "
    "цього через якщо треба потрібно після",
    "hi": "नहीं करना करें करने किया सकते सकता अपने",
    "ar": "التي الذي الذين كانت يكون يمكن",
    "nl": "deze door hebben heeft kunnen maar moet naar niet onder over voor wanneer wordt worden "
    "zijn zoals",
    "pl": "albo była było jako jest jeśli każdy między może można oraz przed przez przy także "
    "tego tylko więc wszystkie",
}

ASKING_WORDS = {
    "en": "amount big called cost costs date difference differ different exact exactly "
    "fast heavy high kind large long many mean means meaning much name number often old permitted "
    "possible price reason tall time type value wide work works year happen happens say says said "
    "still compare versus far deep please need which does get use highest lowest maximum minimum "
    "largest smallest earliest latest",
    "de": "ab alter am an auf aus bei beim bin bis bitte brauche braucht da darf darfst das dem "
    "den der des die dürfen du ein er es findet finden für gehört gibt gilt groß habe hat heißt "
    "hoch ich ihr im in ist kann kosten kostet lange man mein meine mich mir mit muss nutzen ob "
    "oft sie sind so soll statt steht "
    "um und uns viel viele vom von vor wann war warum was welche welchem welchen welcher welches "
    "wem wen wer wie wieso wir wird wo wofür woher wohin worum wozu zu zum zur",
    "es": "al cada cómo con cual cuál cuáles cuando cuándo cuánta cuánto cuántos cuesta cuestan de "
    "debo del dice dónde el en es está están hay hace la las le lo los me mi necesito no o para "
    "pero por puedo puede que qué quién quiénes se si sin son su sus tengo tiene un una y",
    "fr": "à au aux avec ce ces combien comment coûte coûtent dans de des doit dois du elle en est "
    "et faut il ils je la le les ma mais me mes mon ne nous où on ont ou par pas peut puis pour "
    "pourquoi qu quand que quel quelle quelles quels qui quoi sa se ses si son sur un une y",
    "it": "a ai al c che chi ci come con cosa costa costano da dal dei del di dove e è gli ha ho i "
    "il in io la le lo ma mi mia mio nel non o per perché posso può qual quale quali quando quanta "
    "quanti quanto se si sono su tra un una uno",
    "pt": "a ao as até com como custa custam da das de devo do dos e é em há mas me meu minha na "
    "não no o onde os ou para pela pelo por porque posso pode qual quais quando quanta quanto "
    "quantos que quem se sem são seu sua tem um uma",
    "nl": "aan als bij dan dat de die dit een en er heb heeft het hoe hoeveel hoelang ik in is "
    "kan kost kosten mag me met mijn moet naar of om op te tot uit van waar waarom wanneer wat "
    "welk welke wie zijn",
    "ru": "а в во где да для до ещё же за и из или к как какая какие какой когда кого кому кто ли "
    "мне мы на над надо не нет о об он она они от по под почему при с сколько стоит так то у уже "
    "что чтобы это я",
    "uk": "а в де для до же за з і із й коли кого кому котрий ли мені ми на не о об по при "
    "скільки коштує та так те то у хто це чи чому що щоб я як яка яке який які",
}
"""Words, by language, that ask for a type of answer and do not name the subject of a question."""

STOP_WORDS = frozenset(word for words in _BY_LANGUAGE.values() for word in words.split())

_LISTS = tomllib.loads(Path(__file__).with_name("function_words.toml").read_text(encoding="utf-8"))
_LANGUAGES_OF: dict[str, tuple[str, ...]] = {}
for _language, _words in _LISTS.items():
    for _word in _words.split():
        _LANGUAGES_OF[_word] = (*_LANGUAGES_OF.get(_word, ()), _language)


@cache
def list_small_words(language: str) -> frozenset[str]:
    """Return the words of a language that do not name a subject: function words and question
    words.
    """
    lists = (_LISTS, _BY_LANGUAGE, ASKING_WORDS)
    return frozenset(
        word for words_by_language in lists for word in words_by_language.get(language, "").split()
    )


def function_words(words: Iterable[str]) -> dict[str, int]:
    """Return, for each language, how many distinct lower-case `words` are function words in it."""
    counts: dict[str, int] = {}
    for word in set(words):
        for language in _LANGUAGES_OF.get(word, ()):
            counts[language] = counts.get(language, 0) + 1
    return counts
