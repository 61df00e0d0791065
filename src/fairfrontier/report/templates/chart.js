// The frontier: every model a dot, every family a curve.
const chart = (() => {
  const svg = d3.select("#chart");
  const holder = dom.byId("chart-holder");
  const tooltip = dom.byId("tooltip");
  const { fairness, accuracy, names, family } = data.models;
  const layout = { width: 0, height: 0, x: null, y: null };
  let tree = null;
  let focusIndex = -1;

  function left() {
    const known = data.frontier.step.map((i) => fairness[i]);
    known.push(d3.quantile([...fairness].sort(d3.ascending), fairness.length > 60 ? 0.02 : 0));
    return Math.min(0.95, Math.max(0, Math.floor((d3.min(known) - 0.02) * 20) / 20));
  }
  const low = left();

  function bottomAndTop() {
    const limits = (data.achievable?.curves ?? []).map((curve) => d3.max(curve.high.filter((_, i) => curve.grid[i] >= low)));
    const top = d3.max([...accuracy, ...limits]);
    const shown = data.frontier.step.map((i) => accuracy[i]);
    // A few models are all in the picture; of many, some far below may be left out, and are counted below it.
    const least = d3.quantile([...accuracy].sort(d3.ascending), accuracy.length > 60 ? 0.02 : 0);
    const bottom = Math.min(d3.min(shown), least);
    const margin = Math.max(0.06 * (top - bottom), 0.004);
    return [Math.max(0, bottom - 1.6 * margin), Math.min(1, top + margin)];
  }
  const [bottom, top] = bottomAndTop();

  /** Say how many models the picture leaves out. */
  function countOutside() {
    const out = d3.range(data.n_models).filter((i) => fairness[i] < low || accuracy[i] < bottom).length;
    const note = dom.byId("outside");
    note.hidden = out === 0;
    note.textContent = `${out.toLocaleString("en")} of ${data.n_models.toLocaleString("en")} models lie outside the picture, to the left or below; the table above has them.`;
  }

  function measure() {
    layout.width = Math.max(280, holder.clientWidth);
    layout.height = layout.width < 560 ? 320 : 430;
    const margin = layout.width < 560 ? { l: 44, r: 14 } : { l: 56, r: 20 };
    layout.x = d3.scaleLinear([low, 1], [margin.l, layout.width - margin.r]);
    layout.y = d3.scaleLinear([bottom, top], [layout.height - 48, 14]);
    svg.attr("viewBox", `0 0 ${layout.width} ${layout.height}`);
    // The slider below is the chart's own axis: its ends stand under the ends of the scale.
    const slider = dom.byId("min-fairness-row");
    slider.style.setProperty("--left", `${margin.l}px`);
    slider.style.setProperty("--right", `${margin.r}px`);
  }

  function drawAxes() {
    const { x, y, width, height } = layout;
    const axes = svg.append("g").attr("aria-hidden", "true");
    const ticks = width < 560 ? 5 : 9;
    axes
      .append("g")
      .attr("class", "grid")
      .selectAll("line")
      .data(y.ticks(6))
      .join("line")
      .attr("x1", x(low))
      .attr("x2", x(1))
      .attr("y1", y)
      .attr("y2", y);
    axes
      .append("g")
      .attr("class", "axis")
      .attr("transform", `translate(0,${height - 48})`)
      .call(d3.axisBottom(x).ticks(ticks).tickSizeOuter(0).tickPadding(8));
    axes
      .append("g")
      .attr("class", "axis axis-y")
      .attr("transform", `translate(${x(low)},0)`)
      .call(d3.axisLeft(y).ticks(6).tickSize(0).tickPadding(8));
    const label = (text, xx, yy, anchor) =>
      axes.append("text").attr("class", "axis-label").attr("x", xx).attr("y", yy).attr("text-anchor", anchor).text(text);
    label("fairness →", x(1), height - 8, "end");
    label(`↑ ${data.words.accuracy}`, x(low) + 6, 14, "start");
  }

  /** What any rule could reach: bands and curves, behind the models. */
  function drawAchievable() {
    const { x, y } = layout;
    const layer = svg.append("g").attr("clip-path", "url(#plot-area)").attr("aria-hidden", "true");
    for (const curve of data.achievable?.curves ?? []) {
      const at = d3.range(curve.grid.length);
      const area = d3.area().x((i) => x(curve.grid[i])).y0((i) => y(curve.low[i])).y1((i) => y(curve.high[i]));
      const line = d3.line().x((i) => x(curve.grid[i])).y((i) => y(curve.accuracy[i]));
      layer.append("path").attr("class", "limit-band").attr("d", area(at));
      layer.append("path").attr("class", `limit-line ${curve.track}`).attr("d", line(at));
    }
  }

  function drawFamilies() {
    const { x, y } = layout;
    const plot = svg.append("g").attr("class", "plot").attr("clip-path", "url(#plot-area)");
    data.families.forEach((entry, f) => {
      if (!state.values.visible.has(f) || entry.kind === "constant") return;
      // A line of no length with round ends is a dot: a thousand models are one path.
      const dots = state.members[f].map((i) => `M${x(fairness[i]).toFixed(1)},${y(accuracy[i]).toFixed(1)}h0`);
      plot
        .append("path")
        .attr("class", `dots ${colourClass(f)}`)
        .classed("many", dots.length > 150)
        .attr("d", dots.join(""));
    });
    data.families.forEach((entry, f) => {
      if (!state.values.visible.has(f) || entry.kind === "constant") return;
      drawCurve(plot, f);
    });
  }

  function drawCurve(plot, f) {
    const { x, y } = layout;
    const knots = state.knots([...state.members[f], state.constant]);
    const line = d3
      .line()
      .x((d) => x(d[0]))
      .y((d) => y(d[1]))
      .curve(state.values.shape === "hull" ? d3.curveLinear : d3.curveStepBefore);
    const start = [Math.min(low, fairness[knots[0]]), accuracy[knots[0]]];
    plot
      .append("path")
      .attr("class", `curve ${colourClass(f)}`)
      .attr("d", line([start, ...knots.map((i) => [fairness[i], accuracy[i]])]));
    plot
      .append("g")
      .attr("class", `knots ${colourClass(f)}`)
      .selectAll("circle")
      .data(knots.filter((i) => i !== state.constant))
      .join("circle")
      .attr("cx", (i) => x(fairness[i]))
      .attr("cy", (i) => y(accuracy[i]))
      .attr("r", knots.length > 40 ? 3 : 4.5);
  }

  function drawConstant() {
    const at = `translate(${layout.x(fairness[state.constant])},${layout.y(accuracy[state.constant])})`;
    const diamond = d3.symbol(d3.symbolDiamond, 70)();
    svg.append("path").attr("class", "constant").attr("transform", at).attr("d", diamond);
  }

  function drawMinimum() {
    const { x, y } = layout;
    const layer = svg.selectAll("g.minimum").data([0]).join("g").attr("class", "minimum").attr("aria-hidden", "true");
    const at = x(Math.min(1, Math.max(low, state.values.minFairness)));
    const area = layer.selectAll("rect").data([0]).join("rect");
    area.attr("x", x(low)).attr("y", y(top)).attr("width", at - x(low)).attr("height", y(bottom) - y(top));
    const line = layer.selectAll("line").data([0]).join("line");
    line.attr("x1", at).attr("x2", at).attr("y1", y(top)).attr("y2", y(bottom));
  }

  function drawChosen() {
    const { chosen } = state.values;
    const { x, y, width } = layout;
    const layer = svg.selectAll("g.chosen").data([0]).join("g").attr("aria-hidden", "true");
    layer.attr("class", `chosen ${colourClass(family[chosen])}`);
    const [cx, cy] = [x(Math.max(low, fairness[chosen])), y(Math.max(bottom, accuracy[chosen]))];
    layer.selectAll("circle").data([0]).join("circle").attr("cx", cx).attr("cy", cy).attr("r", 9);
    // Under a falling curve there is room to the left, above it to the right.
    const toLeft = cx > width * 0.5;
    const label = layer.selectAll("text").data([0]).join("text");
    label
      .attr("x", cx + (toLeft ? -12 : 12))
      .attr("y", toLeft && cy < y(bottom) - 30 ? cy + 24 : Math.max(26, cy - 14))
      .attr("text-anchor", toLeft ? "end" : "start")
      .text(format.short(names[chosen], width < 560 ? 22 : 40));
  }

  function draw() {
    measure();
    svg.selectAll("*").remove();
    const area = svg.append("clipPath").attr("id", "plot-area").append("rect");
    area.attr("x", layout.x(low)).attr("y", 0);
    area.attr("width", layout.width - layout.x(low)).attr("height", layout.y(bottom));
    drawAxes();
    drawMinimum();
    drawAchievable();
    drawFamilies();
    drawConstant();
    svg.append("circle").attr("class", "hover").attr("r", 7).attr("visibility", "hidden");
    drawChosen();
    tree = d3
      .quadtree()
      .x((i) => layout.x(fairness[i]))
      .y((i) => layout.y(accuracy[i]))
      .addAll(state.visibleModels());
  }

  /** Fill the tooltip: model, accuracy, fairness and the group rates that are compared. */
  function describe(model) {
    tooltip.replaceChildren();
    tooltip.append(dom.make("strong", "name", format.short(names[model], 80)));
    const list = dom.make("dl");
    const row = (term, value) => list.append(dom.make("dt", "", term), dom.make("dd", "", value));
    row(data.words.accuracy, format.accuracy(accuracy[model]));
    row("fairness", format.level(fairness[model]));
    for (const attribute of data.attributes) {
      for (const group of groupCounts(attribute, model).slice(0, 8)) {
        const rates = comparedRates(group).map((rate) => (data.regression ? rate.toFixed(3) : format.percent(rate)));
        row(format.short(`${attribute.name}=${group.name}`, 40), rates.join(" / "));
      }
      if (attribute.groups.length > 8) row("…", `${attribute.groups.length - 8} more groups`);
    }
    tooltip.append(list);
  }

  function showTooltip(model) {
    describe(model);
    const [px, py] = [layout.x(fairness[model]), layout.y(accuracy[model])];
    svg.select("circle.hover").attr("cx", px).attr("cy", py).attr("visibility", "visible");
    tooltip.hidden = false;
    const scale = holder.clientWidth / layout.width;
    const width = tooltip.offsetWidth;
    const x = px * scale + 16 + width > holder.clientWidth ? px * scale - 16 - width : px * scale + 16;
    const y = Math.min(py * scale + 8, holder.clientHeight - tooltip.offsetHeight - 4);
    tooltip.style.setProperty("left", `${Math.max(0, x)}px`);
    tooltip.style.setProperty("top", `${Math.max(0, y)}px`);
  }

  function hideTooltip() {
    tooltip.hidden = true;
    svg.select("circle.hover").attr("visibility", "hidden");
  }

  function nearest(event) {
    const [px, py] = d3.pointer(event, svg.node());
    return tree.find(px, py, 40);
  }

  function onKey(event) {
    const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    if (!step) return event.key === "Escape" ? hideTooltip() : undefined;
    event.preventDefault();
    const optimal = maths.pareto(fairness, accuracy, state.visibleModels());
    const from = focusIndex < 0 ? optimal.indexOf(state.values.chosen) : focusIndex;
    focusIndex = Math.min(optimal.length - 1, Math.max(0, from + step));
    state.update({ chosen: optimal[focusIndex] });
    return showTooltip(optimal[focusIndex]);
  }

  function start() {
    svg.on("pointermove pointerdown", (event) => {
      const model = nearest(event);
      if (model === undefined) hideTooltip();
      else showTooltip(model);
    });
    svg.on("pointerleave blur", () => {
      focusIndex = -1;
      hideTooltip();
    });
    svg.on("click", (event) => {
      const model = nearest(event);
      if (model !== undefined) state.update({ chosen: model });
    });
    svg.on("keydown", onKey);
    new ResizeObserver(() => {
      if (Math.abs(holder.clientWidth - layout.width) > 1) draw();
    }).observe(holder);
    state.listen((changed) => {
      if (changed.has("visible") || changed.has("shape")) return draw();
      if (changed.has("minFairness")) drawMinimum();
      if (changed.has("chosen")) drawChosen();
      return undefined;
    });
    draw();
    countOutside();
  }

  return { start, low };
})();
