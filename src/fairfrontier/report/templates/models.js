// The table of submitted models: click a heading to sort, type to search.
const modelTable = (() => {
  const table = dom.byId("models");
  const body = table.tBodies[0];

  function sortBy(column, kind, ascending) {
    const value = (row) => {
      const cell = row.cells[column];
      return kind === "number" ? Number(cell.dataset.value) : cell.textContent.trim();
    };
    const compare = (a, b) => (kind === "number" ? value(a) - value(b) : value(a).localeCompare(value(b)));
    const rows = [...body.rows].sort((a, b) => (ascending ? compare(a, b) : compare(b, a)));
    body.append(...rows);
  }

  function startSorting() {
    const headings = [...table.tHead.rows[0].cells];
    headings.forEach((heading, column) => {
      const button = dom.make("button", "sort");
      button.type = "button";
      button.append(...heading.childNodes);
      heading.replaceChildren(button);
      button.addEventListener("click", () => {
        const ascending = heading.getAttribute("aria-sort") !== "ascending";
        for (const other of headings) other.removeAttribute("aria-sort");
        heading.setAttribute("aria-sort", ascending ? "ascending" : "descending");
        sortBy(column, heading.dataset.sort, ascending);
      });
    });
  }

  function start() {
    startSorting();
    const search = dom.byId("model-search");
    search.addEventListener("input", () => {
      const wanted = search.value.toLowerCase();
      for (const row of body.rows) row.hidden = !row.cells[0].textContent.toLowerCase().includes(wanted);
    });
    body.addEventListener("click", (event) => {
      const row = event.target.closest("tr");
      const model = row ? data.models.names.indexOf(row.cells[0].querySelector(".name").textContent) : -1;
      if (model >= 0) state.update({ chosen: model });
    });
  }

  return { start };
})();
