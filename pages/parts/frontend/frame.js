// What the frame around every page does in the browser: one step back is one page, a server that is gone is named,
// lines about jobs that wrap stand at the left, and what is chosen can be read on dark pages too.
const LINES = '[class*="st-key-running_"] button { justify-content: flex-start; text-align: left; }'
  + 'button[data-variant="segmented_control"]:is([aria-checked="true"], [aria-pressed="true"], [data-selected])'
  + " { &, & * { color: light-dark(#0f766e, #5eead4) !important; } }";
const GONE = "The app cannot be reached: it was stopped, or the network between here and it is down. "
  + "What was saved is safe, and labels that were not sent yet wait in this browser. "
  + "Start the app again; this page then goes on by itself.";

export default function () {
  if (globalThis.semipruneFrame) return;
  globalThis.semipruneFrame = true;
  oneStepBack();
  const lines = new CSSStyleSheet();
  lines.replaceSync(LINES);
  document.adoptedStyleSheets = [...document.adoptedStyleSheets, lines];
  new MutationObserver(nameWhatIsGone).observe(document.body, { childList: true, subtree: true });
}

// A script that writes the project into the address of a page adds no entry to the history; a change of page does.
function oneStepBack() {
  const push = history.pushState;
  history.pushState = function (state, unused, url) {
    const goal = new URL(url ?? location.href, location.href);
    if (goal.origin === location.origin && goal.pathname === location.pathname) history.replaceState(state, unused, url);
    else push.call(this, state, unused, url);
  };
}

// The dialog about a lost connection asks after the internet, where the app often runs on the same machine.
function nameWhatIsGone() {
  for (const dialog of document.querySelectorAll("[role='dialog']")) {
    if (dialog.dataset.named || !dialog.textContent.includes("Connection error")) continue;
    dialog.dataset.named = "yes";
    const texts = document.createTreeWalker(dialog, NodeFilter.SHOW_TEXT);
    let words = GONE;
    for (let text = texts.nextNode(); text; text = texts.nextNode()) {
      if (text.data.includes("Connection error") || text.parentElement.closest("button")) continue;
      text.data = words;
      words = "";
    }
  }
}
