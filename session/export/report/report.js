"use strict";
(() => {
  const frames = JSON.parse(document.getElementById("frames").textContent);
  const by = (id) => document.getElementById(id);
  const screen = by("screen"), bar = by("bar"), play = by("play"), clock = by("clock"), speed = by("speed");
  let shown = -1, rows = [], timer = 0;
  const time = (ms) => {
    const s = Math.floor(ms / 1000), two = (n) => String(n).padStart(2, "0");
    return (s >= 3600 ? Math.floor(s / 3600) + ":" : "") + two(Math.floor(s / 60) % 60) + ":" + two(s % 60);
  };
  // A frame is [milliseconds, rows of a whole one or 0, {row: [[text, classes, colour, background], ...]}].
  const show = (n) => {
    let from = shown + 1;
    if (n < from) from = 0;
    for (let i = n; i >= from; i--) if (frames[i][1]) { from = i; break; }
    for (let i = from; i <= n; i++) {
      const [, whole, lines] = frames[i];
      if (whole) { rows = Array.from({ length: whole }, () => document.createElement("div")); screen.replaceChildren(...rows); }
      for (const y in lines) {
        const spans = lines[y].map(([text, cls, fg, bg]) => {
          const e = document.createElement("span");
          e.textContent = text;
          if (cls) e.className = cls;
          if (fg) e.style.color = fg;
          if (bg) e.style.backgroundColor = bg;
          return e;
        });
        if (rows[y]) rows[y].replaceChildren(...(spans.length ? spans : [" "]));
      }
    }
    shown = n;
    bar.value = n;
    clock.textContent = time(frames[n][0]) + " / " + time(frames[frames.length - 1][0]);
  };
  const stop = () => { clearTimeout(timer); timer = 0; play.textContent = "Play"; };
  const step = () => {
    if (shown + 1 >= frames.length) return stop();
    const wait = Math.min(frames[shown + 1][0] - frames[shown][0], 1500) / speed.value;
    timer = setTimeout(() => { show(shown + 1); step(); }, wait);
  };
  const seek = (n) => { stop(); show(n); };
  if (!frames.length) { by("controls").hidden = true; screen.textContent = "Nothing was printed."; return; }
  bar.max = frames.length - 1;
  bar.oninput = () => seek(Number(bar.value));
  play.onclick = () => {
    if (timer) return stop();
    if (shown + 1 >= frames.length) show(0);
    play.textContent = "Pause";
    step();
  };
  document.addEventListener("click", (e) => {
    if (!e.target.matches("button.at")) return;
    const at = Number(e.target.dataset.at);
    let n = frames.findIndex((f) => f[0] > at);
    seek(Math.max(0, n < 0 ? frames.length - 1 : n - 1));
    screen.scrollIntoView({ block: "nearest" });
  });
  addEventListener("beforeprint", () => { stop(); for (const d of document.querySelectorAll("details")) d.open = true; });
  show(frames.length - 1);
})();
