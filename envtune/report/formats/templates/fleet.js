(async () => {
  const area = document.querySelector("#matrix");
  const packed = document.querySelector("#data");
  if (area === null || packed === null) return;
  const bytes = Uint8Array.from(atob(packed.textContent), (letter) => letter.charCodeAt(0));
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"));
  const data = JSON.parse(await new Response(stream).text());
  const canvas = area.querySelector("canvas");
  const cell = document.querySelector("#cell");
  const room = document.querySelector("#room");
  const form = document.querySelector("form");
  const paint = canvas.getContext("2d");
  const [height, width, left, top] = [16, 12, 240, 64];
  const names = data.rows.map((row) => row.hosts.map((number) => data.hosts[number].toLowerCase()));
  let rows = data.rows;
  let at = { row: 0, check: 0 };
  const style = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
  const colours = () => ({ p: style("--good"), f: style("--critical"), e: style("--high"), u: style("--medium"),
    w: style("--low"), n: style("--low"), x: style("--good"), "-": style("--page") });
  const word = (code) => data.words[code][document.documentElement.dataset.lang === "zh" ? 1 : 0];

  const draw = () => {
    const scale = window.devicePixelRatio || 1;
    const [wide, high] = [area.clientWidth, area.clientHeight];
    canvas.width = wide * scale;
    canvas.height = high * scale;
    canvas.style.width = `${wide}px`;
    canvas.style.height = `${high}px`;
    room.style.height = `${Math.max(0, top + rows.length * height - high)}px`;
    room.style.width = `${left + data.checks.length * width}px`;
    paint.setTransform(scale, 0, 0, scale, 0, 0);
    paint.clearRect(0, 0, wide, high);
    paint.font = "11px ui-monospace, monospace";
    const colour = colours();
    const text = style("--text");
    const first = Math.floor(area.scrollTop / height);
    const shift = area.scrollLeft;
    for (let row = first; row < rows.length && top + (row - first) * height < high; row += 1) {
      const y = top + (row - first) * height;
      for (let check = 0; check < data.checks.length; check += 1) {
        const x = left + check * width - shift;
        if (x < left || x > wide) continue;
        paint.fillStyle = colour[rows[row].codes[check]] || colour["-"];
        paint.fillRect(x, y, width - 1, height - 1);
      }
      paint.fillStyle = text;
      paint.fillText(rows[row].label.slice(0, 34), 4, y + 12);
    }
    paint.fillStyle = text;
    for (let check = 0; check < data.checks.length; check += 1) {
      const x = left + check * width - shift;
      if (x < left || x > wide) continue;
      paint.save();
      paint.translate(x + 9, top - 4);
      paint.rotate(-Math.PI / 2);
      paint.fillText(data.checks[check], 0, 0);
      paint.restore();
    }
    if (document.activeElement === canvas && at.row >= first) {
      paint.strokeStyle = text;
      paint.lineWidth = 2;
      paint.strokeRect(left + at.check * width - shift, top + (at.row - first) * height, width, height);
    }
  };

  const tell = (row, check) => {
    const found = rows[row];
    cell.textContent = found === undefined || data.checks[check] === undefined ? ""
      : `${data.checks[check]}: ${word(found.codes[check])}: ${found.label} (${found.hosts.length})`;
  };

  // Host names are folded in the lists: `node[1-3,7]`. A list that is cut off may hold any host.
  const unfold = (text) => text.replace(/\[([^\]]*)\]([^,]*)/g, (all, ranges, rest) => `\u0000${ranges}\u0001${rest}`).split(/,(?![^\u0000]*\u0001)/)
    .flatMap((part) => {
      const found = /^(.*)\u0000(.*)\u0001(.*)$/.exec(part);
      if (found === null) return [part];
      const ends = found[2].split(",").map((range) => range.split("-").map(Number));
      // A hostile name may look like a range.
      if (ends.some(([low, high]) => high - low > 100000)) return [part.replace("\u0000", "[").replace("\u0001", "]")];
      return found[2].split(",").flatMap((range) => {
        const [low, high] = range.split("-");
        const numbers = [];
        for (let number = Number(low); number <= Number(high || low); number += 1) numbers.push(String(number).padStart(low.length, "0"));
        return numbers.map((number) => found[1] + number + found[3]);
      });
    });
  const lists = new Map();
  const holds = (details, hosts) => {
    if (!lists.has(details)) {
      const texts = [...details.querySelectorAll(".nodes")].map((one) => one.textContent.toLowerCase());
      const cut = texts.some((text) => text.endsWith("..."));
      lists.set(details, cut ? null : new Set(texts.flatMap((text) => unfold(text.replace(/^\(\d+\) /, "")))));
    }
    const known = lists.get(details);
    return known === null || hosts.some((name) => known.has(name));
  };

  const filter = () => {
    const words = form.elements.words.value.toLowerCase().split(/\s+/).filter(Boolean);
    const known = words.filter((part) => names.some((own) => own.some((name) => name.includes(part))));
    rows = data.rows.filter((row, number) => known.every((part) => names[number].some((name) => name.includes(part))));
    at.row = Math.min(at.row, Math.max(0, rows.length - 1));
    if (known.length > 0) {
      const hosts = names.flat().filter((name) => known.every((part) => name.includes(part)));
      const others = words.filter((part) => !known.includes(part));
      const ticked = (name) => new Set([...form.querySelectorAll(`[name=${name}]:checked`)].map((box) => box.value));
      const [outcomes, severities] = [ticked("outcome"), ticked("severity")];
      let shown = 0;
      for (const details of document.querySelectorAll("[data-outcome]")) {
        const text = details.textContent.toLowerCase();
        details.hidden = !(outcomes.has(details.dataset.outcome) && severities.has(details.dataset.severity)
          && others.every((word) => text.includes(word)) && holds(details, hosts));
        shown += details.hidden ? 0 : 1;
      }
      for (const section of document.querySelectorAll("section")) {
        section.hidden = section.querySelector("[data-outcome]") !== null
          && section.querySelector("[data-outcome]:not([hidden])") === null;
      }
      document.querySelector("#shown").textContent = `${shown} / ${document.querySelectorAll("[data-outcome]").length}`;
    }
    draw();
  };

  let waiting = false;
  area.addEventListener("scroll", () => {
    if (waiting) return;
    waiting = true;
    requestAnimationFrame(() => { waiting = false; draw(); });
  });
  canvas.addEventListener("mousemove", (event) => {
    const box = canvas.getBoundingClientRect();
    const row = Math.floor((event.clientY - box.top - top) / height) + Math.floor(area.scrollTop / height);
    tell(row, Math.floor((event.clientX - box.left - left + area.scrollLeft) / width));
  });
  canvas.addEventListener("keydown", (event) => {
    const step = { ArrowDown: [1, 0], ArrowUp: [-1, 0], ArrowRight: [0, 1], ArrowLeft: [0, -1], PageDown: [20, 0], PageUp: [-20, 0] }[event.key];
    if (step === undefined) return;
    event.preventDefault();
    at = { row: Math.max(0, Math.min(rows.length - 1, at.row + step[0])),
      check: Math.max(0, Math.min(data.checks.length - 1, at.check + step[1])) };
    const fits = Math.floor((area.clientHeight - top) / height) - 1;
    const first = Math.floor(area.scrollTop / height);
    if (at.row < first) area.scrollTop = at.row * height;
    if (at.row > first + fits) area.scrollTop = (at.row - fits) * height;
    tell(at.row, at.check);
    draw();
  });
  for (const name of ["focus", "blur"]) canvas.addEventListener(name, draw);
  for (const key of document.querySelectorAll(".key")) key.style.background = colours()[key.dataset.code];
  window.addEventListener("resize", draw);
  if (form !== null) form.addEventListener("input", filter);
  draw();
  area.dataset.ready = "true";
})();
