import { UsageError } from '../../core/model/errors.ts'

/** Throws unless `access` or `tokens` is given: a handler denies access by default. */
export function requireAccessOption(
  functionName: string,
  { access, tokens }: { readonly access?: unknown; readonly tokens?: unknown } = {},
): void {
  const hasType = (what: unknown, type: string): boolean =>
    what === undefined || typeof what === type
  const isGiven = access !== undefined || tokens !== undefined
  if (isGiven && hasType(access, 'function') && hasType(tokens, 'string')) return
  throw new UsageError(
    `${functionName}() needs to know who may call: give \`access\`, a function from the request to { name, role } or null, or \`tokens\`, the file that \`unstuck tokens add\` writes.`,
  )
}
