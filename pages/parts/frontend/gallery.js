// A grid of pictures. Text comes in as data and is set as text, never as HTML.
const SMALL = 96, PAUSE = 120;

export default function (component) {
  const { data, parentElement, setTriggerValue, setStateValue } = component;
  const grid = parentElement.querySelector(".grid");
  const state = (grid.studio ??= { chosen: new Set(), last: null });
  grid.style.setProperty("--cell", `${data.cell}px`);
  grid.classList.toggle("row", data.one_row);

  const known = new Set(data.items.map((item) => item.id));
  if (state.round !== data.round) { state.round = data.round; state.chosen = new Set(); state.last = null; }
  state.chosen = new Set([...state.chosen].filter((id) => known.has(id)));
  const focused = grid.getRootNode().activeElement?.dataset?.id;
  const drawn = JSON.stringify(data.items);
  if (state.drawn !== drawn || state.mode !== data.mode) {
    state.drawn = drawn;
    state.mode = data.mode;
    grid.replaceChildren(...data.items.map((item, place) => cell(item, place)));
    if (focused) [...grid.children].find((button) => button.dataset.id === focused)?.focus();
  }
  mark();

  function cell(item, place) {
    const button = document.createElement("button");
    button.className = "cell";
    button.type = "button";
    button.dataset.id = item.id;
    button.title = item.hint ?? item.title ?? "";
    const frame = document.createElement("div");
    frame.className = "frame";
    const image = document.createElement("img");
    image.alt = item.title ? "" : item.hint || "Image"; // the title below says it already
    image.loading = "lazy";
    image.decoding = "async";
    image.addEventListener("load", () => image.classList.toggle("small", image.naturalWidth <= SMALL));
    image.addEventListener("error", () => { image.remove(); frame.classList.add("broken"); });
    image.src = item.src;
    frame.append(image);
    const badges = [item.badge, ...(item.badges ?? [])].filter(Boolean);
    if (badges.length) {
      const row = element("div", "badges", "");
      row.append(...badges.map((badge) => element("span", "badge", badge)));
      frame.append(row);
    }
    if (typeof item.value === "number") {
      const bar = element("div", "bar", ""), filled = element("div", "filled", "");
      filled.style.width = `${Math.round(100 * Math.max(0, Math.min(1, item.value)))}%`;
      bar.append(filled);
      frame.append(bar);
    }
    button.append(frame);
    if (item.title) {
      const title = document.createElement("div");
      title.className = "title";
      if (item.color) {
        const dot = element("span", "dot", "");
        dot.style.background = item.color;
        title.append(dot);
      }
      title.append(element("span", "", item.title));
      button.append(title);
    }
    if (item.note) button.append(element("div", "note", item.note));
    button.addEventListener("click", (event) => press(item.id, place, event));
    button.addEventListener("dblclick", () => { if (data.mode === "select") setTriggerValue("opened", item.id); });
    return button;
  }

  function press(id, place, event) {
    if (data.mode !== "select") {
      setTriggerValue("opened", id);
      return;
    }
    if (event.shiftKey && state.last !== null) {
      const [from, to] = [Math.min(state.last, place), Math.max(state.last, place)];
      data.items.slice(from, to + 1).forEach((item) => state.chosen.add(item.id));
    } else if (!state.chosen.delete(id)) {
      state.chosen.add(id);
    }
    state.last = place;
    tell();
  }

  // The marks follow at once; the server hears of them when the hand rests, so that a sweep is one message.
  function tell() {
    mark();
    clearTimeout(state.timer);
    state.timer = setTimeout(() => setStateValue("selected", [...state.chosen]), PAUSE);
  }

  function mark() {
    for (const button of grid.children) {
      if (data.mode === "select") button.setAttribute("aria-pressed", String(state.chosen.has(button.dataset.id)));
    }
  }

  grid.onkeydown = (event) => {
    const cells = [...grid.children];
    const place = cells.indexOf(event.target.closest(".cell"));
    if (place < 0) return;
    const columns = getComputedStyle(grid).gridTemplateColumns.split(" ").length;
    if (data.mode === "select") {
      if (event.key === "Enter") { event.preventDefault(); setTriggerValue("opened", data.items[place].id); return; }
      if (event.key === "Escape" && state.chosen.size) { event.preventDefault(); state.chosen.clear(); tell(); return; }
      if (event.key.toLowerCase() === "a" && (event.ctrlKey || event.metaKey)) {
        event.preventDefault();
        data.items.forEach((item) => state.chosen.add(item.id));
        tell();
        return;
      }
    }
    const step = { ArrowLeft: -1, ArrowRight: 1, ArrowUp: -columns, ArrowDown: columns }[event.key];
    if (step === undefined) return;
    event.preventDefault();
    const next = Math.max(0, Math.min(cells.length - 1, place + step));
    cells[next].focus();
    if (event.shiftKey && data.mode === "select") {
      state.chosen.add(data.items[place].id).add(data.items[next].id);
      state.last = next;
      tell();
    }
  };
}
