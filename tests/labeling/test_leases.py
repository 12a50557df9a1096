"""Leases: nobody gets what another has, abandoned ones return, the overlap goes to two."""

from __future__ import annotations

import numpy as np
import pytest

from semiprune_core.errors import InvalidSettingError, MissingStepError


@pytest.fixture
def drawn(store):
    """Thirty images, all drawn."""
    ids = np.random.default_rng(0).integers(0, 2**64, 30, dtype=np.uint64)
    return store.drawings.draw(pool_hash="h", ids=ids, duplicate_of=np.arange(30), fraction=1.0, annotator="ana").ids


def test_two_annotators_get_different_images_in_the_drawings_order(store, drawn):
    assert store.leases.lease("ana", 10).tolist() == drawn[:10].tolist()
    assert store.leases.lease("ben", 15).tolist() == drawn[10:25].tolist()
    assert store.leases.lease("eva", 15).tolist() == drawn[25:].tolist()
    assert store.leases.lease("kim", 15).tolist() == []


def test_a_reload_gets_the_same_images_less_the_decided(store, drawn, event):
    first = store.leases.lease("ana", 4)
    store.append([event("label", int(first[0]), 0), event("skip", int(first[2]))])
    assert store.leases.lease("ana", 4).tolist() == drawn[[1, 3, 4, 5]].tolist()


def test_deciding_one_image_does_not_free_the_others(store, drawn, event):
    mine = store.leases.lease("ana", 10)
    store.append([event("label", int(mine[0]), 0)])
    assert store.leases.lease("ben", 15).tolist() == drawn[10:25].tolist()


def test_an_abandoned_lease_returns_when_its_time_is_over(store, drawn, clock):
    store.leases.lease("ana", 30, ttl_s=60)
    clock.now += 59.9
    assert not len(store.leases.lease("ben", 5))
    clock.now += 0.2
    assert store.leases.lease("ben", 5).tolist() == drawn[:5].tolist()
    assert store.leases.lease("ana", 5).tolist() == drawn[5:10].tolist()


def test_renewing_holds_longer_but_revives_nothing(store, drawn, clock):
    mine = store.leases.lease("ana", 3, ttl_s=60)
    clock.now += 50
    assert store.leases.renew("ana", mine[:2], ttl_s=60).tolist() == mine[:2].tolist()
    clock.now += 50
    assert store.leases.lease("ben", 2).tolist() == [drawn[2], drawn[3]]
    clock.now += 50
    assert not len(store.leases.renew("ana", mine))


def test_nobody_is_given_more_than_a_fair_share_while_others_label(store, drawn, event):
    mine = store.leases.lease("ana", 12)
    assert store.leases.lease("ben", 30).tolist() == drawn[12:27].tolist()  # half of thirty
    assert len(store.leases.lease("eva", 30)) == 3  # what there is
    store.append([event("label", int(image), 0) for image in mine])
    store.leases.release("eva")
    assert store.leases.lease("ana", 30).tolist() == drawn[27:].tolist()
    store.leases.release("ben")
    assert len(store.leases.lease("ana", 30)) == 18  # alone again


def test_who_renews_gives_back_what_exceeds_a_fair_share(store, drawn, clock):
    mine = store.leases.lease("ana", 30)
    assert store.leases.renew("ana", mine).tolist() == mine.tolist()  # nobody else is there
    assert not len(store.leases.lease("ben", 10))
    clock.now += 150
    assert store.leases.renew("ana", mine).tolist() == drawn[:15].tolist()  # ben waits
    assert store.leases.lease("ben", 10).tolist() == drawn[15:25].tolist()
    assert len(store.leases.lease("eva", 30)) == 5
    assert store.leases.renew("ana", mine).tolist() == drawn[:10].tolist()


def test_who_waited_and_left_takes_nothing_from_the_others(store, drawn, clock):
    mine = store.leases.lease("ana", 30)
    store.leases.lease("ben", 10)
    store.leases.release("ben")
    assert store.leases.renew("ana", mine).tolist() == mine.tolist()
    store.leases.lease("ben", 10)
    clock.now += 300
    assert store.leases.renew("ana", mine).tolist() == mine.tolist()


