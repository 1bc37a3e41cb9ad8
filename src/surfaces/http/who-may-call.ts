import { UsageError } from '../../model/errors.ts'

/** Closed by default: whoever makes a door (`maker`) says who may come in, or there is no door. */
export function checkWhoMayCall(
  maker: string,
  { access, tokens }: { readonly access?: unknown; readonly tokens?: unknown },
): void {
  if (access || tokens !== undefined) return
  throw new UsageError(
    `${maker}() needs to know who may call: give \`access\`, a function from the request to { name, role } or null, or \`tokens\`, the file that \`unstuck tokens add\` writes.`,
  )
}
