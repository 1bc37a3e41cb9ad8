import { HttpError } from '../../lib/http/errors.ts'
import type { Caller } from '../../contracts/route.ts'
import type { NewOperation } from '../../features/access/store/store.ts'

/** Returns the caller as the audit trail names it. */
export function actorOf({ name, role, address }: Caller): string {
  return `${name} (${role}) via http${address === null ? '' : ` from ${address}`}`
}

/** Returns the record of a requested change and its outcome. */
export function toOperation(
  caller: Caller,
  call: string,
  body: unknown,
  outcome: { readonly status: number; readonly result: string },
): NewOperation {
  const plan = (body as { plan?: unknown } | null | undefined)?.plan
  return {
    actor: actorOf(caller),
    address: caller.address,
    call,
    selection: body ?? null,
    plan: typeof plan === 'string' ? plan : null,
    ...outcome,
  }
}

/** A preview is not recorded. */
export function isDryRun(body: unknown): boolean {
  return (body as { dryRun?: unknown } | null | undefined)?.dryRun === true
}

type Sections = { sections: readonly { readonly sentences: readonly string[] }[] }

/** Returns the result in sentences. */
export function summarizeResult(result: unknown): string {
  if (result instanceof HttpError) return result.message
  if (typeof result !== 'object' || result === null) return 'Done.'
  const { sections, ...rest } = result as Record<string, unknown> & Partial<Sections>
  if (sections) return sections.flatMap(({ sentences }) => sentences).join(' ')
  const counts = Object.entries(rest).flatMap(([name, value]) => {
    if (typeof value === 'number') return [`${name}: ${value}`]
    return Array.isArray(value) ? [`${name}: ${value.length}`] : []
  })
  return counts.length > 0 ? `Done. ${counts.join(', ')}.` : 'Done.'
}