@pytest.mark.parametrize("again", [False, True])
def test_names_that_take_everything_do_not_keep_it_from_others(store, drawn, clock, again):
    assert len(store.leases.lease("mallory", 15)) + len(store.leases.lease("trudy", 15)) == 30
    assert not len(store.leases.lease("ana", 20))
    for _ in range(2):
        clock.now += 150
        if again:
            store.leases.lease("mallory", 15)
            store.leases.lease("trudy", 15)
        mine = store.leases.lease("ana", 20)
    assert len(mine) == 10  # a third of thirty


@pytest.fixture
def crowd(store, drawn, event):
    """Thirty names, of whom nobody has heard, with an image each, while ana has labeled before."""
    store.append([event("skip", 1)])
    names = [f"nobody {number}" for number in range(30)]
    assert [len(store.leases.lease(name, 1)) for name in names] == [1] * 30
    assert not len(store.leases.lease("ana", 30))
    return names


def test_a_crowd_of_invented_names_has_one_share(store, drawn, crowd):
    for name in crowd:
        store.leases.lease(name, 1)
    assert len(store.leases.lease("ana", 30)) == 15
    for name in crowd:
        store.leases.lease(name, 1)
    held = [len(store.leases.renew(name, drawn)) for name in crowd]
    assert sum(held) <= 15 and len(store.leases.renew("ana", drawn)) == 15


def test_a_crowd_that_renews_gives_back(store, drawn, crowd):
    assert sum(len(store.leases.renew(name, drawn)) for name in crowd) == 15
    assert len(store.leases.lease("ana", 30)) == 15


def test_a_crowd_that_keeps_silent_loses_all(store, drawn, crowd, clock):
    clock.now += 241
    assert len(store.leases.lease("ana", 30)) == 15
    assert len(store.leases.lease("ana", 30)) == 30


def test_a_newcomer_has_a_full_share_after_the_first_decision(store, drawn, event):
    store.append([event("skip", 1)])
    store.leases.lease("ana", 20)
    ben, eva = store.leases.lease("ben", 10), store.leases.lease("eva", 10)
    assert (len(ben), len(eva)) == (10, 0)
    assert len(store.leases.renew("ben", ben)) == 8  # half of the newcomers' fifteen
    store.append([event("label", int(ben[0]), 0, annotator="ben")])
    assert len(store.leases.lease("ben", 30)) == 9  # what there is; a third of thirty would be his


def test_a_clock_that_is_set_back_makes_no_lease_longer(store, drawn, clock):
    store.leases.lease("ana", 30, ttl_s=600)
    clock.now -= 3600
    assert not len(store.leases.lease("ben", 5))
    clock.now += 601
    assert store.leases.lease("ben", 5).tolist() == drawn[:5].tolist()


def test_released_images_go_to_others_at_once(store, drawn):
    mine = store.leases.lease("ana", 3)
    store.leases.release("ana", mine[1:2])
    assert store.leases.lease("ben", 1).tolist() == [drawn[1]]
    store.leases.release("ana")
    assert store.leases.lease("eva", 2).tolist() == [drawn[0], drawn[2]]


def test_decided_images_are_not_handed_out_and_undone_ones_are(store, drawn, event):
    store.append([event("label", int(image), 0) for image in drawn[:29]])
    assert store.leases.lease("ben", 5).tolist() == [drawn[29]]
    store.append([event("undo")])
    assert store.leases.lease("ben", 5).tolist() == [drawn[28], drawn[29]]


def test_overlap_images_go_to_two_and_no_more(store, event):
    ids = np.arange(10, dtype=np.uint64)
    store.drawings.draw(pool_hash="h", ids=ids, duplicate_of=np.arange(10), count=10, overlap=1.0, annotator="ana")
    first, second = store.leases.lease("ana", 10), store.leases.lease("ben", 10)
    assert np.array_equal(first, second) and not len(store.leases.lease("eva", 10))
    store.append([event("label", int(image), 0) for image in ids])
    store.leases.release("ben")
    assert len(store.leases.lease("eva", 10)) == 10 and not len(store.leases.lease("ana", 10))


