const ENTRY = '.unstuck/'
const SAME = ['.unstuck', '.unstuck/', '/.unstuck', '/.unstuck/']

/** The database and the journals are not for the repository. Null: that is said already. */
export function withUnstuckIgnored(text: string): string | null {
  if (text.split(/\r?\n/).some((line) => SAME.includes(line.trim()))) return null
  const end = text.includes('\r\n') ? '\r\n' : '\n'
  const before = text === '' || text.endsWith('\n') ? text : text + end
  return `${before}${ENTRY}${end}`
}
