"""Weigh the words of a search query: what the tool does counts more than the values for it."""

from __future__ import annotations

import re
from functools import lru_cache

from agents_tools.toolset.words import RUN, stem, without_accents, words_of

__all__ = ["synonyms", "weighted_words"]

_MAX_LENGTH = 4_000
_MAX_WORDS = 64
"""The maximum number of different words of a query."""
_REQUEST, _NUMBER, _QUOTED, _ADDRESS = 0.6, 0.3, 0.5, 0.3
"""The weights of words of a request such as `find`, of numbers, of quoted text and of addresses."""
_KIND, _PLACE = 0.6, 0.4
"""The weights of the words for the kind of a value in the query."""

_POLITE = frozenset(
    re.findall(
        r"[\w']+",
        "about after again against all also am any around because been before being between both "
        "but could d did does down during each few further had has have having he hello her here "
        "hey hi him his just let ll like m many may might more most much no not now off once only "
        "other out over own re regarding related s same shall she should so such t than thank "
        "thanks then there these they those through too under until up us ve very via was were "
        "where while who whom whose why would yes",
    )
)
"""Function words of English requests, besides those that the index leaves out."""
_VERBS = frozenset(
    re.findall(r"\w+", "find get give help know look looking make provide show sure tell")
)

_ADDRESSES = re.compile(r"https?://\S+|(?<!\S)(?:~|\.{0,2})/[\w./-]+|[\w.-]+@[\w.-]+")
_QUOTES = re.compile(r"(?<!\w)'[^'\n]{1,80}'(?!\w)|\"[^\"\n]{1,200}\"|\u201c[^\u201d]{1,200}\u201d")
_MONTH = (
    "January|February|March|April|May|June|July|August|September|October|November|December|"
    "(?:Mon|Tues|Wednes|Thurs|Fri|Satur|Sun)day"
)
_KINDS: tuple[tuple[re.Pattern[str], float, str], ...] = (
    (re.compile(r"https?://|www\."), _KIND, "url"),
    (re.compile(r"\w@\w+\.\w"), _KIND, "email"),
    (re.compile(r"[$€£¥]\s?\d|\d\s?(?:dollars|euros|USD|EUR)\b"), _KIND, "price amount"),
    (
        re.compile(
            r"(?<!\S)(?:~|\.{0,2})/[\w.-]+/|"
            r"\b[\w-]+\.(?:txt|pdf|docx?|xlsx?|csv|json|md|png|jpe?g|py|html?)\b"
        ),
        _KIND,
        "file path",
    ),
    (
        re.compile(
            rf"\b\d{{4}}-\d\d-\d\d\b|\b\d{{1,2}}/\d{{1,2}}/\d{{2,4}}\b|\b(?:{_MONTH})\b|"
            r"\b(?:today|tomorrow|yesterday)\b"
        ),
        _KIND,
        "date",
    ),
    (re.compile(r"\b\d{1,2}\s?(?:am|pm|AM|PM)\b|\b\d{1,2}:\d\d\b"), _KIND, "time"),
    (re.compile(r"\b(?:in|at|near|from|to|around|of) [A-Z][a-z]"), _PLACE, "location city place"),
)
"""Kinds of values, and the words by which parameters for them are named."""


def weighted_words(query: str) -> dict[str, float]:
    """Return the words of a query in the form in which they are compared, with their weights.

    Words of polite requests are left out, unless there are no others. Numbers, quoted text and
    addresses weigh little, because they are values; the words for their kind (such as `date`) are
    added.

    Args:
        query: The words to search for, or a whole request of a user.
    """
    query = without_accents(query[:_MAX_LENGTH])
    values = [(match.span(), _ADDRESS) for match in _ADDRESSES.finditer(query)]
    values += [(match.span(), _QUOTED) for match in _QUOTES.finditer(query)]
    found: dict[str, float] = {}
    for match in RUN.finditer(query):
        run = match[0]
        word = run.casefold()
        if word in _POLITE:
            continue
        weight = _NUMBER if run[0].isdigit() else _REQUEST if word in _VERBS else 1.0
        for (start, end), part in values:
            if start <= match.start() < end:
                weight *= part
        for one in words_of(run):
            found[one] = max(found.get(one, 0.0), weight)
        if len(found) >= _MAX_WORDS:
            break
    if not found:
        return dict.fromkeys(words_of(query), 1.0)
    for pattern, weight, names in _KINDS:
        if pattern.search(query):
            for name in names.split():
                found.setdefault(stem(name), weight)
    return found


# --- synonyms

_SYNONYMS = """
picture image photo photograph
movie film cinema
song music track audio
mail email
message chat sms
document doc word docx
spreadsheet sheet excel workbook xlsx csv
slide presentation powerpoint deck pptx
folder directory dir
file path
repository repo
issue ticket bug
price cost fee
stock share equity
company business firm corporation
weather forecast temperature
flight airline plane
hotel accommodation lodging
restaurant dining
location place position
route direction navigation
article paper publication
website webpage page site url
search find lookup query discover
buy purchase order shop
book reserve reservation booking
schedule calendar appointment
delete remove erase drop
create make add generate new
write add append insert
update edit modify change
compute calculate
chart graph plot diagram
summary summarize
video clip
trending hot popular rank
job career employment
recipe cook dish meal
user account profile
car vehicle automobile
house home property
doctor physician
medicine drug medication
list show display
open read view load
start begin launch run execute
stop end cancel terminate
send post publish
download fetch retrieve get
size dimension
nearby near close
student pupil
lawyer attorney
gift present
trip travel journey vacation
child kid
database sql table
code program script
statistic stat
verify check validate
compare comparison
height elevation
author writer
book novel
game match
assist help
exercise workout fitness
text string
number count
news story headline
discount deal coupon promotion
law legal
finance financial
invest investment
crypto cryptocurrency bitcoin
research study
product item merchandise
navigate visit browse
merge join combine
convert transform
rewrite paraphrase rephrase
recommend recommendation suggest suggestion
analyze analysis examine inspect
comment reply feedback review
food meal
attraction landmark sightseeing
"""
"""Words that tools and requests use for the same thing, one group a line."""


@lru_cache(maxsize=1)
def synonyms() -> dict[str, tuple[str, ...]]:
    """Return the other words of the groups of each word, all in the form that is compared."""
    found: dict[str, dict[str, None]] = {}
    for line in _SYNONYMS.strip().splitlines():
        group = [stem(word) for word in line.split()]
        for word in group:
            found.setdefault(word, {}).update(dict.fromkeys(group))
    return {word: tuple(other for other in group if other != word) for word, group in found.items()}
