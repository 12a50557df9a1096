// The labeling deck: one image, one key, the next image. No answer of the server stands between two images.
const AHEAD = 14; // images fetched and decoded before they are needed
const LOW = 16; // ask for more when fewer than this wait
const MORE = 30;
const BEHIND = 24; // decoded images kept for going back
const SMALL_PICTURE = 160;
const LARGE_PIXELS = 6e6;
const LATEST = 10;
const MANY_CLASSES = 60;
const RENEW_EVERY = 150000;
const IDLE = 15 * 60000;
const NEUTRAL = "#8a8f98";
const KEYS = [
  ["1 … 9, 0, letters", "label with the class shown beside the key, and go on"],
  ["Shift + digit", "classes 11 to 20"],
  ["/", "search a class by name, or add one"],
  ["Enter", "accept the suggestion, where there is one"],
  ["Space", "skip"],
  ["Backspace, Delete, Ctrl+Z", "undo"],
  ["Ctrl+Shift+Z, Ctrl+Y", "redo"],
  ["← →", "back and forth"],
  ["F", "flag"],
  ["Z, or click", "zoom to pixels"],
  ["?", "these keys"],
];

export default function (component) {
  const { data, parentElement, setTriggerValue } = component;
  return mounted(parentElement.querySelector(".deck"), (root, first) => new Deck(root, first), data, setTriggerValue);
}

class Deck {
  constructor(root, data) {
    this.root = root;
    this.data = data;
    this.pipe = labelPipe(data);
    this.find = (what) => root.querySelector(what);
    this.line = []; // every card of this sitting, in order
    this.byId = new Map();
    this.at = 0;
    this.done = []; // what undo can take back, oldest first
    this.undone = [];
    this.conflicts = []; // {record, ack, card}
    this.classes = data.classes;
    this.counts = {};
    this.progress = null;
    this.changed = 0; // cards decided or freed since the last progress
    this.loading = null;
    this.exhausted = false;
    this.finished = false;
    this.zoom = false;
    this.lastKey = Date.now();
    this.listener = { changed: () => this.showStatus(), answered: (record, ack) => this.answered(record, ack) };
    this.pipe.listeners.add(this.listener);
    this.alive = new AbortController();
    const signal = this.alive.signal;
    window.addEventListener("keydown", (event) => this.pressed(event), { capture: true, signal });
    window.addEventListener("online", () => this.fetchAhead(), { signal });
    root.addEventListener("click", (event) => this.clicked(event), { signal });
    this.find(".search input").addEventListener("input", () => this.showFound(), { signal });
    this.find(".search input").addEventListener("keydown", (event) => this.searchKey(event), { signal });
    this.resizing = new ResizeObserver(() => this.fit());
    this.resizing.observe(this.find(".stage"));
    this.renewing = setInterval(() => this.renew(), RENEW_EVERY);
    this.watching = setInterval(() => this.askProgress(), 5000);
    this.fillHelp();
    this.word("Getting the images …");
    this.start();
    const active = document.activeElement;
    if (!active || active === document.body || !active.matches("input, textarea, select")) root.focus({ preventScroll: true });
  }

  async start() {
    await this.pipe.adopt();
    this.showStatus();
    if (this.pipe.pending.length) {
      this.word("Sending the labels this browser kept …");
      await this.pipe.drained();
    }
    await this.load(true);
    this.askProgress(true);
  }

  update(data) {
    this.data = data;
    this.setClasses(data.classes);
    this.showStatus();
  }

  leave() {
    this.alive.abort();
    this.resizing.disconnect();
    clearInterval(this.renewing);
    clearInterval(this.watching);
    clearTimeout(this.retrying);
    this.pipe.listeners.delete(this.listener);
    this.find(".slot").replaceChildren();
  }

  get gone() { return this.alive.signal.aborted; }
  get card() { return this.line[this.at]; }
  get me() { return this.data.annotator; }
  classOf(id) { return this.classes.find((one) => one.class_id === id); }
  nameOf(id) { return this.classOf(id)?.name ?? `class ${id}`; }
  url(card, size) { return `${this.data.pictures}/${card.id}/${size}`; }

