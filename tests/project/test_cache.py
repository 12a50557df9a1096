"""Answers are made once, and the least recently asked for goes first."""

from semiprune_core.project.cache import Kept


def test_the_least_recently_asked_for_is_dropped():
    made = []
    kept = Kept(2)

    def ask(key):
        return kept.get(key, lambda: made.append(key) or key.upper())

    assert [ask("a"), ask("b"), ask("a"), ask("c"), ask("a"), ask("b")] == ["A", "B", "A", "C", "A", "B"]
    assert made == ["a", "b", "c", "b"]
