import { UsageError } from '../../../core/model/errors.ts'
import { shellWord } from '../../../core/model/shell-command.ts'

/** The inside of a string between double quotes, in JSON and YAML. YAML knows more line breaks and control characters. */
export function escapeJson(text: string): string {
  return JSON.stringify(text)
    .slice(1, -1)
    .replaceAll(
      /[\u007f-\u009f\u2028\u2029\ufeff\ufffe\uffff]/g,
      (char) => String.raw`\u${char.charCodeAt(0).toString(16).padStart(4, '0')}`,
    )
}

/** The inside of a string between single quotes. */
export function escapeJs(text: string): string {
  return escapeJson(text)
    .replaceAll(String.raw`\"`, '"')
    .replaceAll("'", String.raw`\'`)
}

/** In a unit, % starts a specifier. */
export function escapeSpecifiers(text: string): string {
  return text.replaceAll('%', '%%')
}

/** The value of ExecStart=. systemd expands variables in every word but the first. */
export function execStart([program, ...args]: readonly [string, ...string[]]): string {
  const words = args.map((word) =>
    /^[\w./-]+$/.test(word) ? word : quoteForUnit(word).replaceAll('$', '$$$$'),
  )
  return [quoteForUnit(program), ...words].join(' ')
}

function quoteForUnit(text: string): string {
  const escaped = escapeSpecifiers(text)
    .replaceAll(/[\\"]/g, String.raw`\$&`)
    // oxlint-disable-next-line no-control-regex
    .replaceAll(/[\x01-\x1f\x7f]/g, (char) => {
      return String.raw`\x${char.charCodeAt(0).toString(16).padStart(2, '0')}`
    })
  return `"${escaped}"`
}

/** cron ends a command at %. Some crons remove the backslash before it, some do not: outside of quotes both work. */
export function escapeCron(text: string): string {
  const whole = shellWord(text)
  if (whole.includes('\n'))
    throw new UsageError(
      `A line of a crontab cannot hold the word ${JSON.stringify(text)}, which ends with a line break. Write the command into a script.`,
    )
  if (!whole.includes('%')) return whole
  return text
    .split('%')
    .map((part) => (part === '' ? '' : shellWord(part)))
    .join(String.raw`\%`)
}

const ENTITIES: Readonly<Record<string, string>> = {
  '&': '&amp;',
  '<': '&lt;',
  '>': '&gt;',
  '"': '&quot;',
  "'": '&apos;',
}

export function escapeXml(text: string): string {
  return text.replaceAll(/[&<>"']/g, (letter) => ENTITIES[letter]!)
}

/** The arguments of a task, as a Windows program splits them. The Task Scheduler has no escape for what it expands itself. */
export function windowsArguments(words: readonly string[]): string {
  const line = words.map(quoteForWindows).join(' ')
  if (!/\p{Cc}|%[\w().-]+%|\$\(/u.test(line)) return line
  throw new UsageError(
    'A task of Windows cannot hold this command: the Task Scheduler would expand %…% and $(…), and takes no line breaks. Write it into a script.',
  )
}

/** Backslashes count only before a quote. */
function quoteForWindows(word: string): string {
  if (/^[^\s"]+$/.test(word)) return word
  return `"${word.replaceAll(/(\\*)("|$)/g, (_, slashes: string, quote: string) => `${slashes}${slashes}${quote && '\\"'}`)}"`
}