  // --- the queue -----------------------------------------------------------------------------------------------------

  waiting() { return this.line.reduce((sum, card, place) => sum + (place >= this.at && !card.action), 0); }

  load(first = false) {
    this.loading ??= this.loadNow(first).finally(() => { this.loading = null; });
    return this.loading;
  }

  async loadNow(first) {
    const open = this.line.filter((card) => !card.action).length;
    const n = Math.min(500, this.data.queue === "drawn" ? open + this.pipe.pending.length + MORE : 500);
    let said;
    try {
      said = await this.pipe.post("/queue", { annotator: this.me, queue: this.data.queue, n, latest: first });
    } catch (error) {
      if (this.gone) return;
      if (!this.line.length) this.word(error.offline ? "The app cannot be reached. Trying again …" : error.message);
      clearTimeout(this.retrying);
      this.retrying = setTimeout(() => this.load(first), 2000);
      return;
    }
    if (this.gone) return;
    this.round = said.round;
    this.setClasses(said.classes);
    if (first) {
      const latest = said.latest.filter((row) => row.action).reverse();
      latest.forEach((row) => this.add(row));
      this.done = latest.map((row) => ({ kind: "decide", card: this.byId.get(row.id), eventId: row.event_id, before: null }));
      this.at = this.line.length;
    }
    const before = this.line.length;
    said.items.forEach((row) => { if (!this.byId.has(row.id)) this.add(row); });
    this.exhausted = this.line.length === before;
    if (first || !this.card || this.find(".stage").dataset.image === undefined) this.go(this.nextOpen(this.at - 1));
    this.fetchAhead();
    this.later();
  }

  add(row) {
    const card = {
      id: row.id, path: row.path, width: row.width, height: row.height, suggestion: row.suggestion, votes: row.votes,
      action: row.action, classId: row.class_id, version: row.version, flagged: row.flagged,
      save: row.action ? "saved" : "", when: row.saved_ms ?? 0, picture: null, ready: false, broken: false, tries: 0, shownAt: 0,
    };
    this.line.push(card);
    this.byId.set(card.id, card);
    return card;
  }

  nextOpen(from) {
    for (let place = from + 1; place < this.line.length; place++) if (!this.line[place].action) return place;
    return this.line.length;
  }

  fetchAhead() {
    let room = AHEAD;
    for (let place = this.at; place < this.line.length && room > 0; place++) {
      this.fetch(this.line[place]);
      room -= this.line[place].width * this.line[place].height > LARGE_PIXELS ? 4 : 1;
    }
    for (let place = Math.max(0, this.at - 3); place < this.at; place++) this.fetch(this.line[place]);
    for (let place = 0; place < this.at - BEHIND; place++) {
      const card = this.line[place];
      if (card.picture) { card.picture = null; card.ready = false; }
    }
  }

  fetch(card) {
    if (card.picture) return;
    const picture = (card.picture = new Image());
    picture.alt = "";
    picture.draggable = false;
    const arrived = () => {
      if (card.picture !== picture) return;
      card.ready = true;
      card.broken = false;
      if (card === this.card) this.show();
    };
    const failed = () => {
      if (card.picture !== picture) return;
      if (picture.dataset.size === "original") return load("thumb"); // an original the browser cannot draw
      card.picture = null;
      card.broken = true;
      card.tries += 1;
      if (card === this.card) this.show();
      setTimeout(() => { if (!this.gone && Math.abs(this.line.indexOf(card) - this.at) <= AHEAD) this.fetch(card); }, Math.min(30000, 1000 * 2 ** card.tries));
    };
    const load = (size) => {
      picture.dataset.size = size;
      picture.src = this.url(card, size);
      picture.decode().then(arrived, failed);
    };
    load("original");
  }

