// Links within the page: each opens its target, below the bar, and its address is copied.
const bar = find("#filters");
new ResizeObserver(() => {
  document.documentElement.style.setProperty("--bar", `${Math.ceil(bar.getBoundingClientRect().height)}px`);
}).observe(bar);

// The element that an address names; null where it is no text or names none.
function named(hash) {
  try {
    return document.getElementById(decodeURIComponent(hash.slice(1)));
  } catch {
    return null;
  }
}

// Show what an address names: its folds are opened, and a filter that hides it is reset.
function reveal(hash) {
  const target = named(hash);
  if (!target) return;
  if (target.closest("[hidden]")) {
    filters.reset();
    filter();
    sort();
  }
  for (let part = target; part; part = part.parentElement) {
    if (part.tagName === "DETAILS") part.open = true;
  }
  if (target.tagName === "TR") find("details", target).open = true;
  target.scrollIntoView();
}
addEventListener("hashchange", () => reveal(location.hash));
document.addEventListener("click", (event) => {
  const link = event.target.closest("a[href^='#']");
  if (!link) return;
  if (link.hash === location.hash) reveal(link.hash); // no change of the address follows
  if (link.classList.contains("address")) copy(link.href, "address");
});
if (location.hash) requestAnimationFrame(() => reveal(location.hash));

// The figure of a claim stands in its details as a small picture, which is the page's own.
document.addEventListener("toggle", (event) => {
  const link = event.target.open && find(":scope > a.thumbnail", event.target);
  if (!link || find("img", link)) return;
  const picture = find("img", document.getElementById(link.hash.slice(1)));
  link.prepend(make("img", { src: picture.src, width: picture.width, height: picture.height, alt: "" }));
}, true);

