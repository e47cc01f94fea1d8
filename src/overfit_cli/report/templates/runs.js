// The phase diagrams of the page's runs.
for (const holder of all(".diagram")) {
  drawDiagram(holder, JSON.parse(find("script", holder).textContent), holder.dataset.run);
}
