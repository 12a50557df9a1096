// The labeling deck: one image, one key, the next image. No answer of the server stands between two images.
const AHEAD = 14; // images fetched and decoded before they are needed
const LOW = 16; // ask for more when fewer than this wait
const MORE = 30;
const BEHIND = 24; // decoded images kept for going back
const AGAIN = ["skipped", "flagged"]; // queues of images that were decided before
const SMALL_PICTURE = 160;
const LARGE_PIXELS = 6e6;
const DECK_KEYS = [
  ["1 … 9, 0, letters", "label with the class beside the key, and go on"],
  ["Enter", "accept the suggestion, if there is one"],
  ["Space", "skip"],
  ["F", "flag"],
  ["← →", "previous and next image"],
  ["Z, or click", "zoom to pixels"],
  ["Backspace, Delete, Ctrl+Z", "undo"],
];

class Deck extends LabelingElement {
  constructor(root, data) {
    super(root, data, DECK_KEYS);
    this.line = []; // every card of this sitting, in order
    this.at = 0;
    this.exhausted = false;
    this.deciding = false; // whether this sitting has decided anything
    this.zoom = false;
    window.addEventListener("online", () => this.fetchAhead(), { signal: this.alive.signal });
    this.resizing = new ResizeObserver(() => this.fit());
    this.resizing.observe(this.find(".stage"));
    this.word("Loading images …");
    this.start();
  }

  leave() {
    super.leave();
    this.resizing.disconnect();
    this.find(".slot").replaceChildren();
  }

  get card() { return this.line[this.at]; }

  // --- the queue -----------------------------------------------------------------------------------------------------

  wanted() {
    return Math.min(500, this.data.queue === "drawn" ? this.openCards().length + this.pipe.pending.length + MORE : 500);
  }

  loaded(said, first) {
    if (first) {
      this.line = said.latest.filter((row) => row.action).reverse().map((row) => this.add(row));
      const events = new Map(said.latest.map((row) => [row.id, row.event_id]));
      this.done = this.line.map((card) => ({ kind: "decide", cards: [card], eventIds: [events.get(card.id)], before: null, after: null }));
      this.at = this.line.length;
    }
    const fresh = said.items.filter((row) => !this.byId.has(row.id));
    fresh.forEach((row) => this.line.push(this.add(row)));
    this.exhausted = !fresh.length;
    if (first || !this.card) this.go(this.nextOpen(this.at - 1));
    this.fetchAhead();
    this.later();
  }

  waiting() {
    let open = 0;
    for (let place = this.at; place < this.line.length; place++) if (this.isOpen(this.line[place])) open += 1;
    return open;
  }

  // What was skipped or flagged before has its action already: there a card is open until it is decided in this sitting.
  isOpen(card) { return AGAIN.includes(this.data.queue) ? !card.decided : !card.action; }

  nextOpen(from) {
    for (let place = from + 1; place < this.line.length; place++) if (this.isOpen(this.line[place])) return place;
    return this.line.length;
  }

  fetchAhead() {
    let room = AHEAD;
    for (let place = this.at; place < this.line.length && room > 0; place++) {
      this.fetch(this.line[place]);
      room -= this.line[place].width * this.line[place].height > LARGE_PIXELS ? 4 : 1;
    }
    for (let place = Math.max(0, this.at - 3); place < this.at; place++) this.fetch(this.line[place]);
    for (let place = 0; place < this.at - BEHIND; place++) Object.assign(this.line[place], { picture: null, ready: false });
  }

  fetch(card) {
    if (card.picture) return;
    const picture = (card.picture = new Image());
    picture.alt = "";
    picture.draggable = false;
    const load = (size) => {
      picture.dataset.size = size;
      picture.src = this.url(card, size);
      picture.decode().then(arrived, failed);
    };
    const arrived = () => {
      if (card.picture !== picture) return;
      Object.assign(card, { ready: true, broken: false });
      if (card === this.card) this.show();
    };
    const failed = () => {
      if (card.picture !== picture) return;
      if (picture.dataset.size === "original") { load("thumb"); return; } // an original the browser cannot draw
      Object.assign(card, { picture: null, broken: true, tries: card.tries + 1 });
      if (card === this.card) this.show();
      setTimeout(() => { if (!this.gone && Math.abs(this.line.indexOf(card) - this.at) <= AHEAD) this.fetch(card); }, Math.min(30000, 1000 * 2 ** card.tries));
    };
    load("original");
  }

  openCards() { return this.line.filter((card) => !card.action); }
  isBusyWith(card) { return card === this.card; }

  forgot() {
    const here = this.card;
    this.line = this.line.filter((card) => this.byId.has(card.id));
    this.at = here ? this.line.indexOf(here) : this.line.length;
  }

  // --- deciding ------------------------------------------------------------------------------------------------------

