// What the deck and the grid share: the opening, classes and their keys, the search, the status, conflicts, progress.
// deck.js or grid.js follows in the same module and says which one this is: LABELING.
const MANY_CLASSES = 60;
const NEUTRAL = "#8a8f98";
const PROGRESS_EVERY = 5000;
const LATEST = 10;
const RENEW_EVERY = 150000;
const IDLE = 15 * 60000;

// Keys both know; an element puts its own before these.
const COMMON_KEYS = [
  ["Shift + digit", "classes 11 to 20"],
  ["/", "search for a class by name, or add one"],
  ["Ctrl+Shift+Z, Ctrl+Y", "redo"],
  ["?", "show these keys"],
];

export default function (component) {
  const { data, parentElement, setTriggerValue } = component;
  return mounted(parentElement.querySelector(".labeling"), (root, first) => new LABELING(root, first), data, setTriggerValue);
}

class LabelingElement {
  constructor(root, data, keys) {
    this.root = root;
    this.data = data;
    this.pipe = labelPipe(data);
    this.find = (what) => root.querySelector(what);
    this.byId = new Map(); // cards by image id
    this.done = []; // steps undo can take back, oldest first: {kind, cards, eventIds, before, after}
    this.undone = [];
    this.conflicts = []; // {record, ack, card}
    this.classes = [];
    this.counts = {};
    this.progress = null;
    this.changed = 0; // cards decided (or freed) since the last progress
    this.ticks = 0;
    this.round = "";
    this.lastKey = Date.now();
    this.listener = { changed: () => this.showStatus(), answered: (record, ack) => this.answered(record, ack) };
    this.pipe.listeners.add(this.listener);
    this.pipe.elements.add(this);
    this.inherited = []; // ids of images that an element which left has handed on
    this.alive = new AbortController();
    const signal = this.alive.signal;
    window.addEventListener("pagehide", () => this.giveBack(), { signal });
    window.addEventListener("pageshow", (event) => { if (event.persisted) this.renew(); }, { signal });
    window.addEventListener("keydown", (event) => this.pressed(event), { capture: true, signal });
    root.addEventListener("click", (event) => this.clicked(event), { signal });
    this.find(".search input").addEventListener("input", () => this.showFound(), { signal });
    this.find(".search input").addEventListener("keydown", (event) => this.searchKey(event), { signal });
    this.watching = setInterval(() => this.askProgress(), PROGRESS_EVERY);
    this.renewing = setInterval(() => this.renew(), RENEW_EVERY);
    this.find(".add-button").hidden = Boolean(this.pipe.isPractice);
    this.live = this.pipe.isPractice ? { leave() {} } : new LiveLine(this.find(".live"), this.pipe, () => Date.now() - this.lastKey < IDLE);
    this.find(".help dl").replaceChildren(...[...keys, ...COMMON_KEYS].flatMap(([key, what]) => [make("dt", "", key), make("dd", "", what)]));
    this.find(".failures").replaceChildren();
    this.showBanner();
    this.setClasses(data.classes);
    const active = document.activeElement;
    const isChoosing = active?.matches("[role='combobox']"); // the list that has just chosen this queue
    if (!active || isChoosing || !active.matches("input, textarea, select")) root.focus({ preventScroll: true });
  }

  get gone() { return this.alive.signal.aborted; }
  get me() { return this.data.annotator; }
  classOf(id) { return this.classes.find((one) => one.class_id === id); }
  nameOf(id) { return this.classOf(id)?.name ?? `class ${id}`; }
  // First labels are given blind, and a folder is often named after the class: the file's name must do.
  pathOf(card) { return this.round === "label" ? card.path.split("/").pop() : card.path; }
  url(card, size) { return `${this.data.pictures}/${card.id}/${size}`; }

  // Send what an earlier page left behind, then begin.
  async start() {
    await this.pipe.adopt();
    this.showStatus();
    if (this.pipe.pending.length) {
      this.word("Sending the labels saved in this browser …");
      await this.pipe.drained();
    }
    await this.load(true);
    this.askProgress(true);
    await this.hearEarlier();
  }

