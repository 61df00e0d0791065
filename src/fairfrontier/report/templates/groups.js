// What the chosen model does to each group: rates as bars, with Wilson intervals.
const groups = (() => {
  const z = dom.byId("groups").dataset.z;
  const rates = [
    { title: "Selected", note: "share of the group with decision 1", rule: true,
      of: (g) => [g.trueSelected + g.falseSelected, g.rows] },
    { title: "Wrongly rejected", note: "of those with a positive label, decision 0",
      of: (g) => [g.positives - g.trueSelected, g.positives] },
    { title: "Wrongly selected", note: "of those with a negative label, decision 1",
      of: (g) => [g.falseSelected, g.negatives] },
    { title: "All errors", note: "of the whole group",
      of: (g) => [g.positives - g.trueSelected + g.falseSelected, g.rows] },
  ];

  /** Bars of one rate: value and interval of each group. */
  function measured(rate, counts) {
    return counts.map((group) => {
      const [hits, n] = rate.of(group);
      if (n === 0) return { name: group.name, n, value: null, low: null, high: null };
      // With sample weights, of as many rows as they are worth.
      const [low, high] = maths.wilson(hits * group.scale, n * group.scale, Number(z));
      return { name: group.name, n, value: hits / n, low, high, judged: group.judged };
    });
  }

  function scores(counts) {
    return counts.map((g) => ({ name: g.name, n: g.rows, value: (g.trueSelected + g.falseSelected) / g.rows, low: null, high: null }));
  }

  function bar(entry, scale, asText) {
    const row = dom.make("div", "bar-row");
    const label = dom.make("span", "bar-label");
    label.append(dom.make("span", "name", format.short(entry.name, 60)), dom.make("small", "", ` ${data.settings.sample_weight ? "weight" : "n ="} ${entry.n.toLocaleString("en", { maximumFractionDigits: 0 })}`));
    const track = dom.make("span", "bar-track");
    track.setAttribute("aria-hidden", "true");
    const value = dom.make("span", "bar-value", entry.value === null ? "no such rows" : asText(entry.value));
    if (entry.value !== null) {
      const fill = dom.make("span", "bar-fill");
      fill.style.setProperty("width", `${(100 * Math.max(0, entry.value)) / scale}%`);
      track.append(fill);
    }
    if (entry.low !== null) {
      const whisker = dom.make("span", "bar-interval");
      whisker.style.setProperty("left", `${(100 * entry.low) / scale}%`);
      whisker.style.setProperty("width", `${(100 * (entry.high - entry.low)) / scale}%`);
      track.append(whisker);
      value.append(dom.make("small", "", `${(100 * entry.low).toFixed(1)}–${(100 * entry.high).toFixed(1)}`));
    }
    row.append(label, track, value);
    return row;
  }

  /** The right end of the bars: one for all rates of an attribute, so that they can be compared. */
  function scaleOf(entries) {
    const highest = Math.max(...entries.map((e) => e.high ?? e.value ?? 0), 1e-9);
    return data.regression ? highest : Math.min(1, Math.ceil(highest * 10 - 1e-9) / 10);
  }

  function panel(title, note, entries, rule, scale) {
    const box = dom.make("div", "bars");
    box.append(dom.make("h4", "", title), dom.make("p", "note", note));
    const asText = data.regression ? (v) => v.toFixed(3) : format.percent;
    for (const entry of entries) {
      const row = bar(entry, scale, asText);
      if (rule) {
        const mark = dom.make("span", "bar-mark");
        mark.style.setProperty("left", `${(80 * Math.max(...entries.filter((e) => e.judged).map((e) => e.value))) / scale}%`);
        row.querySelector(".bar-track").append(mark);
      }
      box.append(row);
    }
    return box;
  }

  /** The four-fifths rule is a ratio; fairness is one minus a difference. Only submitted models get a verdict. */
  function verdict(attribute, counts) {
    const { chosen } = state.values;
    const large = counts.filter((g) => g.judged);
    const judged = large.length > 1 ? large : counts;
    const shares = judged.map((g) => (g.trueSelected + g.falseSelected) / g.rows);
    const [lowest, highest] = [Math.min(...shares), Math.max(...shares)];
    const box = dom.make("p", "verdict");
    if (highest === 0) {
      box.textContent = "This model selects nobody: the four-fifths rule says nothing about it.";
      return box;
    }
    const ratio = lowest / highest;
    box.dataset.ratio = String(ratio);
    if (chosen >= data.n_models) {
      const what = chosen === state.constant ? `the same ${data.words.decision} for everyone` : "a point of the fair stack";
      box.append(dom.make("span", "badge unsure", "not submitted"), ` This is ${what}.`);
    } else {
      const word = attribute.worst.verdict[chosen];
      const kind = { above: "good", below: "bad" }[word] ?? "unsure";
      box.append(dom.make("span", `badge ${kind}`, word === "cannot tell" ? word : `${word} four fifths`));
    }
    box.append(` Ratio ${format.percent(lowest)} ÷ ${format.percent(highest)} = ${format.level(ratio)}`);
    if (chosen < data.n_models) {
      const { low, high } = attribute.worst;
      box.append(` (interval ${format.level(low[chosen])} to ${format.level(high[chosen])}; rule: at least 0.8)`);
    }
    box.append(`. Difference ${(100 * (highest - lowest)).toFixed(1)} points.`);
    return box;
  }

  function draw() {
    const { chosen } = state.values;
    const holder = dom.byId("groups");
    holder.replaceChildren();
    dom.byId("chosen-name").textContent = data.models.names[chosen];
    dom.byId("chosen-figures").textContent =
      `${data.words.accuracy} ${format.accuracy(data.models.accuracy[chosen])} · fairness ${format.level(data.models.fairness[chosen])}`;
    for (const attribute of data.attributes) {
      const counts = groupCounts(attribute, chosen);
      const section = dom.make("section", "attribute");
      section.append(dom.make("h3", "name", attribute.name));
      if (!data.regression) section.append(verdict(attribute, counts));
      const panels = dom.make("div", "panels");
      const shown = data.regression
        ? [{ title: "Mean prediction", note: "of the group", entries: scores(counts) }]
        : rates.map((rate) => ({ ...rate, entries: measured(rate, counts) }));
      // Errors share a scale, so that they can be compared; the share of the selected has its own.
      const errors = scaleOf(shown.slice(1).flatMap((rate) => rate.entries));
      for (const [i, rate] of shown.entries()) {
        const scale = i === 0 ? scaleOf(rate.entries) : errors;
        const end = data.regression ? scale.toFixed(3) : `${Math.round(100 * scale)} %`;
        panels.append(panel(rate.title, `${rate.note}; bars from 0 to ${end}`, rate.entries, rate.rule, scale));
      }
      section.append(panels);
      holder.append(section);
    }
  }

  function start() {
    const picker = dom.byId("picker");
    const list = dom.byId("model-names");
    data.models.names.forEach((name) => {
      const option = document.createElement("option");
      option.value = name;
      list.append(option);
    });
    picker.addEventListener("change", () => {
      const model = data.models.names.indexOf(picker.value);
      if (model >= 0) state.update({ chosen: model });
      picker.value = "";
    });
    state.listen((changed) => changed.has("chosen") && draw());
    draw();
  }

  return { start, measured, rates };
})();
