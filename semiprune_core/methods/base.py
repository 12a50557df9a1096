"""Methods: named recipes, rows of the paper's tables: where labels come from, which score, which selector.

Most methods take a score that is in the evidence already. One that brings its own, from features for example, gives a
``scorer``: ``(evidence, *, rng, **knobs) -> (N,)``. Its score then joins the evidence under the method's ``score`` name
and goes through the same selectors and options as any other.
"""

from __future__ import annotations

import dataclasses
import difflib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from semiprune_core import streams
from semiprune_core.checks import check_finite
from semiprune_core.errors import UnknownNameError
from semiprune_core.knobs import Knob, knobs_of
from semiprune_core.records import Coreset, Evidence, FloatArray
from semiprune_core.registry import Registry
from semiprune_core.scores import SCORES
from semiprune_core.selection.base import SELECTORS
from semiprune_core.selection.defaults import Basis, default_knobs
from semiprune_core.selection.options import SelectionOptions, choose, knob_defaults

Scorer = Callable[..., FloatArray]


@dataclass(frozen=True)
class Method:
    """A recipe; ``knobs`` are those it fixes.

    ``labels_from`` says what it learned from: ``pseudo`` (SSL pseudo-labels), ``labeled`` (the human labels alone),
    ``clusters`` (deep clustering), ``reference`` (a true label for every image) or ``none``. ``evidence`` names who
    provides what it looks at (``evidence.PROVIDERS``).
    """

    selector: str
    score: str | None = None
    labels_from: str = "pseudo"
    knobs: Mapping[str, Any] = field(default_factory=dict)
    scorer: Scorer | None = None
    higher_is: str | None = None
    evidence: str = "scores"


def _check_method(name: str, method: Method) -> None:
    SELECTORS[method.selector]  # raises, with the known names


METHODS: Registry[Method] = Registry("method", required=("explain",), check=_check_method)


def needs_of(name: str) -> tuple[str, ...]:
    """The evidence a method or selector looks at, by name.

    >>> needs_of("semi_dual_beta"), needs_of("random")
    (('dual', 'mean_prob'), ())
    """
    if name not in METHODS:
        return tuple(SELECTORS.facts(name)["needs"])
    facts, method = METHODS.facts(name), METHODS[name]
    if "needs" in facts:
        return tuple(facts["needs"])
    needs = SELECTORS.facts(method.selector)["needs"]
    return (method.score,) if method.score and len(needs) == 1 else tuple(needs)


def open_knobs(name: str) -> dict[str, Knob]:
    """What a person may set of a method or selector: the knobs of its parts that it does not fix.

    >>> list(open_knobs("semi_aum_cutoff")), list(open_knobs("top"))
    (['cutoff'], ['keep', 'score'])
    """
    method = _method(name)
    own = {} if method.scorer is None else knobs_of(method.scorer)
    fixed = {*method.knobs} | ({"score"} if own else set())
    return {knob: facts for knob, facts in {**knobs_of(SELECTORS[method.selector]), **own}.items() if knob not in fixed}


def every_knob() -> dict[str, Knob]:
    """The knobs of all selectors and methods; where several share a name, the first one's."""
    found: dict[str, Knob] = {}
    for name in (*SELECTORS, *METHODS):
        found = {**open_knobs(name), **found}
    return found


def score_title(name: str) -> str:
    """A score's name for people, also of one that only a method has."""
    if name in SCORES:
        return SCORES.title(name)
    found = (METHODS.facts(one).get("score_title") for one in METHODS if METHODS[one].score == name)
    return str(next((title for title in found if title), name))


def select_coreset(
    evidence: Evidence,
    selector_or_method: str,
    *,
    pruning_ratio: float,
    seed: int,
    class_balanced: bool = False,
    keep_human: bool = False,
    same_annotation_budget: bool = False,
    min_per_class: int = 0,
    class_share: float = 0.0,
    drop_duplicates: bool = False,
    one_of_each: bool = False,
    basis: Basis | None = None,
    rule: int = streams.RULE,
    **knobs: Any,
) -> Coreset:
    """Choose a coreset of exactly ``coreset_size(N, pruning_ratio)`` images.

    ``selector_or_method`` is a name from METHODS or SELECTORS. Knobs not given are the method's, then those of
    :func:`default_knobs` for such scores (``basis``; the AUM of the evidence where that is not given, of a run of
    unknown length), then the selector's own. The
    options are explained in :class:`SelectionOptions`. The coreset's settings name everything that was used: calling
    this again with its knobs, options, ratio and seed gives the same coreset, under the same ``rule`` for random
    numbers (:mod:`semiprune_core.streams`).

    >>> evidence = Evidence(10, {"aum": np.arange(10) / 10})
    >>> select_coreset(evidence, "semi_aum_cutoff", pruning_ratio=0.7, seed=0, cutoff=0.2).indices.tolist()
    [2, 3, 4]
    """
    rng = streams.coreset_rng(seed, rule)
    options = SelectionOptions(
        class_balanced=class_balanced,
        keep_human=keep_human,
        same_annotation_budget=same_annotation_budget,
        min_per_class=min_per_class,
        class_share=class_share,
        drop_duplicates=drop_duplicates,
        one_of_each=one_of_each,
    )
    method = _method(selector_or_method)
    start = default_knobs(selector_or_method, pruning_ratio, basis or _basis_of(evidence)).selector
    known = {**start, **method.knobs, **knobs}
    own: dict[str, Any] = {}
    if method.scorer is not None and method.score is not None:
        own = {knob: known.pop(knob) for knob in knob_defaults(method.scorer) if knob in known}
        scores = method.scorer(evidence, rng=rng, **own)
        check_finite(method.score, scores)
        evidence = dataclasses.replace(evidence, scores={**evidence.scores, method.score: scores})
        known = {"score": method.score, "higher_is": method.higher_is, **known}
    chosen = choose(evidence, method.selector, pruning_ratio=pruning_ratio, rng=rng, options=options, knobs=known)
    settings = {
        "selector": method.selector,
        "knobs": {**own, **chosen.knobs},
        "derived": chosen.derived,
        "options": options.to_json(),
    }
    return Coreset(chosen.indices, selector_or_method, settings, seed, pruning_ratio, evidence.n_images)


def _basis_of(evidence: Evidence) -> Basis:
    """What is known of a scoring run from its scores alone."""
    if "aum" in evidence.scores and evidence.n_images:
        return Basis.learned(evidence.scores["aum"], None)
    return Basis(evidence.n_images)


def _method(name: str) -> Method:
    """The recipe of this name; a selector's name is a recipe of that selector alone."""
    if name in METHODS:
        return METHODS[name]
    if name in SELECTORS:
        return Method(name)
    known = [*METHODS, *(selector for selector in SELECTORS if selector not in METHODS)]
    close = difflib.get_close_matches(name, known, n=1)
    hint = f" Did you mean '{close[0]}'?" if close else ""
    raise UnknownNameError(f"Unknown method or selector '{name}'.{hint} Known: {', '.join(known)}.")