  label(classId) {
    const card = this.card;
    if (!card) return;
    if (!card.ready) { this.notice(card.broken ? "This picture cannot be shown. Skip or flag it." : "The picture is still loading."); return; }
    this.decide("label", classId);
  }

  skip() {
    if (this.card) this.decide("skip");
  }

  decide(action, classId = null) {
    const { answer } = this.card;
    if (answer !== null && action === "label") this.notice(classId === answer ? "As it was labeled." : `It was labeled ${this.nameOf(answer)}.`);
    const events = this.decideCards([this.card], action, classId);
    this.go(this.nextOpen(this.at)); // the next picture first, then the sending
    this.pipe.send(this.me, events);
    this.deciding = true;
    if (!this.card) this.pipe.drained().then(() => this.askProgress(true));
  }

  flag() {
    if (!this.card) return;
    this.flagCards([this.card]);
    this.show();
  }

  undo() {
    const step = this.turnBack(this.done, this.undone, "undo", "Nothing to undo.");
    if (step) this.go(this.line.indexOf(step.cards[0]));
  }

  redo() {
    const step = this.turnBack(this.undone, this.done, "redo", "Nothing to redo.");
    if (!step) return;
    const place = this.line.indexOf(step.cards[0]);
    this.go(step.kind === "flag" ? place : this.nextOpen(place));
  }

  // --- keys and clicks -----------------------------------------------------------------------------------------------

  ownKey(event, onControl) {
    const move = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
    if (!move || event.code.startsWith("Numpad") || event.ctrlKey || event.metaKey || event.altKey || event.shiftKey) return false;
    if (onControl && !this.root.contains(event.composedPath()[0])) return false;
    isHandled(event);
    this.step(move);
    return true;
  }

  plainKeys() {
    return {
      z: () => this.toggleZoom(),
      escape: () => this.setZoom(false),
      enter: () => { if (this.card?.suggestion) this.label(this.card.suggestion.class_id); },
    };
  }

  ownClick(target, event) {
    const cell = target.closest("[data-card]");
    if (cell) this.go(this.line.indexOf(this.byId.get(cell.dataset.card)));
    else if (target.closest(".slot")) this.setZoom(!this.zoom, event);
  }

  back() { this.step(-1); }
  forth() { this.step(1); }
  toggleZoom() { this.setZoom(!this.zoom); }

  step(by) {
    const place = Math.max(0, Math.min(this.line.length, this.at + by));
    if (place !== this.at) this.go(place);
  }

  // --- what is seen --------------------------------------------------------------------------------------------------

  go(place) {
    this.at = place < 0 ? this.line.length : place;
    if (this.card) this.card.shownAt = 0;
    this.show();
    this.later();
  }

  // Only what the next decision needs; the rest is drawn after the picture is on the screen.
  show() {
    const card = this.card;
    const slot = this.find(".slot");
    const stage = this.find(".stage");
    if (card) this.fetch(card);
    if (card?.ready) {
      if (slot.firstChild !== card.picture) slot.replaceChildren(card.picture);
      this.word("");
      this.fit();
      if (!card.shownAt) requestAnimationFrame(() => { card.shownAt ||= performance.now(); });
    } else {
      slot.replaceChildren();
      if (card) this.word(card.broken ? "This picture cannot be shown: its file is missing or has changed since the import." : "…");
      else this.showEnd();
    }
    stage.dataset.image = card?.ready ? card.id : "";
    this.showTags();
  }

  showTags() {
    const card = this.card;
    const tags = [];
    if (card?.action) tags.push(make("span", "tag", card.classId === null ? "skipped" : this.nameOf(card.classId)));
    if (card?.flagged) tags.push(make("span", "tag flagged", "flagged"));
    if (card?.suggestion) tags.push(make("span", "tag suggestion", `Enter: ${this.nameOf(card.suggestion.class_id)} (${Math.round(100 * card.suggestion.confidence)}%)`));
    for (const vote of card?.votes ?? []) tags.push(make("span", "tag vote", `${vote.annotator}: ${this.nameOf(vote.class_id)}`));
    this.find(".tags").replaceChildren(...tags);
    this.find(".classes [aria-pressed]")?.removeAttribute("aria-pressed");
    this.buttons.get(card?.classId)?.setAttribute("aria-pressed", "true");
  }

  drawRest() {
    this.fetchAhead();
    if (!this.exhausted && this.data.queue === "drawn" && this.round && this.waiting() < LOW) this.load();
    this.showStrip();
    this.showLatest();
    this.showCounts();
    const path = visible(this.card ? this.pathOf(this.card) : "");
    Object.assign(this.find(".name"), { textContent: path, title: path });
  }

