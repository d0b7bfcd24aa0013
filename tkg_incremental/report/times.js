// Shows the recorded answers of the chosen question at the chosen step.
const data = JSON.parse(document.getElementById("times").textContent);
const question = document.getElementById("question"), step = document.getElementById("step");
const label = document.getElementById("label"), body = document.querySelector("#answers tbody");
function cell(row, text, kind) {
  const made = row.insertCell();
  made.textContent = text;
  made.className = kind;
  return made;
}
function show() {
  label.textContent = data.labels[step.value];
  body.replaceChildren();
  for (const [name, probability, known, kind] of data.answers[question.selectedIndex][step.value]) {
    const row = body.insertRow();
    row.className = kind;
    cell(row, name, "");
    if (data.calibrated) {
      cell(row, probability, "n");
      const bar = document.createElement("i");
      bar.className = "bar";
      bar.style.width = probability || "0";
      cell(row, "", "").append(bar);
    }
    cell(row, known, "");
  }
}
question.addEventListener("change", show);
step.addEventListener("input", show);
show();