  async renew() {
    if (document.hidden || Date.now() - this.lastKey > IDLE || this.data.queue !== "drawn") return;
    const open = this.line.filter((card) => !card.action);
    if (!open.length) return;
    try {
      const { held } = await this.pipe.post("/leases", { annotator: this.me, renew: open.slice(0, 500).map((card) => card.id) });
      const mine = new Set(held);
      const lost = open.filter((card) => !mine.has(card.id) && !card.action && card !== this.card && !this.done.some((one) => one.card === card));
      if (!lost.length) return; // expired while we were away: others may have them now
      const here = this.card;
      lost.forEach((card) => this.byId.delete(card.id));
      this.line = this.line.filter((card) => this.byId.has(card.id));
      this.at = here ? this.line.indexOf(here) : this.line.length;
      this.load();
    } catch { /* the next round tries again */ }
  }

  // --- deciding ------------------------------------------------------------------------------------------------------

  decide(action, classId = null) {
    const card = this.card;
    if (!card) return;
    if (action === "label" && !card.ready) return this.notice(card.broken ? "This picture cannot be shown. Skip or flag it." : "Wait for the picture.");
    const event = { event_id: newId(), image_id: card.id, action, expected_version: card.version, made_ms: Date.now() };
    if (action === "label") event.class_id = classId;
    if (action === "label" && this.round === "settle") event.action = "settle";
    if (this.round === "review") event.source = "review";
    if (card.shownAt) event.lead_time_ms = Math.round(Math.min(performance.now() - card.shownAt, 3.6e6));
    const before = { action: card.action, classId: card.classId };
    Object.assign(card, { action: event.action, classId, version: event.event_id, save: "saving", when: Date.now() });
    this.remember({ kind: "decide", card, eventId: event.event_id, before, after: { action: event.action, classId } });
    this.count(before, card);
    this.go(this.nextOpen(this.at));
    this.pipe.send(this.me, [event]);
  }

  flag() {
    const card = this.card;
    if (!card) return;
    const event = { event_id: newId(), image_id: card.id, action: card.flagged ? "unflag" : "flag", made_ms: Date.now() };
    card.flagged = !card.flagged;
    this.remember({ kind: "flag", card, eventId: event.event_id, before: { flagged: !card.flagged }, after: { flagged: card.flagged } });
    this.show();
    this.pipe.send(this.me, [event]);
  }

  remember(step) {
    this.done.push(step);
    this.undone = [];
  }

  undo() {
    const step = this.done.pop();
    if (!step) return this.notice("Nothing to undo.");
    this.undone.push(step);
    this.turn(step, "undo", step.before ?? { action: null, classId: null });
    this.go(this.line.indexOf(step.card));
  }

  redo() {
    const step = this.undone.pop();
    if (!step) return this.notice("Nothing to redo.");
    this.done.push(step);
    this.turn(step, "redo", step.after ?? { action: step.was.action, classId: step.was.classId });
    const place = this.line.indexOf(step.card);
    this.go(step.kind === "flag" ? place : this.nextOpen(place));
  }

  turn(step, action, state) {
    const event = { event_id: newId(), action, target: step.eventId, made_ms: Date.now() };
    step.was = { action: step.card.action, classId: step.card.classId };
    Object.assign(step.card, state);
    if (step.kind === "decide") {
      Object.assign(step.card, { version: event.event_id, save: "saving", when: Date.now() });
      this.count(step.was, step.card);
    }
    step.turn = event.event_id;
    this.pipe.send(this.me, [event]);
  }

  // Between two answers about the progress, our own counts go on.
  count(before, after) {
    if (before.classId !== null) this.counts[before.classId] = Math.max(0, (this.counts[before.classId] ?? 0) - 1);
    if (after.classId !== null) this.counts[after.classId] = (this.counts[after.classId] ?? 0) + 1;
    this.changed += (after.action ? 1 : 0) - (before.action ? 1 : 0);
  }

