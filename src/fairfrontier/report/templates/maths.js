"use strict";

// The library's definitions, so that the sliders give the values that Python gives.
const maths = (() => {
  /** Pareto-optimal members, ascending in fairness; of equal models the first (Algorithm 1). */
  function pareto(fairness, accuracy, members) {
    const order = [...members].sort(
      (i, j) => fairness[j] - fairness[i] || accuracy[j] - accuracy[i] || i - j
    );
    const kept = [];
    let best = -Infinity;
    for (const i of order) {
      if (accuracy[i] > best) {
        best = accuracy[i];
        kept.push(i);
      }
    }
    return kept.reverse();
  }

  /** Vertices of the least concave majorant of Pareto-optimal models. */
  function hull(fairness, accuracy, optimal) {
    const kept = [];
    for (const i of optimal) {
      while (kept.length > 1) {
        const b = kept[kept.length - 1];
        const a = kept[kept.length - 2];
        const turn =
          (fairness[b] - fairness[a]) * (accuracy[i] - accuracy[a]) -
          (accuracy[b] - accuracy[a]) * (fairness[i] - fairness[a]);
        if (turn < 0) break;
        kept.pop();
      }
      kept.push(i);
    }
    return kept;
  }

  /** ∫ u^(power − 1) over [0, x], of the part above beta. */
  function integral(x, beta, power) {
    return (Math.max(x, beta) ** power - beta ** power) / power;
  }

  /** FAUC of a curve under the weight x^alpha·1{x > beta}; `knots` are models, ascending in fairness. */
  function fauc(fairness, accuracy, knots, linear, alpha, beta) {
    let area = 0;
    let previousW = 0;
    let previousM = 0;
    knots.forEach((i, position) => {
      const w = integral(fairness[i], beta, alpha + 1);
      const m = integral(fairness[i], beta, alpha + 2);
      const before = position > 0 ? knots[position - 1] : i;
      const slope =
        linear && position > 0 ? (accuracy[i] - accuracy[before]) / (fairness[i] - fairness[before]) : 0;
      area += (accuracy[i] - slope * fairness[i]) * (w - previousW) + slope * (m - previousM);
      previousW = w;
      previousM = m;
    });
    return area / integral(1, beta, alpha + 1);
  }

  /** Wilson's score interval of hits in n trials. */
  function wilson(hits, n, z) {
    const share = hits / n;
    const scale = 1 + (z * z) / n;
    const centre = (share + (z * z) / (2 * n)) / scale;
    const half = (z / scale) * Math.sqrt((share * (1 - share)) / n + (z * z) / (4 * n * n));
    return [Math.max(0, centre - half), Math.min(1, centre + half)];
  }

  /** The most accurate candidate with enough fairness; of equals the fairest, then the first; or null. */
  function bestAt(fairness, accuracy, candidates, minimum) {
    let best = null;
    for (const i of candidates) {
      if (fairness[i] < minimum) continue;
      const gain =
        best === null ? 1 : accuracy[i] - accuracy[best] || fairness[i] - fairness[best] || best - i;
      if (gain > 0) best = i;
    }
    return best;
  }

  return { pareto, hull, integral, fauc, wilson, bestAt };
})();
