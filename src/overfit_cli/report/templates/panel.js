// A panel of a phase diagram: a grid of places, reached by pointer or by arrow keys.
const LINE = 13; // of text

// Of a place: whether it has a number, from every seed or from some, or why it has none.
function stateOf(place) {
  if (!place) return "none";
  if (place.mean === undefined) return place.failed ? "failed" : "valueless";
  return place.failed || place.valueless ? "partly" : "whole";
}

// Where a diagram's panels have their places, and the texts of their axes.
function layOut(diagram) {
  const [columns, lines] = [diagram.x.values.length, diagram.y.values.length];
  const plot = narrow.matches ? 250 : 400;
  const [width, height] = [plot / columns, Math.min(36, Math.max(11, 300 / lines))];
  const [across, up] = [inLines(diagram.x.label, plot), inLines(diagram.y.label, Math.max(height * lines, 120))];
  const [wide, high] = [Math.max(...diagram.x.ticks.map(widthOf)), Math.max(...diagram.y.ticks.map(widthOf))];
  const left = up.length * LINE + 8 + high + 4;
  const above = Math.max(6, (Math.max(...up.map(widthOf)) - height * lines) / 2 + 2);
  const bottom = above + height * lines;
  return {
    columns, lines, width, height, across, up, left, above, bottom,
    whole: [left + plot + Math.max(6, wide / 2), bottom + 22 + LINE * across.length],
    everyColumn: Math.ceil((wide + 8) / width), everyLine: Math.ceil(LINE / height),
  };
}

function axes(diagram, laid) {
  const group = drawn("g", { "aria-hidden": "true" });
  const write = (text, x, y, anchor, more = {}) =>
    group.append(drawn("text", { x, y, "text-anchor": anchor, ...more }, text));
  diagram.x.ticks.forEach((tick, at) => {
    if (at % laid.everyColumn === 0) write(tick, laid.left + (at + 0.5) * laid.width, laid.bottom + 14, "middle");
  });
  diagram.y.ticks.forEach((tick, at) => {
    if (at % laid.everyLine === 0) write(tick, laid.left - 4, laid.bottom - (at + 0.5) * laid.height + 4, "end");
  });
  const [middle, level] = [laid.left + (laid.width * laid.columns) / 2, (laid.above + laid.bottom) / 2];
  laid.across.forEach((text, at) => write(text, middle, laid.bottom + 19 + LINE * (at + 1), "middle"));
  laid.up.forEach((text, at) => {
    const x = LINE * (at + 1) - 3;
    write(text, x, level, "middle", { class: "upward", transform: `rotate(-90 ${x} ${level})` });
  });
  return group;
}

function placeRect(diagram, laid, place, x, y) {
  const state = stateOf(place);
  const rect = drawn("rect", {
    class: `place ${state}`,
    x: laid.left + x * laid.width, y: laid.bottom - (y + 1) * laid.height,
    width: laid.width, height: laid.height,
    role: "gridcell", tabindex: "-1", "aria-label": sentence(diagram, place, x, y),
  });
  if (place && place.mean !== undefined) rect.setAttribute("fill", diagram.colours[place.colour]);
  return rect;
}

// The mark of a place whose number some seeds lack: its upper right corner.
function corner(x, y, width, height) {
  const side = Math.min(width, height) * 0.5;
  const right = x + width;
  return drawn("path", { class: "corner", d: `M${right - side} ${y}H${right}V${y + side}Z` });
}

function goingTo(places, laid, x, y) {
  const [right, top] = [laid.columns - 1, laid.lines - 1];
  return (event) => {
    const to = {
      ArrowLeft: [x - 1, y], ArrowRight: [x + 1, y], ArrowUp: [x, y + 1], ArrowDown: [x, y - 1],
      Home: [0, y], End: [right, y], PageUp: [x, top], PageDown: [x, 0],
    }[event.key];
    if (!to) return;
    event.preventDefault();
    const next = to[0] >= 0 && to[0] <= right ? places[to[1] * laid.columns + to[0]] : null;
    if (!next) return;
    event.target.setAttribute("tabindex", "-1");
    next.setAttribute("tabindex", "0");
    next.focus();
  };
}

function drawPanel(diagram, panel, name, show) {
  const laid = layOut(diagram);
  const label = `${diagram.value}${panel.title ? `, ${panel.title}` : ""}, ${name}`;
  const svg = drawn("svg", {
    viewBox: `0 0 ${laid.whole.join(" ")}`, role: "grid", "aria-label": label,
    "aria-rowcount": laid.lines, "aria-colcount": laid.columns,
  });
  const places = [];
  const corners = drawn("g", { "aria-hidden": "true" });
  for (let y = laid.lines - 1; y >= 0; y -= 1) {
    const line = drawn("g", { role: "row" });
    for (let x = 0; x < laid.columns; x += 1) {
      const place = panel.places[y * laid.columns + x];
      const rect = placeRect(diagram, laid, place, x, y);
      const chosen = () => show(rect, place, x, y);
      rect.addEventListener("pointerenter", chosen);
      rect.addEventListener("focus", chosen);
      rect.addEventListener("click", () => rect.focus({ preventScroll: true }));
      rect.addEventListener("keydown", goingTo(places, laid, x, y));
      places[y * laid.columns + x] = rect;
      line.append(rect);
      if (stateOf(place) === "partly") {
        corners.append(corner(...["x", "y", "width", "height"].map((side) => Number(rect.getAttribute(side)))));
      }
    }
    svg.append(line);
  }
  places[0].setAttribute("tabindex", "0");
  svg.append(corners, axes(diagram, laid));
  return svg;
}

