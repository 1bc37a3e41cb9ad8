import { UsageError } from '../../core/model/errors.ts'

/** Closed by default: whoever makes a door (`maker`) says who may come in, or there is no door. */
export function checkWhoMayCall(
  maker: string,
  { access, tokens }: { readonly access?: unknown; readonly tokens?: unknown } = {},
): void {
  const isMeant = (what: unknown, type: string): boolean =>
    what === undefined || typeof what === type
  const isSaid = access !== undefined || tokens !== undefined
  if (isSaid && isMeant(access, 'function') && isMeant(tokens, 'string')) return
  throw new UsageError(
    `${maker}() needs to know who may call: give \`access\`, a function from the request to { name, role } or null, or \`tokens\`, the file that \`unstuck tokens add\` writes.`,
  )
}
