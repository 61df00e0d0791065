// How much each level of fairness matters: two sliders, one number, and the ranking that follows.
const weights = (() => {
  const SHOWN = 10;

  function drawCurve() {
    const { alpha, beta } = state.values;
    const svg = d3.select("#weight-curve");
    const [width, height] = [300, 96];
    svg.attr("viewBox", `0 0 ${width} ${height}`);
    svg.selectAll("*").remove();
    const x = d3.scaleLinear([0, 1], [14, width - 14]);
    const levels = d3.range(0, 1.0001, 0.005).filter((f) => f > beta);
    const weight = (f) => Math.max(f, 0.005) ** alpha;
    const y = d3.scaleLinear([0, d3.max([1, ...levels.map(weight)])], [height - 20, 8]);
    const shape = [[0, 0], [beta, 0], ...[beta, ...levels, 1].map((f) => [f, weight(Math.max(f, beta))])];
    const area = d3.area((d) => x(d[0]), y(0), (d) => y(d[1]));
    svg.append("path").attr("class", "weight-area").attr("d", area(shape));
    svg.append("path").attr("class", "weight-line").attr("d", d3.line((d) => x(d[0]), (d) => y(d[1]))(shape));
    const axis = d3.axisBottom(x).tickValues([0, 0.2, 0.4, 0.6, 0.8, 1]).tickSize(0).tickPadding(6);
    svg.append("g").attr("class", "axis").attr("transform", `translate(0,${height - 20})`).call(axis);
  }

  function fillRow(body, rank, name, family, value) {
    const row = dom.make("tr");
    const cell = dom.make("td");
    const swatch = dom.make("span", `swatch ${colourClass(family)}`);
    cell.append(swatch, dom.make("span", "name", format.short(name, 60)));
    row.append(dom.make("td", "rank", String(rank)), cell, dom.make("td", "number", format.fauc(value)));
    body.append(row);
  }

  /** Rank families, each with the constant model. */
  function rankFamilies() {
    const body = dom.byId("family-ranking");
    body.replaceChildren();
    data.families
      .map((family, f) => ({ family, f }))
      .filter(({ family, f }) => family.kind !== "constant" && state.values.visible.has(f))
      .map(({ family, f }) => ({ name: family.name, f, value: state.fauc([...state.members[f], state.constant]) }))
      .sort((a, b) => b.value - a.value || a.f - b.f)
      .forEach((entry, i) => fillRow(body, i + 1, entry.name, entry.f, entry.value));
  }

  /** Rank single models, each with the constant model, which is what one falls back to. */
  function rankModels() {
    const body = dom.byId("model-ranking");
    body.replaceChildren();
    state
      .visibleModels()
      .filter((i) => i !== state.constant)
      .map((i) => ({ i, value: state.fauc([i, state.constant]) }))
      .sort((a, b) => b.value - a.value || a.i - b.i)
      .slice(0, SHOWN)
      .forEach(({ i, value }, r) => fillRow(body, r + 1, data.models.names[i], data.models.family[i], value));
  }

  function draw() {
    const value = state.fauc(state.visibleModels());
    const output = dom.byId("fauc-value");
    output.textContent = format.fauc(value);
    output.dataset.value = String(value);
    dom.byId("fauc-kind").textContent = state.values.shape === "hull" ? "FAUCI (hull)" : "FAUC (steps)";
    drawCurve();
    rankFamilies();
    rankModels();
  }

  /** Tie a slider and a number field to one value. */
  function pair(key) {
    const slider = dom.byId(`${key}-slider`);
    const field = dom.byId(`${key}-field`);
    const show = () => {
      slider.value = String(state.values[key]);
      field.value = String(state.values[key]);
    };
    slider.addEventListener("input", () => {
      field.value = slider.value;
      state.update({ [key]: Number(slider.value) });
    });
    field.addEventListener("input", () => {
      if (!field.validity.valid || field.value === "") return;
      slider.value = field.value;
      state.update({ [key]: Number(field.value) });
    });
    show();
  }

  function start() {
    pair("alpha");
    pair("beta");
    state.listen((changed) => {
      if (["alpha", "beta", "visible", "shape"].some((key) => changed.has(key))) draw();
    });
    draw();
  }

  return { start };
})();
