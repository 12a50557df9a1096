// The way of label events from the browser into the store, shared by the deck and the grid.
// An event is written to the browser's own storage first and leaves it only when the server has answered for it.
// The server knows event ids, so sending one again changes nothing; the order of events is kept.
const PIPE_BATCH = 100;
const PIPE_PATIENCE = 20000;
const PIPE_FIRST_PAUSE = 500;
const PIPE_LONGEST_PAUSE = 15000;
const PIPE_ADOPT_EVERY = 30000;
const PIPE_GIVE_BACK = 5000;

function newId() {
  if (crypto.randomUUID) return crypto.randomUUID();
  const bytes = crypto.getRandomValues(new Uint8Array(16)); // plain http on a network has no randomUUID
  return [...bytes].map((byte) => byte.toString(16).padStart(2, "0")).join("");
}

class LabelPipe {
  constructor(store) {
    this.prefix = `semiprune:labels:${store}:`;
    this.tab = newId();
    this.pending = []; // records {key, annotator, event, tab}, oldest first
    this.unsettled = new Map(); // event id -> {record, ack}: conflicts and refusals, until a person has seen them
    this.releasing = null; // images on their way back to the server
    this.listeners = new Set();
    this.elements = new Set(); // decks and grids on the page; for a moment two, while one takes the other's place
    this.counter = 0;
    this.trouble = ""; // why the last attempt failed
    this.kept = true; // whether the browser's storage takes our events
    this.pause = PIPE_FIRST_PAUSE;
    this.flying = false;
    this.timer = null;
    navigator.locks?.request(this.prefix + this.tab, () => new Promise(() => {}));
    this.seated = this.sit();
    addEventListener("online", () => this.hurry());
    addEventListener("pagehide", () => this.lastWords());
    document.addEventListener("visibilitychange", () => { if (!document.hidden) this.hurry(); });
    setInterval(() => this.adopt(), PIPE_ADOPT_EVERY);
  }

  // The name under which this tab has images before it: kept over a reload, and never that of another tab of the browser.
  async sit() {
    const key = this.prefix + "seat";
    const free = (seat) => new Promise((resolve) => {
      if (!navigator.locks) { resolve(true); return; }
      navigator.locks.request(`${key}:${seat}`, { ifAvailable: true }, (lock) => {
        resolve(lock !== null);
        return lock ? new Promise(() => {}) : null;
      });
    });
    let seat = null;
    try { seat = sessionStorage.getItem(key); } catch { /* a new name with every reload */ }
    if (!seat || !(await free(seat))) await free(seat = newId()); // a duplicated tab brings the other's name along
    this.seat = seat;
    try { sessionStorage.setItem(key, seat); } catch { /* as above */ }
  }

  send(annotator, events) {
    for (const event of events) {
      const order = String(Date.now()).padStart(15, "0") + String(this.counter++).padStart(7, "0");
      const record = { key: this.prefix + order + ":" + event.event_id, annotator, event, tab: this.tab };
      this.keep(record);
      this.pending.push(record);
    }
    this.tell();
    this.schedule(20);
  }

  keep(record) {
    try {
      localStorage.setItem(record.key, JSON.stringify(record));
    } catch {
      this.kept = false; // storage full or forbidden: said in the status line
    }
  }

  forget(record) {
    try { localStorage.removeItem(record.key); } catch { /* it was never kept */ }
  }

  drop(record) {
    this.unsettled.delete(record.event.event_id);
    this.forget(record);
    this.tell();
  }

  // Events that an earlier page left behind, unless the tab that made them is still open and sends them itself.
  async adopt() {
    const open = new Set();
    try {
      for (const lock of (await navigator.locks.query()).held) open.add(lock.name);
    } catch { /* no locks here: adopt all; the server takes each event once */ }
    const mine = new Set([...this.pending, ...[...this.unsettled.values()].map(({ record }) => record)].map((record) => record.key));
    const found = [];
    try {
      for (let place = 0; place < localStorage.length; place++) {
        const key = localStorage.key(place);
        if (!key.startsWith(this.prefix) || mine.has(key)) continue;
        const record = JSON.parse(localStorage.getItem(key));
        if (record.tab !== this.tab && !open.has(this.prefix + record.tab)) found.push(record);
      }
    } catch { this.kept = false; }
    if (!found.length) return;
    this.pending = [...found, ...this.pending].sort((a, b) => (a.key < b.key ? -1 : 1));
    this.tell();
    this.schedule(0);
  }

