"""The baselines' evidence in a project: made once, found again, apart from the line, and good for a coreset."""

import json
import shutil

import numpy as np
import pytest
import torch
from safetensors.torch import save_file
from torchvision.models import resnet18

from semiprune_core.baselines import providers, swav
from semiprune_core.baselines.evidence import (
    PROVIDERS,
    EvidenceRequest,
    evidence_at_hand,
    evidence_for,
    evidence_maker,
    stored_evidence,
)
from semiprune_core.baselines.features import feature_settings
from semiprune_core.baselines.providers import CHOSEN_BY
from semiprune_core.baselines.settings import ClusterSettings, EncoderSettings
from semiprune_core.cli import main
from semiprune_core.coresets import CoresetRequest, build_coreset, more_ratios, own_evidence
from semiprune_core.coresets.score_view import open_view
from semiprune_core.coresets.select_view import preview
from semiprune_core.embeddings import encoders, features
from semiprune_core.embeddings.encoders import encode
from semiprune_core.errors import InvalidDataError, InvalidSettingError, MissingStepError, SemiPruneError
from semiprune_core.exporting import export_csv
from semiprune_core.exporting.verify import first_difference, verify
from semiprune_core.importing import ImportSettings, import_source
from semiprune_core.importing.sources.base import SourceSpec
from semiprune_core.learning import predict, supervised_run
from semiprune_core.learning.presets import supervised_preset
from semiprune_core.learning.settings import SupervisedSettings
from semiprune_core.methods import METHODS, needs_of
from semiprune_core.progress import Collected, Stopped
from semiprune_core.project.pool import PoolSettings
from semiprune_core.project.workspace import Workspace
from semiprune_core.results import latest_scores
from semiprune_core.results.evidence import EvidenceRun, open_evidence, write_evidence
from semiprune_core.scores import ScoreTable
from semiprune_core.selection import Basis
from tests.support.features import add_features
from tests.support.pseudo_runs import label_share
from tests.support.scored_projects import make_pool, make_scored

BASELINES = [name for name in METHODS if evidence_maker(name) is not None]
QUICK = {
    "encoder": "pixels",
    "training": {"epochs": 3, "batch_size": 32},
    "heads": {"n_heads": 2, "epochs": 3, "hidden": 8, "bottleneck": 4, "n_components": 8, "batch_size": 64},
    "swav": {"epochs": 1, "batch_size": 64, "n_prototypes": 6, "hidden": 8, "projection": 4},
    "n_samples": 200,
    "epochs": 5,
    "hidden": (8,),
    "window": 2,
}
"""Settings of all of them at once, each takes its own."""


@pytest.fixture
def workspace(tmp_path, monkeypatch):
    monkeypatch.setenv("SEMIPRUNE_ROOTS", str(tmp_path))
    return Workspace.open(tmp_path / "home")


@pytest.fixture
def project(workspace, tmp_path):
    made = make_scored(workspace, tmp_path, n=80)
    label_share(made, 0.4)
    return made


def request(project, **more):
    return EvidenceRequest(project, more.pop("progress", None) or Collected(), settings=QUICK, **more)


def test_every_baseline_of_the_issue_keeps_its_evidence():
    assert set(BASELINES) == {
        "fully_supervised",
        "prototypicality",
        "zcore",
        "elfs",
        "elfs_self",
        "cluster_el2n",
        "cluster_forgetting",
        "extrapolation_knn",
        "extrapolation_gnn",
    }


@pytest.mark.parametrize("method", {METHODS[name].evidence: name for name in BASELINES}.values())
def test_evidence_is_made_once_found_again_and_never_taken_for_the_lines_own(method, project):
    before = {kind: project.latest(kind).id for kind in ("pseudo", "trajectory", "scores")}
    assert method not in evidence_at_hand(project)
    first = stored_evidence(method, request(project))
    n_made = len(project.artifacts("evidence"))
    progress = Collected()
    again = stored_evidence(method, request(project, progress=progress))
    assert again.artifact.id == first.artifact.id and len(project.artifacts("evidence")) == n_made
    assert not [one for one in progress.reports if one.get("unit") == "steps" or "loss" in one]
    assert evidence_at_hand(project)[method].artifact.id == first.artifact.id
    assert {kind: project.latest(kind).id for kind in before} == before

    evidence = evidence_for(method, request(project))
    assert evidence.n_images == 80 and set(needs_of(method)) <= {*evidence.scores, "mean_prob"}
    assert evidence.human_mask is not None and evidence.labels is not None and evidence.duplicate_of is not None
    assert first.artifact.inputs["pool"] == project.pool().hash
    other = stored_evidence(method, request(project, seed=1))
    assert other.artifact.id != first.artifact.id


