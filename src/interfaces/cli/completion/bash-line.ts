/** The words of a line that is being typed in bash, and how the last one is completed. */
export type BashLine = {
  /** The complete words, as the command would get them. */
  readonly words: readonly string[]
  /** The word under the cursor. */
  readonly current: string
  /** Returns what stands for a value of the current word in bash's reply; null if it cannot be written there. */
  readonly insert: (value: string) => string | null
}

type Quote = '"' | "'" | null

/**
 * Reads a line up to the cursor. Nothing is expanded: `$(…)` and variables stay text. `breaks`: bash replaces a word only
 * from the last of these characters on, or from an open quote.
 */
export function readBashLine(line: string, breaks: string): BashLine {
  const words: string[] = []
  let [word, isWord, quote] = ['', false, null as Quote]
  /** The part of the current word that bash leaves as it is. */
  let kept = ''
  for (let at = 0; at < line.length; at++) {
    const char = line[at]!
    if (quote === "'") {
      if (char === quote) quote = null
      else word += char
    } else if (quote === '"') {
      if (char === quote) quote = null
      else if (char === '\\' && /["$`\\]/.test(line[at + 1] ?? '')) word += line[++at]
      else word += char
    } else if (char === '"' || char === "'") {
      ;[quote, kept, isWord] = [char, word, true]
    } else if (char === '\\') {
      word += line[++at] ?? ''
      isWord = true
    } else if (/\s/.test(char)) {
      if (isWord) words.push(word)
      ;[word, kept, isWord] = ['', '', false]
    } else {
      word += char
      isWord = true
      if (breaks.includes(char)) kept = word
    }
  }
  const open = quote
  return {
    words: words.slice(words.findIndex((one) => !/^\w+=/.test(one))),
    current: word,
    insert: (value) => (value.startsWith(kept) ? quoted(value.slice(kept.length), open) : null),
  }
}

function quoted(text: string, quote: Quote): string | null {
  if (quote === "'") return text.includes("'") ? null : text
  // An exclamation mark is read in double quotes too, and cannot be escaped there.
  if (quote === '"') return text.includes('!') ? null : text.replace(/["$`\\]/g, '\\$&')
  return text.replace(/[^\p{L}\p{N}@%+=:,./_-]/gu, '\\$&')
}
