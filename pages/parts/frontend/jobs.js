// When a job ends while somebody is elsewhere: the tab's title says so until they are back, and the browser where it may.
// data.under_way are ids of jobs that run, data.ended {id, words} of those that were seen running in this visit.
const TOLD = "semiprune:told";

export default function (component) {
  const { data, parentElement } = component;
  const teller = (globalThis.semipruneTeller ??= new Teller());
  const ask = parentElement.querySelector(".ask"), said = parentElement.querySelector(".said");
  const may = globalThis.Notification?.permission;
  ask.hidden = !data.under_way.length || may !== "default" || !globalThis.isSecureContext;
  ask.onclick = async () => {
    await Notification.requestPermission();
    ask.hidden = true;
  };
  const news = data.ended.filter(({ id }) => !teller.told.has(id));
  for (const { id, words } of news) teller.tell(id, words);
  if (news.length) said.textContent = news.map(({ words }) => words).join(" ");
}

class Teller {
  constructor() {
    this.told = new Set();
    this.mark = "";
    try { JSON.parse(sessionStorage.getItem(TOLD) ?? "[]").forEach((id) => this.told.add(id)); } catch { /* told once more */ }
    this.watching = new MutationObserver(() => this.title()); // the page names itself anew whenever it is drawn
    this.watching.observe(document.head, { childList: true, subtree: true, characterData: true });
    const back = () => { if (!document.hidden) this.forget(); };
    for (const event of ["pointerdown", "keydown", "visibilitychange"]) document.addEventListener(event, back, true);
  }

  tell(id, words) {
    this.told.add(id);
    try { sessionStorage.setItem(TOLD, JSON.stringify([...this.told])); } catch { /* told once more after a reload */ }
    this.mark = `${words} · `;
    this.title();
    if (document.hidden && globalThis.Notification?.permission === "granted") {
      const note = new Notification("SemiPrune Studio", { body: words, tag: id });
      note.onclick = () => { window.focus(); note.close(); };
    }
  }

  title() {
    if (this.mark && !document.title.startsWith(this.mark)) document.title = this.mark + document.title;
  }

  forget() {
    const mark = this.mark;
    this.mark = "";
    if (mark && document.title.startsWith(mark)) document.title = document.title.slice(mark.length);
  }
}
