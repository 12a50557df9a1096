"""The form of a new training run: what it learns from, how, for how long, and the start."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from pages.parts import errors, training_preflight
from pages.parts.text import count, literal
from semiprune_core import training
from semiprune_core.errors import SemiPruneError
from semiprune_core.learning import machine, settings_help
from semiprune_core.learning.frozen.settings import HEADS
from semiprune_core.learning.machine import Machine
from semiprune_core.learning.presets import SSL_PRESETS, ssl_preset
from semiprune_core.learning.settings import SSLSettings
from semiprune_core.learning.settings_help import SettingHelp
from semiprune_core.learning.ssl import ALGORITHMS
from semiprune_core.project.workspace import Project
from semiprune_core.training import TrainingData, TrainSettings
from semiprune_core.training.settings import FINETUNED_ENCODER, PACKAGED_ENCODER


def draw(project: Project, data: TrainingData, *, idle: bool) -> None:
    """Everything needed to start a run; ``idle`` where no other run is under way that a trial would disturb."""
    if data.problem:
        st.warning(literal(data.problem, 1000), icon=":material/label_off:")
        st.page_link("label.py", label="Go to Label", icon=":material/arrow_forward:")
        return
    with st.spinner("Checking what this machine can train with"):
        here = machine.look()
    if here.problem:
        st.error(literal(here.problem, 1000), icon=":material/build:")
    left, right = st.columns([3, 2], gap="large")
    below = st.container()
    with left:
        start_at = where_to_start()
        settings, device, nproc = FORMS[start_at](here, below)
    with right:
        learned_from(data, settings)
        if settings is None:
            return
        if settings.is_frozen:
            st.caption("A head is fitted in seconds. Features of images that have none yet are computed first.")
        else:
            training_preflight.draw(project, settings, data, here, device=device, nproc=nproc, idle=idle)
        if st.button(
            "Start training",
            type="primary",
            icon=":material/play_arrow:",
            key="train_start",
            disabled=not here.can_train,
            width="stretch",
        ):
            start(project, settings, device=device, nproc=nproc)


def start(project: Project, settings: TrainSettings, *, device: str, nproc: int) -> None:
    with errors.shown():
        training.start_training(project, settings, device=device, nproc=nproc)
        st.rerun()


def where_to_start() -> str:
    """Auto, or one start alone."""
    names = list(training.STARTS)
    return st.radio(
        "Where learning begins",
        names,
        format_func=training.STARTS.__getitem__,
        captions=[
            "Pretrained features first; from scratch too where there is time, or where features do badly. Held-out "
            "labels decide, and the result says how surely.",
            "A pretrained encoder sees every original once; seconds instead of minutes. Usually best on photographs.",
            "The encoder's own weights learn on, by small steps. Slow on a CPU: the pre-flight says how slow.",
            "A net learns from this pool alone, as in the paper. Usually best where images are unlike photographs: "
            "signs, scans, tiny or drawn pictures.",
        ],
        key="train_start_at",
    )


def auto(here: Machine, below: DeltaGenerator) -> tuple[TrainSettings | None, str, int]:
    """Settings, device and number of processes of a run that chooses its start; the rarer choices are folded away."""
    with st.container(horizontal=True, vertical_alignment="bottom"):
        minutes = st.number_input(
            "Time budget, minutes",
            min_value=0.0,
            value=training.BUDGET / 60,
            step=1.0,
            format="%g",
            key="train_budget",
            width=190,
            help="A net is trained from scratch too where all of it fits into this time. Where features do badly, it "
            "is trained in any case, and the page says how long that takes; Stop keeps the result so far.",
        )
        seed = st.number_input(
            "Seed", min_value=0, max_value=2**31 - 1, value=0, step=1, key="train_auto_seed", width=130
        )
    usual = ssl_preset(here.recommended_preset)
    flip = st.toggle(
        "Left-right flips", value=usual.flip, help=settings_help.ssl_help()["flip"].about, key="train_auto_flip"
    )
    settings = TrainSettings(
        start=training.AUTO,
        ssl=usual.replace(flip=flip).to_json(),
        preset=here.recommended_preset,
        seed=int(seed),
        budget=60 * float(minutes),
    )
    return settings, "auto", 1


def on_features(here: Machine, below: DeltaGenerator) -> tuple[TrainSettings | None, str, int]:
    """(settings or None where they are not legal, device, number of processes) of a run on features."""
    head = st.selectbox("Head", list(HEADS), format_func=HEADS.__getitem__, key="train_head")
    with st.container(horizontal=True, vertical_alignment="bottom"):
        encoder = st.text_input(
            "Encoder",
            PACKAGED_ENCODER,
            key="train_encoder",
            help="The packaged encoder, or one of torchvision or timm, such as torchvision:resnet18.",
        )
        seed = st.number_input(
            "Seed", min_value=0, max_value=2**31 - 1, value=0, step=1, key="train_head_seed", width=130
        )
    try:
        settings = TrainSettings(start=training.FROZEN, frozen={"head": head}, encoder=encoder.strip(), seed=int(seed))
    except SemiPruneError as error:
        errors.show(error)
        return None, "auto", 1
    return settings, "auto", 1


def learned_from(data: TrainingData, settings: TrainSettings | None) -> None:
    """What the run would learn from, as it is now."""
    with st.container(border=True):
        st.markdown("**Trained on**")
        with st.container(horizontal=True, gap="medium"):
            st.metric("Labels", f"{data.n_labels:,}")
            st.metric("Classes", f"{len(data.per_class):,}")
            st.metric("Unlabeled", f"{data.n_images - data.n_labels:,}")
        if settings is not None:
            st.caption(_measured(data, settings))
        if data.missing_classes:
            st.warning(
                without_label(data.missing_classes, "no image will get it until one is labeled"),
                icon=":material/label_off:",
            )
        if data.thin_classes:
            names = ", ".join(literal(name, 40) for name in data.thin_classes[:6])
            more = f" and {len(data.thin_classes) - 6} more" if len(data.thin_classes) > 6 else ""
            st.warning(
                f"Few labels for {names}{more}: the model will learn little about them. Label more first, or "
                f"merge classes.",
                icon=":material/warning:",
            )
        st.caption(f"Labels as of now, fixed when the run starts: `{data.snapshot.hash[:12]}`")


def without_label(names: Sequence[str], effect: str) -> str:
    """Which classes have no label, and what that means."""
    shown = ", ".join(literal(name, 40) for name in names[:6])
    more = f" and {len(names) - 6} more" if len(names) > 6 else ""
    return f"No label yet of {shown}{more}: {effect}."


def _measured(data: TrainingData, chosen: TrainSettings) -> str:
    settings = chosen.training
    if chosen.is_frozen or chosen.is_auto:
        settings = settings.replace(cross_fit=chosen.head.n_folds)
    held = data.n_held_out(settings)
    if not held:
        if not data.n_measurable:
            return (
                "No labels were drawn at random, so the result cannot be measured without bias. Draw a random "
                "subset on the Label page to get an honest number."
            )
        return "No labels are held out, so the accuracy will not be measured."
    if settings.cross_fit > 1:
        return f"{count(held, 'label')} measure the result, each with a model that did not see it."
    return f"{count(held, 'label')} are held out to measure the result."


def finetuned(here: Machine, below: DeltaGenerator) -> tuple[TrainSettings | None, str, int]:
    """The choices of a net that begins with an encoder's weights."""
    encoder = st.text_input(
        "Encoder",
        FINETUNED_ENCODER,
        key="train_finetuned_encoder",
        help="The packaged encoder, or one of torchvision or timm, such as torchvision:resnet18.",
    )
    settings, device, nproc = choices(here, below, presets=("finetune",), recommended="finetune")
    if settings is None:
        return None, device, nproc
    return settings.replace(start=training.FINETUNED, encoder=encoder.strip()), device, nproc


