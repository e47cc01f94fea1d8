// Claims: filtered by paper, verdict, kind and words; sorted by a heading or in the bar. The
// address keeps both.
const rows = all(".claims tbody tr");
const filters = find("#filters");
const groups = all("details.kind");
const opened = new Map(groups.map((group) => [group, group.open]));
const plain = (text) => text.toLowerCase().replaceAll("−", "-").replace(/\s+/g, " ");
const searched = new Map(rows.map((row) => {
  const study = row.closest(".study");
  const paper = row.closest(".paper");
  const around = [study.getAttribute("aria-label"), find("h3 + p", study).textContent, find("h2", paper).textContent];
  const shown = find("a.thumbnail", row) ? row.textContent.replace(find("a.thumbnail", row).textContent, " ") : row.textContent;
  return [row, plain(`${shown} ${row.dataset.words} ${around.join(" ")}`)];
}));

// The parts of a search: phrases in quotes, `figure 2` and the like, and words. A number is found
// whole: 2 is not in 20.
const PLACES = /\b(?:figures?|tables?|theorems?|lemmas?|propositions?|corollary|equations?|sections?|condition) [\d.]+[a-z]?/;
function searches(text) {
  const parts = plain(text).match(new RegExp(`"[^"]+"?|${PLACES.source}|[^\\s"]+`, "g")) || [];
  return parts.map((part) => part.replaceAll('"', "").trim()).filter(Boolean).map((part) => {
    const literal = part.replace(/[.*+?^${}()|[\]\\]/g, "\\$&");
    return new RegExp(`${/^\d/.test(part) ? "(?<![\\d.])" : ""}${literal}${/\d$/.test(part) ? "(?!\\.?\\d)" : ""}`);
  });
}

const boxes = (name) => all(`input[name=${name}]`);
const checked = (name) => boxes(name).filter((box) => box.checked).map((box) => box.value);

function filter() {
  const paper = find("#of-paper").value;
  const [verdicts, kinds] = ["verdict", "kind"].map((name) => new Set(checked(name)));
  const wanted = searches(find("#words").value);
  let count = 0;
  for (const row of rows) {
    const fits = verdicts.has(row.dataset.verdict)
      && kinds.has(row.dataset.kind)
      && (!paper || row.closest(".paper").dataset.paper === paper)
      && wanted.every((part) => part.test(searched.get(row)));
    row.hidden = !fits;
    count += fits;
  }
  const allShown = count === rows.length;
  for (const group of groups) {
    const fitting = find("tbody tr:not([hidden])", group);
    group.hidden = !fitting;
    group.open = allShown ? opened.get(group) : Boolean(fitting);
  }
  for (const study of all(".study")) {
    const ofStudy = all(".claims tbody tr", study);
    const fitting = ofStudy.filter((row) => !row.hidden);
    const inPaper = !paper || study.closest(".paper").dataset.paper === paper;
    // A study without claims is filtered by its paper only.
    study.hidden = ofStudy.length ? !allShown && !fitting.length : !inPaper;
    // With some claims hidden, only the runs of the others are shown.
    const runLinks = new Set(fitting.flatMap((row) => all("a.behind", row).map((link) => link.hash)));
    for (const run of all(".run", study)) run.hidden = fitting.length < ofStudy.length && !runLinks.has(`#${run.id}`);
  }
  for (const section of all(".paper")) {
    section.hidden = !find(".study:not([hidden])", section);
  }
  find("#none").hidden = Boolean(find(".study:not([hidden])"));
  find("#count").value = `${count} of ${rows.length} claims`;
  find("#show-all").hidden = allShown;
  remember();
}

// Claims without a number come last in both directions.
const ranks = boxes("verdict").map((box) => box.value);
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
  remember();
}

// The filter and the order in the address: `?kind=paper&verdict=fails&words=exponent`.
function remember() {
  const kept = new URLSearchParams();
  for (const name of ["verdict", "kind"]) {
    if (checked(name).length < boxes(name).length) kept.set(name, checked(name).join(","));
  }
  for (const name of ["paper", "words", "sort"]) {
    const { value } = filters.elements[name];
    if (value) kept.set(name, value);
  }
  const asked = kept.toString();
  try {
    history.replaceState(null, "", `${location.pathname}${asked ? `?${asked}` : ""}${location.hash}`);
  } catch {
    // Some browsers keep the address of a page that is opened from disk.
  }
}

function recall() {
  const kept = new URLSearchParams(location.search);
  for (const name of ["verdict", "kind"]) {
    if (!kept.has(name)) continue;
    const wanted = new Set(kept.get(name).split(","));
    for (const box of boxes(name)) box.checked = wanted.has(box.value);
  }
  for (const name of ["paper", "words", "sort"]) {
    if (kept.has(name)) filters.elements[name].value = kept.get(name);
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
const fold = () => { find("#controls").open = !folding.matches; };
folding.addEventListener("change", fold);
fold();
filters.hidden = false;
filters.addEventListener("input", (event) => (event.target.id === "sort" ? sort() : filter()));
filters.addEventListener("submit", (event) => event.preventDefault());
filters.addEventListener("reset", () => setTimeout(() => { filter(); sort(); }));
recall();
filter();
sort();

