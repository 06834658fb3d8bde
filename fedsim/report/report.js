"use strict";
// Draws the charts of the page, and hides and shows their lines. The data stands in the page, and is only read.
(() => {
  const MANY_POINTS = 4000; // more are drawn as one image: a page of so many shapes is slow
  const nothing = () => Promise.reject(new Error("a report loads nothing"));
  const loader = { load: nothing, sanitize: nothing, http: nothing, file: nothing };
  const views = [];
  const hidden = new Set();

  const points = (spec) =>
    Object.values(spec.datasets ?? {}).reduce((sum, rows) => sum + rows.length, spec.data?.values?.length ?? 0);

  async function draw(place) {
    const spec = JSON.parse(document.getElementById(place.dataset.chart).textContent);
    const instead = place.firstElementChild;
    try {
      const { view } = await vegaEmbed(place, spec, {
        mode: "vega-lite",
        ast: true, // expressions are interpreted, not compiled
        actions: false,
        defaultStyle: false,
        loader,
        renderer: points(spec) > MANY_POINTS ? "canvas" : "svg",
        tooltip: { disableDefaultStyle: true, theme: "plain" },
      });
      views.push(view);
      place.dataset.drawn = "";
    } catch (error) {
      place.replaceChildren(instead);
      console.error(error);
    }
  }

  function toggle(line) {
    if (!hidden.delete(line)) hidden.add(line);
    for (const button of document.querySelectorAll("button[data-line]"))
      button.setAttribute("aria-pressed", String(!hidden.has(Number(button.dataset.line))));
    for (const view of views)
      if (view.getState().signals.hidden !== undefined) view.signal("hidden", [...hidden]).runAsync();
  }

  for (const button of document.querySelectorAll("button[data-line]"))
    button.addEventListener("click", () => toggle(Number(button.dataset.line)));
  const places = [...document.querySelectorAll("[data-chart]")];
  places.reduce((before, place) => before.then(() => draw(place)), Promise.resolve()).then(() => {
    document.documentElement.dataset.charts = String(views.length);
  });
})();
