// Copying of texts, enlargement of figures, and what unfolds for print.

// The fallback is for a page that is opened from disk, where the clipboard is not available.
async function copy(text, kind) {
  try {
    await navigator.clipboard.writeText(text);
  } catch {
    const area = make("textarea", { "aria-label": kind });
    area.value = text;
    document.body.append(area);
    area.select();
    document.execCommand("copy");
    area.remove();
  }
  find("#said").textContent = `Copied: ${text}`;
}
for (const button of all(".copy")) {
  button.hidden = false;
  button.addEventListener("click", async () => {
    await copy(button.previousElementSibling.textContent, "command");
    button.focus();
    button.textContent = "Copied";
    setTimeout(() => { button.textContent = "Copy"; }, 2000);
  });
}

const large = find("#large");
for (const picture of all(".pictures img")) {
  const button = make("button", { type: "button", class: "enlarge" });
  picture.replaceWith(button);
  button.append(picture, make("span", {}, "Enlarge"));
  button.addEventListener("click", () => {
    const copied = find("img", large);
    copied.src = picture.src;
    copied.alt = picture.alt;
    find("p", large).textContent = picture.alt;
    large.showModal();
    // At its natural size, and where that is smaller than in the page, larger than there.
    copied.width = Math.round(Math.max(picture.naturalWidth, 1.5 * picture.width));
  });
}
large.addEventListener("click", (event) => { if (event.target === large) large.close(); });

// Paper shows what the screen shows, and how verdicts are reached.
const folded = new Set();
addEventListener("beforeprint", () => {
  for (const part of all("header details:not([open])")) {
    folded.add(part);
    part.open = true;
  }
});
addEventListener("afterprint", () => {
  for (const part of folded) part.open = false;
  folded.clear();
});

