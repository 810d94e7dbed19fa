// Asks xterm.js what it makes of the cases of terminals.json, which it reads
// from standard input, and writes one answer a line, as a JSON string. Its
// packages are found through NODE_PATH:
//   npm install @xterm/headless @xterm/addon-unicode11
const { Terminal } = require('@xterm/headless');
const { Unicode11Addon } = require('@xterm/addon-unicode11');

const unquote = (s) => {
  const out = [];
  const simple = { n: 10, r: 13, t: 9, b: 8, a: 7, v: 11, f: 12, '\\': 92, '"': 34 };
  for (let i = 0; i < s.length; ) {
    if (s[i] !== '\\') {
      const c = String.fromCodePoint(s.codePointAt(i));
      out.push(...Buffer.from(c));
      i += c.length;
      continue;
    }
    const k = s[i + 1];
    const n = { x: 2, u: 4, U: 8 }[k];
    if (n === undefined) {
      out.push(simple[k]);
      i += 2;
      continue;
    }
    const v = parseInt(s.slice(i + 2, i + 2 + n), 16);
    out.push(...(k === 'x' ? [v] : Buffer.from(String.fromCodePoint(v))));
    i += 2 + n;
  }
  return Uint8Array.from(out);
};

const colour = (base, isDefault, isRGB, v) => {
  if (isDefault) return [];
  if (isRGB) return [`${base + 8}:2:${v >> 16}:${(v >> 8) & 255}:${v & 255}`];
  if (base !== 50 && v < 8) return [`${base + v}`];
  if (base !== 50 && v < 16) return [`${base + 60 + v - 8}`];
  return [`${base + 8}:5:${v}`];
};

const look = (c) => {
  const under = c.isUnderline() ? c.extended?.underlineStyle || 1 : 0;
  const dull = !c.getChars().trim() && !under && !c.isInverse() && !c.isStrikethrough();
  const out = [];
  const attrs = { isBold: '1', isDim: '2', isItalic: '3', isBlink: '5', isInverse: '7', isInvisible: '8', isStrikethrough: '9' };
  if (!dull) for (const [f, n] of Object.entries(attrs)) if (c[f]()) out.push(n);
  if (under) out.push(`4:${under}`);
  if (!dull) out.push(...colour(30, c.isFgDefault(), c.isFgRGB(), c.getFgColor()));
  out.push(...colour(40, c.isBgDefault(), c.isBgRGB(), c.getBgColor()));
  if (under && c.extended?.underlineColor !== undefined && !c.isUnderlineColorDefault()) {
    out.push(...colour(50, false, c.isUnderlineColorRGB(), c.isUnderlineColorRGB() ? c.extended.underlineColor & 0xffffff : c.extended.underlineColor & 255));
  }
  return out.join(';');
};

const row = (line) => {
  const cells = [];
  for (let x = 0; x < line.length; x++) {
    const c = line.getCell(x);
    if (c.getWidth() > 0) cells.push([c.getChars() || ' ', look(c)]);
  }
  while (cells.length && cells[cells.length - 1][0] === ' ') cells.pop();
  let out = '';
  let now = '';
  for (const [text, style] of cells) {
    if (style !== now) out += `{${style}}`;
    now = style;
    out += text;
  }
  return out;
};

const rows = (b, from, to) => {
  const out = [];
  for (let y = from; y < to; y++) out.push(row(b.getLine(y)));
  while (out.length && out[out.length - 1] === '') out.pop();
  return out.join('|');
};

const ask = async (c) => {
  const t = new Terminal({ cols: c.cols, rows: c.rows, scrollback: 2000, allowProposedApi: true });
  t.loadAddon(new Unicode11Addon());
  t.unicode.activeVersion = '11';
  let reply = '';
  t.onData((s) => (reply += s));
  const write = (s) => new Promise((done) => t.write(unquote(s), done));
  await write(c.input);
  if (c.resize) {
    for (const size of c.resize.split(' ')) t.resize(...size.split('x').map(Number));
    await write(c.after || '');
  }
  const b = t.buffer.active;
  let out = rows(b, b.baseY, b.baseY + t.rows);
  if (c.resize && b.baseY > 0) out = rows(b, 0, b.baseY) + '⇡' + out;
  out += ` @${b.cursorX},${b.cursorY}`;
  if (reply) out += ' →' + reply.replace(/\\/g, '\\\\').replace(/[\x00-\x1f]/g, (c) => '\\x' + c.charCodeAt(0).toString(16).padStart(2, '0'));
  t.dispose();
  return out;
};

(async () => {
  const cases = JSON.parse(require('fs').readFileSync(0, 'utf8'));
  for (const c of cases) console.log(JSON.stringify(await ask(c)));
})();