@pytest.mark.parametrize("method", ["fully_supervised", "elfs", "extrapolation_knn", "extrapolation_gnn"])
def test_a_baseline_is_scored_by_a_head_on_features_where_asked(method, project, monkeypatch):
    from_scratch = stored_evidence(method, request(project))
    asked = {**QUICK, "encoder": "originals", "start": "frozen", "training": {"epochs": 4}}
    with pytest.raises(MissingStepError, match="features"):
        stored_evidence(method, EvidenceRequest(project, Collected(), settings=asked))
    add_features(project)
    monkeypatch.setattr(supervised_run, "train_supervised", lambda *a, **k: pytest.fail("a net was trained"))
    found = stored_evidence(method, EvidenceRequest(project, Collected(), settings=asked))
    assert found.artifact.id != from_scratch.artifact.id and found.n_epochs == 4
    assert set(found.names) == set(from_scratch.names) and found.n_epochs == found.table().settings["dual_epochs"]
    again = stored_evidence(method, EvidenceRequest(project, Collected(), settings=asked))
    assert again.artifact.id == found.artifact.id
    own = Basis(80)
    assert found.basis(own).start == "frozen" and from_scratch.basis(own).start != "frozen"


def test_a_baseline_begins_from_scratch_or_on_features():
    with pytest.raises(InvalidSettingError, match="start"):
        ClusterSettings(start="finetuned")


@pytest.mark.parametrize("method", ["zcore", "fully_supervised", "elfs"])
def test_a_baselines_coreset_is_built_shown_exported_and_proven(method, project, tmp_path):
    kept = stored_evidence(method, request(project))
    asked = CoresetRequest(method=method, pruning_ratio=0.5)
    run = build_coreset(project, asked)
    assert run.artifact.inputs["evidence"] == kept.artifact.hash
    assert build_coreset(project, asked).artifact.id == run.artifact.id
    seen = preview(open_view(project, latest_scores(project)), asked, stored=kept)
    np.testing.assert_array_equal(seen.coreset.indices, run.coreset().indices)
    assert len(seen.values) == 80 and seen.borders
    smaller = more_ratios(project, run, [0.8])[0]
    assert smaller.artifact.inputs["evidence"] == kept.artifact.hash and smaller.artifact.facts["n_kept"] == 16

    exported = export_csv(project, run)
    found = verify(exported.kept, Collected())
    assert first_difference(found) is None and kept.artifact.id in found
    with open(kept.artifact.path("scores.parquet"), "ab") as file:
        file.write(b"x")
    assert "scores.parquet was changed" in first_difference(verify(exported.kept, Collected()))


def test_options_count_human_labels_also_in_a_baselines_coreset(project):
    stored_evidence("zcore", request(project))
    run = build_coreset(project, CoresetRequest(method="zcore", pruning_ratio=0.5, keep_human=True))
    human = np.load(project.latest("pseudo").path("human_mask.npy"))
    assert run.coreset().mask[human].all() and run.artifact.facts["n_human"] == human.sum()


def test_the_clusters_serve_three_scores_with_one_training(project):
    made = {
        stored_evidence(name, request(project)).artifact.id for name in ("elfs", "cluster_el2n", "cluster_forgetting")
    }
    assert len(made) == 1
    kinds = [one.settings["provider"] for one in project.artifacts("evidence")]
    assert sorted(kinds) == ["cluster_scores", "clusters", "dynamics", "features"]


def test_other_score_settings_do_not_train_again(project):
    first = stored_evidence("fully_supervised", request(project))
    progress = Collected()
    other = EvidenceRequest(project, progress, settings={**QUICK, "gamma": 0.5})
    again = stored_evidence("fully_supervised", other)
    assert again.artifact.id != first.artifact.id and not [one for one in progress.reports if "loss" in one]
    assert again.table().settings["gamma"] == 0.5 and again.table().settings["window"] == 2
    assert not np.array_equal(again.table()["dual"], first.table()["dual"])


