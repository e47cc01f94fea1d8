// Claims: filtered by paper, verdict and words; sorted by a heading or in the bar.
const rows = all(".claims tbody tr");
const filters = find("#filters");
const words = new Map(rows.map((row) => [row, row.textContent.toLowerCase()]));

function filter() {
  const paper = find("#of-paper").value;
  const verdicts = new Set(all("input[name=verdict]:checked").map((box) => box.value));
  const kinds = new Set(all("input[name=kind]:checked").map((box) => box.value));
  const wanted = find("#words").value.toLowerCase().split(/\s+/).filter(Boolean);
  let count = 0;
  for (const row of rows) {
    const fits = verdicts.has(row.dataset.verdict)
      && kinds.has(row.dataset.kind)
      && (!paper || row.closest(".paper").dataset.paper === paper)
      && wanted.every((word) => words.get(row).includes(word));
    row.hidden = !fits;
    count += fits;
  }
  const allShown = count === rows.length;
  for (const study of all(".study")) {
    const fitting = all(".claims tbody tr:not([hidden])", study);
    const complete = fitting.length === all(".claims tbody tr", study).length;
    const inPaper = !paper || study.closest(".paper").dataset.paper === paper;
    // A study without claims is filtered by its paper only.
    const claims = find(".claims", study);
    study.hidden = claims ? !allShown && !fitting.length : !inPaper;
    // With some claims hidden, only the runs of the others are shown.
    const runLinks = new Set(fitting.flatMap((row) => all("a.behind", row).map((link) => link.hash)));
    for (const run of all(".run", study)) run.hidden = !complete && !runLinks.has(`#${run.id}`);
  }
  for (const section of all(".paper")) {
    section.hidden = !find(".study:not([hidden])", section);
  }
  find("#none").hidden = Boolean(find(".study:not([hidden])"));
  find("#count").value = `${count} of ${rows.length} claims`;
}

// Claims without a number come last in both directions.
const ranks = all("input[name=verdict]").map((box) => box.value);
const order = (row) => Number(row.dataset.order);
const keys = {
  name: (row) => row.dataset.name,
  verdict: (row) => ranks.indexOf(row.dataset.verdict),
  value: (row) => (row.dataset.value === "" ? null : Number(row.dataset.value)),
};

function sort() {
  const [column, direction] = find("#sort").value.split(" ");
  const key = keys[column] || order;
  const sign = direction === "descending" ? -1 : 1;
  const compare = (left, right) => {
    const [a, b] = [key(left), key(right)];
    if ((a === null) !== (b === null)) return a === null ? 1 : -1;
    return (a > b ? sign : a < b ? -sign : 0) || order(left) - order(right);
  };
  for (const body of all(".claims tbody")) body.append(...all("tr", body).sort(compare));
  for (const heading of all(".claims th[data-by]")) {
    if (column && heading.dataset.by === column) heading.setAttribute("aria-sort", direction);
    else heading.removeAttribute("aria-sort");
  }
}

// A heading sorts up, down, and back to the paper's order.
for (const heading of all(".claims th[data-by]")) {
  const button = make("button", { type: "button" }, heading.textContent);
  heading.replaceChildren(button);
  button.addEventListener("click", () => {
    const next = { ascending: "descending", descending: "" }[heading.getAttribute("aria-sort")];
    const direction = next === undefined ? "ascending" : next;
    find("#sort").value = direction ? `${heading.dataset.by} ${direction}` : "";
    sort();
  });
}

// On a narrow screen the bar shows the number of claims, and unfolds.
const fold = () => { find("#controls").open = !narrow.matches; };
narrow.addEventListener("change", fold);
fold();
filters.hidden = false;
filters.addEventListener("input", (event) => (event.target.id === "sort" ? sort() : filter()));
filters.addEventListener("submit", (event) => event.preventDefault());
filter();

// A link to a claim or run that a filter hides shows everything again.
document.addEventListener("click", (event) => {
  const link = event.target.closest("a[href^='#']");
  const target = link && document.getElementById(decodeURIComponent(link.hash.slice(1)));
  if (target && target.closest("[hidden]")) {
    filters.reset();
    filter();
    sort();
    target.scrollIntoView();
  }
});

