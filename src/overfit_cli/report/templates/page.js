"use strict";
(() => {
  const all = (query, within = document) => [...within.querySelectorAll(query)];
  const one = (query, within = document) => within.querySelector(query);
  const make = (name, attributes = {}, text = "") => {
    const element = document.createElement(name);
    for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
    element.textContent = text;
    return element;
  };
  const drawn = (name, attributes = {}, text = "") => {
    const element = document.createElementNS("http://www.w3.org/2000/svg", name);
    for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
    if (text) element.textContent = text;
    return element;
  };

  // Filters: a claim is shown where its paper, its verdict and its words are asked for.
  const rows = all(".claims tbody tr");
  const filters = one("#filters");
  const words = new Map(rows.map((row) => [row, row.textContent.toLowerCase()]));
  function filter() {
    const paper = one("#of-paper").value;
    const verdicts = new Set(all("input[name=verdict]:checked").map((box) => box.value));
    const wanted = one("#words").value.toLowerCase().split(/\s+/).filter(Boolean);
    let shown = 0;
    for (const row of rows) {
      const fits = verdicts.has(row.dataset.verdict)
        && (!paper || row.closest(".paper").dataset.paper === paper)
        && wanted.every((word) => words.get(row).includes(word));
      row.hidden = !fits;
      shown += fits;
    }
    const everything = shown === rows.length;
    for (const study of all(".study")) {
      const fitting = all(".claims tbody tr:not([hidden])", study);
      const whole = fitting.length === all(".claims tbody tr", study).length;
      const ofPaper = !paper || study.closest(".paper").dataset.paper === paper;
      // A study without claims has only its paper to go by.
      const claims = one(".claims", study);
      study.hidden = claims ? !everything && !fitting.length : !ofPaper;
      // Of some claims, only the runs are shown that they were measured on.
      const behind = new Set(fitting.flatMap((row) => all("a.behind", row).map((link) => link.hash)));
      for (const run of all(".run", study)) run.hidden = !whole && !behind.has(`#${run.id}`);
    }
    for (const section of all(".paper")) {
      section.hidden = !one(".study:not([hidden])", section);
    }
    one("#none").hidden = Boolean(one(".study:not([hidden])"));
    one("#count").value = `${shown} of ${rows.length} claims`;
  }
  filters.hidden = false;
  filters.addEventListener("input", filter);
  filters.addEventListener("submit", (event) => event.preventDefault());
  filter();

  // A link to a claim or run that a filter hides shows everything again.
  document.addEventListener("click", (event) => {
    const link = event.target.closest("a[href^='#']");
    const target = link && document.getElementById(decodeURIComponent(link.hash.slice(1)));
    if (target && target.closest("[hidden]")) {
      filters.reset();
      filter();
      target.scrollIntoView();
    }
  });

  // Sorting: a heading sorts the rows of its table, up, down, and back to the paper's order.
  const ranks = all("input[name=verdict]").map((box) => box.value);
  const keys = {
    name: (row) => row.dataset.name,
    verdict: (row) => ranks.indexOf(row.dataset.verdict),
    value: (row) => (row.dataset.value === "" ? Infinity : Number(row.dataset.value)),
    order: (row) => Number(row.dataset.order),
  };
  for (const heading of all(".claims th[data-by]")) {
    const button = make("button", { type: "button" }, heading.textContent);
    heading.replaceChildren(button);
    button.addEventListener("click", () => {
      const next = { ascending: "descending", descending: "" }[heading.getAttribute("aria-sort")];
      const direction = next === undefined ? "ascending" : next;
      const table = heading.closest("table");
      for (const other of all("th[aria-sort]", table)) other.removeAttribute("aria-sort");
      if (direction) heading.setAttribute("aria-sort", direction);
      const key = keys[direction ? heading.dataset.by : "order"];
      const sign = direction === "descending" ? -1 : 1;
      const compare = (left, right) => {
        const [a, b] = [key(left), key(right)];
        return (a > b ? sign : a < b ? -sign : 0) || keys.order(left) - keys.order(right);
      };
      const body = one("tbody", table);
      body.append(...all("tr", body).sort(compare));
    });
  }

  // Copying, also where the page is opened from disk and the browser keeps its clipboard closed.
  async function copy(text) {
    try {
      await navigator.clipboard.writeText(text);
    } catch {
      const area = make("textarea", { "aria-label": "command" });
      area.value = text;
      document.body.append(area);
      area.select();
      document.execCommand("copy");
      area.remove();
    }
  }
  for (const button of all(".copy")) {
    button.hidden = false;
    button.addEventListener("click", async () => {
      await copy(button.dataset.copy);
      button.focus();
      button.textContent = "Copied";
      one("#said").textContent = `Copied: ${button.dataset.copy}`;
      setTimeout(() => { button.textContent = "Copy"; }, 2000);
    });
  }

  // Enlarging a figure.
  const large = one("#large");
  for (const picture of all(".pictures img")) {
    const button = make("button", { type: "button", class: "enlarge" });
    picture.replaceWith(button);
    button.append(picture, make("span", { class: "unseen" }, " Enlarge"));
    button.addEventListener("click", () => {
      const copied = one("img", large);
      copied.src = picture.src;
      copied.alt = picture.alt;
      one("p", large).textContent = picture.alt;
      large.showModal();
    });
  }
  large.addEventListener("click", (event) => { if (event.target === large) large.close(); });

  // Printing shows what is folded.
  const folded = new Set();
  addEventListener("beforeprint", () => {
    for (const part of all("details:not([open])")) {
      folded.add(part);
      part.open = true;
    }
  });
  addEventListener("afterprint", () => {
    for (const part of folded) part.open = false;
    folded.clear();
  });

  // Phase diagrams: a grid of places, reached by pointer or by arrow keys.
  const diagrams = JSON.parse(one("#diagrams").textContent);
  const [WIDE, LEFT, BOTTOM, TOP] = [480, 56, 40, 6];

  function sentence(diagram, place, x, y) {
    const at = `${diagram.y.label} ${diagram.y.values[y]}, ${diagram.x.label} ${diagram.x.values[x]}`;
    if (!place) return `${at}: no cells.`;
    const failed = place.failed ? ` ${place.failed} failed.` : "";
    if (place.mean === undefined) return `${at}:${failed}`;
    const interval = place.from === undefined
      ? "one seed."
      : `mean of ${place.seeds} seeds, 95 % interval ${place.from} to ${place.to}, seeds from `
        + `${place.least} to ${place.most}.`;
    const side = place.above === undefined ? "" : ` ${sides(diagram, place)}`;
    return `${at}: ${diagram.value} ${place.mean}, ${interval}${side}${failed}`;
  }

  function sides(diagram, place) {
    const [below, above] = diagram.sides;
    const counted = [[place.seeds - place.above, below], [place.above, above]].filter(([many]) => many);
    const said = counted.map(([many, side]) => `${many} ${many === 1 ? "seed" : "seeds"} ${side}`);
    return `Against the threshold ${diagram.threshold}: ${said.join(", ")}.`;
  }

  function colourBar(diagram) {
    const colours = diagram.colours;
    const bar = drawn("svg", { viewBox: "0 0 240 28", class: "bar", "aria-hidden": "true" });
    colours.forEach((colour, at) => {
      const width = 240 / colours.length;
      bar.append(drawn("rect", { x: at * width, y: 0, width: width + 0.5, height: 12, fill: colour }));
    });
    bar.append(
      drawn("text", { x: 0, y: 25 }, String(diagram.low)),
      drawn("text", { x: 240, y: 25, "text-anchor": "end" }, String(diagram.high)),
    );
    return bar;
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
    const title = `${named.join(" and ")} of seed ${logged.seed}, the one in the middle.`;
    picture.setAttribute("aria-label", title);
    return [make("p", {}, title), picture];
  }

  function axisTicks(svg, values, at, most, attributes) {
    const every = Math.ceil(values.length / most);
    values.forEach((value, index) => {
      if (index % every === 0) svg.append(drawn("text", attributes(at(index)), value));
    });
  }

  function drawPanel(diagram, panel, name, show) {
    const [columns, lines] = [diagram.x.values.length, diagram.y.values.length];
    const width = (WIDE - LEFT - 8) / columns;
    const height = Math.min(36, Math.max(11, 300 / lines));
    const bottom = TOP + height * lines;
    const label = `${diagram.value}${panel.title ? `, ${panel.title}` : ""}, ${name}`;
    const svg = drawn("svg", {
      viewBox: `0 0 ${WIDE} ${bottom + BOTTOM}`, role: "grid", "aria-label": label,
      "aria-rowcount": lines, "aria-colcount": columns,
    });
    const places = [];
    for (let y = lines - 1; y >= 0; y -= 1) {
      const line = drawn("g", { role: "row" });
      for (let x = 0; x < columns; x += 1) {
        const place = panel.places[y * columns + x];
        const measured = place && place.mean !== undefined;
        const rect = drawn("rect", {
          class: `place${measured ? "" : place ? " failed" : " none"}`,
          x: LEFT + x * width, y: TOP + (lines - 1 - y) * height, width, height,
          role: "gridcell", tabindex: "-1", "aria-label": sentence(diagram, place, x, y),
        });
        if (measured) rect.setAttribute("fill", diagram.colours[place.colour]);
        const chosen = () => show(rect, place, x, y);
        rect.addEventListener("pointerenter", chosen);
        rect.addEventListener("focus", chosen);
        rect.addEventListener("click", () => rect.focus());
        rect.addEventListener("keydown", (event) => {
          const moves = {
            ArrowLeft: [x - 1, y], ArrowRight: [x + 1, y], ArrowUp: [x, y + 1], ArrowDown: [x, y - 1],
            Home: [0, y], End: [columns - 1, y], PageUp: [x, lines - 1], PageDown: [x, 0],
          };
          const to = moves[event.key];
          const next = to && to[0] >= 0 && to[0] < columns ? places[to[1] * columns + to[0]] : null;
          if (to) event.preventDefault();
          if (!next) return;
          rect.setAttribute("tabindex", "-1");
          next.setAttribute("tabindex", "0");
          next.focus();
        });
        places[y * columns + x] = rect;
        line.append(rect);
      }
      svg.append(line);
    }
    places[0].setAttribute("tabindex", "0");
    const middle = (index) => LEFT + (index + 0.5) * width;
    axisTicks(svg, diagram.x.ticks, middle, 6, (at) => ({ x: at, y: bottom + 14, "text-anchor": "middle", "aria-hidden": "true" }));
    const up = (index) => bottom - (index + 0.5) * height + 4;
    axisTicks(svg, diagram.y.ticks, up, 10, (at) => ({ x: LEFT - 4, y: at, "text-anchor": "end", "aria-hidden": "true" }));
    svg.append(
      drawn("text", { x: (LEFT + WIDE) / 2, y: bottom + 32, "text-anchor": "middle", "aria-hidden": "true" }, diagram.x.label),
    );
    return svg;
  }

  function drawDiagram(holder) {
    const diagram = diagrams[Number(holder.dataset.diagram)];
    const name = holder.dataset.run;
    const reading = make("div", { class: "reading" });
    const said = make("p", {}, "Point at a place, or choose one with Tab and the arrow keys.");
    reading.append(said);
    const marks = ["mark", "mark inner"].map((look) => drawn("rect", { class: look }));
    const show = (rect, place, x, y) => {
      for (const mark of marks) {
        for (const side of ["x", "y", "width", "height"]) mark.setAttribute(side, rect.getAttribute(side));
        rect.ownerSVGElement.append(mark);
      }
      said.textContent = sentence(diagram, place, x, y);
      reading.replaceChildren(said, ...(place && place.curve ? curve(diagram, place) : []));
    };
    const panels = make("div", { class: "panels" });
    for (const panel of diagram.panels) {
      const part = make("div", { class: "panel" });
      if (panel.title) part.append(make("p", {}, panel.title));
      part.append(drawPanel(diagram, panel, name, show));
      panels.append(part);
    }
    const axes = `${diagram.y.label} (up) and ${diagram.x.label} (across)`;
    const explored = make("div", { class: "explored" });
    explored.append(panels, reading);
    holder.append(make("h5", {}, `${diagram.value} over ${axes}`), colourBar(diagram), explored);
    holder.hidden = false;
  }

  all(".diagram").forEach(drawDiagram);
})();
