/**
 * Removes secrets from text that is about to be stored, logged or shown: values that were registered with `keepSecrets`,
 * credentials in addresses, and values after a name like password or token.
 */
export function redact(text: string): string {
  let left = text
  for (const value of registeredValues)
    if (left.includes(value)) left = left.replaceAll(value, MASK)
  if (left.includes('://')) left = redactCredentials(left)
  return NAMED.test(left) ? redactNamedValues(left) : left
}

function redactCredentials(text: string): string {
  // Most addresses have no user part: a log is full of them, and this check is cheap.
  return text.includes('@') ? text.replace(WORDS, redactCredentialsInWord) : text
}

function redactNamedValues(text: string): string {
  return text
    .replace(ASSIGNED, `$1${MASK}`)
    .replace(FLAG, `$1${MASK}`)
    .replace(JSON_VALUE, `$1${MASK}`)
    .replace(BEARER, `$1${MASK}`)
    .replace(AUTHORIZATION, `$1${MASK}`)
}

export const MASK = '***'
const NAME = '(?:password|passwd|pwd|secret|token|api[_-]?key|access[_-]?key)'
// Most texts need only this test.
const NAMED = new RegExp(`${NAME}|bearer|authorization`, 'i')
// Everything that repeats before a name is bounded, so that the time grows with the text whatever is in it.
const ASSIGNED = new RegExp(`(${NAME}=)[^&\\s'"\`\\\\,;]+`, 'gi')
const FLAG = new RegExp(`(--[\\w-]{0,40}?${NAME}\\s{1,4})(?!-)[^\\s'"\`\\\\]+`, 'gi')
const JSON_VALUE = new RegExp(`(${NAME}\\\\{0,3}"\\s{0,2}:\\s{0,2}\\\\{0,3}")[^"\\\\]+`, 'gi')
const BEARER = /(\bBearer )[\w.~+/=-]{8,}/g
const AUTHORIZATION =
  /(\bauthorization["'\\]{0,3}\s?[:=]\s?["'\\]{0,3}(?:basic|bearer|token) )[\w.~+/=-]{4,}/gi
/** Masks the value if its name is that of a secret, otherwise redacts it. */
export function redactNamed(name: string, text: string): string {
  return SECRET_NAME.test(name) ? MASK : redact(text)
}

const SECRET_NAME = new RegExp(`${NAME}$`, 'i')
export const SECRET_FLAG = new RegExp(`^--?[\\w-]{0,60}${NAME}$`, 'i')

/** Whether a variable of this name holds a secret of Unstuck. */
export function isSecretVariable(name: string): boolean {
  return /^UNSTUCK_.*(TOKEN|SECRET|PASSWORD|WEBHOOK|SMTP)/.test(name)
}

/** The longest first: one may be a part of another. */
let registeredValues: readonly string[] = []
const registrations = new Map<string, number>()

/** Makes `redact` remove these values from now on. Returns a function that ends it. */
export function registerSecrets(secrets: readonly string[]): () => void {
  const values = valuesOf(secrets)
  for (const value of values) registrations.set(value, (registrations.get(value) ?? 0) + 1)
  registeredValues = longestFirst([...registrations.keys()])
  let isOver = false
  return () => {
    if (isOver) return
    isOver = true
    for (const value of values) {
      const count = registrations.get(value)! - 1
      if (count > 0) registrations.set(value, count)
      else registrations.delete(value)
    }
    registeredValues = longestFirst([...registrations.keys()])
  }
}

/** Up to the last @ of a word and no further: so the time grows with the text, whatever is in it. */
function redactCredentialsInWord(word: string): string {
  const end = word.lastIndexOf('@') + 1
  if (end === 0 || !word.includes('://')) return word
  const start = word
    .slice(0, end)
    .replace(DATABASE_ADDRESS, '$1***@')
    .replace(ANY_ADDRESS, '$1***@')
  return start + word.slice(end)
}

const WORDS = /[^\s'"`]+/g
// A password may hold any character, even an unescaped @ or /: here everything up to the last @ goes.
const DATABASE_ADDRESS =
  /((?:postgres(?:ql)?|mysql|mariadb|mongodb(?:\+srv)?|rediss?):\/\/)[^\s'"`]*@/gi
const ANY_ADDRESS = /([a-z][a-z0-9+.-]{0,31}:\/\/)[^\s/?#@:'"`]*:[^\s/?#@'"`]*@/gi
/** Shorter values are no secrets, and would mask half of a text. */
const SECRET_MIN = 4

/** Never masked, not even as a password: our own commands and addresses contain them. */
const OWN_WORDS = ['postgres', 'postgresql', 'sqlite', 'unstuck', 'localhost']

/** As `redact`, and also removes these values: tokens, passwords, addresses with a password in them. */
export function redactor(secrets: readonly string[]): (text: string) => string {
  const values = longestFirst(valuesOf(secrets))
  return (text) => {
    let left = text
    for (const value of values) if (left.includes(value)) left = left.replaceAll(value, MASK)
    return redact(left)
  }
}

function longestFirst(values: readonly string[]): string[] {
  return values.toSorted((a, b) => b.length - a.length)
}

function valuesOf(secrets: readonly string[]): string[] {
  return [...new Set(secrets.flatMap(variantsOf))].filter(
    (value) => value.length >= SECRET_MIN && !OWN_WORDS.includes(value),
  )
}

/** The secret, its encoded and decoded forms, and the secret parts of an address. */
function variantsOf(secret: string): string[] {
  return [secret, ...passwordsIn(secret), ...secretPath(secret)].flatMap((value) => [
    value,
    encodeURIComponent(value.toWellFormed()),
    decoded(value),
  ])
}

/** The path of a webhook is its secret. */
function secretPath(address: string): string[] {
  const url = /^https?:/.test(address) ? URL.parse(address) : null
  return url && url.pathname.length > PATH_MIN ? [url.pathname] : []
}

const PATH_MIN = 12

/** Returns the passwords in the address of a database or a mail server. */
export function passwordsIn(address: string): string[] {
  // Matches an address in its correct form, and one whose password contains an unescaped slash or @.
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
