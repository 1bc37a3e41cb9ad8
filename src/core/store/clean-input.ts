import { LIMITS } from '../model/limits.ts'
import { cleanText } from '../model/text.ts'
import type { AuditInfo, RunMove } from './operator-store.ts'
import { serializeCursor } from './new-targets.ts'
import type { Store } from './store.ts'
import { storedJson, storedText } from './stored-text.ts'

/**
 * The store, with every reason, error and body cleaned before an engine gets it: whatever a user's code threw or a caller
 * sent, no secret of ours is stored, and nothing without a limit. Items, cursors and inputs are the user's and stay.
 */
export function cleanInput(store: Store): Store {
  const cleaned: Partial<Store> = {
    fail: (failures) =>
      store.fail(failures.map((one) => ({ ...one, error: storedText(one.error) }))),
    begin: (request) =>
      store.begin({
        ...request,
        ...(request.abandonFirst && { abandonFirst: cleanMove(request.abandonFirst) }),
      }),
    moveRun: (move) => store.moveRun(cleanMove(move)),
    applyVerdicts: (verdicts, actor) =>
      store.applyVerdicts(
        verdicts.map((one) => ({
          ...one,
          decision: { ...one.decision, because: storedText(one.decision.because, LIMITS.reason) },
          evidence: storedJson(one.evidence) as typeof one.evidence,
        })),
        name(actor),
      ),
    replan: (request) => store.replan(cleanAuditInfo(request)),
    retryRun: (request) => store.retryRun(cleanAuditInfo(request)),
    revert: (request) => store.revert(cleanAuditInfo(request)),
    parkTargets: (request) => store.parkTargets(cleanAuditInfo(request)),
    deleteRun: (request) => store.deleteRun(cleanAuditInfo(request)),
    async rewind(request) {
      const { target: key, cursor, next } = request
      const json = serializeCursor({ key, cursor })
      return store.rewind({
        ...cleanAuditInfo(request),
        next: next === null ? null : cleanText(next),
        cursor: json === null ? null : JSON.parse(json),
      })
    },
    unlockSource: (request) =>
      store.unlockSource({
        ...request,
        ...(request.gaveUp !== undefined && { gaveUp: storedText(request.gaveUp, LIMITS.reason) }),
      }),
    async extend(extension) {
      const opened = await store.extend(extension)
      return { ...opened, ...extension.clean?.(opened) }
    },
  }
  // As they are, getters too: some return a new value each time.
  return Object.defineProperties(
    {},
    {
      ...Object.getOwnPropertyDescriptors(store),
      ...Object.getOwnPropertyDescriptors(cleaned),
    },
  ) as Store
}

export function cleanAuditInfo<T extends AuditInfo>(entry: T): T {
  return { ...entry, actor: name(entry.actor), because: storedText(entry.because, LIMITS.reason) }
}

function cleanMove(move: RunMove): RunMove {
  return { ...cleanAuditInfo(move), evidence: storedJson(move.evidence) }
}

/** The actor, the address, the call. */
function name(text: string): string {
  return storedText(text, LIMITS.listed)
}
