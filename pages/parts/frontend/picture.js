// One picture, large; small ones are enlarged with hard edges.
export default function (component) {
  const { data, parentElement } = component;
  const box = parentElement.querySelector(".picture");
  const image = document.createElement("img");
  image.alt = data.alt;
  image.addEventListener("load", () => image.classList.toggle("small", image.naturalWidth <= 160));
  image.addEventListener("error", () => {
    if (data.fallback && !image.src.endsWith(data.fallback)) {
      image.src = data.fallback;
      return;
    }
    const note = document.createElement("div");
    note.className = "missing";
    note.textContent = "The picture cannot be shown: its file is missing or has changed since the import.";
    box.replaceChildren(note);
  });
  image.src = data.src;
  box.replaceChildren(image);
}