  answered(record, ack) {
    const { event } = record;
    const step = [...this.done, ...this.undone].find((one) => one.eventId === event.event_id || one.turn === event.event_id);
    const card = event.image_id ? this.byId.get(event.image_id) : step?.card;
    if (ack.status === "saved" || ack.status === "already") {
      if (card && card.version === event.event_id) {
        card.save = "saved";
        const held = ack.touched.find((one) => one.image_id === card.id);
        if (held && step?.kind === "decide") { card.action = held.action; card.classId = held.class_id; }
      }
    } else if (ack.status === "conflict") {
      this.conflicts = this.conflicts.filter((one) => {
        const same = card && one.card === card;
        if (same) this.pipe.drop(one.record);
        return !same;
      });
      this.conflicts.push({ record, ack, card });
      if (card) card.save = "conflict";
    } else {
      if (card && card.version === event.event_id) {
        card.save = "failed";
        this.reread(card);
      }
      this.fail(`Not saved: ${ack.reason}`);
    }
    this.showBanner();
    this.later();
  }

  async reread(card) {
    try {
      const { items } = await this.pipe.post("/queue", { annotator: this.me, ids: [card.id], round: this.round });
      if (items.length) Object.assign(card, { action: items[0].action, classId: items[0].class_id, version: items[0].version });
      if (card === this.card) this.show();
      this.later();
    } catch { /* the next decision on it will be told */ }
  }

  showBanner() {
    const banner = this.find(".banner");
    const first = this.conflicts[0];
    banner.hidden = !first;
    if (!first) return;
    const { record, ack, card } = first;
    const held = ack.current;
    const who = held?.annotator === this.me || !held?.annotator ? "by you in another window" : `by ${held.annotator}`;
    const when = held?.saved_ms ? ` at ${clockTime(held.saved_ms)}` : "";
    const what = held?.action ? ` to '${held.class_id === null ? "skipped" : this.nameOf(held.class_id)}'` : " (taken back)";
    const mine = record.event.action === "undo" || record.event.action === "redo" ? record.event.action : record.event.class_id === undefined ? "skip" : `'${this.nameOf(record.event.class_id)}'`;
    banner.querySelector("span").textContent = visible(`${card?.path ?? "An image"} was changed ${who}${when}${what}. Yours, ${mine}, is not saved.`);
    banner.querySelector(".keep").textContent = "Keep that";
    banner.querySelector(".replace").textContent = `Replace with mine`;
  }

  resolve(replace) {
    const { record, ack, card } = this.conflicts.shift();
    this.pipe.drop(record);
    const held = ack.current;
    if (replace) {
      const event = { ...record.event, event_id: newId(), made_ms: Date.now() };
      if ("expected_version" in event) event.expected_version = ack.version;
      else event.force = true;
      if (card) Object.assign(card, { version: event.event_id, save: "saving" });
      for (const step of [...this.done, ...this.undone]) {
        if (step.eventId === record.event.event_id) step.eventId = event.event_id;
        if (step.turn === record.event.event_id) step.turn = event.event_id;
      }
      this.pipe.send(record.annotator, [event]);
    } else if (card) {
      Object.assign(card, { action: held?.action ?? null, classId: held?.class_id ?? null, version: ack.version, save: held?.action ? "saved" : "" });
      this.done = this.done.filter((step) => step.eventId !== record.event.event_id);
      this.undone = this.undone.filter((step) => step.card !== card);
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
      if (event.key === "Escape" || event.key === "?" || event.key === "Enter") { isHandled(event); this.showHelp(false); }
      return;
    }
    const back = undoKey(event);
    if (back) {
      isHandled(event);
      if (!event.repeat) this[back]();
      return;
    }
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const inside = event.composedPath()[0];
    const onControl = inside instanceof Element && inside.closest("button, a, [role='tab'], [role='button'], summary, [role='radio'], input") !== null;
    if (onControl && (event.key === " " || event.key === "Enter")) return; // the focused control's own key
    const chosen = classOfKey(event, this.classes);
    if (chosen) {
      isHandled(event);
      if (!event.repeat) this.decide("label", chosen.class_id);
      return;
    }
    const act = {
      " ": () => this.decide("skip"), "?": () => this.showHelp(true), "/": () => this.showSearch(),
      f: () => this.flag(), F: () => this.flag(), z: () => this.setZoom(!this.zoom), Z: () => this.setZoom(!this.zoom),
      Enter: () => this.accept(), Escape: () => this.setZoom(false),
      r: () => {}, c: () => {}, R: () => {}, C: () => {}, // Streamlit would rerun the page or clear its caches
    }[event.key];
    const move = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
    if (act) {
      isHandled(event);
      if (!event.repeat) act();
    } else if (move && !(onControl && !this.root.contains(inside))) {
      isHandled(event);
      this.step(move);
    }
  }