  hurry() {
    if (!this.pending.length) return;
    this.pause = PIPE_FIRST_PAUSE;
    this.schedule(0);
  }

  schedule(wait) {
    if (this.flying) return;
    clearTimeout(this.timer);
    this.timer = setTimeout(() => this.flush(), wait);
  }

  batch() {
    const annotator = this.pending[0].annotator;
    const end = this.pending.findIndex((record) => record.annotator !== annotator);
    return this.pending.slice(0, Math.min(PIPE_BATCH, end < 0 ? Infinity : end));
  }

  async flush() {
    if (this.flying || !this.pending.length) return;
    this.flying = true;
    const batch = this.batch();
    let wait = 0;
    try {
      const { acks } = await this.post("", { annotator: batch[0].annotator, events: batch.map((one) => one.event) });
      this.trouble = "";
      this.pause = PIPE_FIRST_PAUSE;
      const sent = new Set(batch);
      this.pending = this.pending.filter((record) => !sent.has(record));
      batch.forEach((record, place) => this.settle(record, acks[place]));
    } catch (error) {
      this.trouble = error.message || "The connection was lost.";
      wait = this.pause * (0.75 + Math.random() / 2);
      this.pause = Math.min(2 * this.pause, PIPE_LONGEST_PAUSE);
    }
    this.flying = false;
    this.tell();
    if (this.pending.length) this.schedule(wait);
  }

  settle(record, ack) {
    if (ack.status === "saved" || ack.status === "already") this.forget(record);
    else this.unsettled.set(record.event.event_id, { record, ack }); // told to whoever listens, now or later
    for (const listener of this.listeners) listener.answered?.(record, ack);
  }

  // A page that goes away sends what it has once more; what does not arrive is still in the storage.
  lastWords() {
    if (!this.pending.length) return;
    const batch = this.batch();
    const body = JSON.stringify({ annotator: batch[0].annotator, events: batch.map((one) => one.event) });
    if (body.length < 60000) fetch(this.base, { ...this.options(body), keepalive: true }).catch(() => {});
  }

  // Images nobody is looking at any more go to others at once; what does not arrive ends by itself.
  release(annotator, ids) {
    const body = JSON.stringify({ annotator, release: ids, tab: this.seat ?? "" });
    this.releasing = fetch(`${this.base}/leases`, { ...this.options(body), keepalive: true, signal: AbortSignal.timeout(PIPE_GIVE_BACK) }).catch(() => {});
  }

  options(body) {
    return { method: "POST", body, headers: { "Content-Type": "application/json", "X-SemiPrune-Token": this.token } };
  }

  async post(path, body) {
    return this.ask(path, this.options(JSON.stringify(body)));
  }

  async ask(path, options = {}) {
    const stop = new AbortController();
    const timer = setTimeout(() => stop.abort(), PIPE_PATIENCE);
    let answer;
    try {
      answer = await fetch(this.base + path, { ...options, signal: stop.signal });
    } catch {
      throw Object.assign(new Error("The app cannot be reached."), { offline: true });
    } finally {
      clearTimeout(timer);
    }
    let said = null;
    try { said = await answer.json(); } catch { /* a proxy's page, or a cut answer */ }
    if (!answer.ok || said === null) throw new Error(said?.error ?? `The server answered ${answer.status}.`);
    return said;
  }

  // Resolves when nothing waits any more.
  drained() {
    if (!this.pending.length) return Promise.resolve();
    return new Promise((resolve) => {
      const listener = { changed: () => { if (!this.pending.length) { this.listeners.delete(listener); resolve(); } } };
      this.listeners.add(listener);
    });
  }

  status() {
    const n = this.pending.length;
    const asked = [...this.unsettled.values()];
    const changed = asked.filter(({ ack }) => ack.status === "conflict").length;
    const why = changed === asked.length ? "changed elsewhere" : changed ? "changed elsewhere or refused" : "refused";
    if (!n && asked.length) return { kind: "failed", text: `${asked.length} not saved: ${why}` };
    if (!n) return { kind: "saved", text: "All saved" };
    if (!this.kept) return { kind: "failed", text: `${n} not saved, and this browser cannot keep them. Stay on this page.` };
    if (!this.trouble) return { kind: "saving", text: `${n} saving` };
    const offline = !navigator.onLine || this.trouble === "The app cannot be reached.";
    const reason = offline ? "Offline" : this.trouble.replace(/\.$/, "");
    return { kind: "failed", text: `${reason}: ${n} kept here, will be sent again` };
  }

