// Drop files or a folder: each one is streamed to our own route, four at a time, and counts when the server has it all.
const AT_ONCE = 4;

export default function (component) {
  const { data, parentElement, setTriggerValue } = component;
  const find = (name) => parentElement.querySelector(name);
  const zone = find(".zone");
  if (zone.studio) { zone.studio.data = data; return; }
  const state = (zone.studio = { data, abort: null });
  const rest = () => say(data.words || "Drop a ZIP, an .npz, images or a folder here", "Files go straight to the server's disk.");
  rest();
  find(".pick-folder").hidden = Boolean(data.words); // asked for one file

  find(".pick-files").onclick = (event) => { event.stopPropagation(); find(".files").click(); };
  find(".pick-folder").onclick = (event) => { event.stopPropagation(); find(".folder").click(); };
  find(".cancel").onclick = (event) => { event.stopPropagation(); state.abort?.abort(); };
  zone.onclick = () => { if (!state.abort) find(".files").click(); };
  for (const name of [".files", ".folder"]) {
    find(name).onclick = (event) => event.stopPropagation();
    find(name).onchange = (event) => {
      const chosen = [...event.target.files].map((file) => ({ file, name: file.webkitRelativePath || file.name }));
      event.target.value = "";
      send(chosen);
    };
  }
  zone.ondragover = (event) => { event.preventDefault(); zone.classList.add("over"); };
  zone.ondragleave = () => zone.classList.remove("over");
  zone.ondrop = async (event) => {
    event.preventDefault();
    zone.classList.remove("over");
    const roots = [...event.dataTransfer.items].map((item) => item.webkitGetAsEntry?.()).filter(Boolean);
    const found = [];
    for (const root of roots) await walk(root, "", found);
    send(found);
  };

  async function walk(entry, prefix, found) {
    if (entry.isFile) {
      const file = await new Promise((resolve, reject) => entry.file(resolve, reject));
      found.push({ file, name: prefix + entry.name });
      return;
    }
    const reader = entry.createReader();
    for (;;) {
      const some = await new Promise((resolve, reject) => reader.readEntries(resolve, reject));
      if (!some.length) return;
      for (const child of some) await walk(child, `${prefix}${entry.name}/`, found);
    }
  }

  async function send(files) {
    if (!files.length || state.abort) return;
    const total = files.reduce((sum, { file }) => sum + file.size, 0);
    const abort = (state.abort = new AbortController());
    const sent = new Array(files.length).fill(0);
    let upload = null;
    busy(true);
    fail("");
    try {
      const begun = await ask("POST", "", null, {}, abort.signal);
      upload = begun.upload;
      if (state.kept) discard(state.kept); // what was dropped before and never imported
      const tooLarge = files.find(({ file }) => file.size > begun.limit);
      if (tooLarge) throw new Error(`${tooLarge.name} is larger than the limit of ${gb(begun.limit)}. Import it as a server folder instead.`);
      let next = 0;
      const lane = async () => {
        while (next < files.length) {
          const number = next++;
          await put(begun.upload, number, files[number], (loaded) => { sent[number] = loaded; show(); }, abort.signal);
          sent[number] = files[number].file.size;
          show();
        }
      };
      await Promise.all(Array.from({ length: AT_ONCE }, lane));
      say(files.length === 1 ? files[0].name : `${files.length} files`, `${gb(total)} on the server.`);
      state.kept = upload;
      setTriggerValue("uploaded", { upload: begun.upload, n: files.length, name: files[0].name, bytes: total });
    } catch (error) {
      abort.abort();
      if (upload) discard(upload);
      rest();
      fail(error.name === "AbortError" ? "Upload cancelled." : error.message);
    } finally {
      state.abort = null;
      busy(false);
    }

    function show() {
      const done = sent.reduce((sum, some) => sum + some, 0);
      find(".bar div").style.width = `${total ? (100 * done) / total : 100}%`;
      say("Uploading", `${gb(done)} of ${gb(total)}`);
    }
  }

  function discard(upload) {
    state.kept = null;
    fetch(`${state.data.base}/${upload}`, { method: "DELETE", keepalive: true, headers: { "X-SemiPrune-Token": state.data.token } });
  }

  async function ask(method, path, body, headers, signal) {
    const answer = await fetch(state.data.base + path, { method, body, signal, headers: { ...headers, "X-SemiPrune-Token": state.data.token } });
    const said = await answer.json();
    if (!answer.ok) throw new Error(said.error);
    return said;
  }

  function put(upload, number, { file, name }, onprogress, signal) {
    return new Promise((resolve, reject) => {
      const request = new XMLHttpRequest();
      request.open("PUT", `${state.data.base}/${upload}/${number}`);
      request.setRequestHeader("X-SemiPrune-Token", state.data.token);
      request.setRequestHeader("X-File-Name", encodeURIComponent(name));
      request.upload.onprogress = (event) => onprogress(event.loaded);
      request.onload = () => (request.status < 300 ? resolve() : reject(new Error(reason(request))));
      request.onerror = () => reject(new Error("The connection was lost. Check that the app is running, then drop the files again."));
      request.onabort = () => reject(new DOMException("", "AbortError"));
      signal.addEventListener("abort", () => request.abort());
      request.send(file);
    });
  }

  function reason(request) {
    try { return JSON.parse(request.responseText).error; } catch { return `The server answered ${request.status}.`; }
  }
  function say(big, small) { find(".big").textContent = big; find(".small").textContent = small; }
  function fail(message) { find(".error").textContent = message; find(".error").hidden = !message; }
  function busy(on) {
    zone.classList.toggle("busy", on);
    find(".bar").hidden = !on;
    find(".cancel").hidden = !on;
    find(".pick-files").hidden = on;
    find(".pick-folder").hidden = on || Boolean(state.data.words);
  }
  function gb(bytes) {
    const units = ["B", "kB", "MB", "GB"];
    let unit = 0;
    while (bytes >= 1000 && unit < 3) { bytes /= 1000; unit++; }
    return `${bytes.toFixed(unit < 2 ? 0 : 1)} ${units[unit]}`;
  }
}
