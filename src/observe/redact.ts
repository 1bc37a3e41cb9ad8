/** Removes credentials from text that is about to be shown or kept: those in addresses, wherever they stand. */
export function redact(text: string): string {
  if (!text.includes('://')) return text
  // Most addresses name nobody: a log is full of them, and they cost no more than this look.
  const named = text.includes('@') ? text.replace(WORD, withoutName) : text
  return named.includes('=') ? named.replace(IN_QUERY, '$1***') : named
}

/** Up to the last @ of a word and no further: so the time grows with the text, whatever is in it. */
function withoutName(word: string): string {
  const end = word.lastIndexOf('@') + 1
  if (end === 0 || !word.includes('://')) return word
  const start = word
    .slice(0, end)
    .replace(DATABASE_ADDRESS, '$1***@')
    .replace(ANY_ADDRESS, '$1***@')
  return start + word.slice(end)
}

const WORD = /[^\s'"`]+/g
// A password may hold any character, even an unescaped @ or /: here everything up to the last @ goes.
const DATABASE_ADDRESS =
  /((?:postgres(?:ql)?|mysql|mariadb|mongodb(?:\+srv)?|rediss?):\/\/)[^\s'"`]*@/gi
const ANY_ADDRESS = /([a-z][a-z0-9+.-]{0,31}:\/\/)[^\s/?#@:'"`]*:[^\s/?#@'"`]*@/gi
const IN_QUERY = /([?&](?:ssl)?(?:password|passwd|token|secret)=)[^&\s'"`\\]+/gi

/** Shorter ones are no secrets, and would black out half of a text. */
const SECRET_MIN = 4

/** As `redact`, and these very values too, wherever they stand: tokens, passwords, addresses with a password in them. */
export function redactor(secrets: readonly string[]): (text: string) => string {
  const values = [...new Set(secrets.flatMap(formsOf))]
    .filter((value) => value.length >= SECRET_MIN)
    // One may be a part of another.
    .sort((a, b) => b.length - a.length)
  return (text) => {
    let left = text
    for (const value of values) if (left.includes(value)) left = left.replaceAll(value, '***')
    return redact(left)
  }
}

/** As it is, as it stands in an address, and what in it is secret by itself. */
function formsOf(secret: string): string[] {
  return [secret, ...passwordsIn(secret)].flatMap((value) => [
    value,
    encodeURIComponent(value.toWellFormed()),
    decoded(value),
  ])
}

function passwordsIn(address: string): string[] {
  // As an address should be written, and as people write one whose password holds a slash or an @.
  const written = /^[a-z][a-z0-9+.-]*:\/\/[^:@]*:(.*)@/i.exec(address)?.[1]
  const url = URL.parse(address)
  return [written, url?.password, url?.searchParams.get('password')].filter(
    (value) => value !== undefined && value !== null,
  )
}

function decoded(value: string): string {
  try {
    return decodeURIComponent(value)
  } catch {
    return value
  }
}