  tell() {
    for (const listener of [...this.listeners]) listener.changed?.();
  }
}

// For practice: every event is answered here, and nothing leaves the page.
class PracticePipe extends LabelPipe {
  get isPractice() { return true; }
  keep() {}
  forget() {}
  async adopt() {}
  release() {}
  status() { return { kind: "saved", text: "Practice: nothing is saved" }; }

  send(annotator, events) {
    queueMicrotask(() => {
      for (const event of events) for (const listener of this.listeners) listener.answered?.({ event }, { status: "saved", touched: [] });
      this.tell();
    });
  }
}

// One pipe per label store and page, whichever element asks first; it goes on sending when the element is gone.
function labelPipe(data) {
  const pipes = (globalThis.semiprunePipes ??= new Map());
  const name = data.queue === "practice" ? `${data.store}:practice` : data.store;
  if (!pipes.has(name)) pipes.set(name, data.queue === "practice" ? new PracticePipe(name) : new LabelPipe(name));
  const pipe = pipes.get(name);
  pipe.base = data.base;
  pipe.token = data.token;
  return pipe;
}

// --- small things both elements need ---------------------------------------------------------------------------------

const ODD = /[\u0000-\u001f\u007f-\u009f\u061c\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff]/g;

// User text with the characters that would hide or turn it made visible; always set as text, never as HTML.
function visible(text) {
  return String(text).replace(ODD, (char) => `\\u${char.charCodeAt(0).toString(16).padStart(4, "0")}`);
}

function make(tag, name, text) {
  const element = document.createElement(tag);
  if (name) element.className = name;
  if (text !== undefined) element.textContent = visible(text);
  if (tag === "button") element.type = "button";
  return element;
}

// Keys belong to the field a person types in, to an open dialog, and to the browser's own shortcuts.
function isTyping(event) {
  const target = event.composedPath()[0];
  if (!(target instanceof Element)) return false;
  if (target.isContentEditable || target.closest("textarea, select, [role='textbox'], [role='combobox'], [role='listbox']")) return true;
  const field = target.closest("input");
  return field !== null && !["button", "checkbox", "radio", "range", "submit", "color"].includes(field.type);
}

const isDialogOpen = () => document.querySelector("[role='dialog'], [data-testid='stDialog']") !== null;

// Which class a key means: assigned keys (digits from the row or the number pad, letters), shift+digit for 11 to 20.
function classOfKey(event, classes) {
  let key = "";
  if (/^[0-9]$/.test(event.key)) key = event.key;
  else if (/^Numpad[0-9]$/.test(event.code)) key = event.code.slice(6); // with Num Lock off, too
  else if (/^Digit[0-9]$/.test(event.code)) {
    const digit = event.code.slice(5);
    if (event.shiftKey) return classes[10 + ((Number(digit) + 9) % 10)] ?? null;
    key = digit;
  } else if (event.shiftKey) return null;
  else if (/^[a-z]$/i.test(event.key)) key = event.key.toLowerCase();
  else if (/^Key[A-Z]$/.test(event.code) && event.key.length === 1) key = event.code.slice(3).toLowerCase();
  return key ? (classes.find((one) => one.key === key) ?? null) : null;
}

function isHandled(event) {
  event.preventDefault();
  event.stopImmediatePropagation(); // Streamlit's own r and c among others
}

function undoKey(event) {
  const control = event.ctrlKey || event.metaKey;
  const letter = event.key.toLowerCase();
  if (control && !event.altKey && letter === "z") return event.shiftKey ? "redo" : "undo";
  if (control && !event.altKey && !event.shiftKey && letter === "y") return "redo";
  if (!control && !event.altKey && (event.key === "Backspace" || event.key === "Delete")) return "undo";
  return "";
}

function clockTime(ms) {
  return new Date(ms).toLocaleTimeString([], { hour: "2-digit", minute: "2-digit" });
}

// Runs the function now and its cleanup only if this call is still the latest one for the element.
function mounted(root, build, data, setTriggerValue) {
  const token = (root.studioToken = {});
  const same = root.studio && root.studio.identity === identityOf(data);
  if (!same) {
    root.studio?.leave();
    root.studio = build(root, data);
    root.studio.identity = identityOf(data);
  }
  root.studio.trigger = setTriggerValue;
  root.studio.update(data);
  return () => {
    if (root.studioToken !== token) return;
    root.studio?.leave();
    root.studio = null;
  };
}

const identityOf = (data) => JSON.stringify([data.store, data.annotator, data.queue, data.drawing]);
