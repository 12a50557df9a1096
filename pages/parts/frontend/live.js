// How good the labels so far are: a line of words and a small curve, asked for beside the labeling.
const LIVE_SOON = 400; // a newer report is on its way
const LIVE_LATER = 6000;
const LIVE_WIDTH = 150;
const LIVE_HEIGHT = 36;

class LiveLine {
  constructor(element, pipe, isAtWork) {
    this.element = element;
    this.pipe = pipe;
    this.isAtWork = isAtWork; // nobody there: nothing is asked, and the server's work ends by itself
    this.listener = { answered: () => this.plan(LIVE_SOON) };
    pipe.listeners.add(this.listener);
    this.due = Infinity;
    this.ask();
  }

  leave() {
    this.gone = true;
    clearTimeout(this.timer);
    this.pipe.listeners.delete(this.listener);
  }

  plan(wait) {
    const due = performance.now() + wait;
    if (this.gone || due >= this.due) return;
    this.due = due;
    clearTimeout(this.timer);
    this.timer = setTimeout(() => this.ask(), wait);
  }

  async ask() {
    if (this.asking) return;
    this.asking = true;
    let wait = LIVE_LATER;
    try {
      if (!document.hidden && this.isAtWork()) {
        const said = await this.pipe.post("/live", {});
        if (said.behind) wait = LIVE_SOON;
        if (!this.gone) this.show(said);
      }
    } catch { /* the line stays as it is; the status line speaks of trouble */ }
    this.asking = false;
    this.due = Infinity;
    this.plan(wait);
  }

  show(said) {
    const text = JSON.stringify(said);
    if (text === this.text) return;
    this.text = text;
    const { element } = this;
    element.dataset.state = said.state;
    element.dataset.stop = said.may_stop ? "yes" : "";
    const words = element.querySelector(".words");
    element.querySelector(".now").textContent = visible(said.line);
    element.querySelector(".outlook").textContent = visible(said.outlook ?? "");
    words.title = visible(said.detail ?? "");
    element.querySelector("svg")?.remove();
    if (said.curve) element.append(growthCurve(said));
  }
}

// Accuracy over the number of labels: behind us drawn through, before us dashed in its band, today a dot in its interval.
function growthCurve({ accuracy, curve, n_measured: n }) {
  const places = curve.n.map((_, place) => place);
  const before = places.filter((place) => curve.n[place] <= n), after = places.filter((place) => curve.n[place] >= n);
  const all = [accuracy.low, accuracy.high, ...before.map((place) => curve.value[place]), ...after.flatMap((place) => [curve.low[place], curve.high[place]])];
  const [bottom, top] = [Math.min(...all), Math.max(...all)];
  const [first, last] = [curve.n[0], curve.n[places.length - 1]];
  const x = (labels) => 3 + ((LIVE_WIDTH - 6) * (labels - first)) / (last - first);
  const y = (value) => 3 + (LIVE_HEIGHT - 6) * (1 - (value - bottom) / Math.max(top - bottom, 0.02));
  const path = (some, values) => some.map((place, number) => `${number ? "L" : "M"}${x(curve.n[place]).toFixed(1)} ${y(values[place]).toFixed(1)}`).join("");
  const svg = svgPart("svg", { class: "growth", viewBox: `0 0 ${LIVE_WIDTH} ${LIVE_HEIGHT}`, role: "img", "aria-label": "Accuracy by number of labels" });
  svg.append(svgPart("path", { class: "band", d: `${path(after, curve.high)}${path([...after].reverse(), curve.low).replace("M", "L")}Z` }));
  svg.append(svgPart("path", { class: "past", d: path(before, curve.value) }), svgPart("path", { class: "next", d: path(after, curve.value) }));
  svg.append(svgPart("line", { class: "interval", x1: x(n), x2: x(n), y1: y(accuracy.low), y2: y(accuracy.high) }));
  svg.append(svgPart("circle", { cx: x(n), cy: y(accuracy.value), r: 3 }));
  return svg;
}

function svgPart(tag, attributes) {
  const made = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
  return made;
}
