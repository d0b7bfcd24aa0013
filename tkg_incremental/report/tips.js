// A tap or a click on a chart or a cell shows the value that hovering shows.
const tip = document.createElement("output");
tip.id = "tip";
tip.hidden = true;
document.body.append(tip);
function words(element) {
  return element.querySelector(":scope > title")?.textContent || element.getAttribute("title") || "";
}
function nearest(drawing, x, y) {
  let best = null, least = 32;
  for (const title of drawing.querySelectorAll("title")) {
    const box = title.parentElement.getBoundingClientRect();
    const far = Math.hypot(Math.max(box.left - x, 0, x - box.right), Math.max(box.top - y, 0, y - box.bottom));
    if (far < least) [best, least] = [title.parentElement, far];
  }
  return best;
}
document.addEventListener("click", (event) => {
  const drawing = event.target.closest("figure svg");
  let found = event.target.closest("[title]");
  if (drawing) found = words(event.target) ? event.target : nearest(drawing, event.clientX, event.clientY);
  tip.hidden = !found;
  if (!found) return;
  tip.textContent = words(found);
  tip.style.left = Math.max(8, Math.min(event.pageX, document.documentElement.clientWidth - tip.offsetWidth - 8)) + "px";
  tip.style.top = event.pageY + 14 + "px";
});
