// A panel of a phase diagram: a grid of points, for the pointer and the arrow keys.
const LINE = 13; // the height of a line of text

// What is known at each point of a panel, from its lists of numbers; null where there are no cells.
function placesOf(panel) {
  const { seeds, ...lists } = panel.points;
  return seeds.map((count, index) => {
    if (count === null) return null;
    const known = Object.entries(lists).map(([name, list]) => [name, list[index]]).filter(([, number]) => number !== null);
    return { seeds: count, ...Object.fromEntries(known) };
  });
}

// The state of a point: a number over all seeds, some of which may have none, or why it has none.
function stateOf(place) {
  if (!place) return "none";
  if (place.middle === undefined) return "lost";
  return place.lost ? "partly" : "whole";
}

// The positions of a panel's points, and the texts of its axes.
function layOut(diagram) {
  const [columns, lines] = [diagram.x.values.length, diagram.y.values.length];
  const plot = narrow.matches || diagram.panels.length > 1 ? 250 : 400;
  const [width, height] = [plot / columns, Math.min(36, Math.max(11, 300 / lines))];
  const [xLines, yLines] = [breakLines(diagram.x.label, plot), breakLines(diagram.y.label, Math.max(height * lines, 120))];
  const [tickWidth, tickHeight] = [Math.max(...diagram.x.ticks.map(widthOf)), Math.max(...diagram.y.ticks.map(widthOf))];
  const left = yLines.length * LINE + 8 + tickHeight + 4;
  const top = Math.max(6, (Math.max(...yLines.map(widthOf)) - height * lines) / 2 + 2);
  const bottom = top + height * lines;
  return {
    columns, lines, width, height, xLines, yLines, left, top, bottom,
    size: [left + plot + Math.max(6, tickWidth / 2), bottom + 22 + LINE * xLines.length],
    everyColumn: Math.ceil((tickWidth + 8) / width), everyLine: Math.ceil(LINE / height),
  };
}

function axes(diagram, layout) {
  const group = makeSvg("g", { "aria-hidden": "true" });
  const write = (text, x, y, anchor, attributes = {}) =>
    group.append(makeSvg("text", { x, y, "text-anchor": anchor, ...attributes }, text));
  diagram.x.ticks.forEach((tick, index) => {
    if (index % layout.everyColumn === 0) write(tick, layout.left + (index + 0.5) * layout.width, layout.bottom + 14, "middle");
  });
  diagram.y.ticks.forEach((tick, index) => {
    if (index % layout.everyLine === 0) write(tick, layout.left - 4, layout.bottom - (index + 0.5) * layout.height + 4, "end");
  });
  const [middle, level] = [layout.left + (layout.width * layout.columns) / 2, (layout.top + layout.bottom) / 2];
  layout.xLines.forEach((text, index) => write(text, middle, layout.bottom + 19 + LINE * (index + 1), "middle"));
  layout.yLines.forEach((text, index) => {
    const x = LINE * (index + 1) - 3;
    write(text, x, level, "middle", { class: "upward", transform: `rotate(-90 ${x} ${level})` });
  });
  return group;
}

function placeRect(diagram, layout, place, x, y) {
  const state = stateOf(place);
  const rect = makeSvg("rect", {
    class: `place ${state}`,
    x: layout.left + x * layout.width, y: layout.bottom - (y + 1) * layout.height,
    width: layout.width, height: layout.height,
    role: "gridcell", tabindex: "-1", "aria-label": sentence(diagram, place, x, y),
  });
  if (place && place.middle !== undefined) rect.setAttribute("fill", diagram.colours[place.colour]);
  return rect;
}

// The mark of a point without a number of some seeds: its upper right corner.
function corner(x, y, width, height) {
  const side = Math.min(width, height) * 0.5;
  const right = x + width;
  return makeSvg("path", { class: "corner", d: `M${right - side} ${y}H${right}V${y + side}Z` });
}

function keyHandler(places, layout, x, y) {
  const [right, highest] = [layout.columns - 1, layout.lines - 1];
  return (event) => {
    const target = {
      ArrowLeft: [x - 1, y], ArrowRight: [x + 1, y], ArrowUp: [x, y + 1], ArrowDown: [x, y - 1],
      Home: [0, y], End: [right, y], PageUp: [x, highest], PageDown: [x, 0],
    }[event.key];
    if (!target) return;
    event.preventDefault();
    const next = target[0] >= 0 && target[0] <= right ? places[target[1] * layout.columns + target[0]] : null;
    if (!next) return;
    event.target.setAttribute("tabindex", "-1");
    next.setAttribute("tabindex", "0");
    next.focus();
  };
}

function drawPanel(diagram, panel, name, show) {
  const layout = layOut(diagram);
  const known = placesOf(panel);
  const label = `${diagram.value}${panel.title ? `, ${panel.title}` : ""}, ${name}`;
  const svg = makeSvg("svg", {
    viewBox: `0 0 ${layout.size.join(" ")}`, role: "grid", "aria-label": label,
    "aria-rowcount": layout.lines, "aria-colcount": layout.columns,
  });
  const places = [];
  const corners = makeSvg("g", { "aria-hidden": "true" });
  for (let y = layout.lines - 1; y >= 0; y -= 1) {
    const line = makeSvg("g", { role: "row" });
    for (let x = 0; x < layout.columns; x += 1) {
      const place = known[y * layout.columns + x];
      const rect = placeRect(diagram, layout, place, x, y);
      const select = () => show(rect, place, x, y);
      rect.addEventListener("pointerenter", select);
      rect.addEventListener("focus", select);
      rect.addEventListener("click", () => rect.focus({ preventScroll: true }));
      rect.addEventListener("keydown", keyHandler(places, layout, x, y));
      places[y * layout.columns + x] = rect;
      line.append(rect);
      if (stateOf(place) === "partly") {
        corners.append(corner(...["x", "y", "width", "height"].map((side) => Number(rect.getAttribute(side)))));
      }
    }
    svg.append(line);
  }
  places[0].setAttribute("tabindex", "0");
  svg.append(corners, axes(diagram, layout));
  return svg;
}

