/* SPDX-License-Identifier: Apache-2.0 */
/* Filters and sorts the tables of a comparison; without it the page shows all of them. */
(() => {
  "use strict";
  const bar = document.getElementById("choose");
  const text = bar.querySelector("input");
  const buttons = [...bar.querySelectorAll("button")];
  const rows = [...document.querySelectorAll("tr[data-outcome]")];
  const chosen = new Set();

  function show() {
    const words = text.value.toLowerCase().split(/\s+/).filter(Boolean);
    for (const row of rows) {
      const said = row.dataset.find.toLowerCase();
      row.hidden =
        (chosen.size > 0 && !chosen.has(row.dataset.outcome)) ||
        !words.every((word) => said.includes(word));
    }
    for (const group of document.querySelectorAll("section.group")) {
      group.hidden = !group.querySelector("tr[data-outcome]:not([hidden])");
    }
  }

  for (const button of buttons) {
    const outcome = button.dataset.outcome;
    const count = rows.filter((row) => row.dataset.outcome === outcome).length;
    button.textContent = `${button.textContent} ${count}`;
    button.hidden = count === 0;
    button.addEventListener("click", () => {
      const isOn = !chosen.delete(outcome);
      if (isOn) chosen.add(outcome);
      button.setAttribute("aria-pressed", String(isOn));
      show();
    });
  }
  text.addEventListener("input", show);

  /* A row without a number stays behind those that have one. */
  function number(row, key) {
    const value = row.dataset[key];
    return value === "" ? null : Number(value);
  }

  for (const head of document.querySelectorAll("th[data-by]")) {
    const key = head.dataset.by;
    head.tabIndex = 0;
    const sort = () => {
      const body = head.closest("table").tBodies[0];
      const isUp = head.getAttribute("aria-sort") === (key === "change" ? "descending" : "ascending");
      const up = key === "change" ? isUp : !isUp;
      for (const other of head.parentNode.children) other.removeAttribute("aria-sort");
      head.setAttribute("aria-sort", up ? "ascending" : "descending");
      const sorted = [...body.querySelectorAll("tr[data-outcome]")].sort((a, b) => {
        if (key === "name") return (up ? 1 : -1) * a.dataset.name.localeCompare(b.dataset.name);
        const [x, y] = [number(a, key), number(b, key)];
        if (x === null || y === null) return (x === null) - (y === null);
        return up ? x - y : y - x;
      });
      body.append(...sorted);
    };
    head.addEventListener("click", sort);
    head.addEventListener("keydown", (event) => {
      if (event.key === "Enter" || event.key === " ") {
        event.preventDefault();
        sort();
      }
    });
  }
  bar.hidden = false;
})();
