"use strict";
(() => {
  const page = document.documentElement;
  const rows = [...document.querySelectorAll("[data-outcome]")];
  const form = document.querySelector("form");
  const count = document.querySelector("#shown");
  const sections = [...document.querySelectorAll("section")];

  const filter = () => {
    const words = form.elements.words.value.toLowerCase().split(/\s+/).filter(Boolean);
    const ticked = (name) => new Set([...form.querySelectorAll(`[name=${name}]:checked`)].map((box) => box.value));
    const severities = ticked("severity");
    const outcomes = ticked("outcome");
    let shown = 0;
    for (const row of rows) {
      const text = row.textContent.toLowerCase();
      row.hidden = !(outcomes.has(row.dataset.outcome) && severities.has(row.dataset.severity)
        && words.every((word) => text.includes(word)));
      shown += row.hidden ? 0 : 1;
    }
    for (const section of sections) {
      section.hidden = section.querySelector("[data-outcome]") !== null
        && section.querySelector("[data-outcome]:not([hidden])") === null;
    }
    count.textContent = `${shown} / ${rows.length}`;
  };

  document.querySelector("#language").addEventListener("click", () => {
    page.dataset.lang = page.dataset.lang === "en" ? "zh" : "en";
    page.lang = page.dataset.lang;
  });
  if (form !== null) {
    form.hidden = false;
    form.addEventListener("input", filter);
    form.addEventListener("submit", (event) => event.preventDefault());
    filter();
  }
})();
