// The controls, and the sentence that answers "which model?".
(() => {
  const { names, fairness, accuracy, family } = data.models;

  function answer() {
    const best = state.best();
    const holder = dom.byId("answer");
    holder.replaceChildren();
    const minimum = Number(state.values.minFairness.toFixed(3));
    holder.append(`With fairness at least ${minimum}, `);
    if (best === null) {
      delete holder.dataset.model;
      holder.append("none of the models shown is fair enough.");
      return;
    }
    holder.dataset.model = names[best];
    if (best === state.constant) holder.append(`nothing shown beats the same ${data.words.decision} for everyone: ${data.words.accuracy} `);
    else {
      const name = dom.make("strong", "name", names[best]);
      const swatch = dom.make("span", `swatch ${colourClass(family[best])}`);
      holder.append("the best is ", swatch, name, `: ${data.words.accuracy} `);
    }
    holder.append(dom.make("b", "", format.accuracy(accuracy[best])), ", fairness ");
    holder.append(dom.make("b", "", format.level(fairness[best])), ".");
  }

  function startMinimum() {
    const slider = dom.byId("min-fairness");
    const field = dom.byId("min-fairness-field");
    slider.min = String(chart.low);
    slider.value = String(state.values.minFairness);
    field.value = String(state.values.minFairness);
    slider.addEventListener("input", () => {
      field.value = slider.value;
      state.requireFairness(Number(slider.value));
    });
    field.addEventListener("input", () => {
      if (!field.validity.valid || field.value === "") return;
      slider.value = field.value;
      state.requireFairness(Number(field.value));
    });
  }

  function startFamilies() {
    const holder = dom.byId("families");
    const shown = data.families.map((entry, f) => ({ entry, f })).filter(({ entry }) => entry.kind !== "constant");
    for (const { entry, f } of shown) {
      const chip = dom.make("button", "chip");
      chip.type = "button";
      chip.setAttribute("aria-pressed", "true");
      chip.append(dom.make("span", `swatch ${colourClass(f)}`), dom.make("span", "name", format.short(entry.name, 40)));
      chip.append(dom.make("small", "", String(state.members[f].length)));
      chip.addEventListener("click", () => state.toggle(f));
      state.listen((changed) => {
        if (changed.has("visible")) chip.setAttribute("aria-pressed", String(state.values.visible.has(f)));
      });
      holder.append(chip);
    }
  }

  function startShape() {
    for (const input of document.querySelectorAll("input[name=shape]")) {
      input.addEventListener("change", () => state.update({ shape: input.value }));
    }
  }

  chart.start();
  groups.start();
  weights.start();
  tables.start();
  modelTable.start();
  startMinimum();
  startFamilies();
  startShape();
  answer();
  state.listen((changed) => {
    if (changed.has("minFairness") || changed.has("visible")) answer();
  });
  document.documentElement.classList.add("ready");
})();
