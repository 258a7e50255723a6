// Draws the figures of a page, with the colours of its theme. A figure is drawn again when its data have changed.

const drawn = new WeakMap();

function colours() {
  const style = getComputedStyle(document.documentElement);
  return (name) => style.getPropertyValue(`--${name}`).trim();
}

function painted(value, colour) {
  if (typeof value === "string") return value.startsWith("@") ? colour(value.slice(1)) : value;
  if (Array.isArray(value)) return value.map((each) => painted(each, colour));
  if (value && typeof value === "object") {
    return Object.fromEntries(Object.entries(value).map(([name, each]) => [name, painted(each, colour)]));
  }
  return value;
}

export function draw(element) {
  const colour = colours();
  const { data, layout } = painted(JSON.parse(element.dataset.chart), colour);
  const axis = { gridcolor: colour("line"), linecolor: colour("line"), tickcolor: colour("line"), fixedrange: true };
  const whole = {
    ...layout,
    xaxis: { ...axis, ...layout.xaxis },
    yaxis: { ...axis, ...layout.yaxis },
    font: { family: getComputedStyle(document.body).fontFamily, size: 13, color: colour("text") },
    paper_bgcolor: "rgba(0,0,0,0)",
    plot_bgcolor: "rgba(0,0,0,0)",
    margin: { l: 8, r: 16, t: 22, b: 8 },
    showlegend: false,
    hoverlabel: { font: { family: getComputedStyle(document.body).fontFamily } },
  };
  window.Plotly.react(element, data, whole, { displayModeBar: false, responsive: true });
  drawn.set(element, element.dataset.chart);
}

export function drawAll({ again = false } = {}) {
  if (!window.Plotly) return;
  for (const element of document.querySelectorAll("[data-chart]")) {
    if (again || drawn.get(element) !== element.dataset.chart) draw(element);
  }
}
