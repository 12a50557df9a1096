// The grid: many images at once; select by click, shift-click, rubber band or similarity, label all with one key.
const SIDES = [56, 84, 120, 176];
const SMALL_THUMB = 96;
const FIRST_REACH = 12;
const GRID_KEYS = [
  ["Click, Shift+click, drag", "select one, a range, a region"],
  ["Ctrl+A, Escape", "select all, none"],
  ["1 … 9, 0, letters", "label the selection with the class beside the key"],
  ["Space", "skip the selection"],
  ["F", "flag the selection"],
  ["Backspace, Delete, Ctrl+Z", "undo the whole action"],
];

class Grid extends LabelingElement {
  constructor(root, data) {
    super(root, data, GRID_KEYS);
    this.order = []; // open cards as they are shown
    this.chosen = new Set();
    this.anchor = null; // the card clicked last
    this.alike = []; // cards by likeness to the anchor, nearest first
    this.side = 1;
    const signal = this.alive.signal;
    const field = this.find(".field");
    field.addEventListener("pointerdown", (event) => this.bandBegins(event), { signal });
    field.addEventListener("pointermove", (event) => this.bandMoves(event), { signal });
    field.addEventListener("pointerup", () => this.bandEnds(), { signal });
    field.addEventListener("pointercancel", () => this.bandEnds(), { signal });
    this.find(".reach input").addEventListener("input", () => this.reach(), { signal });
    this.word("Loading images …");
    this.resize(0);
    this.start();
  }

  wanted() { return Math.min(500, this.data.n + this.pipe.pending.length); }

  openCards() { return this.order.filter((card) => !card.action); }
  isBusyWith(card) { return this.chosen.has(card); }

  forgot() {
    this.order = this.order.filter((card) => this.byId.has(card.id));
    this.show();
  }

  loaded(said) {
    for (const row of said.items) if (!this.byId.has(row.id)) this.order.push(this.add(row));
    this.show();
  }

  // Open cards only, in their place; what was decided makes room, what was taken back returns.
  show() {
    this.chosen = new Set([...this.chosen].filter((card) => !card.action));
    if (this.anchor?.action) { this.anchor = null; this.alike = []; }
    const shown = this.openCards().slice(0, this.data.n);
    this.shown = shown;
    const cells = this.find(".cells");
    const wanted = shown.map((card) => this.cell(card));
    if (wanted.length !== cells.children.length || wanted.some((cell, place) => cell !== cells.children[place])) cells.replaceChildren(...wanted);
    this.showMarks();
    if (!shown.length && this.round) this.word(...this.whereTheRestIs("No open images here."));
    else if (!shown.length) this.word("Loading images …");
    else this.word("");
    this.later();
  }

  cell(card) {
    if (!card.cell) {
      const cell = (card.cell = make("div", "cell"));
      cell.dataset.card = card.id;
      cell.title = visible(this.pathOf(card));
      const picture = this.thumb(card, "inGrid");
      picture.addEventListener("load", () => {
        picture.classList.toggle("pixels", picture.naturalWidth <= SMALL_THUMB);
        card.ready = true;
        card.shownAt ||= performance.now();
      });
      picture.addEventListener("error", () => cell.classList.add("broken"));
      cell.append(picture);
    }
    return card.cell;
  }

  showMarks() {
    for (const card of this.shown) {
      card.cell.setAttribute("aria-pressed", String(this.chosen.has(card)));
      card.cell.classList.toggle("anchor", card === this.anchor);
      card.cell.classList.toggle("flagged", card.flagged);
    }
    this.find(".chosen").textContent = this.chosen.size ? `${this.chosen.size} of ${this.shown.length} selected` : `${this.shown.length} shown`;
    this.find(".similar").disabled = !this.anchor;
    this.find(".reach").hidden = !this.alike.length;
  }

  drawRest() {
    this.showCounts();
    this.showLatest();
  }

  showLatest() {
    const rows = this.done.filter((step) => step.kind === "decide").slice(-LATEST).reverse().map((step) => {
      const row = make("div", "decision");
      const [first] = step.cards;
      const { classId } = step.after[0];
      row.append(this.thumb(first, "inLatest"), make("bdi", "label", classId === null ? "skipped" : this.nameOf(classId)), make("span", "save", `${step.cards.length.toLocaleString()} ${step.cards.every((card) => card.save === "saved") ? "✓" : step.cards.some((card) => card.save === "failed" || card.save === "conflict") ? "not all saved" : "saving"}`));
      return row;
    });
    this.find(".latest").replaceChildren(...rows);
  }

  // --- selecting -----------------------------------------------------------------------------------------------------