  // What the server answered while nothing stood here to be told: said now, with the picture's name.
  async hearEarlier() {
    const earlier = [...this.pipe.unsettled.values()];
    const missing = earlier.map(({ record }) => record.event.image_id).filter((id) => id && !this.byId.has(id)).slice(0, 500);
    const others = new Map();
    if (missing.length) {
      try {
        const { items } = await this.pipe.post("/queue", { annotator: this.me, ids: [...new Set(missing)], round: this.round || "label" });
        items.forEach((row) => others.set(row.id, this.cardOf(row)));
      } catch { /* told without their names */ }
    }
    if (this.gone) return;
    for (const { record, ack } of earlier) if (this.pipe.unsettled.has(record.event.event_id)) this.answered(record, ack, others.get(record.event.image_id));
    this.showStatus();
  }

  update(data) {
    this.data = data;
    // Only engineers add classes; to labelers a sentence about features and accuracy says nothing.
    for (const place of [".add-button", ".live"]) this.find(place).hidden = !data.may_add;
    this.setClasses(data.classes);
    this.showStatus();
  }

  leave() {
    this.giveBack();
    this.alive.abort();
    clearInterval(this.watching);
    clearInterval(this.renewing);
    clearTimeout(this.retrying);
    this.live.leave();
    this.pipe.listeners.delete(this.listener);
    this.pipe.elements.delete(this);
  }

  // --- cards ---------------------------------------------------------------------------------------------------------

  load(first = false) {
    this.loading ??= this.loadNow(first).finally(() => {
      this.loading = null;
      if (this.inherited.length && this.round && !this.gone) this.passOn();
    });
    return this.loading;
  }

  async loadNow(first) {
    let said;
    await this.pipe.seated;
    await this.pipe.releasing; // what is given back just now must not take new leases with it
    try {
      said = await this.pipe.post("/queue", { annotator: this.me, queue: this.data.queue, n: this.wanted(), latest: first, tab: this.pipe.seat });
    } catch (error) {
      if (this.gone) return;
      if (!this.byId.size) this.word(error.offline ? "The app cannot be reached. Trying again …" : error.message);
      clearTimeout(this.retrying);
      this.retrying = setTimeout(() => this.load(first), 2000);
      return;
    }
    if (this.gone) return;
    this.round = said.round;
    this.elsewhere = said.elsewhere;
    this.setClasses(said.classes);
    this.loaded(said, first);
  }

  cardOf(row) {
    return {
      id: row.id, path: row.path, width: row.width, height: row.height, suggestion: row.suggestion, votes: row.votes,
      action: row.action, classId: row.class_id, version: row.version, flagged: row.flagged,
      answer: row.answer ?? null, save: row.action ? "saved" : "", when: row.saved_ms ?? 0, decided: false, picture: null, ready: false, broken: false, tries: 0, shownAt: 0,
    };
  }

  add(row) {
    const card = this.cardOf(row);
    this.byId.set(card.id, card);
    return card;
  }

  // The images that another tab of this person has are asked for by hand: it may be open and in use.
  async checkAgain() {
    if (this.elsewhere) {
      try {
        await this.pipe.post("/leases", { annotator: this.me, take: true, tab: this.pipe.seat });
      } catch { /* asked for again by the next press */ }
    }
    this.load();
  }

  // What to say where no image is left for this tab, and the word on the button below it.
  whereTheRestIs(otherwise) {
    if (!this.elsewhere) return [otherwise, "Check again"];
    return ["Another tab of yours has the remaining images.", "Take them here"];
  }

  giveBack() {
    const open = this.data.queue === "drawn" ? this.openCards().slice(0, 500) : [];
    const ids = open.map((card) => card.id);
    const heir = [...this.pipe.elements].find((one) => one !== this && one.me === this.me && one.data.queue === "drawn");
    if (heir) heir.inherit(ids);
    else if (ids.length) this.pipe.release(this.me, ids);
  }

  // The element that takes another's place keeps what it shows itself, and gives the rest back.
  inherit(ids) {
    this.inherited.push(...ids);
    if (this.round && !this.loading) this.passOn();
  }

