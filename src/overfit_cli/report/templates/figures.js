// Copying of commands, enlargement of figures, and unfolding for print.

// The fallback is for a page that is opened from disk, where the clipboard is not available.
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
    find("#said").textContent = `Copied: ${button.dataset.copy}`;
    setTimeout(() => { button.textContent = "Copy"; }, 2000);
  });
}

const large = find("#large");
for (const picture of all(".pictures img")) {
  const button = make("button", { type: "button", class: "enlarge" });
  picture.replaceWith(button);
  button.append(picture, make("span", { class: "unseen" }, " Enlarge"));
  button.addEventListener("click", () => {
    const copied = find("img", large);
    copied.src = picture.src;
    copied.alt = picture.alt;
    find("p", large).textContent = picture.alt;
    large.showModal();
  });
}
large.addEventListener("click", (event) => { if (event.target === large) large.close(); });

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

