// A confusion matrix of buttons: a click on a cell asks for its images. Arrow keys move, Enter chooses.
export default function (component) {
  const { data, parentElement, setStateValue } = component;
  const table = parentElement.querySelector(".matrix");
  const n = data.names.length;
  table.style.setProperty("--n", n);
  table.classList.toggle("small", n > 14);
  const cells = [];
  const corner = element("div", "corner", "true ↓  model →");
  table.replaceChildren(corner, ...data.names.map((name) => { const head = element("div", "head", ""); head.append(element("span", "", name)); head.title = name; return head; }));
  data.counts.forEach((row, true_) => {
    const total = row.reduce((sum, count) => sum + count, 0) || 1;
    const name = element("div", "side", data.names[true_]);
    name.title = data.names[true_];
    table.append(name);
    row.forEach((count, predicted) => {
      const cell = element("button", "cell", count ? count.toLocaleString("en") : "");
      cell.type = "button";
      cell.dataset.cell = `${true_},${predicted}`;
      cell.style.setProperty("--share", String(Math.sqrt(count / total)));
      cell.classList.toggle("right", true_ === predicted);
      cell.title = `True ${data.names[true_]}, model says ${data.names[predicted]}: ${count.toLocaleString("en")} (${(100 * count / total).toFixed(1)}% of the row)`;
      cell.setAttribute("aria-label", cell.title);
      cell.setAttribute("aria-pressed", String(data.chosen?.[0] === true_ && data.chosen?.[1] === predicted));
      cell.disabled = !count;
      cell.onclick = () => setStateValue("cell", [true_, predicted]);
      cells.push(cell);
      table.append(cell);
    });
  });
  table.onkeydown = (event) => {
    const place = cells.indexOf(event.target);
    const step = { ArrowLeft: -1, ArrowRight: 1, ArrowUp: -n, ArrowDown: n }[event.key];
    if (place < 0 || step === undefined) return;
    event.preventDefault();
    let next = place + step;
    while (cells[next]?.disabled) next += step;
    cells[next]?.focus();
  };
}
