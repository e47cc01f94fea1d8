// Elements of the page, and the width of a text in a diagram.
const all = (query, root = document) => [...root.querySelectorAll(query)];
const find = (query, root = document) => root.querySelector(query);

function setAttributes(element, attributes, text) {
  for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
  if (text) element.textContent = text;
  return element;
}
const make = (name, attributes = {}, text = "") => setAttributes(document.createElement(name), attributes, text);
const makeSvg = (name, attributes = {}, text = "") =>
  setAttributes(document.createElementNS("http://www.w3.org/2000/svg", name), attributes, text);

const narrow = matchMedia("(max-width: 46rem)");
const folding = matchMedia("(max-width: 64rem)");
const pen = document.createElement("canvas").getContext("2d");
pen.font = "11px system-ui, sans-serif"; // the font of diagrams.css
const widthOf = (text) => pen.measureText(text).width;

// Break a text between words into lines of a limited width.
function breakLines(text, limit) {
  const lines = [""];
  for (const word of text.split(" ")) {
    const longer = `${lines.at(-1)} ${word}`.trim();
    if (lines.at(-1) && widthOf(longer) > limit) lines.push(word);
    else lines[lines.length - 1] = longer;
  }
  return lines;
}

