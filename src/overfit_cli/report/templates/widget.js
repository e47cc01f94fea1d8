// A phase diagram as the widget of a notebook, in a tree of its own: neither changes the other's style.
function render({ model, el }) {
  const host = make("div");
  const root = host.attachShadow({ mode: "open" });
  const holder = make("div", { class: "diagram" });
  root.innerHTML = PATTERNS;
  root.append(make("style", {}, STYLE), holder);
  drawDiagram(holder, model.get("diagram"), model.get("name"));
  el.append(host);
}
export default { render };