  accept() {
    if (this.card?.suggestion) this.decide("label", this.card.suggestion.class_id);
  }

  step(by) {
    const place = Math.max(0, Math.min(this.line.length, this.at + by));
    if (place !== this.at) this.go(place);
  }

  clicked(event) {
    const target = event.composedPath()[0];
    if (!(target instanceof Element)) return;
    this.lastKey = Date.now();
    const button = target.closest("button, .slot, .overlay");
    if (!button) return;
    const twice = event.detail > 1; // the second half of a double click labels nothing
    if (button.matches(".class")) { if (!twice) this.decide("label", Number(button.dataset.id)); }
    else if (button.matches("[data-do]")) this.doTool(button.dataset.do, twice);
    else if (button.matches("[data-card]")) this.go(this.line.indexOf(this.byId.get(button.dataset.card)));
    else if (button.matches(".slot")) this.setZoom(!this.zoom, event);
    else if (button.matches(".keep, .replace")) this.resolve(button.matches(".replace"));
    else if (button.matches(".help-button")) this.showHelp(true);
    else if (button.matches(".search-button, .add-button")) return this.showSearch();
    else if (button.matches(".row")) { if (!twice) this.pick(button); return; }
    else if (button.matches(".again")) { this.word("Looking …"); this.load(); }
    else if (button.matches(".dismiss")) button.parentElement.remove();
    else if (button.matches(".close, .overlay.help")) this.showHelp(false);
    else if (button.matches(".overlay.search")) { if (target === button) this.hideSearch(); return; }
    if (event.detail > 0) this.root.focus({ preventScroll: true }); // a mouse leaves no focus on the button, so Space skips
  }

  doTool(name, twice) {
    if (name === "back") this.step(-1);
    else if (name === "forth") this.step(1);
    else if (name === "zoom") this.setZoom(!this.zoom);
    else if (name === "skip") { if (!twice) this.decide("skip"); }
    else this[name]();
  }

  // --- finding and adding classes ------------------------------------------------------------------------------------

