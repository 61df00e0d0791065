// What is shown, and who wants to know when it changes.
const data = JSON.parse(document.getElementById("data").textContent);

const state = (() => {
  const { models, families, constant } = data;
  const members = families.map(() => []);
  models.family.forEach((family, i) => members[family].push(i));
  const listeners = [];
  const values = {
    visible: new Set(families.keys()),
    shape: "step",
    minFairness: data.settings.min_fairness,
    alpha: data.settings.weight.alpha ?? 0,
    beta: data.settings.weight.beta ?? 0,
    chosen: null,
  };

  /** Indices of the models of the families that are switched on, and the constant model. */
  function visibleModels() {
    return families.flatMap((family, f) => (values.visible.has(f) ? members[f] : []));
  }

  /** Knots of the curve of some models under the chosen shape. */
  function knots(candidates) {
    const optimal = maths.pareto(models.fairness, models.accuracy, candidates);
    return values.shape === "hull" ? maths.hull(models.fairness, models.accuracy, optimal) : optimal;
  }

  /** FAUC of some models under the chosen shape and weight. */
  function fauc(candidates) {
    const linear = values.shape === "hull";
    return maths.fauc(models.fairness, models.accuracy, knots(candidates), linear, values.alpha, values.beta);
  }

  function best() {
    return maths.bestAt(models.fairness, models.accuracy, visibleModels(), values.minFairness);
  }

  /** Change some values and tell the listeners which. */
  function update(changes) {
    Object.assign(values, changes);
    const changed = new Set(Object.keys(changes));
    for (const listener of listeners) listener(changed);
  }

  /** Switch a family on or off; the chosen model stays one that can be seen. */
  function toggle(family) {
    const visible = new Set(values.visible);
    if (visible.has(family)) visible.delete(family);
    else visible.add(family);
    values.visible = visible;
    const gone = !visible.has(models.family[values.chosen]);
    update(gone ? { visible, chosen: best() } : { visible });
  }

  /** Ask for a minimum fairness and choose the best model there. */
  function requireFairness(minFairness) {
    values.minFairness = minFairness;
    update({ minFairness, chosen: best() });
  }

  values.chosen = data.subject;
  const listen = (listener) => listeners.push(listener);
  return { values, members, constant, visibleModels, knots, fauc, best, update, toggle, requireFairness, listen };
})();

// Names come from files: they are always set as text, never as markup.
const dom = {
  /** Make an element with a class and text. */
  make(tag, className = "", content = "") {
    const element = document.createElement(tag);
    if (className) element.className = className;
    if (content !== "") element.textContent = content;
    return element;
  },
  byId: (id) => document.getElementById(id),
};

const format = {
  accuracy: (value) => value.toFixed(3),
  // More decimals where rounding would lift a value to a level that people ask for. As in _words.py.
  level: (value) => {
    const rounded = Math.round(value * 1000) / 1000;
    const asked = Math.abs(rounded * 20 - Math.round(rounded * 20)) < 1e-9;
    return rounded > value + 1e-9 && rounded >= 0.8 && rounded <= 1 && asked ? (Math.floor(value * 1e5 + 1e-9) / 1e5).toFixed(5) : rounded.toFixed(3);
  },
  percent: (value) => (value === null ? "—" : `${(100 * value).toFixed(1)} %`),
  fauc: (value) => value.toFixed(6),
  short: (name, length = 34) => ([...name].length > length ? `${[...name].slice(0, length - 1).join("")}…` : name),
};

/** The colour class of a family: the stack has its own, base families take turns. */
function colourClass(family) {
  const { kind } = data.families[family];
  return kind === "stack" ? "colour-stack" : kind === "constant" ? "colour-constant" : `colour-${family % 7}`;
}

/** Counts of a model in the groups of an attribute. */
function groupCounts(attribute, model) {
  const width = attribute.groups.length;
  return attribute.groups.map((group, g) => ({
    name: group.name,
    rows: group.rows,
    judged: group.judged,
    scale: group.scale,
    positives: group.positives,
    negatives: group.rows - group.positives,
    trueSelected: attribute.true_selected[model * width + g],
    falseSelected: attribute.false_selected[model * width + g],
  }));
}

/** The rates that the fairness measure compares, for one group. */
function comparedRates(group) {
  return data.settings.conditions.map((condition) => {
    if (condition === null) return (group.trueSelected + group.falseSelected) / group.rows;
    return condition === 1 ? group.trueSelected / group.positives : group.falseSelected / group.negatives;
  });
}
