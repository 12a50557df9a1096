// A map of the pool: points drawn pixel by pixel, so that a million of them stay quick and nothing needs a GPU.
// Points and columns come as binary from our own routes and are kept; text comes as data and is set as text.
const NONE = 65535, DENSE = 200000, GRID = 256, NEAR = 12, CLICK = 5, PAUSE = 30;
const RAMP = ["#00224e", "#2a3f6d", "#575c6d", "#7c7b78", "#a59c74", "#d2c060", "#fee838"]; // cividis: safe for colour blindness
const kept = new Map();

function load(url, Kind) {
  if (!kept.has(url)) {
    while (kept.size > 40) kept.delete(kept.keys().next().value);
    const coming = fetch(url).then(async (answer) => {
      if (!answer.ok) throw new Error(`The server answered ${answer.status}.`);
      return new Kind(await answer.arrayBuffer());
    });
    coming.catch(() => kept.delete(url));
    kept.set(url, coming);
  }
  return kept.get(url);
}

export default function (component) {
  const { data, parentElement, setStateValue, setTriggerValue } = component;
  const root = parentElement.querySelector(".map");
  const find = (name) => root.querySelector(name);
  const s = (root.studio ??= begin());
  s.data = data;
  s.send = (panel, corners) => setStateValue("line", corners ? { panel, corners, key: s.data.panels[panel].key } : null);
  s.open = (id) => setTriggerValue("opened", id);
  root.style.setProperty("--panels", data.panels.length);
  root.style.setProperty("--height", `${data.height}px`);
  lay();
  fill();
  return () => s.watcher?.disconnect();

  function begin() {
    const state = { panels: [], tool: "lasso", selected: null, facts: new Map(), run: 0 };
    for (const button of root.querySelectorAll("[data-tool]")) button.onclick = () => choose(button.dataset.tool);
    find('[data-do="clear"]').onclick = () => clear();
    find('[data-do="reset"]').onclick = () => { for (const p of s.panels) p.view = null; draw(); };
    const middle = (by) => { for (const p of s.panels) if (p.points) zoom(p, [p.canvas.width / 2, p.canvas.height / 2], by); };
    find('[data-do="in"]').onclick = () => middle(1.3);
    find('[data-do="out"]').onclick = () => middle(1 / 1.3);
    find(".tip img").addEventListener("load", (event) => event.target.classList.toggle("small", event.target.naturalWidth <= 96));
    return state;
  }

  function choose(tool) {
    s.tool = tool;
    for (const button of root.querySelectorAll("[data-tool]")) button.setAttribute("aria-pressed", String(button.dataset.tool === tool));
    for (const p of s.panels) p.canvas.classList.toggle("move", tool === "pan");
  }

  // One canvas per panel; they are kept over reruns so that view and selection stay.
  function lay() {
    const keys = data.panels.map((panel) => panel.key).join();
    if (s.keys !== keys) {
      const known = new Map(s.panels.map((p) => [p.key, p]));
      s.keys = keys;
      s.selected = null;
      s.panels = data.panels.map((panel) => known.get(panel.key) ?? make(panel));
      s.panels.forEach((p, number) => { p.number = number; });
      find(".panels").replaceChildren(...s.panels.map((p) => p.box));
    }
    s.watcher?.disconnect();
    s.watcher = new ResizeObserver(() => draw());
    s.panels.forEach((p) => s.watcher.observe(p.canvas));
    s.panels.forEach((p, number) => {
      p.box.querySelector(".name").textContent = data.panels[number].title;
      p.box.querySelector(".note").textContent = data.panels[number].note;
    });
    choose(s.tool);
  }

  function make(panel) {
    const box = element("div", "panel"), title = element("div", "title"), frame = element("div", "frame");
    title.append(element("span", "name"), element("span", "note"));
    const canvas = document.createElement("canvas");
    canvas.tabIndex = 0;
    canvas.setAttribute("role", "img");
    canvas.setAttribute("aria-label", `Map: ${panel.title}`);
    const wait = element("div", "wait", "Loading the map"), hint = element("div", "hint", "Hold Ctrl to zoom");
    frame.append(canvas, wait, hint);
    box.append(title, frame);
    const p = { key: panel.key, box, canvas, wait, hint, view: null, points: null, line: null };
    canvas.studio = { where: (position) => where(p, position), selected: () => s.selected && indices(s.selected) };
    listen(p);
    return p;
  }

  async function fill() {
    const run = ++s.run;
    const now = s.data;
    root.dataset.state = "loading";
    try {
      const [points, colour, filters] = await Promise.all([
        Promise.all(now.panels.map((panel) => load(panel.url, Float32Array))),
        now.colour ? load(now.colour.url, Uint16Array) : null,
        Promise.all(now.filters.map((one) => load(one.url, Uint16Array))),
      ]);
      if (run !== s.run) return;
      s.colour = colour;
      s.n = points[0].length / 2;
      s.shown = mask(now.filters, filters);
      s.panels.forEach((p, number) => {
        if (p.points !== points[number]) { p.points = points[number]; p.index = null; p.view = null; }
        p.wait.hidden = true;
      });
      s.paint = paints(now.colour, s.paint);
      legend(now.colour);
      if (now.line === null && s.sent) { s.selected = null; s.sent = null; s.panels.forEach((p) => { p.line = null; }); }
      draw();
      root.dataset.state = "ready";
      root.dataset.version = String(Number(root.dataset.version ?? 0) + 1);
    } catch (error) {
      if (run !== s.run) return;
      for (const p of s.panels) { p.wait.hidden = false; p.wait.textContent = `The map could not be loaded. ${error.message}`; }
      root.dataset.state = "failed";
    }
  }

  // Which images pass the filters: the same codes the server filters by.
  function mask(filters, columns) {
    if (!filters.length) return null;
    const shown = new Uint8Array(s.n).fill(1);
    filters.forEach((filter, number) => {
      const codes = columns[number];
      if (filter.codes) {
        const wanted = new Uint8Array(65536);
        for (const code of filter.codes) wanted[code] = 1;
        for (let i = 0; i < s.n; i++) if (!wanted[codes[i]]) shown[i] = 0;
      } else {
        for (let i = 0; i < s.n; i++) if (codes[i] < filter.low || codes[i] > filter.high) shown[i] = 0;
      }
    });
    return shown;
  }

  function css(name, otherwise) {
    return getComputedStyle(root).getPropertyValue(name).trim() || otherwise;
  }

  // A colour for each code, as three bytes.
  // A colour table that is equal to ``before`` is that one: nothing needs to be drawn anew for it.
  function paints(colour, before) {
    const table = coloured(colour);
    return before && table.every((value, at) => value === before[at]) ? before : table;
  }

  function coloured(colour) {
    const table = new Uint8Array(3 * 65536);
    const plain = rgb(css("--st-primary-color", "#0f766e")), none = rgb("#9aa0a6");
    const put = (code, [r, g, b]) => { table[3 * code] = r; table[3 * code + 1] = g; table[3 * code + 2] = b; };
    if (!colour) { for (let code = 0; code < 65536; code++) put(code, plain); return table; }
    if (colour.kind === "class") colour.colours.forEach((one, code) => put(code, seen(one)));
    else for (let code = 0, shade; code < NONE; code++) {
      if (code % 256 === 0) shade = seen(along(code / (NONE - 1))); // the eye knows no finer steps
      put(code, shade);
    }
    put(NONE, none);
    return table;
  }

  // A dark colour on a dark ground is lifted until it can be seen.
  function seen(colour) {
    const light = ([r, g, b]) => (0.2126 * r + 0.7152 * g + 0.0722 * b) / 255;
    let found = Array.isArray(colour) ? colour : rgb(colour);
    if (light(rgb(css("--st-background-color", "#ffffff"))) > 0.5) return found;
    while (light(found) < 0.3) found = found.map((value) => Math.round(value + (255 - value) * 0.15));
    return found;
  }

  function along(share) {
    const place = share * (RAMP.length - 1), low = Math.min(RAMP.length - 2, Math.floor(place));
    const a = rgb(RAMP[low]), b = rgb(RAMP[low + 1]);
    return a.map((value, i) => Math.round(value + (b[i] - value) * (place - low)));
  }

  function legend(colour) {
    const box = find(".legend");
    box.replaceChildren();
    if (!colour) return;
    box.append(element("span", "what", colour.title));
    if (colour.kind === "number") {
      const ramp = element("span", "ramp");
      ramp.style.background = `linear-gradient(90deg, ${RAMP.map((one) => `rgb(${seen(one).join()})`).join()})`;
      box.append(element("span", "", number(colour.low)), ramp, element("span", "", number(colour.high)));
      return;
    }
    if (new Set(colour.colours).size < colour.names.length && colour.names.length > 10) {
      box.append(element("span", "", `${colour.names.length} classes are too many to colour. Choose some to highlight.`));
    }
    colour.names.forEach((name, code) => {
      if (colour.names.length > 10 && !colour.marked.includes(code)) return;
      const entry = element("span", "entry"), dot = element("span", "dot");
      dot.style.background = `rgb(${seen(colour.colours[code]).join()})`;
      entry.append(dot, element("span", "", name));
      box.append(entry);
    });
  }

  // --- drawing ------------------------------------------------------------------------------------------------------

  function draw() {
    if (s.asked) return;
    s.asked = requestAnimationFrame(() => {
      s.asked = 0;
      s.panels.forEach((p) => { if (p.points) render(p); });
      const n = s.selected ? s.selected.reduce((sum, one) => sum + one, 0) : 0;
      find(".count").textContent = s.selected ? `${n.toLocaleString("en")} selected` : "";
      find(".count").toggleAttribute("data-n", Boolean(s.selected));
    });
  }

  function extent(p) {
    let [x0, y0, x1, y1] = [Infinity, Infinity, -Infinity, -Infinity];
    const { points } = p;
    for (let i = 0; i < points.length; i += 2) {
      const x = points[i], y = points[i + 1];
      if (x !== x) continue;
      if (x < x0) x0 = x; if (x > x1) x1 = x;
      if (y < y0) y0 = y; if (y > y1) y1 = y;
    }
    return x0 > x1 ? [0, 0, 1, 1] : [x0, y0, x1, y1];
  }

  function look(p) {
    const scale = window.devicePixelRatio || 1;
    const width = Math.max(1, Math.round(p.canvas.clientWidth * scale)), height = Math.max(1, Math.round(p.canvas.clientHeight * scale));
    p.extent ??= extent(p);
    if (!p.view) {
      const [x0, y0, x1, y1] = p.extent;
      p.view = { x: (x0 + x1) / 2, y: (y0 + y1) / 2, zoom: 1 };
    }
    const [x0, y0, x1, y1] = p.extent;
    const unit = 0.94 * Math.min(width / (x1 - x0 || 1), height / (y1 - y0 || 1)) * p.view.zoom;
    return { width, height, scale, unit, left: width / 2 - p.view.x * unit, top: height / 2 + p.view.y * unit };
  }

  // The points are drawn anew only when they look different; a line or a ring goes over the picture that is there.
  function render(p) {
    const v = look(p), { canvas } = p, behind = css("--st-background-color", "#ffffff");
    if (canvas.width !== v.width || canvas.height !== v.height) { canvas.width = v.width; canvas.height = v.height; }
    const context = canvas.getContext("2d", { willReadFrequently: true });
    const seen = [p.points, s.colour, s.paint, s.shown, s.selected, behind, v.width, v.height, v.unit, v.left, v.top];
    if (!p.picture || seen.some((one, k) => one !== p.seen[k])) {
      p.picture = paint(p, v, context, rgb(behind));
      p.seen = seen;
      canvas.dataset.paints = String(Number(canvas.dataset.paints ?? 0) + 1);
    }
    context.putImageData(p.picture, 0, 0);
    trace(p, context, v);
  }

  function paint(p, v, context, ground) {
    const { canvas, points } = p;
    const same = p.picture?.width === v.width && p.picture.height === v.height;
    const picture = same ? p.picture : context.createImageData(v.width, v.height), pixels = picture.data;
    const words = new Uint32Array(pixels.buffer), bytes = new Uint8Array(words.buffer, 0, 4);
    bytes.set([...ground, 255]);
    words.fill(words[0]);
    let inView = 0;
    for (let i = 0; i < s.n; i++) {
      if (s.shown && !s.shown[i]) continue;
      const x = points[2 * i] * v.unit + v.left, y = v.top - points[2 * i + 1] * v.unit;
      if (x >= 0 && y >= 0 && x < v.width && y < v.height) inView++;
    }
    p.dense = inView > DENSE;
    if (p.dense) density(p, v, pixels, ground);
    else dots(p, v, pixels, inView);
    canvas.dataset.inView = String(inView);
    canvas.dataset.mode = p.dense ? "density" : "points";
    return picture;
  }

  function dots(p, v, pixels, inView) {
    const radius = Math.max(1.1 * v.scale, Math.min(4.5 * v.scale, 0.24 * Math.sqrt(v.width * v.height / (inView + 1))));
    const stamp = disc(radius), { points } = p, { paint, colour, selected, shown, n } = s;
    let step = Math.floor(n * 0.6180339887) | 1; // a fixed shuffle: no class lies on top only because it came last
    while (gcd(step, n) !== 1) step += 2;
    const passes = selected ? [0, 1] : [2];
    for (const pass of passes) {
      const strength = pass === 0 ? 0.22 : pass === 1 ? 1 : 0.85;
      for (let k = 0, i = 0; k < n; k++, i = (i + step) % n) {
        if ((shown && !shown[i]) || (pass < 2 && selected[i] !== pass)) continue;
        const cx = points[2 * i] * v.unit + v.left, cy = v.top - points[2 * i + 1] * v.unit;
        if (!(cx > -radius && cy > -radius && cx < v.width + radius && cy < v.height + radius)) continue;
        const code = 3 * (colour ? colour[i] ?? NONE : 0);
        const x0 = Math.round(cx), y0 = Math.round(cy);
        for (let m = 0; m < stamp.length; m += 3) {
          const x = x0 + stamp[m], y = y0 + stamp[m + 1];
          if (x < 0 || y < 0 || x >= v.width || y >= v.height) continue;
          const a = stamp[m + 2] * strength, at = 4 * (y * v.width + x);
          pixels[at] += (paint[code] - pixels[at]) * a;
          pixels[at + 1] += (paint[code + 1] - pixels[at + 1]) * a;
          pixels[at + 2] += (paint[code + 2] - pixels[at + 2]) * a;
        }
      }
    }
  }

  // Many points: each cell shows the mean colour of its points, the stronger the more there are.
  function density(p, v, pixels, ground) {
    const cell = Math.max(2, Math.round(2 * v.scale)), columns = Math.ceil(v.width / cell), rows = Math.ceil(v.height / cell);
    const count = new Float32Array(columns * rows), sums = new Float32Array(3 * columns * rows);
    const { points } = p, { paint, colour, selected, shown, n } = s;
    let most = 1;
    for (let i = 0; i < n; i++) {
      if (shown && !shown[i]) continue;
      const x = points[2 * i] * v.unit + v.left, y = v.top - points[2 * i + 1] * v.unit;
      if (!(x >= 0 && y >= 0 && x < v.width && y < v.height)) continue;
      const at = Math.floor(y / cell) * columns + Math.floor(x / cell), code = 3 * (colour ? colour[i] ?? NONE : 0);
      const weight = selected && !selected[i] ? 0.15 : 1;
      count[at] += weight;
      sums[3 * at] += weight * paint[code]; sums[3 * at + 1] += weight * paint[code + 1]; sums[3 * at + 2] += weight * paint[code + 2];
      if (count[at] > most) most = count[at];
    }
    const top = Math.log1p(most);
    for (let y = 0; y < v.height; y++) {
      for (let x = 0; x < v.width; x++) {
        const at = Math.floor(y / cell) * columns + Math.floor(x / cell), many = count[at];
        if (!many) continue;
        const a = 0.18 + 0.82 * Math.log1p(many) / top, to = 4 * (y * v.width + x);
        for (let c = 0; c < 3; c++) pixels[to + c] = ground[c] + (sums[3 * at + c] / many - ground[c]) * a;
      }
    }
  }

  function trace(p, context, v) {
    const colour = css("--st-primary-color", "#0f766e");
    if (p.line?.length > 1) {
      context.beginPath();
      p.line.forEach(([x, y], k) => context[k ? "lineTo" : "moveTo"](x * v.unit + v.left, v.top - y * v.unit));
      context.closePath();
      context.strokeStyle = colour;
      context.lineWidth = 1.5 * v.scale;
      context.stroke();
    }
    for (const i of [...(s.data.highlight ?? []), ...(s.hovered == null ? [] : [s.hovered])]) {
      if (!(i < s.n)) continue;
      context.beginPath();
      context.arc(p.points[2 * i] * v.unit + v.left, v.top - p.points[2 * i + 1] * v.unit, 7 * v.scale, 0, 7);
      context.strokeStyle = css("--st-text-color", "#000");
      context.lineWidth = 2 * v.scale;
      context.stroke();
    }
  }

  // --- pointing -----------------------------------------------------------------------------------------------------

  // Points sorted into a grid, so that the nearest one is found without a walk over all.
  function index(p) {
    const [x0, y0, x1, y1] = p.extent, { points } = p, n = s.n;
    const sx = GRID / (x1 - x0 || 1), sy = GRID / (y1 - y0 || 1);
    const cellOf = (x, y) => Math.min(GRID - 1, Math.max(0, Math.floor((y - y0) * sy))) * GRID + Math.min(GRID - 1, Math.max(0, Math.floor((x - x0) * sx)));
    const starts = new Uint32Array(GRID * GRID + 1), order = new Uint32Array(n);
    for (let i = 0; i < n; i++) if (points[2 * i] === points[2 * i]) starts[cellOf(points[2 * i], points[2 * i + 1]) + 1]++;
    for (let c = 0; c < GRID * GRID; c++) starts[c + 1] += starts[c];
    const next = starts.slice(0, -1);
    for (let i = 0; i < n; i++) if (points[2 * i] === points[2 * i]) order[next[cellOf(points[2 * i], points[2 * i + 1])]++] = i;
    return { starts, order, sx, sy };
  }

  function nearest(p, px, py) {
    const v = look(p), reach = NEAR * v.scale;
    p.index ??= index(p);
    const { starts, order, sx, sy } = p.index, [x0, y0] = p.extent;
    const limit = (value) => Math.min(GRID - 1, Math.max(0, Math.floor(value)));
    const fromX = limit(((px - reach - v.left) / v.unit - x0) * sx), toX = limit(((px + reach - v.left) / v.unit - x0) * sx);
    const fromY = limit(((v.top - py - reach) / v.unit - y0) * sy), toY = limit(((v.top - py + reach) / v.unit - y0) * sy);
    let best = null, least = reach * reach;
    for (let row = fromY; row <= toY; row++) {
      for (let at = starts[row * GRID + fromX]; at < starts[row * GRID + toX + 1]; at++) {
        const i = order[at];
        if (s.shown && !s.shown[i]) continue;
        const dx = p.points[2 * i] * v.unit + v.left - px, dy = v.top - p.points[2 * i + 1] * v.unit - py;
        if (dx * dx + dy * dy < least) { least = dx * dx + dy * dy; best = i; }
      }
    }
    return best;
  }

  function where(p, position) {
    const v = look(p);
    return [(p.points[2 * position] * v.unit + v.left) / v.scale, (v.top - p.points[2 * position + 1] * v.unit) / v.scale];
  }

  function at(p, event) {
    const box = p.canvas.getBoundingClientRect(), scale = window.devicePixelRatio || 1;
    return [(event.clientX - box.left) * scale, (event.clientY - box.top) * scale];
  }

  function ground(p, [px, py]) {
    const v = look(p);
    return [(px - v.left) / v.unit, (v.top - py) / v.unit];
  }

  function listen(p) {
    const { canvas } = p;
    let drag = null;
    canvas.onpointerdown = (event) => {
      if (!p.points || event.button) return;
      canvas.focus({ preventScroll: true });
      canvas.setPointerCapture(event.pointerId);
      hide();
      drag = { from: at(p, event), last: at(p, event), moved: false, tool: event.shiftKey ? "lasso" : s.tool, line: [ground(p, at(p, event))] };
    };
    canvas.onpointermove = (event) => {
      if (!p.points) return;
      const here = at(p, event);
      if (!drag) { hover(p, here, event); return; }
      if (Math.hypot(here[0] - drag.from[0], here[1] - drag.from[1]) > CLICK) drag.moved = true;
      if (!drag.moved) return;
      if (drag.tool === "pan") {
        const v = look(p);
        p.view.x -= (here[0] - drag.last[0]) / v.unit;
        p.view.y += (here[1] - drag.last[1]) / v.unit;
      } else if (drag.tool === "box") {
        const [x1, y1] = ground(p, drag.from), [x2, y2] = ground(p, here);
        p.line = [[x1, y1], [x2, y1], [x2, y2], [x1, y2]];
      } else {
        // A busy machine hands on several moves as one: each of them is a point of the line.
        const moves = event.getCoalescedEvents?.() ?? [];
        for (const move of moves.length ? moves : [event]) drag.line.push(ground(p, at(p, move)));
        p.line = drag.line;
      }
      drag.last = here;
      draw();
    };
    canvas.onpointerup = (event) => {
      const ended = drag;
      drag = null;
      if (!ended || !p.points) return;
      if (!ended.moved) {
        const found = nearest(p, ...at(p, event));
        if (found !== null) facts(found).then((fact) => s.open(fact.id));
      } else if (ended.tool !== "pan") close(p);
    };
    canvas.onpointercancel = () => { drag = null; };
    canvas.onpointerleave = () => { hide(); p.hint.classList.remove("on"); };
    canvas.ondblclick = () => { p.view = null; draw(); };
    canvas.onwheel = (event) => {
      if (!p.points) return;
      p.hint.classList.toggle("on", !event.ctrlKey && !event.metaKey); // until the pointer leaves
      if (!event.ctrlKey && !event.metaKey) return; // the wheel belongs to the page
      event.preventDefault();
      zoom(p, at(p, event), Math.exp(-event.deltaY * 0.0016));
    };
    canvas.onkeydown = (event) => {
      const key = event.key.toLowerCase(), tool = { l: "lasso", b: "box", m: "pan" }[key];
      const move = { arrowleft: [1, 0], arrowright: [-1, 0], arrowup: [0, 1], arrowdown: [0, -1] }[key];
      if (event.ctrlKey || event.metaKey || event.altKey) return;
      if (tool) choose(tool);
      else if (key === "escape") clear();
      else if (key === "+" || key === "=") zoom(p, [canvas.width / 2, canvas.height / 2], 1.3);
      else if (key === "-") zoom(p, [canvas.width / 2, canvas.height / 2], 1 / 1.3);
      else if (move && p.points) { const v = look(p); p.view.x -= move[0] * 60 * v.scale / v.unit; p.view.y += move[1] * 60 * v.scale / v.unit; draw(); }
      else return;
      event.preventDefault();
    };
  }

  function zoom(p, here, by) {
    const before = ground(p, here);
    p.view.zoom = Math.min(400, Math.max(0.5, p.view.zoom * by));
    const after = ground(p, here);
    p.view.x += before[0] - after[0];
    p.view.y += before[1] - after[1];
    draw();
  }

  // A line is closed: the same even-odd rule, in the same order, as on the server.
  function close(p) {
    for (const other of s.panels) if (other !== p) other.line = null;
    const line = thin(p.line), { points } = p;
    p.line = line;
    if (line.length < 3) { clear(); return; }
    const selected = new Uint8Array(s.n);
    for (let i = 0; i < s.n; i++) {
      if (s.shown && !s.shown[i]) continue;
      const x = points[2 * i], y = points[2 * i + 1];
      let inside = false;
      let [x1, y1] = line[line.length - 1];
      for (const [x2, y2] of line) {
        if ((y2 > y) !== (y1 > y) && x < (x1 - x2) * (y - y2) / (y1 - y2) + x2) inside = !inside;
        x1 = x2; y1 = y2;
      }
      if (inside) selected[i] = 1;
    }
    s.selected = selected;
    s.sent = line;
    draw();
    s.send(p.number, line);
  }

  function thin(line) {
    const step = Math.ceil((line?.length ?? 0) / 2000);
    return (line ?? []).filter((_, k) => k % step === 0);
  }

  function clear() {
    const had = s.selected !== null;
    s.selected = null;
    s.sent = null;
    for (const p of s.panels) p.line = null;
    draw();
    if (had) s.send(0, null);
  }

  // --- what is under the pointer ------------------------------------------------------------------------------------

  function facts(position) {
    const key = `${s.data.version} ${position}`;
    if (!s.facts.has(key)) {
      if (s.facts.size > 500) s.facts.clear();
      const coming = fetch(`${s.data.base}/facts/${position}`).then((answer) => { if (!answer.ok) throw new Error(String(answer.status)); return answer.json(); });
      coming.catch(() => s.facts.delete(key));
      s.facts.set(key, coming);
    }
    return s.facts.get(key);
  }

  function hover(p, here, event) {
    const found = nearest(p, ...here);
    if (found === s.hovered) { if (found !== null) place(event); return; }
    s.hovered = found;
    draw();
    clearTimeout(s.timer);
    if (found === null) { find(".tip").hidden = true; return; }
    s.timer = setTimeout(() => facts(found).then((fact) => { if (s.hovered === found) show(fact, event); }).catch(() => hide()), PAUSE);
  }

  function show(fact, event) {
    const tip = find(".tip"), words = tip.querySelector(".words"), path = element("div", "path", fact.path);
    tip.dataset.id = fact.id;
    tip.querySelector("img").src = `${s.data.base}/images/${fact.id}/thumb`;
    tip.querySelector("img").alt = fact.path;
    words.replaceChildren(path);
    for (const { title, text } of fact.facts) words.append(element("div", "key", title), element("div", "", text));
    tip.hidden = false;
    place(event);
  }

  function place(event) {
    const tip = find(".tip"), box = root.getBoundingClientRect();
    let x = event.clientX - box.left + 16, y = event.clientY - box.top + 16;
    if (x + tip.offsetWidth > box.width) x = Math.max(0, event.clientX - box.left - tip.offsetWidth - 16);
    if (y + tip.offsetHeight > box.height) y = Math.max(0, event.clientY - box.top - tip.offsetHeight - 16);
    tip.style.left = `${x}px`;
    tip.style.top = `${y}px`;
  }

  function hide() {
    clearTimeout(s.timer);
    if (s.hovered != null) { s.hovered = null; draw(); }
    find(".tip").hidden = true;
  }
}

function indices(mask) {
  const found = [];
  for (let i = 0; i < mask.length; i++) if (mask[i]) found.push(i);
  return found;
}

function disc(radius) {
  const reach = Math.ceil(radius + 0.5), found = [];
  for (let y = -reach; y <= reach; y++) {
    for (let x = -reach; x <= reach; x++) {
      const cover = Math.min(1, Math.max(0, radius + 0.5 - Math.hypot(x, y)));
      if (cover > 0) found.push(x, y, cover);
    }
  }
  return found;
}

function gcd(a, b) {
  while (b) [a, b] = [b, a % b];
  return a;
}

function rgb(text) {
  const hex = /^#([0-9a-f]{6})$/i.exec(text);
  if (hex) return [0, 2, 4].map((at) => parseInt(hex[1].slice(at, at + 2), 16));
  const numbers = text.match(/[\d.]+/g);
  return numbers ? numbers.slice(0, 3).map(Number) : [128, 128, 128];
}

function number(value) {
  return Math.abs(value) >= 100 ? value.toFixed(0) : Number(value.toPrecision(3)).toString();
}