  showSearch() {
    this.find(".search").hidden = false;
    const input = this.find(".search input");
    input.value = "";
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
    const rank = (name) => (name.startsWith(wanted) ? 0 : new RegExp(`[\\s_/-]${wanted.replace(/[.*+?^${}()|[\]\\]/g, "\\$&")}`).test(name) ? 1 : name.includes(wanted) ? 2 : 3);
    const found = this.classes.map((one, place) => [rank(plain(one.name)), place, one]).filter(([how]) => how < 3);
    found.sort((a, b) => a[0] - b[0] || a[1] - b[1]);
    const rows = found.slice(0, 40).map(([, , one]) => {
      const row = make("button", "row");
      row.dataset.id = one.class_id;
      row.append(make("bdi", "", one.name), make("kbd", "", one.key));
      return row;
    });
    if (typed && !this.classes.some((one) => one.name === typed.normalize("NFC"))) {
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
      this.decide("label", Number(row.dataset.id));
      return;
    }
    const card = this.card;
    try {
      const said = await this.pipe.post("/classes", { annotator: this.me, name: this.find(".search input").value.trim() });
      this.setClasses(said.classes);
      this.hideSearch();
      if (said.warnings.length) this.notice(said.warnings[0]);
      if (card && this.card === card) this.decide("label", said.class.class_id);
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
    this.find(".search-button").hidden = classes.length < 2;
    if (shown.length < classes.length) this.find(".classes").append(make("div", "rest", `${classes.length - shown.length} more: press / and type`));
    this.showCounts();
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
    const stage = this.find(".stage");
    if (!card) {
      this.find(".slot").replaceChildren();
      stage.dataset.image = "";
      this.showEnd();
      this.showTags();
      return;
    }
    this.fetch(card);
    if (card.ready) {
      if (this.find(".slot").firstChild !== card.picture) this.find(".slot").replaceChildren(card.picture);
      this.word("");
      this.fit();
    } else {
      this.find(".slot").replaceChildren();
      this.word(card.broken ? "This picture cannot be shown: its file is missing or was changed since the import." : "…");
    }
    stage.dataset.image = card.ready ? card.id : "";
    if (card.ready && !card.shownAt) requestAnimationFrame(() => { card.shownAt ||= performance.now(); });
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
    if (this.marked !== card?.classId) {
      this.buttons?.get(this.marked)?.removeAttribute("aria-pressed");
      this.buttons?.get(card?.classId)?.setAttribute("aria-pressed", "true");
      this.marked = card?.classId;
    }
  }

  later() {
    if (this.drawing) return;
    this.drawing = true;
    requestAnimationFrame(() => setTimeout(() => {
      this.drawing = false;
      if (this.gone) return;
      this.fetchAhead();
      if (!this.exhausted && this.data.queue === "drawn" && this.round && this.waiting() < LOW) this.load();
      this.showStrip();
      this.showLatest();
      this.showCounts();
      this.find(".name").textContent = visible(this.card?.path ?? "");
      this.find(".name").title = visible(this.card?.path ?? "");
    }, 0));
  }

  // Small pictures are enlarged by a whole factor, so that every pixel is a square of the same size.
  fit() {
    const picture = this.find(".slot").firstChild;
    if (!picture?.naturalWidth) return;
    const { clientWidth: width, clientHeight: height } = this.find(".stage");
    const [w, h] = [picture.naturalWidth, picture.naturalHeight];
    let scale = Math.min((width - 16) / w, (height - 16) / h);
    const small = Math.max(w, h) <= SMALL_PICTURE;
    if (this.zoom) scale = scale < 1 ? Math.max(1 / devicePixelRatio, scale) : Math.ceil(3 * scale);
    else if (small && scale > 1) scale = Math.floor(scale);
    picture.style.width = `${w * scale}px`;
    picture.style.height = `${h * scale}px`;
    picture.classList.toggle("pixels", small || this.zoom);
    this.find(".slot").classList.toggle("zoomed", this.zoom);
  }

  setZoom(on, event) {
    if (this.zoom === on) return;
    const slot = this.find(".slot");
    const picture = slot.firstChild;
    const box = picture?.getBoundingClientRect?.();
    const [x, y] = event && box ? [(event.clientX - box.left) / box.width, (event.clientY - box.top) / box.height] : [0.5, 0.5];
    this.zoom = on;
    this.fit();
    slot.scrollLeft = x * slot.scrollWidth - slot.clientWidth / 2;
    slot.scrollTop = y * slot.scrollHeight - slot.clientHeight / 2;
  }

  thumb(card) {
    if (!card.thumb) {
      card.thumb = new Image();
      card.thumb.alt = "";
      card.thumb.draggable = false;
      card.thumb.decoding = "async";
      card.thumb.src = this.url(card, "thumb");
    }
    return card.thumb;
  }

  showStrip() {
    const from = Math.max(0, this.at - 4);
    const cells = this.line.slice(from, this.at + 6).map((card, number) => {
      const cell = (card.cell ??= make("button", "cell"));
      if (!cell.firstChild) {
        cell.dataset.card = card.id;
        cell.tabIndex = -1;
        const picture = this.thumb(card).cloneNode();
        cell.append(picture);
      }
      cell.className = `cell${from + number === this.at ? " here" : ""}${card.action ? " decided" : ""}`;
      cell.style.setProperty("--class", this.classOf(card.classId)?.colour ?? "transparent");
      return cell;
    });
    this.find(".strip").replaceChildren(...cells);
  }

  showLatest() {
    const decided = this.line.filter((card) => card.action).sort((a, b) => b.when - a.when).slice(0, LATEST);
    const rows = decided.map((card) => {
      const row = (card.row ??= make("button", "decision"));
      if (!row.firstChild) {
        row.dataset.card = card.id;
        row.tabIndex = -1;
        row.append(this.thumb(card), make("bdi", "label", ""), make("span", "save", ""));
      }
      const [, label, save] = row.children;
      label.textContent = card.classId === null ? "skipped" : visible(this.nameOf(card.classId));
      label.classList.toggle("skipped", card.classId === null);
      save.textContent = { saving: "saving", saved: "✓", failed: "failed", conflict: "changed elsewhere" }[card.save] ?? "";
      save.dataset.save = card.save;
      row.title = visible(card.path);
      return row;
    });
    this.find(".latest").replaceChildren(...rows);
  }

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
      const cell = button.querySelector(".n");
      cell.textContent = n.toLocaleString();
      cell.classList.toggle("few", n < 4);
      cell.title = n < 4 ? "Fewer than 4 labels" : "";
    }
    if (!this.progress) return;
    const { n_drawn: all, labeled, skipped, disputed, per_minute: pace } = this.progress;
    const decided = Math.max(0, Math.min(all, labeled + skipped + disputed + this.changed));
    this.find(".count").textContent = `${decided.toLocaleString()} of ${all.toLocaleString()}`;
    this.find(".bar div").style.width = `${all ? (100 * decided) / all : 0}%`;
    const left = all - decided;
    const minutes = pace ? left / pace : null;
    const time = minutes === null || !left ? "" : minutes < 1.5 ? ` · ${Math.max(1, Math.round(60 * minutes))} s left` : minutes < 90 ? ` · ${Math.round(minutes)} min left` : ` · ${Math.floor(minutes / 60)} h ${Math.round(minutes % 60)} min left`;
    this.find(".pace").textContent = pace ? `${Math.round(pace)} per minute${time}` : `${left.toLocaleString()} left`;
  }

  async askProgress(now = false) {
    this.ticks = (this.ticks ?? 0) + 1;
    const due = now || !this.progress || this.changed || this.ticks % 6 === 0; // others label too
    if (!due || document.hidden || this.pipe.pending.length) return; // an answer now would not know what still waits
    const changed = this.changed;
    try {
      const said = await this.pipe.ask(`/progress?annotator=${encodeURIComponent(this.me)}`);
      if (this.gone || this.pipe.pending.length) return;
      this.progress = said;
      this.changed -= changed;
      this.counts = { ...said.per_class };
      this.showCounts();
      if (!this.card) this.showEnd();
    } catch { /* shown by the status line when labels wait; tried again soon */ }
  }

  async showEnd() {
    if (!this.round) return;
    if (this.data.queue === "drawn" && !this.exhausted) {
      this.word("Getting more images …");
      this.load();
      return;
    }
    const { queue } = this.data;
    let text = { skipped: "No skipped images.", flagged: "No flagged images.", disputed: "No disagreements to settle." }[queue];
    if (this.line.length && text) text = "That was the last one.";
    if (queue === "drawn") {
      text = this.progress?.complete ? "The subset is complete." : this.progress?.left ? "The rest is with other annotators just now." : "No more images for you.";
    }
    this.word(text, queue === "drawn" && !this.progress?.complete ? "Look again" : "");
    if (queue === "drawn" && !this.finished && this.line.length) {
      this.finished = true;
      await this.pipe.drained();
      await this.askProgress(true);
      if (!this.gone && this.progress?.complete) this.trigger?.("finished", Date.now());
    }
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

  fail(text) {
    const row = make("div", "failure");
    row.append(make("span", "", text), make("button", "dismiss", "Dismiss"));
    this.find(".failures").append(row);
    this.find(".failures").hidden = false;
  }

  fillHelp() {
    this.find(".help dl").replaceChildren(...KEYS.flatMap(([keys, what]) => [make("dt", "", keys), make("dd", "", what)]));
  }

  showHelp(on) {
    this.find(".help").hidden = !on;
    if (!on) this.root.focus({ preventScroll: true });
  }
}
