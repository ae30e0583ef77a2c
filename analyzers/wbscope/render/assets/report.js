// SPDX-License-Identifier: Apache-2.0
// The page of wbscope report: figures by uPlot, tables that sort and filter, commands to copy.
"use strict";
(() => {
  const root = document.documentElement;
  root.classList.add("script"); // what needs a script is shown from here on
  const data = JSON.parse(document.getElementById("data").textContent);
  const all = (selector, from = document) => [...from.querySelectorAll(selector)];

  function make(tag, properties = {}, ...children) {
    const made = Object.assign(document.createElement(tag), properties);
    made.append(...children);
    return made;
  }

  // Numbers for people, as base/units.py writes them.

  const BINARY = ["KiB", "MiB", "GiB", "TiB", "PiB", "EiB"];
  const DURATIONS = [["us", 1e3], ["ms", 1e6], ["s", 1e9]];

  function threeDigits(size) {
    return size < 9.995 ? size.toFixed(2) : size.toFixed(size < 99.95 ? 1 : 0);
  }

  function formatValue(unit, value) {
    if (value === null || value === undefined) return "-";
    const sign = value < 0 ? "-" : "";
    let size = Math.abs(value);
    if (unit === "ratio") return `${(value * 100).toFixed(1)} %`;
    if (unit === "ns") {
      if (size === 0) return "0 s";
      if (size < 1e3) return `${sign}${size.toFixed(0)} ns`;
      const [name, step] =
        DURATIONS.find(([, one]) => Number(threeDigits(size / one)) < 1000) || DURATIONS[2];
      return `${sign}${threeDigits(size / step)} ${name}`;
    }
    if (unit === "bytes" || unit === "bytes/s") {
      const end = unit.slice("bytes".length);
      if (Number(threeDigits(size)) < 1024) return `${value.toFixed(0)} B${end}`;
      let name;
      for (name of BINARY) {
        size /= 1024;
        if (Number(threeDigits(size)) < 1024) break;
      }
      return `${sign}${threeDigits(size)} ${name}${end}`;
    }
    const number = Number.isInteger(value) ? String(value) : String(Number(value.toPrecision(6)));
    return unit === "count" ? number : `${number} ${unit}`;
  }

  const formatTime = (ns, digits = 6) => `${(ns / 1e9).toFixed(digits)} s`;

  // One unit for all ticks of an axis.
  function axisUnit(unit, most) {
    if (unit === "ratio") return [" %", 0.01];
    if (unit === "ns") {
      const fits = [["ns", 1], ...DURATIONS].filter(([, size]) => most >= size);
      const [name, size] = fits.length ? fits[fits.length - 1] : ["ns", 1];
      return [` ${name}`, size];
    }
    if (unit === "bytes" || unit === "bytes/s") {
      let power = 0;
      while (power < BINARY.length && most >= 1024 ** (power + 1)) power += 1;
      const name = power === 0 ? "B" : BINARY[power - 1];
      return [` ${name}${unit.slice("bytes".length)}`, 1024 ** power];
    }
    return [unit === "count" ? "" : ` ${unit}`, 1];
  }

  // Round numbers of the unit that is printed; 2.5 is none.
  const TIME_STEPS = [];
  for (let power = 0; power < 15; power += 1) {
    for (const factor of [1, 2, 5]) TIME_STEPS.push(factor * 10 ** power);
  }
  function stepsOf(size) {
    const steps = [];
    for (let power = -3; power < 9; power += 1) {
      for (const factor of [1, 2, 5]) steps.push(factor * 10 ** power * size);
    }
    return steps;
  }

  // Of such steps uPlot would round the places to whole bytes.
  function placesOf(u, axis, low, high, step) {
    const places = [];
    for (let at = Math.ceil(low / step); at <= high / step; at += 1) places.push(at * step);
    return places;
  }

  // Colours: the few that a dark page has others of.

  const theme = {};

  function readTheme() {
    const style = getComputedStyle(root);
    for (const name of ["fg", "soft", "line", "bg", "range", "others", "lost", "mark", "blue"]) {
      theme[name] = style.getPropertyValue(`--${name}`).trim();
    }
  }

  function color(name) {
    const own = { "#000000": "fg", "#666666": "soft", "#999999": "others", "#0072b2": "blue", range: "range" }[name];
    return own ? theme[own] : name;
  }

  // A button's colour follows the page by itself.
  const swatchColor = (name) =>
    ({ "#000000": "currentColor", "#666666": "var(--soft)", "#999999": "var(--others)",
       "#0072b2": "var(--blue)", range: "var(--range)" })[name] || name;

  // Figures: one cursor and one time axis for all of them.

  const HEIGHT = 200;
  const PADDING = 12; // right of a figure
  const HALF_LETTER = 3.4;
  // Shades lie below, then limits, then what stands for many tasks, then the chief ones.
  const ORDER = { band: 0, area: 1, limit: 2 };
  const depth = (one) => ORDER[one.kind] ?? (one.color === "#999999" ? 3 : 4);
  const view = { from: data.from, to: data.to };
  const charts = new Map(); // id of the figure -> Chart
  const marks = new Map(); // number of the run -> [from, to]
  let now = null;

  function timesOf(steps) {
    let time = 0;
    return steps.map((step) => (time += step));
  }

  class Chart {
    constructor(place) {
      this.place = place;
      this.panel = data.plots[place.id];
      const times = this.panel.times.map(timesOf);
      this.series = this.panel.series.map((one, number) => ({ ...one, number, times: times[one.x], shown: true }));
      this.drawn = [...this.series].sort(
        (a, b) => depth(a) - depth(b) || a.number - b.number);
      this.build();
      this.legend();
      new ResizeObserver(() => this.resize()).observe(place);
    }

    // Columns for uPlot: the times of all series, then their values at these.
    columns() {
      const tables = [];
      let below = null;
      for (const one of this.drawn) {
        if (one.kind === "band") tables.push([one.times, one.y, one.upper]);
        else if (one.kind === "area") {
          const base = below;
          const top = one.y.map((y, i) => (y === null ? null : (one.shown ? y : 0) + (base ? base[i] : 0)));
          below = top.map((y) => y ?? 0);
          tables.push([one.times, top]);
        } else tables.push([one.times, one.y]);
      }
      return uPlot.join(tables);
    }

    build() {
      const series = [{}];
      const bands = [];
      let area = null;
      for (const one of this.drawn) {
        const stroke = () => color(one.color);
        const base = { scale: "y", stroke, width: 1.6, points: { show: false } };
        one.columns = [series.length];
        if (one.kind === "band") {
          const edge = { ...base, width: 0, ...(one.stepped ? { paths: uPlot.paths.stepped({ align: 1 }) } : {}) };
          series.push(edge, edge);
          one.columns.push(series.length - 1);
          bands.push({ series: [series.length - 1, series.length - 2], fill: () => `${color(one.color)}2e` });
          continue;
        }
        if (one.kind === "area") {
          series.push({ ...base, width: 0, fill: area === null ? () => `${color(one.color)}a6` : undefined });
          if (area !== null) bands.push({ series: [series.length - 1, area], fill: () => `${color(one.color)}a6` });
          area = series.length - 1;
          continue;
        }
        if (one.kind === "points") {
          series.push({ ...base, paths: () => null, points: { show: true, size: 5, width: 0, fill: stroke, stroke } });
          continue;
        }
        if (one.stepped) {
          series.push({ ...base, paths: uPlot.paths.stepped({ align: 1 }) });
          continue;
        }
        // A value between two gaps has no line.
        series.push({
          ...base, width: one.kind === "limit" ? 1.2 : 1.6, dash: one.dashes,
          points: { show: false, size: 4, fill: stroke, filter: (u, at) => lonely(u.data[at]) },
        });
      }
      const { unit, low, high } = this.panel;
      const [name, size] = axisUnit(unit, Math.max(Math.abs(low), Math.abs(high)));
      const options = {
        width: Math.max(this.place.clientWidth, 100), height: HEIGHT, series, bands,
        legend: { show: false },
        scales: {
          x: { time: false, range: () => [view.from, view.to] },
          y: { range: [low, high + 0.04 * (high - low)] },
        },
        axes: [
          { ...axisLooks(), values: timeTicks, incrs: TIME_STEPS, space: spaceOfTime, size: 34 },
          {
            ...axisLooks(), size: widthOfAxis, space: 34,
            ...(unit.startsWith("bytes") ? { incrs: stepsOf(size), splits: placesOf } : {}),
            values: (u, places) => places.map((place) => `${Number((place / size).toPrecision(6))}${name}`),
          },
        ],
        padding: [8, PADDING, 0, 0],
        cursor: {
          y: false, drag: { x: true, y: false, dist: 6, setScale: false },
          points: { size: 6 },
          bind: { dblclick: () => () => showAll() },
        },
        hooks: {
          drawClear: [(u) => this.spans(u)],
          setCursor: [(u) => moveTo(u.cursor.left < 0 ? null : u.posToVal(u.cursor.left, "x"), this)],
          setSelect: [(u) => select(u)],
        },
      };
      this.plot = new uPlot(options, this.columns(), this.place);
    }

    // Where events are lost, and the time of the finding that is marked.
    spans(u) {
      const { ctx, bbox } = u;
      const fill = ([from, to], name, strength) => {
        const left = Math.max(u.valToPos(from, "x", true), bbox.left);
        const right = Math.min(u.valToPos(to, "x", true), bbox.left + bbox.width);
        ctx.fillStyle = `${theme[name]}${strength}`;
        if (right > left) ctx.fillRect(left, bbox.top, right - left, bbox.height);
      };
      ctx.save();
      for (const span of this.panel.lost) fill(span, "lost", "40");
      const marked = marks.get(this.panel.run);
      if (marked) fill(marked, "mark", "2b");
      ctx.restore();
    }

    legend() {
      const list = document.getElementById(`${this.place.id}-legend`);
      for (const one of this.series) {
        const value = make("span", { className: "value" });
        const button = make("button", { type: "button" });
        button.setAttribute("aria-pressed", "true");
        button.append(swatch(one), one.label || "value", value);
        button.addEventListener("click", () => this.toggle(one, button));
        one.value = value;
        list.append(make("li", {}, button));
      }
    }

    toggle(one, button) {
      one.shown = !one.shown;
      button.setAttribute("aria-pressed", String(one.shown));
      if (one.kind === "area") this.plot.setData(this.columns(), false);
      else for (const column of one.columns) this.plot.setSeries(column, { show: one.shown });
      this.plot.redraw();
    }

    // Values of the curves at a time, in the order of the legend.
    at(time) {
      return this.series.map((one) => {
        const place = placeOf(one, time);
        if (place === null) return "";
        const text = formatValue(this.panel.unit, one.y[place]);
        return one.kind === "band" && one.y[place] !== null
          ? `${text} to ${formatValue(this.panel.unit, one.upper[place])}` : text;
      });
    }

    tell(time) {
      const values = time === null ? [] : this.at(time);
      this.series.forEach((one, i) => { one.value.textContent = values[i] || ""; });
    }

    resize() {
      const width = this.place.clientWidth;
      if (width > 0 && width !== this.plot.width) this.plot.setSize({ width, height: HEIGHT });
    }
  }

  function axisLooks() {
    return {
      stroke: () => theme.fg, font: "12px system-ui, sans-serif",
      grid: { stroke: () => theme.line, width: 1 }, ticks: { stroke: () => theme.line, width: 1, size: 4 },
    };
  }

  // As wide as most need, so that figures stand below each other; more for 200000 pages/s.
  function widthOfAxis(u, labels) {
    return Math.max(78, 20 + 2 * HALF_LETTER * Math.max(0, ...(labels ?? []).map((label) => label.length)));
  }

  // Far in, times have many digits.
  function spaceOfTime(u, axis, from, to) {
    const [, size] = axisUnit("ns", data.to);
    const digits = Math.max(0, Math.ceil(-Math.log10((to - from) / size / 8)));
    return 56 + 2 * HALF_LETTER * Math.max(digits, 1);
  }

  // Of a run of milliseconds not in seconds; a text that the edge would cut is left out.
  function timeTicks(u, places) {
    const [name, size] = axisUnit("ns", data.to);
    const step = places.length > 1 ? places[1] - places[0] : size;
    const digits = Math.max(0, Math.min(9, Math.ceil(-Math.log10(step / size) - 1e-9)));
    const room = u.bbox.width / devicePixelRatio + PADDING;
    return places.map((place) => {
      const text = `${(place / size).toFixed(digits)}${name}`;
      return u.valToPos(place, "x") + text.length * HALF_LETTER > room ? "" : text;
    });
  }

  function lonely(values) {
    const known = [];
    for (let i = 0; i < values.length; i += 1) if (values[i] !== undefined) known.push(i);
    const isGap = (i) => i < 0 || i >= known.length || values[known[i]] === null;
    return known.filter((place, i) => !isGap(i) && isGap(i - 1) && isGap(i + 1));
  }

  // The last value of a series that is not after a time; of single points the nearest.
  function placeOf(one, time) {
    const { times } = one;
    if (!times.length || time < times[0] || time > times[times.length - 1] + 1e9) {
      if (one.kind !== "points" || !times.length) return null;
    }
    let low = 0;
    let high = times.length - 1;
    while (low < high) {
      const middle = (low + high + 1) >> 1;
      if (times[middle] <= time) low = middle;
      else high = middle - 1;
    }
    if (one.kind === "points") {
      const reach = (view.to - view.from) / 100;
      if (low + 1 < times.length && times[low + 1] - time < Math.abs(time - times[low])) low += 1;
      if (Math.abs(times[low] - time) > reach) return null;
    }
    return low;
  }

  function swatch(one) {
    const svg = document.createElementNS("http://www.w3.org/2000/svg", "svg");
    svg.setAttribute("viewBox", "0 0 26 10");
    svg.setAttribute("aria-hidden", "true");
    const shape = { band: "rect", area: "rect", points: "circle" }[one.kind] || "line";
    const mark = document.createElementNS("http://www.w3.org/2000/svg", shape);
    const looks = {
      rect: { x: 0, y: 0, width: 26, height: 10, fill: swatchColor(one.color), "fill-opacity": one.kind === "band" ? 0.25 : 0.65 },
      circle: { cx: 13, cy: 5, r: 3.5, fill: swatchColor(one.color) },
      line: { x1: 0, y1: 5, x2: 26, y2: 5, stroke: swatchColor(one.color), "stroke-width": 2, "stroke-dasharray": (one.dashes || []).join(" ") },
    }[shape];
    for (const [name, value] of Object.entries(looks)) mark.setAttribute(name, value);
    svg.append(mark);
    return svg;
  }

  let isMoving = false;

  function moveTo(time, source) {
    if (isMoving) return;
    isMoving = true;
    now = time;
    for (const chart of charts.values()) {
      if (chart !== source) {
        const left = time === null ? -10 : chart.plot.valToPos(time, "x");
        chart.plot.setCursor({ left, top: time === null ? -10 : HEIGHT / 4 }, false);
      }
      chart.tell(time);
    }
    isMoving = false;
    document.getElementById("now").textContent = time === null ? "no cursor" : `at ${formatTime(time)}`;
  }

  function show(from, to) {
    if (from === view.from && to === view.to) return;
    view.from = from;
    view.to = to;
    for (const chart of charts.values()) chart.plot.setScale("x", { min: from, max: to });
    tellRange();
  }

  // The part that was dragged over.
  function select(u) {
    const { left, width } = u.select;
    if (width > 0) show(u.posToVal(left, "x"), u.posToVal(left + width, "x"));
    u.setSelect({ left: 0, top: 0, width: 0, height: 0 }, false);
  }

  function tellRange() {
    const out = document.getElementById("range");
    const [name, size] = axisUnit("ns", data.to);
    const text = (time) => `${(time / size).toFixed(3)}${name}`;
    if (out) out.textContent = `shown: ${text(view.from)} to ${text(view.to)}`;
  }

  const showAll = () => show(data.from, data.to);

  // Around the cursor where it is in sight.
  function zoom(factor) {
    const width = Math.min(Math.max((view.to - view.from) * factor, 1e3), data.to - data.from);
    const middle = now !== null && now >= view.from && now <= view.to ? now : (view.from + view.to) / 2;
    const share = (middle - view.from) / (view.to - view.from);
    pan(middle - share * width, width);
  }

  function pan(from, width = view.to - view.from) {
    const start = Math.min(Math.max(from, data.from), data.to - width);
    show(start, start + width);
  }

  function step(share) {
    const width = view.to - view.from;
    const time = Math.min(Math.max((now ?? view.from + width / 2) + share * width, data.from), data.to);
    if (time < view.from || time > view.to) pan(time - width / 2);
    moveTo(time, null);
  }

  function draw(place) {
    if (!charts.has(place.id) && place.clientWidth > 0) charts.set(place.id, new Chart(place));
  }

  const KEYS = {
    ArrowLeft: (event) => step(event.shiftKey ? -0.1 : -0.01),
    ArrowRight: (event) => step(event.shiftKey ? 0.1 : 0.01),
    Home: () => { pan(data.from); moveTo(data.from, null); },
    End: () => { pan(data.to); moveTo(data.to, null); },
    "+": () => zoom(0.5),
    "=": () => zoom(0.5),
    "-": () => zoom(2),
    0: showAll,
    Escape: () => moveTo(null, null),
  };

  function onKey(event) {
    const act = KEYS[event.key];
    if (!act || event.ctrlKey || event.altKey || event.metaKey) return;
    event.preventDefault();
    act(event);
    const chart = charts.get(event.currentTarget.id);
    if (now === null || !chart) return;
    const values = chart.at(now);
    const told = chart.series.map((one, i) => (values[i] ? `${one.label} ${values[i]}` : "")).filter(Boolean);
    say(`at ${formatTime(now, 3)}: ${told.join(", ")}`);
  }

  const DO = {
    in: () => zoom(0.5), out: () => zoom(2), all: showAll,
    left: () => pan(view.from - (view.to - view.from) / 2),
    right: () => pan(view.from + (view.to - view.from) / 2),
  };

  // What a screen reader is to say.
  const said = make("div", { className: "hidden", role: "status" });
  document.querySelector("main").append(said);
  function say(text) { said.textContent = text; }

  // Tables.

  function enhance(table) {
    const body = table.tBodies[0];
    const rows = [...body.rows];
    if (rows.length < 2) return;
    all("thead th", table).forEach((head, column) => {
      if (head.classList.contains("js")) return;
      const button = make("button", { type: "button" }, ...head.childNodes);
      head.replaceChildren(button);
      button.addEventListener("click", () => sortBy(table, head, column));
    });
    if (rows.length < 6) return;
    const name = table.caption.textContent;
    const count = make("output", { className: "small" });
    const box = make("input", { type: "search", placeholder: "filter rows" });
    box.setAttribute("aria-label", `filter rows of ${name}`);
    box.addEventListener("input", () => {
      const wanted = box.value.trim().toLowerCase();
      let left = 0;
      for (const row of rows) {
        row.hidden = !row.textContent.toLowerCase().includes(wanted);
        left += row.hidden ? 0 : 1;
      }
      count.textContent = wanted ? `${left} of ${rows.length} rows` : "";
    });
    const scroll = table.closest(".scroll");
    scroll.before(make("div", { className: "tools" }, box, count));
  }

  function sortBy(table, head, column) {
    const numeric = head.classList.contains("n");
    const before = head.getAttribute("aria-sort");
    const first = numeric ? "descending" : "ascending"; // the largest numbers are what is looked for
    const other = numeric ? "ascending" : "descending";
    const order = before === first ? other : first;
    all("th[aria-sort]", table).forEach((one) => one.removeAttribute("aria-sort"));
    head.setAttribute("aria-sort", order);
    const sign = order === "ascending" ? 1 : -1;
    const keyed = [...table.tBodies[0].rows].map((row) => [keyOf(row.cells[column], numeric), row]);
    keyed.sort(([a], [b]) => {
      if (a === null || b === null) return (a === null) - (b === null); // not recorded: last
      return sign * (numeric ? a - b : a.localeCompare(b, "en", { numeric: true }));
    });
    table.tBodies[0].append(...keyed.map(([, row]) => row));
    say(`sorted by ${head.textContent}, ${order}`);
  }

  function keyOf(cell, numeric) {
    const text = cell.textContent;
    if (text === "-") return null;
    return numeric ? Number(cell.dataset.v ?? text) : text;
  }

  // Commands to copy.

  async function copy(button) {
    const text = button.dataset.copy;
    try {
      await navigator.clipboard.writeText(text);
    } catch {
      const area = make("textarea", { value: text, readOnly: true });
      button.after(area);
      area.select();
      document.execCommand("copy");
      area.remove();
      button.focus();
    }
    const before = button.dataset.name ?? button.textContent;
    button.dataset.name = before;
    button.textContent = "copied";
    say(`copied: ${text}`);
    setTimeout(() => { button.textContent = before; }, 1500);
  }

  // What is drawn, as numbers in the unit of the column.
  function save(button) {
    const place = document.getElementById(button.dataset.plot);
    draw(place);
    const { series, panel } = charts.get(place.id);
    const tables = series.map((one) => (one.kind === "band" ? [one.times, one.y, one.upper] : [one.times, one.y]));
    const names = series.flatMap((one) => {
      const name = `${one.label || "value"} [${panel.unit}]`;
      return one.kind === "band" ? [`${name} lowest`, `${name} highest`] : [name];
    });
    const columns = uPlot.join(tables);
    const lines = [["time_ns", ...names].map(quoted).join(",")];
    columns[0].forEach((time, i) => {
      lines.push(columns.map((column) => column[i] ?? "").join(","));
    });
    const url = URL.createObjectURL(new Blob([`${lines.join("\n")}\n`], { type: "text/csv" }));
    make("a", { href: url, download: button.dataset.file }).click();
    setTimeout(() => URL.revokeObjectURL(url), 1000);
  }

  // No spreadsheet may take the name of a task for a formula.
  function quoted(text) {
    const safe = /^[=+\-@\t\r]/.test(text) ? `'${text}` : text;
    return `"${safe.replaceAll('"', '""')}"`;
  }

  function mark(button) {
    const { run, from, to } = button.dataset;
    const wasOn = button.getAttribute("aria-pressed") === "true";
    for (const one of all(`.mark[data-run="${run}"]`)) one.setAttribute("aria-pressed", "false");
    button.setAttribute("aria-pressed", String(!wasOn));
    if (wasOn) marks.delete(Number(run));
    else marks.set(Number(run), [Number(from), Number(to)]);
    for (const chart of charts.values()) chart.plot.redraw(false);
  }

  // Light and dark, on paper light.

  const dark = matchMedia("(prefers-color-scheme: dark)");
  const isDark = () => (root.dataset.theme ? root.dataset.theme === "dark" : dark.matches);
  const themeButton = document.getElementById("theme");

  function recolor() {
    readTheme();
    themeButton.textContent = isDark() ? "Light" : "Dark";
    for (const chart of charts.values()) chart.plot.redraw(false, true);
  }

  themeButton.addEventListener("click", () => {
    root.dataset.theme = isDark() ? "light" : "dark";
    recolor();
  });
  dark.addEventListener("change", recolor);

  let kept = null;
  const PAPER = 640; // what a figure has across on a page of A4

  addEventListener("beforeprint", () => {
    const closed = all("details:not([open])");
    kept = { closed, theme: root.dataset.theme };
    closed.forEach((one) => { one.open = true; });
    root.dataset.theme = "light";
    all(".canvas").forEach(draw);
    recolor();
    for (const chart of charts.values()) chart.plot.setSize({ width: PAPER, height: HEIGHT });
  });
  addEventListener("afterprint", () => {
    if (!kept) return;
    kept.closed.forEach((one) => { one.open = false; });
    if (kept.theme) root.dataset.theme = kept.theme;
    else delete root.dataset.theme;
    kept = null;
    recolor();
    for (const chart of charts.values()) chart.resize();
  });

  readTheme();
  recolor();
  for (const place of all(".canvas")) {
    draw(place);
    place.addEventListener("keydown", onKey);
  }
  for (const one of all("details.more")) {
    one.addEventListener("toggle", () => all(".canvas", one).forEach(draw));
  }
  all(".scroll table").forEach(enhance);
  tellRange();
  document.addEventListener("click", (event) => {
    const button = event.target.closest("button");
    if (!button) return;
    if (button.matches(".copy")) copy(button);
    else if (button.matches(".csv")) save(button);
    else if (button.matches(".mark")) mark(button);
    else if (button.dataset.do) DO[button.dataset.do]();
  });
  // For tests: what is formatted, and what is shown.
  window.wbscopeReport = { formatValue, view, charts, at: () => now };
})();