  // Small pictures are enlarged by a whole factor, so that every pixel is a square of the same size.
  fit() {
    const slot = this.find(".slot");
    const picture = slot.firstChild;
    if (!picture?.naturalWidth) return;
    const { clientWidth: width, clientHeight: height } = this.find(".stage");
    const [w, h] = [picture.naturalWidth, picture.naturalHeight];
    const small = Math.max(w, h) <= SMALL_PICTURE;
    let scale = Math.min((width - 16) / w, (height - 16) / h);
    if (this.zoom) scale = scale < 1 ? Math.max(1 / devicePixelRatio, scale) : Math.ceil(3 * scale);
    else if (small && scale > 1) scale = Math.floor(scale);
    else if (!small) scale = Math.min(scale, 3);
    picture.style.width = `${w * scale}px`;
    picture.style.height = `${h * scale}px`;
    picture.classList.toggle("pixels", small || this.zoom);
    slot.classList.toggle("zoomed", this.zoom);
  }

  setZoom(on, event) {
    if (this.zoom === on) return;
    const slot = this.find(".slot");
    const box = slot.firstChild?.getBoundingClientRect?.();
    const [x, y] = event && box ? [(event.clientX - box.left) / box.width, (event.clientY - box.top) / box.height] : [0.5, 0.5];
    this.zoom = on;
    this.fit();
    slot.scrollLeft = x * slot.scrollWidth - slot.clientWidth / 2;
    slot.scrollTop = y * slot.scrollHeight - slot.clientHeight / 2;
  }

  showStrip() {
    const from = Math.max(0, this.at - 4);
    const cells = this.line.slice(from, this.at + 6).map((card, number) => {
      if (!card.cell) {
        card.cell = make("button", "cell");
        card.cell.dataset.card = card.id;
        card.cell.tabIndex = -1;
      }
      if (!card.cell.firstChild) card.cell.append(this.thumb(card, "inStrip"));
      card.cell.className = `cell${from + number === this.at ? " here" : ""}${card.action ? " decided" : ""}`;
      const decision = this.classOf(card.classId);
      card.cell.style.setProperty("--class", decision?.colour ?? "transparent");
      card.cell.setAttribute("aria-label", `Image ${from + number + 1}: ${decision?.name ?? card.action ?? "not labeled yet"}`);
      return card.cell;
    });
    this.find(".strip").replaceChildren(...cells);
  }

  showLatest() {
    const saved = this.data.queue === "practice" ? "" : "✓"; // beside a practice answer it would look like "right"
    const decided = this.line.filter((card) => card.action).sort((a, b) => b.when - a.when).slice(0, LATEST);
    const rows = decided.map((card) => {
      if (!card.row) {
        card.row = make("button", "decision");
        card.row.dataset.card = card.id;
        card.row.tabIndex = -1;
        card.row.title = visible(this.pathOf(card));
        card.row.append(make("bdi", "label", ""), make("span", "save", ""));
      }
      if (card.row.children.length < 3) card.row.prepend(this.thumb(card, "inLatest"));
      const [, label, save] = card.row.children;
      label.textContent = card.classId === null ? "skipped" : visible(this.nameOf(card.classId));
      label.classList.toggle("skipped", card.classId === null);
      save.textContent = { saving: "saving", saved, failed: "failed", conflict: "changed elsewhere" }[card.save] ?? "";
      save.dataset.save = card.save;
      return card.row;
    });
    this.find(".latest").replaceChildren(...rows);
  }

  progressed() {
    if (!this.card) this.showEnd();
    if (!this.progress.complete || !this.deciding || this.data.queue !== "drawn") return;
    this.deciding = false;
    this.trigger?.("finished", Date.now()); // the page says what comes next
  }

  showEnd() {
    if (!this.round) return;
    const { queue } = this.data;
    if (queue !== "drawn" && (this.exhausted || AGAIN.includes(queue) || queue === "disputed")) {
      const none = { skipped: "No skipped images.", flagged: "No flagged images.", disputed: "No disagreements to settle." }[queue];
      const tried = this.line.filter((card) => card.answer !== null && card.classId !== null);
      const agreed = tried.filter((card) => card.classId === card.answer).length;
      const score = tried.length ? ` You agree with the labels on ${agreed} of ${tried.length}.` : "";
      this.word(this.line.length ? `That was the last one.${score}` : (none ?? "No images here."));
      return;
    }
    if (!this.exhausted) {
      this.word("Loading more images …");
      this.load();
      return;
    }
    const complete = this.progress?.complete && !this.changed;
    const left = this.progress?.left && !this.changed;
    this.find(".live").classList.toggle("over", Boolean(complete)); // nobody labels: no advice on what would help
    if (complete) this.word("The subset is complete.");
    else this.word(...this.whereTheRestIs(left ? "Other annotators have the remaining images." : "No more images for you."));
  }
}

const LABELING = Deck;