def test_the_schedule_is_that_of_the_projects_own_dynamics_run(project):
    schedule = {"epochs": 4, "batch_size": 16, "net": "compact", "lr": 0.05}
    latest = project.latest("trajectory")
    said = json.loads((latest.folder / "manifest.json").read_text())
    said["settings"] = {"preset": "custom", "training": SupervisedSettings(**schedule).to_json()}
    (latest.folder / "manifest.json").write_text(json.dumps(said))
    kept = stored_evidence("fully_supervised", EvidenceRequest(project, Collected(), settings={"window": 2}))
    assert kept.n_epochs == 4
    dynamics = next(one for one in project.artifacts("evidence") if one.settings["provider"] == "dynamics")
    assert {name: dynamics.settings["training"][name] for name in schedule} == schedule


def test_a_stopped_training_goes_on_in_the_same_folder(project, tmp_path):
    whole = stored_evidence("fully_supervised", request(project))
    plain = whole.table()["aum"]
    for artifact in project.artifacts("evidence"):
        shutil.rmtree(artifact.folder)
    with pytest.raises(Stopped):
        stored_evidence("fully_supervised", request(project, progress=Collected(4), folder=tmp_path / "work"))
    assert not project.artifacts("evidence") and list((tmp_path / "work").iterdir())
    progress = Collected()
    again = stored_evidence("fully_supervised", request(project, progress=progress, folder=tmp_path / "work"))
    assert progress.reports[0]["done"] >= 4
    np.testing.assert_array_equal(again.table()["aum"], plain)
    assert not list((tmp_path / "work").iterdir())


@pytest.mark.parametrize(
    "method, module, maker", [("elfs_self", swav, "train_encoder"), ("fully_supervised", predict, "predict")]
)
def test_features_that_are_not_finite_are_never_kept(method, module, maker, project, monkeypatch):
    """A training may seem to end well; its features are looked at nevertheless."""

    def broken(*given, features_out=None, **more):
        out = np.empty((80, 4), np.float16) if features_out is None else features_out
        out[...] = np.nan
        return out

    monkeypatch.setattr(module, maker, broken)
    with pytest.raises(InvalidDataError, match=r"not finite.*diverged: lower the lr of"):
        stored_evidence(method, request(project))
    assert not project.artifacts("evidence")


def test_an_encoder_that_diverges_says_what_to_lower_and_leaves_nothing(project, tmp_path):
    settings = {**QUICK, "swav": {**QUICK["swav"], "epochs": 3, "lr": 1e20}}
    for _ in range(2):  # it is not found the next time either
        with pytest.raises(SemiPruneError, match="Lower the lr of swav"):
            stored_evidence(
                "elfs_self", EvidenceRequest(project, Collected(), settings=settings, folder=tmp_path / "work")
            )
    assert not project.artifacts("evidence")


def test_fully_supervised_learns_from_the_reference_labels_and_no_others(project, monkeypatch):
    learned = []
    train = supervised_run.train_supervised

    def watched(images, labels, **more):
        learned.append(np.array(labels))
        return train(images, labels, **more)

    monkeypatch.setattr(supervised_run, "train_supervised", watched)
    kept = stored_evidence("fully_supervised", request(project))
    reference = project.pool().reference_labels
    assert (np.load(project.latest("pseudo").path("labels.npy")) != reference).any()  # so that a swap would show
    assert len(learned) == 1
    np.testing.assert_array_equal(learned[0], reference)
    np.testing.assert_array_equal(kept.labels(), reference)


def test_fully_supervised_asks_for_a_label_of_every_image(workspace, tmp_path):
    np.savez(tmp_path / "bare.npz", images=np.random.default_rng(0).integers(0, 255, (12, 28, 28), dtype=np.uint8))
    project = workspace.create("Bare")
    settings = ImportSettings(
        source=SourceSpec("npz", str(tmp_path / "bare.npz")).to_json(),
        pool=PoolSettings(size=28, channels=1).to_json(),
        n_workers=1,
    )
    import_source(project, settings, Collected())
    project = workspace.project(project.name)
    with pytest.raises(MissingStepError, match="0 of 12 images have one"):
        stored_evidence("fully_supervised", request(project))
    with pytest.raises(MissingStepError, match="number of classes is unknown"):
        stored_evidence("elfs", request(project))
    with pytest.raises(InvalidDataError, match="at least two classes"):
        stored_evidence("extrapolation_knn", request(project))


