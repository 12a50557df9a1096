// Training copies in a row, each pixel as it is.
export default function (component) {
  const { data, parentElement } = component;
  const row = parentElement.querySelector(".copies");
  const drawn = JSON.stringify(data.pictures);
  if (row.drawn === drawn) return;
  row.drawn = drawn;
  row.replaceChildren(...data.pictures.map((src, number) => {
    const image = document.createElement("img");
    image.alt = `Training copy ${number + 1}`;
    image.src = src;
    return image;
  }));
}
