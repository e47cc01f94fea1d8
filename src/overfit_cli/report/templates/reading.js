// What is read at a place of a phase diagram: a sentence, and the losses of one seed.
const many = (count) => `${count} ${count === 1 ? "seed" : "seeds"}`;

function sentence(diagram, place, x, y) {
  const at = `${diagram.y.label} ${diagram.y.values[y]}, ${diagram.x.label} ${diagram.x.values[x]}`;
  if (!place) return `${at}: no cells.`;
  const { seeds = 0, valueless = 0, failed = 0 } = place;
  const every = seeds + valueless + failed;
  const without = [
    valueless ? `${many(valueless)} ${valueless === 1 ? "has" : "have"} no value` : "",
    failed ? `${many(failed)} failed` : "",
  ].filter(Boolean).join(", ");
  if (!seeds) return `${at}: no value from ${many(every)}: ${without}.`;
  const of = every === seeds ? "" : ` of ${every}`;
  const interval = place.from === undefined
    ? `one${of || " seed"}${of ? " seeds" : ""}.`
    : `mean of ${seeds}${of} seeds, 95 % interval ${place.from} to ${place.to}, seeds from `
      + `${place.least} to ${place.most}.`;
  const side = place.above === undefined ? "" : ` ${sides(diagram, place)}`;
  return `${at}: ${diagram.value} ${place.mean}, ${interval}${side}${without ? ` ${without}.` : ""}`;
}

function sides(diagram, place) {
  const [below, above] = diagram.sides;
  const counted = [[place.seeds - place.above, below], [place.above, above]].filter(([count]) => count);
  const said = counted.map(([count, side]) => `${many(count)} ${side}`);
  return `Against the threshold ${diagram.threshold}: ${said.join(", ")}.`;
}

function curve(diagram, place) {
  const logged = place.curve;
  const picture = drawn("svg", { viewBox: "0 0 360 152", role: "img" });
  const numbers = logged.columns.flat().filter((value) => value !== null);
  const ratio = Math.min(...numbers) > 0 && Math.max(...numbers) > 30 * Math.min(...numbers);
  const scale = ratio ? Math.log : (value) => value;
  const [low, high] = [scale(Math.min(...numbers)), scale(Math.max(...numbers))];
  const last = Math.max(...logged.steps) || 1;
  const across = (step) => 50 + (300 * step) / last;
  const up = (value) => 130 - (120 * (scale(value) - low)) / (high - low || 1);
  picture.append(drawn("rect", { class: "frame", x: 50, y: 10, width: 300, height: 120 }));
  logged.columns.forEach((column, index) => {
    const points = column
      .map((value, at) => (value === null ? "" : `${across(logged.steps[at])},${up(value)}`))
      .filter(Boolean);
    picture.append(drawn("polyline", { class: index ? "curve second" : "curve", points: points.join(" ") }));
  });
  const ends = [Math.max(...numbers), Math.min(...numbers)].map((value) => Number(value.toPrecision(3)));
  picture.append(
    drawn("text", { x: 46, y: 16, "text-anchor": "end" }, String(ends[0])),
    drawn("text", { x: 46, y: 130, "text-anchor": "end" }, String(ends[1])),
    drawn("text", { x: 50, y: 146, "text-anchor": "middle" }, "0"),
    drawn("text", { x: 350, y: 146, "text-anchor": "end" }, String(last)),
    drawn("text", { x: 200, y: 146, "text-anchor": "middle" }, diagram.step),
  );
  const named = diagram.logged.map((name, index) => `${name} (${index ? "dashed" : "solid"})`);
  const logarithmic = ratio ? " The scale is logarithmic." : "";
  const title = `${named.join(" and ")} of seed ${logged.seed}, the one in the middle.${logarithmic}`;
  picture.setAttribute("aria-label", title);
  return [make("p", {}, title), picture];
}