  passOn() {
    const mine = new Set(this.openCards().map((card) => card.id));
    const rest = this.inherited.filter((id) => !mine.has(id));
    this.inherited = [];
    if (rest.length) this.pipe.release(this.me, rest.slice(0, 500));
  }

  // While somebody works here, the images they have before them stay theirs.
  async renew() {
    if (document.hidden || Date.now() - this.lastKey > IDLE || this.data.queue !== "drawn") return;
    const open = this.openCards().slice(0, 500);
    if (!open.length) return;
    try {
      const { held } = await this.pipe.post("/leases", { annotator: this.me, renew: open.map((card) => card.id), tab: this.pipe.seat });
      const mine = new Set(held);
      const touched = new Set([...this.done, ...this.undone].flatMap((step) => step.cards));
      const lost = open.filter((card) => !mine.has(card.id) && !card.action && !touched.has(card) && !this.isBusyWith(card));
      if (this.gone || !lost.length) return; // what expired while we were away may be with somebody else now
      lost.forEach((card) => this.byId.delete(card.id));
      this.forgot();
      this.load();
    } catch { /* the next round tries again */ }
  }

  // A small picture of the card; one that does not arrive is asked for again the next time it is drawn.
  thumb(card, part) {
    if (!card[part]) {
      const picture = (card[part] = new Image());
      Object.assign(picture, { alt: "", draggable: false, decoding: "async" });
      picture.addEventListener("error", () => { picture.remove(); card[part] = null; });
      picture.src = this.url(card, "thumb");
    }
    return card[part];
  }

  // --- deciding ------------------------------------------------------------------------------------------------------

  // One decision about some cards: events that belong together, and how to take them back.
  decideCards(cards, action, classId = null) {
    const group = cards.length > 1 ? newId() : null;
    const step = { kind: "decide", cards, eventIds: [], before: [], after: null };
    const now = Date.now();
    const events = cards.map((card) => {
      const event = { event_id: newId(), image_id: card.id, action, expected_version: card.version, made_ms: now };
      if (action === "label") event.class_id = classId;
      if (action === "label" && this.round === "settle") event.action = "settle";
      if (this.round === "review") event.source = "review";
      if (group) event.group_id = group;
      if (card.shownAt) event.lead_time_ms = Math.round(Math.min(performance.now() - card.shownAt, 3.6e6) / cards.length);
      step.before.push({ action: card.action, classId: card.classId });
      step.eventIds.push(event.event_id);
      this.settleCard(card, { action: event.action, classId }, event.event_id);
      card.decided = true;
      return event;
    });
    step.after = cards.map((card) => ({ action: card.action, classId: card.classId }));
    this.done.push(step);
    this.undone = [];
    return events;
  }

  flagCards(cards) {
    const group = cards.length > 1 ? newId() : null;
    const on = !cards.every((card) => card.flagged);
    const changing = cards.filter((card) => card.flagged !== on);
    const step = { kind: "flag", cards: changing, eventIds: [], before: [], after: [] };
    const events = changing.map((card) => {
      const event = { event_id: newId(), image_id: card.id, action: on ? "flag" : "unflag", made_ms: Date.now() };
      if (group) event.group_id = group;
      step.before.push({ flagged: card.flagged });
      step.after.push({ flagged: on });
      step.eventIds.push(event.event_id);
      card.flagged = on;
      return event;
    });
    this.done.push(step);
    this.undone = [];
    this.pipe.send(this.me, events);
  }

  settleCard(card, state, version) {
    this.count(card, state);
    Object.assign(card, state, { version, save: "saving", when: Date.now() });
  }

  // Take the last step back, or bring it again; returns the step.
  turnBack(from, to, action, word) {
    const step = from.pop();
    if (!step) {
      this.notice(word);
      return null;
    }
    to.push(step);
    const saved = step.cards.findIndex((card) => card.save === "saved");
    const event = { event_id: newId(), action, target: step.eventIds[Math.max(0, saved)], made_ms: Date.now() };
    const states = (action === "undo" ? step.before : step.after) ?? step.cards.map(() => ({ action: null, classId: null }));
    step.after ??= step.cards.map((card) => ({ action: card.action, classId: card.classId }));
    step.cards.forEach((card, place) => {
      if (step.kind === "decide") {
        this.settleCard(card, states[place], event.event_id);
        card.decided = action === "redo";
      } else Object.assign(card, states[place]);
    });
    step.turn = event.event_id;
    this.pipe.send(this.me, [event]);
    return step;
  }

