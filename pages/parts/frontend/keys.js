// Keys that turn the slides of a story. A presenter's clicker sends Page Down and Page Up, which nothing else here uses;
// arrows turn, too, where no deck, map or field wants them (data.arrows).
const TURNS = { PageDown: 1, PageUp: -1, ArrowRight: 1, ArrowLeft: -1 };

export default function ({ data, parentElement, setTriggerValue }) {
  const typing = () => /^(INPUT|TEXTAREA|SELECT)$/.test(document.activeElement?.tagName ?? "")
    || ["slider", "radio", "combobox"].includes(document.activeElement?.getAttribute("role"));
  const alive = new AbortController();
  globalThis.semipruneSlides?.abort();
  globalThis.semipruneSlides = alive;
  window.addEventListener("keydown", (event) => {
    const turn = TURNS[event.key], isArrow = event.key.startsWith("Arrow");
    if (!turn || event.ctrlKey || event.altKey || event.metaKey || (isArrow && (!data.arrows || typing()))) return;
    if (!parentElement.isConnected && !parentElement.host?.isConnected) return;
    event.preventDefault();
    event.stopImmediatePropagation();
    setTriggerValue("turn", turn);
  }, { capture: true, signal: alive.signal });
  return () => alive.abort();
}