def from_scratch(here: Machine, below: DeltaGenerator) -> tuple[TrainSettings | None, str, int]:
    """The choices of a net that learns from this pool alone."""
    presets = tuple(name for name in SSL_PRESETS if name != "finetune")
    return choices(here, below, presets=presets, recommended=here.recommended_preset)


def choices(
    here: Machine, below: DeltaGenerator, *, presets: tuple[str, ...], recommended: str
) -> tuple[TrainSettings | None, str, int]:
    """(settings or None where they are not legal, device, number of processes); the finer ones go ``below``."""
    names = list(ALGORITHMS)
    algorithm = st.radio(
        "Algorithm",
        names,
        index=names.index("fixmatch"),
        format_func=ALGORITHMS.title,
        captions=[str(ALGORITHMS.facts(name).get("about", "")) for name in names],
        key="train_algorithm",
    )
    preset = st.selectbox(
        "Preset",
        presets,
        index=presets.index(recommended),
        format_func=lambda name: SSL_PRESETS.title(name) + (" (recommended)" if name == recommended else ""),
        key=f"train_preset_{recommended}",
    )
    st.caption(str(SSL_PRESETS.facts(preset).get("about", "")))
    usual = ssl_preset(preset, algorithm)
    words = settings_help.ssl_help()
    flip = st.toggle(
        "Left-right flips", value=usual.flip, help=words["flip"].about, key=f"train_{preset}_{algorithm}_flip"
    )
    with st.container(horizontal=True, vertical_alignment="bottom"):
        seed = st.number_input(
            "Seed",
            min_value=0,
            max_value=2**31 - 1,
            value=0,
            step=1,
            key="train_seed",
            width=130,
            help="The same seed, labels and settings give the same run.",
        )
        titles = {"auto": "Automatic", **{device.name: f"{device.name} ({device.title})" for device in here.devices}}
        device = st.selectbox("Device", list(titles), format_func=titles.__getitem__, key="train_device", width=220)
        most = max(here.n_gpus, 1) if device != "cpu" and here.n_gpus else here.n_cores
        nproc = st.number_input(
            "Processes",
            min_value=1,
            max_value=max(1, most),
            value=1,
            step=1,
            key="train_nproc",
            width=130,
            help="Processes that share each batch: one per GPU. On a CPU, one is usually fastest.",
        )
    with below:
        values, options = advanced(usual, algorithm, preset, here)
    try:
        ssl = usual.replace(**values, flip=flip, options=options)
        chosen = TrainSettings(start=training.SCRATCH, ssl=ssl.to_json(), preset=preset, seed=int(seed))
        return chosen, str(device), int(nproc)
    except SemiPruneError as error:
        errors.show(error)
        return None, str(device), int(nproc)