def test_extrapolation_keeps_the_scores_of_the_labeled_images_and_follows_new_labels(workspace, tmp_path):
    project = make_pool(workspace, tmp_path, n=80)
    label_share(project, 0.4)
    kept = stored_evidence("extrapolation_knn", request(project))
    dynamics = next(one for one in project.artifacts("evidence") if one.settings["provider"] == "dynamics")
    places = np.load(dynamics.path("places.npy"))
    assert len(places) == kept.artifact.facts["n_labeled"] == 32 and dynamics.facts["n_images"] == 32
    dual = kept.table()["dual"]
    rest = np.setdiff1d(np.arange(80), places)
    assert dual[places].min() <= dual[rest].min() and dual[rest].max() <= dual[places].max()
    evidence = evidence_for("extrapolation_knn", request(project))
    assert evidence.labels is None and evidence.human_mask.sum() == 32  # no model was trained here
    label_share(project, 0.1, seed=5)
    assert stored_evidence("extrapolation_knn", request(project)).artifact.id != kept.artifact.id


def test_the_number_of_neighbours_is_chosen_for_the_score_that_is_chosen_by(workspace, tmp_path, monkeypatch):
    assert {METHODS[name].score for name in ("extrapolation_knn", "extrapolation_gnn")} == {CHOSEN_BY}
    tried = []
    choose = providers.choose_k
    monkeypatch.setattr(providers, "choose_k", lambda *given, **more: tried.append(given[1]) or choose(*given, **more))
    project = make_pool(workspace, tmp_path, n=80)
    label_share(project, 0.4)
    kept = stored_evidence("extrapolation_knn", request(project))
    dynamics = next(one for one in project.artifacts("evidence") if one.settings["provider"] == "dynamics")
    np.testing.assert_array_equal(tried[0], kept.table()[CHOSEN_BY][np.load(dynamics.path("places.npy"))])


def as_kept_before(project, kept):
    """Score extrapolation's evidence in place of ``kept``, as it was when it was by DUAL: without the newer score."""
    artifact, table = kept.artifact, kept.table()
    columns = {name: np.array(values) for name, values in table.columns.items() if name != CHOSEN_BY}
    settings = {name: value for name, value in artifact.settings.items() if name != "chosen_by"}
    shutil.rmtree(artifact.folder)
    with project.draft("evidence", settings=settings, inputs=artifact.inputs, seed=artifact.manifest["seed"]) as draft:
        write_evidence(draft, project.pool(), ScoreTable(columns, table.settings, table.n_images))
        draft.facts.update(n_epochs=kept.n_epochs)
    return open_evidence(draft)


@pytest.mark.parametrize("method", ["extrapolation_knn", "extrapolation_gnn"])
def test_evidence_of_an_earlier_version_serves_its_coresets_and_is_made_anew_for_others(method, project):
    old = as_kept_before(project, stored_evidence(method, request(project)))
    asked = CoresetRequest(method=method, pruning_ratio=0.5)
    by_dual = build_coreset(project, CoresetRequest(method=method, pruning_ratio=0.5, given={"score": "dual"}), own=old)
    assert by_dual.artifact.settings["knobs"]["score"] == "dual"
    assert first_difference(verify(export_csv(project, by_dual).kept, Collected())) is None

    assert method not in evidence_at_hand(project)
    progress = Collected()
    kept = own_evidence(project, asked, progress, settings=QUICK)
    assert kept.artifact.id != old.artifact.id and CHOSEN_BY in kept.names
    assert not [one for one in progress.reports if one.get("stage") == "training"], "the scoring run is found again"
    assert evidence_at_hand(project)[method].artifact.id == kept.artifact.id
    chosen = build_coreset(project, asked).coreset().indices
    assert kept.table()[CHOSEN_BY][chosen].min() >= np.delete(kept.table()[CHOSEN_BY], chosen).max()


def test_the_scorer_of_a_tenth_is_trained_like_a_coreset_of_that_size(workspace, tmp_path):
    project = make_pool(workspace, tmp_path, n=300)
    label_share(project, 0.1)
    quick = supervised_preset("quick")
    kept = stored_evidence(
        "extrapolation_knn", EvidenceRequest(project, Collected(), settings={"training": {"epochs": 12}})
    )
    run = next(one for one in project.artifacts("evidence") if one.settings["provider"] == "dynamics")
    wanted = quick.for_coreset(0.9).replace(epochs=12)
    assert run.settings["training"] == wanted.to_json() and wanted.batch_size == quick.batch_size // 4
    assert kept.artifact.settings["scores"]["dual_epochs"] == 12


