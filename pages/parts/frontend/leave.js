// The name of whoever is logged in, and a button that ends the session. Labels that wait in the browser stay there.
export default function (component) {
  const { data, parentElement } = component;
  parentElement.querySelector(".name").textContent = data.name;
  parentElement.querySelector(".name").title = data.name;
  const button = parentElement.querySelector("button");
  button.onclick = async () => {
    button.disabled = true;
    try {
      await fetch(data.address, { method: "POST", headers: { "X-SemiPrune-Token": data.token } });
    } finally {
      location.assign(data.home);
    }
  };
}
