// A word this browser keeps between visits, such as the annotator's name.
export default function (component) {
  const { data, setStateValue } = component;
  const key = `semiprune:${data.name}`;
  try {
    if (data.value) localStorage.setItem(key, data.value);
    else if (localStorage.getItem(key)) setStateValue("value", localStorage.getItem(key));
  } catch { /* a browser without storage asks again next time */ }
}