FORMS = {
    training.AUTO: auto,
    training.FROZEN: on_features,
    training.FINETUNED: finetuned,
    training.SCRATCH: from_scratch,
}


def advanced(usual: SSLSettings, algorithm: str, preset: str, here: Machine) -> tuple[dict[str, Any], dict[str, Any]]:
    """Every other setting with what it does; (values of the run, options of the algorithm)."""
    values, options = {}, {}
    own = settings_help.algorithm_help(algorithm)
    chosen = ALGORITHMS[algorithm].from_json(usual.options)
    key = f"train_{preset}_{algorithm}"
    with st.expander("Advanced settings", icon=":material/tune:"):
        for title, members in settings_help.ssl_help_by_group().items():
            st.markdown(f"**{title}**")
            with st.grid(5, min_column_width=165):
                if title == settings_help.UNLABELED_GROUP:
                    for setting in own.values():
                        options[setting.name] = field(
                            setting, getattr(chosen, setting.name), f"{key}_own_{setting.name}"
                        )
                switches_last = sorted(members, key=lambda setting: setting.kind is bool)  # they are lower
                for setting in switches_last:
                    nets = tuple(net.name for net in here.nets) if setting.name == "net" else setting.choices
                    values[setting.name] = field(setting, getattr(usual, setting.name), f"{key}_{setting.name}", nets)
        changed = [settings_help.title_of(name) for name, value in values.items() if value != getattr(usual, name)] + [
            settings_help.title_of(name) for name, value in options.items() if value != getattr(chosen, name)
        ]
        if changed:
            st.caption(f"Changed from {SSL_PRESETS.title(preset)}: {', '.join(changed)}.")
    return values, options


def field(setting: SettingHelp, value: Any, key: str, names: tuple[str, ...] | None = None) -> Any:
    """A widget that fits the setting."""
    names = setting.choices if names is None else names
    with st.container():
        if setting.kind is bool:
            return st.toggle(setting.title, value=value, help=setting.about, key=key)
        if names:
            offered = names if value in names else (value, *names)
            return st.selectbox(setting.title, offered, index=offered.index(value), help=setting.about, key=key)
        if setting.kind is str:
            return st.text_input(setting.title, value, help=setting.about, key=key)
        if setting.kind is int:
            return int(
                st.number_input(setting.title, value=int(value), step=1, min_value=0, help=setting.about, key=key)
            )
        return float(
            st.number_input(
                setting.title, value=float(value), step=0.01, min_value=0.0, format="%g", help=setting.about, key=key
            )
        )
