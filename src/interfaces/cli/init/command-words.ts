import { UsageError } from '../../../core/model/errors.ts'

/** A quoted part, an escaped character, spaces, or a run of other characters. */
const PARTS = /'([^']*)'|"((?:[^"\\]|\\[^])*)"|\\([^])|(\s+)|([^\s'"\\]+)/gy
/** On Windows a backslash outside of quotes is part of a path. */
const PARTS_WINDOWS = /'([^']*)'|"((?:[^"\\]|\\[^])*)"|(\\)|(\s+)|([^\s'"\\]+)/gy
/** What only a shell understands: a pipe, a redirection, a second command. */
const OPERATOR = /^(?:[|&;<>]+|\d*[<>].*|[^]*;)$/

/** Splits a command as a POSIX shell does, without a shell: nothing in it is expanded or run. Throws on what needs one. */
export function splitCommand(text: string, platform: NodeJS.Platform): string[] {
  const words: string[] = []
  let word: { text: string; isPlain: boolean } | null = null
  const end = (): void => {
    if (word === null) return
    if (word.isPlain && OPERATOR.test(word.text)) throw needsShell(word.text)
    words.push(word.text)
    word = null
  }
  const parts = platform === 'win32' ? PARTS_WINDOWS : PARTS
  let length = 0
  for (const [part, single, double, escaped, space, plain] of text.matchAll(parts)) {
    length += part.length
    if (space !== undefined) {
      end()
      continue
    }
    // A line that ends with a backslash goes on in the next one.
    if (escaped === '\n') continue
    const quoted = single ?? (double === undefined ? undefined : unescape(double))
    word ??= { text: '', isPlain: true }
    word.text += quoted ?? escaped ?? plain!
    word.isPlain &&= plain !== undefined
  }
  end()
  if (length < text.length)
    throw new UsageError(
      `--command ${JSON.stringify(text)} has a quote or a backslash without its end.`,
    )
  checkProgram(words)
  return words
}

/** In double quotes a backslash escapes only these. */
function unescape(text: string): string {
  return text.replaceAll(/\\([$`"\\\n])/g, (_, char: string) => (char === '\n' ? '' : char))
}

function checkProgram([program]: readonly string[]): void {
  if (program === undefined || program === '')
    throw new UsageError(`--command is empty. For example: --command 'python scraper.py'`)
  if (/^\w+=/.test(program)) throw needsShell(program)
}

function needsShell(word: string): UsageError {
  return new UsageError(
    `--command is started without a shell, which ${JSON.stringify(word)} needs. Write it into a script, or call a shell: --command "sh -c '…'". A word that only looks like it goes in quotes.`,
  )
}