def test_a_baseline_starts_from_how_well_its_own_labels_were_learned(workspace, tmp_path):
    project = make_scored(workspace, tmp_path, n=60)
    own = latest_scores(project).basis()
    kept = stored_evidence("fully_supervised", request(project))
    assert kept.basis(own) == Basis.learned(kept.table()["aum"], kept.n_epochs)
    assert kept.basis(own).aum != own.aum
    bare = stored_evidence(
        "zcore", EvidenceRequest(project, Collected(), settings={"encoder": "pixels", "n_samples": 50})
    )
    assert bare.basis(own).aum == own.aum and bare.basis(own).n_epochs is None


def test_settings_that_nobody_has_are_refused_with_a_hint(project):
    with pytest.raises(InvalidSettingError, match="There is no evidence setting 'encodre'. Did you mean 'encoder'"):
        stored_evidence("zcore", EvidenceRequest(project, Collected(), settings={"encodre": "pixels"}))
    with pytest.raises(InvalidSettingError, match="An encoder is named"):
        stored_evidence("zcore", EvidenceRequest(project, Collected(), settings={"encoder": "odd:thing"}))


def test_features_follow_the_weights_file_and_are_computed_once(project, tmp_path):
    path = tmp_path / "net.safetensors"
    settings = {"encoder": "torchvision:resnet18", "weights": str(path), "encoder_size": 32, "n_clusters": 3}

    def made(seed):
        torch.manual_seed(seed)
        save_file(resnet18(num_classes=2).state_dict(), path)
        progress = Collected()
        run = stored_evidence("prototypicality", EvidenceRequest(project, progress, settings=settings))
        return run.artifact.inputs["features"], [one for one in progress.reports if one.get("stage") == "features"]

    first, computed = made(0)
    assert computed and made(0) == (first, [])
    other, computed = made(1)
    assert other != first and computed


def test_a_stopped_encoding_goes_on_with_the_same_encoder_and_size_alone(project, tmp_path, monkeypatch):
    monkeypatch.setattr(encoders, "BATCH", 8)
    monkeypatch.setattr(encoders, "BLOCK", 16)  # five blocks of 80 images
    save_file(resnet18(num_classes=2).state_dict(), tmp_path / "net.safetensors")
    settings = {"encoder": "resnet18", "weights": str(tmp_path / "net.safetensors"), "encoder_size": 32}
    settings |= {"n_clusters": 3}

    def run(progress, **more):
        asked = EvidenceRequest(project, progress, settings={**settings, **more}, folder=tmp_path / "work", seed=seed)
        return stored_evidence("prototypicality", asked)

    def begun(progress):
        return next(one["done"] for one in progress.reports if one["stage"] == "features")

    seed = 0
    whole = np.array(features_of(project, run(Collected())).array("features"))
    for artifact in project.artifacts("evidence"):
        shutil.rmtree(artifact.folder)
    with pytest.raises(Stopped):
        run(Collected(40))
    assert not project.artifacts("evidence") and len(list((tmp_path / "work").rglob("*.npy"))) == 3
    other, progress = Collected(), Collected()
    run(other, encoder_size=40)
    assert begun(other) == 0
    seed = 1  # features are the same for every seed
    found = features_of(project, run(progress))
    assert begun(progress) == 48
    np.testing.assert_array_equal(found.array("features"), whole)
    assert not list((tmp_path / "work").iterdir())


def test_encoders_with_a_plus_stand_side_by_side_each_of_length_one(project, tmp_path):
    save_file(resnet18(num_classes=2).state_dict(), tmp_path / "net.safetensors")
    settings = {"encoder": "resnet18+pixels", "weights": f"{tmp_path / 'net.safetensors'}+", "encoder_size": 32}

    def run(**more):
        asked = {**settings, "n_clusters": 3, **more}
        return stored_evidence("prototypicality", EvidenceRequest(project, Collected(), settings=asked))

    joined = features_of(project, run())
    first, second = (
        np.asarray(features_of(project, run(encoder=name, weights=file)).array("features"), np.float64)
        for name, file in (("resnet18", str(tmp_path / "net.safetensors")), ("pixels", ""))
    )
    wanted = np.hstack([one / np.linalg.norm(one, axis=1, keepdims=True) for one in (first, second)])
    assert joined.array("features").shape == (80, 512 + 784) and joined.array("features").dtype == np.float32
    np.testing.assert_allclose(joined.array("features"), wanted, atol=1e-6)
    n_made = len(project.artifacts("evidence"))
    assert run().artifact.facts["encoder"] == "resnet18+pixels" and len(project.artifacts("evidence")) == n_made
    with pytest.raises(InvalidSettingError, match="There are 3 weight files for the 2 encoders"):
        run(weights="a+b+c")