  // Between two answers about the progress, our own counts go on.
  count(before, after) {
    if (before.classId !== null) this.counts[before.classId] = Math.max(0, (this.counts[before.classId] ?? 0) - 1);
    if (after.classId !== null) this.counts[after.classId] = (this.counts[after.classId] ?? 0) + 1;
    this.changed += (after.action ? 1 : 0) - (before.action ? 1 : 0);
  }

  answered(record, ack, elsewhere) {
    const { event } = record;
    const step = [...this.done, ...this.undone].find((one) => one.turn === event.event_id);
    const cards = event.image_id ? [this.byId.get(event.image_id) ?? elsewhere].filter(Boolean) : (step?.cards ?? []);
    if (ack.status === "saved" || ack.status === "already") {
      const touched = new Map(ack.touched.map((held) => [held.image_id, held]));
      for (const card of cards) {
        if (card.version !== event.event_id) continue;
        card.save = "saved";
        const held = touched.get(card.id);
        if (held && (step?.kind ?? "decide") === "decide") Object.assign(card, { action: held.action, classId: held.class_id });
      }
    } else if (ack.status === "conflict") {
      this.addConflict({ record, ack, card: cards[0] });
    } else {
      for (const card of cards) if (card.version === event.event_id) this.reread(card);
      this.fail(`Not saved${cards.length === 1 ? `, ${this.pathOf(cards[0])}` : ""}: ${ack.reason}`, record);
    }
    this.showBanner();
    this.later();
  }

  async reread(card) {
    card.save = "failed";
    try {
      const { items } = await this.pipe.post("/queue", { annotator: this.me, ids: [card.id], round: this.round });
      if (items.length) Object.assign(card, { action: items[0].action, classId: items[0].class_id, version: items[0].version });
      this.show();
      this.later();
    } catch { /* the next decision on it will be told */ }
  }

  // --- conflicts: nothing is overwritten without a word --------------------------------------------------------------

  addConflict(conflict) {
    const told = this.conflicts.find((one) => one.record === conflict.record);
    if (told) { told.card ??= conflict.card; return; }
    const older = this.conflicts.filter((one) => conflict.card && one.card === conflict.card);
    older.forEach((one) => this.pipe.drop(one.record));
    this.conflicts = [...this.conflicts.filter((one) => !older.includes(one)), conflict];
    if (conflict.card) conflict.card.save = "conflict";
  }

  showBanner() {
    const banner = this.find(".banner");
    banner.hidden = !this.conflicts.length;
    if (banner.hidden) return;
    banner.querySelector("span").textContent = visible(this.conflicts.length === 1 ? this.conflictText(this.conflicts[0]) : `${this.conflicts.length} images were changed in another window. Your changes were not saved.`);
    banner.querySelector(".keep").textContent = this.conflicts.length === 1 ? "Keep that" : "Keep those";
    banner.querySelector(".replace").textContent = this.conflicts.length === 1 ? "Replace with mine" : "Replace all with mine";
  }

  conflictText({ record, ack, card }) {
    const { event } = record;
    const held = ack.current;
    const who = !held?.annotator || held.annotator === this.me ? "by you in another window" : `by ${held.annotator}`;
    const when = held?.saved_ms ? ` at ${clockTime(held.saved_ms)}` : "";
    const what = !held?.action ? " (undone)" : held.class_id === null ? " to 'skipped'" : ` to '${this.nameOf(held.class_id)}'`;
    const mine = event.class_id === undefined ? event.action : `'${this.nameOf(event.class_id)}'`;
    return `${card ? this.pathOf(card) : "An image"} was changed ${who}${when}${what}. Yours, ${mine}, was not saved.`;
  }

