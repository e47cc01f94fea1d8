// Claims: filtered by paper, verdict and words; sorted by a heading or in the bar.
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

// What has no number comes last, whichever way the others go.
const ranks = all("input[name=verdict]").map((box) => box.value);
const order = (row) => Number(row.dataset.order);
const keys = {
  name: (row) => row.dataset.name,
  verdict: (row) => ranks.indexOf(row.dataset.verdict),
  value: (row) => (row.dataset.value === "" ? null : Number(row.dataset.value)),
};

function sort() {
  const [by, direction] = one("#sort").value.split(" ");
  const key = keys[by] || order;
  const sign = direction === "descending" ? -1 : 1;
  const compare = (left, right) => {
    const [a, b] = [key(left), key(right)];
    if ((a === null) !== (b === null)) return a === null ? 1 : -1;
    return (a > b ? sign : a < b ? -sign : 0) || order(left) - order(right);
  };
  for (const body of all(".claims tbody")) body.append(...all("tr", body).sort(compare));
  for (const heading of all(".claims th[data-by]")) {
    if (by && heading.dataset.by === by) heading.setAttribute("aria-sort", direction);
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
    one("#sort").value = direction ? `${heading.dataset.by} ${direction}` : "";
    sort();
  });
}

// Where there is little room, the bar shows how many claims there are, and unfolds.
const fold = () => { one("#controls").open = !narrow.matches; };
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

