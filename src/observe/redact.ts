/** Removes credentials from text that is about to be shown or kept: those in addresses, wherever they stand. */
export function redact(text: string): string {
  if (!text.includes('://')) return text
  return text
    .replace(DATABASE_ADDRESS, '$1***@')
    .replace(ANY_ADDRESS, '$1***@')
    .replace(IN_QUERY, '$1***')
}

// A password may hold any character, even an unescaped @ or /: here everything up to the last @ goes.
const DATABASE_ADDRESS =
  /((?:postgres(?:ql)?|mysql|mariadb|mongodb(?:\+srv)?|rediss?):\/\/)[^\s'"`]*@/gi
const ANY_ADDRESS = /([a-z][a-z0-9+.-]{0,31}:\/\/)[^\s/?#@'"`]*:[^\s/?#@'"`]*@/gi
const IN_QUERY = /([?&](?:ssl)?(?:password|passwd|token|secret)=)[^&\s'"`\\]+/gi
