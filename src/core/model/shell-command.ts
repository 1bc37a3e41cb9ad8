/** One word for a POSIX shell, whatever is in it. */
export function shellWord(text: string): string {
  if (/^[\w@+:,./-][\w@+=:,./-]*$/.test(text)) return text
  if (!UNSEEN.test(text)) return `'${text.replaceAll("'", `'\\''`)}'`
  // Shown or pasted as they are, such characters would act on a terminal or be lost.
  const [, head = '', lineFeeds = ''] = /^([^]*?)(\n*)$/.exec(text)!
  const format = head.replace(PRINTF_SPECIAL, escaped)
  return `"$(printf '${format}')"${lineFeeds === '' ? '' : `'${lineFeeds}'`}`
}

const UNSEEN = /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/u
/** Also a dash in front, which some printf take for an option. */
const PRINTF_SPECIAL = /^-|[\p{Cc}\p{Cf}\p{Zl}\p{Zp}%\\'"]/gu

/** In octal, byte by byte: what every printf knows. */
function escaped(char: string): string {
  const bytes = new TextEncoder().encode(char)
  return Array.from(bytes, (byte) => `\\${byte.toString(8).padStart(3, '0')}`).join('')
}

/** Left out: undefined, false, and lists without a value. */
type Flags = Readonly<Record<string, string | number | boolean | readonly string[] | undefined>>

/**
 * `unstuck VERB ARGS --flag=value`, for a POSIX shell: it parses back to exactly these arguments. Every command that is
 * shown with more than an id in it is made here.
 */
export function unstuckCommand(
  verb: string,
  args: readonly string[] = [],
  flags: Flags = {},
): string {
  const options = Object.entries(flags).flatMap(([name, value]) => flagWords(name, value))
  // What begins with a dash would be taken for an option.
  const isOdd = args.some((arg) => arg.startsWith('-'))
  const words = isOdd ? [...options, '--', ...args] : [...args, ...options]
  return ['unstuck', verb, ...words.map(shellWord)].join(' ')
}

/** Values stand behind an equals sign: one that begins with a dash stays a value, and a list ends where it should. */
function flagWords(name: string, value: Flags[string]): string[] {
  const flag = `--${name.replace(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`)}`
  if (value === undefined || value === false) return []
  if (value === true) return [flag]
  return (typeof value === 'object' ? value : [value]).map((one) => `${flag}=${one}`)
}

/** A command that is called in a folder. */
export function inFolder(folder: string, command: string): string {
  return `cd ${shellWord(folder)} && ${command}`
}

/** `unstuck run SOURCE -- COMMAND`, as it is typed. */
export function runCommand(source: string, command: readonly string[]): string {
  if (source.startsWith('-')) return unstuckCommand('run', [source, ...command])
  return [unstuckCommand('run', [source]), '--', ...command.map(shellWord)].join(' ')
}