def test_a_new_drawing_does_not_end_an_unfinished_one(store, event):
    ids = np.arange(40, dtype=np.uint64)
    settings = {"pool_hash": "h", "ids": ids, "duplicate_of": np.arange(40), "annotator": "ana"}
    uniform = store.drawings.draw(count=10, **settings).ids
    doubtful = store.drawings.draw(count=5, method="uncertainty", confidence=np.linspace(0, 1, 40), **settings).ids
    reseeded = store.drawings.draw(count=10, seed=7, **settings).ids
    wanted = list(dict.fromkeys([*uniform.tolist(), *reseeded.tolist(), *doubtful.tolist()]))
    assert store.leases.lease("ana", 40).tolist() == wanted
    store.append([event("label", int(image), 0) for image in [*doubtful, *reseeded]])
    rest = [image for image in uniform.tolist() if image not in reseeded]
    assert store.leases.lease("ana", 40).tolist() == rest
    assert store.leases.lease("ben", 40, drawing_id=2).tolist() == []


def test_a_larger_drawing_of_the_same_seed_takes_the_place_of_the_smaller(store):
    ids = np.arange(40, dtype=np.uint64)
    settings = {"pool_hash": "h", "ids": ids, "duplicate_of": np.arange(40), "annotator": "ana"}
    store.drawings.draw(count=10, **settings)
    larger = store.drawings.draw(count=20, overlap=0.5, **settings)
    assert store.leases.lease("ana", 40).tolist() == larger.ids.tolist()
    assert len(store.leases.lease("ben", 40)) == (larger.needs == 2).sum() > 0


def test_a_lease_needs_a_drawing_and_sane_numbers(store):
    with pytest.raises(MissingStepError):
        store.leases.lease("ana", 1)
    for wrong in ({"n": 0}, {"n": 5000}, {"n": 1, "ttl_s": 0}):
        with pytest.raises(InvalidSettingError):
            store.leases.lease("ana", **wrong)


def test_two_tabs_of_one_person_get_different_images(store, drawn, event):
    first = store.leases.lease("ana", 10, tab="one")
    assert first.tolist() == drawn[:10].tolist()
    assert store.leases.lease("ana", 10, tab="two").tolist() == drawn[10:20].tolist()
    assert store.leases.lease("ana", 10, tab="one").tolist() == first.tolist()  # a reload of the first one
    store.append([event("label", int(first[0]), 0)])
    assert store.leases.n_elsewhere("ana", "two") == 9


def test_a_tab_renews_and_releases_its_own_images_alone(store, drawn):
    first, second = (store.leases.lease("ana", 10, tab=tab) for tab in ("one", "two"))
    assert store.leases.renew("ana", [*first, *second], tab="two").tolist() == second.tolist()
    store.leases.release("ana", tab="two")
    assert store.leases.lease("ana", 20, tab="one").tolist() == drawn[:20].tolist()
    assert store.leases.n_elsewhere("ana", "one") == 0


def test_what_the_other_tab_has_is_taken_over_by_hand(store, drawn):
    store.leases.lease("ana", 30, tab="one")
    assert not len(store.leases.lease("ana", 30, tab="two"))
    store.leases.take_over("ana", tab="two")
    assert store.leases.lease("ana", 30, tab="two").tolist() == drawn.tolist()
    assert not len(store.leases.renew("ana", drawn, tab="one"))


def test_two_tabs_have_one_persons_share(store, drawn, event):
    mine = store.leases.lease("ana", 5, tab="one")
    store.append([event("label", int(mine[4]), 0)])  # ana is known
    store.leases.lease("ben", 5)
    n_held = sum(len(store.leases.lease("ana", 30, tab=tab)) for tab in ("one", "two"))
    assert n_held == 15  # half of the 29 that are open
    assert len(store.leases.lease("ben", 30)) == 14
