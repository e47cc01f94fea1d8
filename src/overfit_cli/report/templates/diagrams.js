// Phase diagrams: panels, a legend, and beside them the numbers at the selected point.
const STATES = ["partly", "lost", "none"];

// What a point's mark says: why its seeds have no value, and of how many.
function stateInWords(diagram, state) {
  if (state === "none") return "no cells";
  const half = diagram.mean === "median" ? "half of the seeds or more" : "one seed or more";
  return `${diagram.why}: ${state === "lost" ? half : "fewer than half of the seeds"}`;
}

function colourBar(diagram) {
  const colours = diagram.colours;
  const bar = makeSvg("svg", { viewBox: "0 0 240 28", class: "bar", role: "img" });
  const width = 240 / colours.length;
  colours.forEach((colour, index) => {
    bar.append(makeSvg("rect", { x: index * width, y: 0, width: width + 0.5, height: 12, fill: colour }));
  });
  const numbers = [[diagram.low, 0, "start"], [diagram.middle, 120, "middle"], [diagram.high, 240, "end"]];
  for (const [number, x, anchor] of diagram.low === diagram.high ? numbers.slice(1, 2) : numbers) {
    bar.append(makeSvg("text", { x, y: 25, "text-anchor": anchor }, String(number)));
  }
  bar.setAttribute("aria-label", `Colours from ${diagram.low} to ${diagram.high}`);
  return bar;
}

function legend(diagram) {
  const states = new Set(diagram.panels.flatMap((panel) => placesOf(panel).map(stateOf)));
  const list = make("ul", { class: "legend" });
  const bar = make("li");
  bar.append(colourBar(diagram));
  list.append(bar);
  for (const state of STATES.filter((state) => states.has(state))) {
    const swatch = makeSvg("svg", { viewBox: "0 0 18 14", class: "swatch", "aria-hidden": "true" });
    const fill = state === "partly" ? { fill: diagram.colours[Math.floor(diagram.colours.length / 2)] } : {};
    swatch.append(makeSvg("rect", { class: `place ${state}`, x: 1, y: 1, width: 16, height: 12, ...fill }));
    if (state === "partly") swatch.append(corner(1, 1, 16, 12));
    const line = make("li");
    line.append(swatch, stateInWords(diagram, state));
    list.append(line);
  }
  return list;
}

// Draw a diagram into an element; the name says what it is of.
function drawDiagram(holder, diagram, name) {
  const reading = make("div", { class: "reading" });
  const text = make("p", {}, "Point at a place, or choose one with Tab and the arrow keys.");
  reading.append(text);
  const marks = ["mark", "mark inner"].map((style) => makeSvg("rect", { class: style, "aria-hidden": "true" }));
  const show = (rect, place, x, y) => {
    for (const mark of marks) {
      for (const side of ["x", "y", "width", "height"]) mark.setAttribute(side, rect.getAttribute(side));
      rect.ownerSVGElement.append(mark);
    }
    text.textContent = sentence(diagram, place, x, y);
  };
  const panels = make("div", { class: "panels" });
  for (const panel of diagram.panels) {
    const part = make("div", { class: "panel" });
    if (panel.title) part.append(make("p", {}, panel.title));
    part.append(drawPanel(diagram, panel, name, show));
    panels.append(part);
  }
  const explored = make("div", { class: "explored" });
  explored.append(panels, reading);
  const over = `over ${diagram.x.label} and ${diagram.y.label}`;
  const title = `${diagram.value} ${over}: ${diagram.mean} over seeds`;
  holder.append(make("h5", {}, title), legend(diagram), explored);
  holder.hidden = false;
}
