"""Marks tests of another loader's documented behavior; docs/peers.md lists them."""

from typing import NamedTuple


class Entry(NamedTuple):
    peer: str
    quote: str
    verdict: str  # "same", "other name", "different on purpose" or "missing"
    why: str
    test: str


ENTRIES: list[Entry] = []


def documents(peer):
    """A decorator `says(quote)`; `differs=` says why penstock differs, `instead=` what to write,
    `missing=` what is missing and the closest alternative."""

    def says(quote, *, differs="", instead="", missing=""):
        verdict = ("different on purpose" if differs else "other name" if instead
                   else "missing" if missing else "same")

        def mark(test):
            ENTRIES.append(Entry(peer, quote, verdict, differs or instead or missing,
                                 test.__name__))
            return test

        return mark

    return says
