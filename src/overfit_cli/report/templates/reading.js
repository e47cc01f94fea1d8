// The numbers at a point of a phase diagram: a sentence, and the losses of a seed.
const countSeeds = (count) => `${count} ${count === 1 ? "seed" : "seeds"}`;

function sentence(diagram, place, x, y) {
  const position = `${diagram.y.label} ${diagram.y.values[y]}, ${diagram.x.label} ${diagram.x.values[x]}`;
  if (!place) return `${position}: no cells.`;
  const { seeds, lost = 0 } = place;
  const lacking = lost ? ` ${countSeeds(lost)} of ${seeds + lost}: ${diagram.why}.` : "";
  const side = place.above === undefined ? "" : ` ${sides(diagram, place)}`;
  if (place.middle === undefined) return `${position}: no ${diagram.mean} over ${countSeeds(seeds + lost)}.${side}${lacking}`;
  const over = seeds + lost === 1 ? "one seed" : `${diagram.mean} of ${seeds + lost} seeds`;
  const interval = place.from === undefined ? "" : `, 95 % interval ${place.from} to ${place.to ?? "beyond the others"}`;
  const range = place.least === undefined ? "" : `, seeds from ${place.least} to ${place.most}`;
  return `${position}: ${diagram.value} ${place.middle}, ${over}${interval}${range}.${side}${lacking}`;
}

function sides(diagram, place) {
  const [lower, upper] = diagram.sides;
  const counted = [[place.seeds - place.above, lower], [place.above, upper]].filter(([count]) => count);
  const texts = counted.map(([count, side]) => `${countSeeds(count)} ${side}`);
  return `Against the threshold ${diagram.threshold}: ${texts.join(", ")}.`;
}

function curve(diagram, place) {
  const logged = place.curve;
  const picture = makeSvg("svg", { viewBox: "0 0 360 152", role: "img" });
  const numbers = logged.columns.flat().filter((value) => value !== null);
  const ratio = Math.min(...numbers) > 0 && Math.max(...numbers) > 30 * Math.min(...numbers);
  const scale = ratio ? Math.log : (value) => value;
  const [low, high] = [scale(Math.min(...numbers)), scale(Math.max(...numbers))];
  const last = Math.max(...logged.steps) || 1;
  const xOf = (step) => 50 + (300 * step) / last;
  const yOf = (value) => 130 - (120 * (scale(value) - low)) / (high - low || 1);
  picture.append(makeSvg("rect", { class: "frame", x: 50, y: 10, width: 300, height: 120 }));
  logged.columns.forEach((column, number) => {
    const points = column
      .map((value, index) => (value === null ? "" : `${xOf(logged.steps[index])},${yOf(value)}`))
      .filter(Boolean);
    picture.append(makeSvg("polyline", { class: number ? "curve second" : "curve", points: points.join(" ") }));
  });
  const ends = [Math.max(...numbers), Math.min(...numbers)].map((value) => Number(value.toPrecision(3)));
  picture.append(
    makeSvg("text", { x: 46, y: 16, "text-anchor": "end" }, String(ends[0])),
    makeSvg("text", { x: 46, y: 130, "text-anchor": "end" }, String(ends[1])),
    makeSvg("text", { x: 50, y: 146, "text-anchor": "middle" }, "0"),
    makeSvg("text", { x: 350, y: 146, "text-anchor": "end" }, String(last)),
    makeSvg("text", { x: 200, y: 146, "text-anchor": "middle" }, diagram.step),
  );
  const named = diagram.logged.map((name, index) => `${name} (${index ? "dashed" : "solid"})`);
  const logarithmic = ratio ? " The scale is logarithmic." : "";
  const title = `${named.join(" and ")} of seed ${logged.seed}, the one in the middle.${logarithmic}`;
  picture.setAttribute("aria-label", title);
  return [make("p", {}, title), picture];
}

