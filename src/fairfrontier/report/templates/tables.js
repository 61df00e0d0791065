// The data behind everything, as CSV that a spreadsheet shows and never runs.
const tables = (() => {
  const rateNames = data.regression
    ? ["mean_score"]
    : ["selection_rate", "true_positive_rate", "false_positive_rate"];

  // A cell may also begin inside a text, where the reader's separator is another than ours. As in _csv.py.
  const safe = (text) => text.replace(/(^|[,;|\t\r\n"])( *)(?=[=+\-@\t\r\n＝＋－＠])/g, "$1'$2");
  const quote = (text) => (/[,;|\t\r\n"]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text);
  const cell = (value) =>
    value === null ? "" : typeof value === "string" ? quote(safe(value)) : String(value);
  const csv = (rows) => rows.map((row) => `${row.map(cell).join(",")}\n`).join("");

  const familyOf = (i) => data.families[data.models.family[i]].name;
  const share = (part, whole) => (whole ? part / whole : null);

  function rates(group) {
    const selected = (group.trueSelected + group.falseSelected) / group.rows;
    if (data.regression) return [selected];
    return [selected, share(group.trueSelected, group.positives), share(group.falseSelected, group.negatives)];
  }

  function points() {
    // Submitted models and the constant among themselves; a fair stack, which nobody submitted, among all.
    const optimal = new Set([...data.frontier.base, ...data.frontier.step.filter((i) => i > data.constant)]);
    const { names, fairness, accuracy } = data.models;
    const header = ["model", "family", "fairness", "accuracy", "pareto_optimal"];
    header.push(...data.attributes.map((a) => `fairness[${a.name}]`));
    for (const a of data.attributes) {
      for (const g of a.groups) header.push(...rateNames.map((rate) => `${rate}[${a.name}=${g.name}]`));
    }
    const rows = names.map((name, i) => [
      name, familyOf(i), fairness[i], accuracy[i], optimal.has(i),
      ...data.attributes.map((a) => a.fairness[i]),
      ...data.attributes.flatMap((a) => groupCounts(a, i).flatMap(rates)),
    ]);
    return csv([header, ...rows]);
  }

  function frontier() {
    const { names, fairness, accuracy } = data.models;
    const rows = ["step", "hull"].flatMap((curve) =>
      data.frontier[curve].map((i) => [curve, fairness[i], accuracy[i], names[i], familyOf(i)])
    );
    return csv([["curve", "fairness", "accuracy", "model", "family"], ...rows]);
  }

  function download(name, content) {
    const link = document.createElement("a");
    link.href = URL.createObjectURL(new Blob([content], { type: "text/csv;charset=utf-8" }));
    link.download = name;
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 1000);
  }

  function start() {
    const makers = { "points.csv": points, "frontier.csv": frontier, "groups.csv": () => data.groups_csv };
    for (const button of document.querySelectorAll("button[data-download]")) {
      const name = button.dataset.download;
      button.addEventListener("click", () => download(name, makers[name]()));
    }
  }

  return { start };
})();
