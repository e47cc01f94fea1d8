// The numbers at a point of a phase diagram, in a sentence.
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