  ownClick(target, event) {
    const cell = target.closest("[data-card]");
    if (!cell || this.banded) return;
    const card = this.byId.get(cell.dataset.card);
    if (!card.ready) return;
    if (event.shiftKey && this.anchor) {
      const [from, to] = [this.shown.indexOf(this.anchor), this.shown.indexOf(card)].sort((a, b) => a - b);
      this.shown.slice(from, to + 1).filter((one) => one.ready).forEach((one) => this.chosen.add(one));
    } else if (!this.chosen.delete(card)) {
      this.chosen.add(card);
    }
    this.anchor = card;
    this.alike = [];
    this.showMarks();
  }

  ownKey(event) {
    if ((event.ctrlKey || event.metaKey) && !event.altKey && !event.shiftKey && event.key.toLowerCase() === "a") {
      isHandled(event);
      this.selectAll();
      return true;
    }
    return false;
  }

  plainKeys() { return { escape: () => this.selectNone() }; }

  selectAll() {
    this.chosen = new Set(this.shown.filter((card) => card.ready));
    this.showMarks();
  }

  selectNone() {
    this.chosen = new Set();
    this.alike = [];
    this.showMarks();
  }

  bandBegins(event) {
    this.banded = false;
    if (event.button !== 0 || event.pointerType === "touch") return;
    this.from = { x: event.clientX, y: event.clientY, add: event.shiftKey || event.ctrlKey || event.metaKey, before: new Set(this.chosen) };
  }

  bandMoves(event) {
    if (!this.from) return;
    const [left, right] = [this.from.x, event.clientX].sort((a, b) => a - b);
    const [top, bottom] = [this.from.y, event.clientY].sort((a, b) => a - b);
    if (!this.banded && right - left < 6 && bottom - top < 6) return;
    if (!this.banded) {
      this.banded = true;
      this.find(".field").setPointerCapture(event.pointerId);
    }
    const field = this.find(".field");
    const home = field.getBoundingClientRect();
    Object.assign(this.find(".band").style, { left: `${left - home.left}px`, top: `${top - home.top + field.scrollTop}px`, width: `${right - left}px`, height: `${bottom - top}px` });
    this.find(".band").hidden = false;
    const inside = this.shown.filter((card) => {
      const box = card.cell.getBoundingClientRect();
      return card.ready && box.left < right && box.right > left && box.top < bottom && box.bottom > top;
    });
    this.chosen = new Set([...(this.from.add ? this.from.before : []), ...inside]);
    this.alike = [];
    this.showMarks();
  }

  bandEnds() {
    this.from = null;
    this.find(".band").hidden = true;
  }

  async similar() {
    const anchor = this.anchor;
    if (!anchor) { this.notice("Click a picture first."); return; }
    try {
      const said = await this.pipe.post("/similar", { image_id: anchor.id, ids: this.shown.map((card) => card.id) });
      if (this.gone || this.anchor !== anchor) return;
      this.alike = said.ids.map((id) => this.byId.get(id)).filter((card) => card && !card.action);
      const near = new Set(this.alike);
      this.order = [...this.alike, ...this.order.filter((card) => !near.has(card))];
      const range = this.find(".reach input");
      Object.assign(range, { max: String(this.alike.length), value: String(Math.min(FIRST_REACH, this.alike.length)) });
      this.reach();
      this.show();
    } catch (error) {
      this.notice(error.message);
    }
  }

  reach() {
    this.chosen = new Set(this.alike.slice(0, Number(this.find(".reach input").value)).filter((card) => card.ready));
    this.showMarks();
  }

  // --- deciding ------------------------------------------------------------------------------------------------------

  picked() {
    const cards = this.shown.filter((card) => this.chosen.has(card));
    if (!cards.length) this.notice("Select some images first.");
    return cards;
  }

  label(classId) { this.decide("label", classId); }
  skip() { this.decide("skip"); }

  decide(action, classId = null) {
    const cards = this.picked();
    if (!cards.length) return;
    const events = this.decideCards(cards, action, classId);
    this.chosen = new Set();
    this.alike = [];
    this.anchor = null;
    this.show();
    this.pipe.send(this.me, events);
    this.pipe.drained().then(() => { if (!this.gone && this.shown.length < this.data.n) this.load(); });
  }

  flag() {
    const cards = this.picked();
    if (!cards.length) return;
    this.flagCards(cards);
    this.showMarks();
  }

  undo() {
    const step = this.turnBack(this.done, this.undone, "undo", "Nothing to undo.");
    if (!step) return;
    this.chosen = new Set(step.cards.filter((card) => !card.action));
    this.show();
  }

  redo() {
    if (this.turnBack(this.undone, this.done, "redo", "Nothing to redo.")) this.show();
  }

  smaller() { this.resize(-1); }
  larger() { this.resize(1); }

  resize(by) {
    this.side = Math.max(0, Math.min(SIDES.length - 1, this.side + by));
    this.find(".cells").style.setProperty("--side", `${SIDES[this.side]}px`);
  }
}

const LABELING = Grid;
