// Elements, found and made, and how wide a text is in a diagram.
const all = (query, within = document) => [...within.querySelectorAll(query)];
const one = (query, within = document) => within.querySelector(query);

function dressed(element, attributes, text) {
  for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
  if (text) element.textContent = text;
  return element;
}
const make = (name, attributes = {}, text = "") => dressed(document.createElement(name), attributes, text);
const drawn = (name, attributes = {}, text = "") =>
  dressed(document.createElementNS("http://www.w3.org/2000/svg", name), attributes, text);

const narrow = matchMedia("(max-width: 46rem)");
const pen = document.createElement("canvas").getContext("2d");
pen.font = "11px system-ui, sans-serif"; // that of diagrams.css
const widthOf = (text) => pen.measureText(text).width;

// A text in lines that are at most so wide, where its words allow it.
function inLines(text, most) {
  const lines = [""];
  for (const word of text.split(" ")) {
    const longer = `${lines.at(-1)} ${word}`.trim();
    if (lines.at(-1) && widthOf(longer) > most) lines.push(word);
    else lines[lines.length - 1] = longer;
  }
  return lines;
}

