// A grid of pictures. Text comes in as data and is set as text, never as HTML.
const SMALL = 96;

export default function (component) {
  const { data, parentElement, setTriggerValue, setStateValue } = component;
  const grid = parentElement.querySelector(".grid");
  const state = (grid.studio ??= { chosen: new Set(), last: null });
  grid.style.setProperty("--cell", `${data.cell}px`);
  grid.classList.toggle("row", data.one_row);

  const known = new Set(data.items.map((item) => item.id));
  state.chosen = new Set([...state.chosen].filter((id) => known.has(id)));
  grid.replaceChildren(...data.items.map((item, place) => cell(item, place)));
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
    image.alt = item.title ?? "";
    image.loading = "lazy";
    image.decoding = "async";
    image.addEventListener("load", () => image.classList.toggle("small", image.naturalWidth <= SMALL));
    image.addEventListener("error", () => { image.remove(); frame.classList.add("broken"); });
    image.src = item.src;
    frame.append(image);
    if (item.badge) frame.append(text("div", "badge", item.badge));
    button.append(frame);
    if (item.title) {
      const title = document.createElement("div");
      title.className = "title";
      if (item.color) {
        const dot = text("span", "dot", "");
        dot.style.background = item.color;
        title.append(dot);
      }
      title.append(text("span", "", item.title));
      button.append(title);
    }
    if (item.note) button.append(text("div", "note", item.note));
    button.addEventListener("click", (event) => press(item.id, place, event));
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
    mark();
    setStateValue("selected", [...state.chosen]);
  }

  function mark() {
    for (const button of grid.children) {
      button.setAttribute("aria-selected", String(state.chosen.has(button.dataset.id)));
    }
  }

  grid.onkeydown = (event) => {
    const cells = [...grid.children];
    const place = cells.indexOf(event.target.closest(".cell"));
    if (place < 0) return;
    const columns = getComputedStyle(grid).gridTemplateColumns.split(" ").length;
    const step = { ArrowLeft: -1, ArrowRight: 1, ArrowUp: -columns, ArrowDown: columns }[event.key];
    if (step === undefined) return;
    event.preventDefault();
    cells[Math.max(0, Math.min(cells.length - 1, place + step))].focus();
  };
}

function text(tag, name, content) {
  const element = document.createElement(tag);
  element.className = name;
  element.textContent = content;
  return element;
}
