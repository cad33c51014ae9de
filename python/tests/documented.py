"""Marks tests of what a peer's public documentation says; docs/peers.md counts them."""

from typing import NamedTuple


class Entry(NamedTuple):
    peer: str
    quote: str
    verdict: str  # "same", "another word", "different on purpose" or "missing"
    why: str
    test: str


ENTRIES: list[Entry] = []


def documents(peer):
    """A decorator `says(quote)`; `differs=` says why we do otherwise, `instead=` what to write
    here, `missing=` what is not there and what comes near."""

    def says(quote, *, differs="", instead="", missing=""):
        verdict = ("different on purpose" if differs else "another word" if instead
                   else "missing" if missing else "same")

        def mark(test):
            ENTRIES.append(Entry(peer, quote, verdict, differs or instead or missing,
                                 test.__name__))
            return test

        return mark

    return says
