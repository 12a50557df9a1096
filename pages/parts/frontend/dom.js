// An element with a class and a text; text comes in as data and is set as text, never as HTML.
function element(tag, name, content = "") {
  const made = document.createElement(tag);
  made.className = name;
  made.textContent = content;
  return made;
}