  resolve(replace) {
    const waiting = this.conflicts;
    this.conflicts = [];
    for (const { record, ack, card } of waiting) {
      this.pipe.drop(record);
      const old = record.event.event_id;
      if (replace) {
        const event = { ...record.event, event_id: newId(), made_ms: Date.now() };
        if ("expected_version" in event) event.expected_version = ack.version;
        else event.force = true;
        if (card) Object.assign(card, { version: event.event_id, save: "saving" });
        for (const step of [...this.done, ...this.undone]) {
          step.eventIds = step.eventIds.map((id) => (id === old ? event.event_id : id));
          if (step.turn === old) step.turn = event.event_id;
        }
        this.pipe.send(record.annotator, [event]);
      } else if (card) {
        const held = ack.current;
        const state = { action: held?.action ?? null, classId: held?.class_id ?? null };
        this.count(card, state);
        Object.assign(card, state, { version: ack.version, save: held?.action ? "saved" : "" });
        this.done = this.done.filter((step) => !step.eventIds.includes(old));
        this.undone = this.undone.filter((step) => !step.cards.includes(card));
      }
    }
    this.askProgress(true);
    this.showBanner();
    this.show();
    this.later();
  }

  // --- keys and clicks -----------------------------------------------------------------------------------------------

  pressed(event) {
    if (this.gone || !this.root.isConnected || this.root.getClientRects().length === 0) return;
    if (isTyping(event) || isDialogOpen()) return;
    this.lastKey = Date.now();
    if (!this.find(".help").hidden) {
      if (["Escape", "?", "Enter"].includes(event.key)) { isHandled(event); this.showHelp(false); }
      return;
    }
    const back = undoKey(event);
    if (back) {
      isHandled(event);
      if (!event.repeat) this[back]();
      return;
    }
    const inside = event.composedPath()[0];
    const control = inside instanceof Element && inside.closest("button, a, [role='tab'], [role='button'], summary, [role='radio'], input");
    if (this.ownKey(event, Boolean(control))) return;
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    if (control && (event.key === " " || event.key === "Enter")) return; // the focused control's own key
    const chosen = classOfKey(event, this.classes);
    const letter = event.key.toLowerCase();
    const act = chosen ? () => this.label(chosen.class_id) : { " ": () => this.skip(), "?": () => this.showHelp(true), "/": () => this.showSearch(), f: () => this.flag() }[letter] ?? this.plainKeys()[letter];
    const ofStreamlit = letter === "r" || letter === "c"; // it would rerun the page or clear its caches
    if (!act && !ofStreamlit) return;
    isHandled(event);
    if (act && !event.repeat) act();
  }

  clicked(event) {
    const target = event.composedPath()[0];
    if (!(target instanceof Element)) return;
    this.lastKey = Date.now();
    const twice = event.detail > 1; // the second half of a double click labels nothing
    const button = target.closest("button, .overlay");
    if (button?.matches(".row")) { if (!twice) this.pick(button); return; }
    if (button?.matches(".search-button, .add-button")) { this.showSearch(button.matches(".add-button")); return; }
    if (button?.matches(".overlay.search")) { if (target === button) this.hideSearch(); return; }
    if (button?.matches(".class")) { if (!twice) this.label(Number(button.dataset.id)); }
    else if (button?.matches(".skip")) { if (!twice) this.skip(); }
    else if (button?.matches("[data-do]")) this[button.dataset.do]();
    else if (button?.matches(".keep, .replace")) this.resolve(button.matches(".replace"));
    else if (button?.matches(".help-button")) this.showHelp(true);
    else if (button?.matches(".again")) { this.word("Checking …"); this.checkAgain(); }
    else if (button?.matches(".dismiss")) { this.pipe.drop(button.parentElement.record); button.parentElement.remove(); this.find(".failures").hidden = !this.find(".failure"); }
    else if (button?.matches(".close, .overlay.help")) this.showHelp(false);
    else this.ownClick(target, event);
    if (event.detail > 0) this.root.focus({ preventScroll: true }); // the mouse leaves no focus behind, so Space skips
  }

  // --- finding and adding classes ------------------------------------------------------------------------------------

