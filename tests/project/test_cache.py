"""An answer is computed once, and the least recently used one goes first."""

from semiprune_core.project.cache import LRUCache


def test_the_least_recently_used_is_dropped():
    made = []
    cache = LRUCache(2)

    def ask(key):
        return cache.get(key, lambda: made.append(key) or key.upper())

    assert [ask("a"), ask("b"), ask("a"), ask("c"), ask("a"), ask("b")] == ["A", "B", "A", "C", "A", "B"]
    assert made == ["a", "b", "c", "b"]
