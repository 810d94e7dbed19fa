// Asks xterm.js what it makes of a frame, which it reads from standard input, on a screen
// of 20 columns and as many rows as its argument says. It writes its version and the rows,
// one a line, a blank in the place of each cell's second half. Its package is found through
// NODE_PATH:
//   npm install @xterm/headless
const { Terminal } = require('@xterm/headless');
const t = new Terminal({ cols: 20, rows: Number(process.argv[2]), allowProposedApi: true });
t.write(require('fs').readFileSync(0), () => {
  console.log('xterm.js ' + require('@xterm/headless/package.json').version);
  for (let y = 0; y < t.rows; y++) console.log(t.buffer.active.getLine(y).translateToString());
});