def features_of(project, run):
    """The features that evidence was made from."""
    return next(
        EvidenceRun(one) for one in project.artifacts("evidence") if one.hash == run.artifact.inputs["features"]
    )


def test_features_are_computed_on_the_device_asked_for(project, tmp_path, monkeypatch):
    asked = []

    def watched(encoder, images, *, device, **more):
        asked.append(device)
        return encode(encoder, images, device="cpu", **more)

    monkeypatch.setattr(features, "encode", watched)
    save_file(resnet18(num_classes=2).state_dict(), tmp_path / "net.safetensors")
    settings = {"encoder": "resnet18", "weights": str(tmp_path / "net.safetensors"), "encoder_size": 32}
    stored_evidence("prototypicality", EvidenceRequest(project, Collected(), device="cuda:1", settings=settings))
    made = next(one for one in project.artifacts("evidence") if one.settings["provider"] == "features")
    assert asked == ["cuda:1"] and made.manifest["device"] == "cuda:1"


@pytest.mark.parametrize(
    "settings, side",
    [
        ({"encoder": "dino_vitb16"}, 224),
        ({"encoder": "clip_vit_b_32"}, 224),
        ({"encoder": "torchvision:resnet18"}, 224),
        ({"encoder": "dino_vitb16", "encoder_size": 96}, 96),
        ({"encoder": "efficientnet_lite0"}, 64),  # twice 28 pixels, and no less than 64
    ],
)
def test_small_images_are_shown_to_an_encoder_at_the_size_it_is_made_for(settings, side, project):
    assert feature_settings(EncoderSettings(**settings), project.pool()).encoder_size == side


def test_a_pool_that_grew_needs_its_evidence_anew(project, tmp_path):
    stored_evidence("zcore", request(project))
    np.savez(tmp_path / "more.npz", images=np.zeros((3, 28, 28), np.uint8), labels=np.zeros(3, int))
    import_source(
        project,
        ImportSettings(
            source=SourceSpec("npz", str(tmp_path / "more.npz")).to_json(),
            pool=PoolSettings(size=28, channels=1).to_json(),
            n_workers=1,
        ),
        Collected(),
    )
    assert not evidence_at_hand(project)


def test_the_projects_own_methods_keep_nothing(project):
    assert stored_evidence("semi_aum_cutoff", request(project)) is None and evidence_maker("top") is None
    other = EvidenceRequest(project, Collected(), settings={"encoder": "pixels"})  # a baseline's: not theirs
    assert set(evidence_for("semi_dual_beta", other).scores) == set(latest_scores(project).names)


def test_select_makes_the_evidence_in_the_foreground(project, capsys, monkeypatch):
    monkeypatch.setattr("semiprune_core.commands.base.signal.signal", lambda *_: None)
    home = ["--home", str(project.workspace.root)]
    command = ["select", project.name, "--method", "prototypicality", "--ratio", "0.5", "--encoder", "pixels", "--json"]
    assert main([*command, *home]) == 0
    said = json.loads(capsys.readouterr().out)
    assert said["n_kept"] == 40 and said["settings"]["method"] == "prototypicality"
    kept = evidence_at_hand(project)["prototypicality"]
    assert project.artifact(said["coreset"]).inputs["evidence"] == kept.artifact.hash
    assert own_evidence(project, CoresetRequest(method="prototypicality")).artifact.id == kept.artifact.id
    assert main(["select", project.name, "--ratio", "0.5", "--encoder", "pixels", *home]) != 0
    assert "belongs to the baselines" in capsys.readouterr().err


def test_every_provider_says_what_it_is():
    for name in PROVIDERS:
        facts = PROVIDERS.facts(name)
        assert facts["title"] and facts["about"].endswith(".")
