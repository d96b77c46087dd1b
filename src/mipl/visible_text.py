"""Text of others, shown as text: characters that would steer a terminal or turn a line round are made visible.

Class names, ids, column names and file names come from files. Before one of them is printed or drawn it passes through
`visible`, so that what a file says cannot move the cursor, set a title, hide a line or pretend to be another name.
"""

from __future__ import annotations

import re
import unicodedata

__all__ = ["as_text", "is_text", "shortened", "visible"]

#: Control characters (C0, DEL, C1), lone surrogates, line separators, invisible and direction marks.
_UNSAFE = re.compile("[\x00-\x1f\x7f-\x9f\xad\u061c\u180e\u200b-\u200f\u2028-\u202e\u2060-\u2069\ud800-\udfff\ufeff]")
_SPELLED = {"\n": r"\n", "\r": r"\r", "\t": r"\t"}
#: Joiners that belong to ordinary words and emoji between two visible characters.
_JOINERS = "\u200c\u200d"


def visible(text: str, *, keep: str = "") -> str:
    r"""Spell out every character that is not seen but acts.

    Parameters
    ----------
    text : str
        Text that may hold anything.
    keep : str, default=""
        Characters that are left as they are, such as ``"\n"`` in a text of several lines.

    Examples
    --------
    >>> visible("owl\x1b[31m")
    'owl\\x1b[31m'
    >>> visible("two\nlines"), visible("two\nlines", keep="\n")
    ('two\\nlines', 'two\nlines')
    """

    def spelled(found: re.Match[str]) -> str:
        character = found[0]
        if character in keep or (character in _JOINERS and _between_letters(found)):
            return character
        code = ord(character)
        return _SPELLED.get(character) or (f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}")

    return _UNSAFE.sub(spelled, text)


def is_text(text: str) -> bool:
    r"""Whether a file can hold a string: Python's strings may have halves of characters, which UTF-8 does not know.

    They come from names of files that are not UTF-8 and from ``"\ud800"`` in JSON.

    >>> is_text("größe"), is_text("\ud800")
    (True, False)
    """
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def as_text(name: str) -> str:
    r"""The name of a file as text: bytes that are not UTF-8, which Python has as halves of characters, are spelled out.

    >>> as_text("gr\udcf6sse.png")
    'gr\\udcf6sse.png'
    """
    return name.encode(errors="backslashreplace").decode()


def shortened(text: str, most: int) -> str:
    """`visible` text of at most `most` characters, the end of a longer one given by its last letters.

    >>> shortened("Western meadowlark (Sturnella neglecta)", 20)
    'Western meadow…ecta)'
    """
    shown = visible(text)
    if len(shown) <= most:
        return shown
    end = max(1, most // 4)
    return f"{shown[: most - end - 1]}…{shown[-end:]}"


def _between_letters(found: re.Match[str]) -> bool:
    """Whether a joiner stands between two characters that can be joined: letters, marks or pictures."""
    start, end = found.span()
    around = found.string[start - 1 : start], found.string[end : end + 1]
    return all(c and unicodedata.category(c) in ("Lo", "Mn", "Mc", "So", "Sk") for c in around)