  showSearch(adding = false) {
    this.adding = adding;
    this.find(".search").hidden = false;
    const input = this.find(".search input");
    Object.assign(input, { value: "", placeholder: adding ? "Name of the new class" : "Type a class name" });
    this.find(".problem").textContent = "";
    this.showFound();
    input.focus();
  }

  hideSearch() {
    this.find(".search").hidden = true;
    this.root.focus({ preventScroll: true });
  }

  showFound() {
    const plain = (text) => text.normalize("NFKD").replace(/\p{M}/gu, "").toLowerCase();
    const typed = this.find(".search input").value.trim();
    const wanted = plain(typed);
    const rank = (name) => {
      const at = name.indexOf(wanted);
      return at < 0 ? 3 : at === 0 ? 0 : /[\s_/-]/.test(name[at - 1]) ? 1 : 2;
    };
    const found = this.classes.map((one, place) => [rank(plain(one.name)), place, one]).filter(([how]) => how < 3);
    found.sort((a, b) => a[0] - b[0] || a[1] - b[1]);
    const rows = found.slice(0, 40).map(([, , one]) => {
      const row = make("button", "row");
      row.dataset.id = one.class_id;
      row.append(make("bdi", "", one.name), make("kbd", "", one.key));
      return row;
    });
    if (typed && this.data.may_add && !this.pipe.isPractice && !this.classes.some((one) => one.name === typed.normalize("NFC"))) {
      const row = make("button", "row new");
      row.append(make("span", "", "Add the class "), make("bdi", "", typed));
      rows.push(row);
    }
    this.find(".found").replaceChildren(...rows);
    this.mark(0);
  }

  mark(place) {
    const rows = [...this.find(".found").children];
    rows.forEach((row, number) => row.classList.toggle("on", number === place));
    rows[place]?.scrollIntoView({ block: "nearest" });
  }

  searchKey(event) {
    event.stopPropagation();
    const rows = [...this.find(".found").children];
    const place = rows.findIndex((row) => row.classList.contains("on"));
    if (event.key === "Escape") this.hideSearch();
    else if (event.key === "ArrowDown") { event.preventDefault(); this.mark(Math.min(rows.length - 1, place + 1)); }
    else if (event.key === "ArrowUp") { event.preventDefault(); this.mark(Math.max(0, place - 1)); }
    else if (event.key === "Enter" && !event.repeat && !event.isComposing) { event.preventDefault(); if (rows[place]) this.pick(rows[place]); }
  }

  async pick(row) {
    if (!row.matches(".new")) {
      this.hideSearch();
      this.label(Number(row.dataset.id));
      return;
    }
    try {
      const said = await this.pipe.post("/classes", { annotator: this.me, name: this.find(".search input").value.trim() });
      this.setClasses(said.classes);
      this.hideSearch();
      if (!this.adding) this.label(said.class.class_id);
      if (said.warnings.length) this.notice(said.warnings[0]);
    } catch (error) {
      this.find(".problem").textContent = visible(error.message);
    }
  }

  setClasses(classes) {
    const text = JSON.stringify(classes);
    if (text === this.classesText) return;
    this.classesText = text;
    this.classes = classes;
    const shown = classes.length > MANY_CLASSES ? classes.filter((one, place) => one.key || place < 20) : classes;
    this.buttons = new Map();
    const buttons = shown.map((one) => {
      const place = classes.indexOf(one);
      const button = make("button", "class");
      button.dataset.id = one.class_id;
      button.title = visible(one.name);
      const key = one.key || (place >= 10 && place < 20 ? `⇧${(place + 1) % 10}` : "");
      button.append(make("kbd", key ? "" : "none", key));
      if (one.colour !== NEUTRAL) {
        const dot = make("span", "dot");
        dot.style.background = one.colour;
        button.append(dot);
      }
      button.append(make("bdi", "label", one.name), make("span", "n", ""));
      this.buttons.set(one.class_id, button);
      return button;
    });
    this.find(".classes").replaceChildren(...buttons);
    this.find(".classes").classList.toggle("many", shown.length > 14);
    if (shown.length < classes.length) this.find(".classes").append(make("div", "rest", `${classes.length - shown.length} more: press / and type`));
    this.showCounts();
  }

  // --- how far, how fast, how safe -----------------------------------------------------------------------------------

