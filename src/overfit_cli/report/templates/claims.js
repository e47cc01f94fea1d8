// Claims: filtered by paper, verdict, kind and words; sorted by a heading or in the bar. The
// address keeps both.
const rows = all(".claims tbody tr");
const filters = find("#filters");
const groups = all("details.kind");
const opened = new Map(groups.map((group) => [group, group.open]));
const RAISED = "⁰¹²³⁴⁵⁶⁷⁸⁹";
const powers = (text) => text
  .replace(/(?:([\d.]+)·)?10(⁻?)([⁰¹²³⁴⁵⁶⁷⁸⁹]+)/g, (_, factor, sign, digits) =>
    `${factor || 1}e${sign && "-"}${[...digits].map((digit) => RAISED.indexOf(digit)).join("")}`)
  .replace(/(\de)\+?(-?)0+(?=\d)/g, "$1$2");
// A text as it is searched: without signs of typesetting; 10⁻⁶ and 1e-06 are 1e-6.
const plain = (text) => powers(text.toLowerCase().replaceAll("−", "-").replace(/[_^]/g, "")).replace(/\s+/g, " ");
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
  for (const row of rows) {
    const fits = verdicts.has(row.dataset.verdict)
      && kinds.has(row.dataset.kind)
      && (!paper || row.closest(".paper").dataset.paper === paper)
      && wanted.every((part) => part.test(searched.get(row)));
    row.hidden = !fits;
  }
  const allShown = rows.every((row) => !row.hidden);
  for (const group of groups) {
    const fitting = find("tbody tr:not([hidden])", group);
    group.hidden = !fitting;
    group.open = allShown ? opened.get(group) : Boolean(fitting);
    const [shown, of] = ["tbody tr:not([hidden])", "tbody tr"].map((query) => all(query, group).length);
    find(".count", group).textContent = `${shown < of ? `${shown} of ` : ""}${of} ${of === 1 ? "claim" : "claims"}${shown < of ? " shown" : ""}`;
    find("summary .aside", group).hidden = shown < of;
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
  tell();
  find("#show-all").hidden = allShown;
  remember();
}

// How many claims are shown, and in which order, beside the controls.
function tell() {
  const order = find("#sort").selectedOptions[0];
  const sorted = order.value ? `; each table by ${order.text}` : "";
  const shown = rows.filter((row) => !row.hidden).length;
  find("#count").value = `${shown} of ${rows.length} claims${narrow.matches ? "" : " shown"}${sorted}`;
  find("#count").classList.toggle("some", shown < rows.length);
}

// Claims without a number come last in both directions.
const ranks = boxes("verdict").map((box) => box.value);
const places = new Map(rows.map((row, index) => [row, index]));
const order = (row) => places.get(row);
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
  tell();
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

// An address may come from another page: ignore the choices that this page lacks.
function recall(kept = new URLSearchParams(location.search)) {
  for (const name of ["verdict", "kind"]) {
    const wanted = new Set((kept.get(name) || "").split(","));
    if (!boxes(name).some((box) => wanted.has(box.value))) continue;
    for (const box of boxes(name)) box.checked = wanted.has(box.value);
  }
  for (const name of ["paper", "words", "sort"]) {
    const field = filters.elements[name];
    if (kept.has(name)) field.value = kept.get(name);
    if (field.selectedIndex < 0) field.selectedIndex = 0;
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

// A count is a link that sets the filter.
document.addEventListener("click", (event) => {
  const link = event.target.closest("a[href^='?']");
  if (!link || event.metaKey || event.ctrlKey || event.shiftKey) return;
  event.preventDefault();
  filters.reset();
  recall(new URL(link.href).searchParams);
  filter();
  sort();
  find("#claims").scrollIntoView();
});

