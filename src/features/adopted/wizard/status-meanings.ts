import type { AdoptedStatuses } from '../mapping.ts'

export type StatusKey = keyof AdoptedStatuses

/**
 * What people call the states of their runs, in English, German, French and Spanish, without accents. Those that come first are the better choice where one of several has to be
 * written. `paused` is in none: somebody did that on purpose, and nothing is to be done about it.
 */
const KNOWN_VALUES = {
  active: [
    'running',
    'in_progress',
    'inprogress',
    'processing',
    'crawling',
    'scraping',
    'fetching',
    'extracting',
    'importing',
    'exporting',
    'syncing',
    'executing',
    'working',
    'started',
    'starting',
    'progress',
    'ongoing',
    'busy',
    'claimed',
    'locked',
    'leased',
    'reserved',
    'in_flight',
    'retrying',
    'active',
    'lauft',
    'laeuft',
    'in_arbeit',
    'in_bearbeitung',
    'en_cours',
    'en_traitement',
    'en_curso',
    'en_proceso',
    'en_ejecucion',
    'ejecutando',
    'procesando',
    'aktiv',
    'actif',
    'activo',
  ],
  queued: [
    'queued',
    'enqueued',
    'pending',
    'waiting',
    'planned',
    'scheduled',
    'ready',
    'todo',
    'to_do',
    'new',
    'created',
    'submitted',
    'received',
    'not_started',
    'available',
    'retry',
    'wartet',
    'wartend',
    'in_warteschlange',
    'eingereiht',
    'geplant',
    'en_attente',
    'planifie',
    'pendiente',
    'en_espera',
    'en_cola',
  ],
  interrupted: ['interrupted', 'resumable', 'unterbrochen', 'interrompu', 'interrumpido'],
  succeeded: [
    'succeeded',
    'success',
    'successful',
    'completed',
    'complete',
    'done',
    'finished',
    'processed',
    'ok',
    'passed',
    'fertig',
    'erledigt',
    'abgeschlossen',
    'beendet',
    'erfolgreich',
    'termine',
    'terminee',
    'reussi',
    'reussie',
    'fini',
    'terminado',
    'terminada',
    'completado',
    'completada',
    'finalizado',
    'exitoso',
  ],
  failed: [
    'failed',
    'failure',
    'fail',
    'error',
    'errored',
    'err',
    'crashed',
    'exception',
    'dead',
    'fehlgeschlagen',
    'fehler',
    'gescheitert',
    'echoue',
    'echouee',
    'echec',
    'erreur',
    'fallido',
    'fallida',
    'fallo',
  ],
  cancelled: [
    'cancelled',
    'canceled',
    'aborted',
    'stopped',
    'killed',
    'terminated',
    'revoked',
    'skipped',
    'abgebrochen',
    'gestoppt',
    'annule',
    'annulee',
    'cancelado',
    'cancelada',
    'detenido',
  ],
  abandoned: [
    'abandoned',
    'timeout_auto_cleaned',
    'auto_cleaned',
    'timeout',
    'timed_out',
    'timedout',
    'expired',
    'stale',
    'orphaned',
    'verwaist',
    'abgelaufen',
    'abandonne',
    'abandonado',
    'expirado',
  ],
  stuck: ['stuck', 'held', 'on_hold', 'blocked'],
  parked: ['parked', 'dead_letter', 'quarantined', 'set_aside', 'ignored'],
} as const satisfies Partial<Record<StatusKey, readonly string[]>>

/** Of a target, what waits is planned. */
const TARGET_ONLY: ReadonlySet<StatusKey> = new Set(['stuck', 'parked'])

/** Said of customers, orders and rooms too, so that nothing follows from them alone. */
const AMBIGUOUS: ReadonlySet<string> = new Set([
  'started',
  'starting',
  'progress',
  'ongoing',
  'busy',
  'claimed',
  'locked',
  'leased',
  'reserved',
  'in_flight',
  'retrying',
  'active',
  'aktiv',
  'actif',
  'activo',
])
const UNAMBIGUOUSLY_ACTIVE = new Set<string>(
  KNOWN_VALUES.active.filter((value) => !AMBIGUOUS.has(value)),
)

/** What a word probably means, and how good a choice it is to be written; null: nobody knows. */
export function guessStatus(
  value: string,
  kind: 'runs' | 'targets',
): { meaning: StatusKey; rank: number } | null {
  const normalized = normalizeValue(value)
  for (const [meaning, words] of Object.entries(KNOWN_VALUES) as [StatusKey, readonly string[]][]) {
    const rank = words.indexOf(normalized)
    if (rank < 0) continue
    if (kind === 'runs') return TARGET_ONLY.has(meaning) ? null : { meaning, rank }
    return {
      meaning: meaning === 'queued' || meaning === 'interrupted' ? 'planned' : meaning,
      rank,
    }
  }
  return null
}

/** Said of nothing but work. */
export function isUnambiguouslyActive(value: string): boolean {
  return UNAMBIGUOUSLY_ACTIVE.has(normalizeValue(value))
}

/** `pending` may wait for its turn or be at work already: it depends on whose word it is. */
export function isPending(value: string): boolean {
  return normalizeValue(value) === 'pending'
}

/** A word that is not there, spelled as those that are: `FAILED` where there is `RUNNING`. */
export function matchCase(value: string, others: readonly string[]): string {
  const letters = others.join('').replaceAll(/[^a-z]/gi, '')
  if (letters !== '' && letters === letters.toUpperCase()) return value.toUpperCase()
  const areCapitalised = others.length > 0 && others.every((other) => /^[A-Z][a-z]/.test(other))
  return areCapitalised ? value[0]!.toUpperCase() + value.slice(1) : value
}

/** Only what is made of letters as people type them means anything: a look-alike does not. */
function normalizeValue(value: string): string {
  const typed = value.trim().normalize('NFC')
  if (!/^[a-zà-ÿ][a-zà-ÿ0-9 _.–-]{0,59}$/i.test(typed)) return ''
  return typed
    .normalize('NFD')
    .replaceAll(/\p{M}/gu, '')
    .replaceAll(/([a-z])([A-Z])/g, '$1_$2')
    .toLowerCase()
    .replaceAll(/[ _.–-]+/g, '_')
}