  showStatus() {
    const { kind, text } = this.pipe.status();
    const status = this.find(".status");
    status.textContent = text;
    status.dataset.kind = kind;
    status.dataset.pending = this.pipe.pending.length;
  }

  showCounts() {
    for (const [id, button] of this.buttons ?? []) {
      const n = this.counts[id] ?? 0;
      const cell = button.lastChild;
      cell.textContent = n.toLocaleString();
      cell.classList.toggle("few", n < 4);
      cell.title = n < 4 ? "Fewer than 4 labels" : "";
    }
    const { queue } = this.data, elsewhere = queue !== "drawn";
    if (!this.progress && !elsewhere) return;
    const { n_drawn: all, labeled, skipped, disputed, per_minute: pace } = this.progress ?? {};
    this.find(".bar").style.visibility = elsewhere ? "hidden" : "";
    if (elsewhere) { // the counts of the drawing say nothing about another queue; what was done here does
      const n = this.done.filter((step) => step.kind === "decide").reduce((sum, step) => sum + step.cards.length, 0);
      this.find(".count").textContent = `${n.toLocaleString()} ${/^(doubt|coreset)/.test(queue) ? "reviewed" : queue === "practice" ? "tried" : "decided"}`;
      this.find(".pace").textContent = n && pace ? `${Math.round(pace)} per minute` : "";
      return;
    }
    const decided = Math.max(0, Math.min(all, labeled + skipped + disputed + this.changed));
    const left = all - decided;
    this.find(".count").textContent = `${decided.toLocaleString()} of ${all.toLocaleString()}`;
    this.find(".bar div").style.width = `${all ? (100 * decided) / all : 0}%`;
    this.find(".pace").textContent = pace && left ? `${Math.round(pace)} per minute · ${span(left / pace)} left` : `${left.toLocaleString()} left`;
  }

  async askProgress(now = false) {
    this.ticks += 1;
    const due = now || !this.progress || this.changed || this.ticks % 6 === 0; // others label too
    if (!due || document.hidden || this.pipe.pending.length) return; // an answer now would not know what still waits
    const changed = this.changed;
    try {
      const said = await this.pipe.ask(`/progress?annotator=${encodeURIComponent(this.me)}`);
      if (this.gone || this.changed !== changed || this.pipe.pending.length) return;
      this.progress = said;
      this.changed = 0;
      this.counts = { ...said.per_class };
      this.showCounts();
      this.progressed?.();
    } catch { /* the status line speaks when labels wait; tried again soon */ }
  }

  // The rest is drawn after the picture is on the screen, once however often it is asked for.
  later() {
    if (this.drawing) return;
    this.drawing = true;
    requestAnimationFrame(() => setTimeout(() => {
      this.drawing = false;
      if (!this.gone) this.drawRest();
    }, 0));
  }

  word(text, again = "") {
    const word = this.find(".word");
    if (word.dataset.text === text + again) return;
    word.dataset.text = text + again;
    word.replaceChildren();
    if (text) word.append(make("div", "", text));
    if (again) word.append(make("button", "again", again));
  }

  notice(text) {
    const notice = this.find(".notice");
    notice.textContent = visible(text);
    clearTimeout(this.noticing);
    this.noticing = setTimeout(() => { notice.textContent = ""; }, 2500);
  }

  // A refused event stays with the pipe until a person has dismissed it here.
  fail(text, record) {
    if ([...this.find(".failures").children].some((row) => row.record === record)) return;
    const row = make("div", "failure");
    row.record = record;
    row.append(make("span", "", text), make("button", "dismiss", "Dismiss"));
    this.find(".failures").append(row);
    this.find(".failures").hidden = false;
  }

  showHelp(on) {
    this.find(".help").hidden = !on;
    if (!on) this.root.focus({ preventScroll: true });
  }
}

function span(minutes) {
  if (minutes < 1.5) return `${Math.max(1, Math.round(60 * minutes))} s`;
  if (minutes < 90) return `${Math.round(minutes)} min`;
  return `${Math.floor(minutes / 60)} h ${Math.round(minutes % 60)} min`;
}
