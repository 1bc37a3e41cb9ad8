import { identifierMistake } from '../identifiers.ts'
import type { AdoptedStatuses, Mapping } from '../mapping.ts'
import {
  isCreationTime,
  normalizeName,
  usableColumns,
  type ColumnGuess,
  type FoundColumn,
  type FoundTable,
} from './columns.ts'

export type StatusKey = keyof AdoptedStatuses

export type StatusGuess = {
  readonly meaning: StatusKey
  readonly value: string
  /** Rows that have it; null: none, it is only allowed or guessed. */
  readonly count: number | null
  readonly isGuess: boolean
  readonly because: string
}

/** A column with more different values is not a status. */
export const VALUES_MAX = 40

/**
 * Usual status values in English, German, French and Spanish, without accents; `?` marks those that tables of orders or
 * customers have too. Where one value of several is written, the first is chosen. `paused` is missing on purpose: such a
 * row needs no recovery.
 */
const KNOWN_VALUES: Readonly<Partial<Record<StatusKey, string>>> = {
  active: `running in_progress inprogress processing crawling scraping fetching extracting importing
    exporting syncing executing working started? starting? progress? ongoing? busy? claimed? locked?
    leased? reserved? in_flight? retrying? active? lauft laeuft in_arbeit in_bearbeitung en_cours
    en_traitement en_curso en_proceso en_ejecucion ejecutando procesando aktiv? actif? activo?`,
  queued: `queued enqueued pending waiting planned scheduled ready todo to_do new created submitted
    received not_started available retry wartet wartend in_warteschlange eingereiht geplant
    en_attente planifie pendiente en_espera en_cola`,
  interrupted: 'interrupted resumable unterbrochen interrompu interrumpido',
  succeeded: `succeeded success successful completed complete done finished processed ok passed
    fertig erledigt abgeschlossen beendet erfolgreich termine terminee reussi reussie fini
    terminado terminada completado completada finalizado exitoso`,
  failed: `failed failure fail error errored err crashed exception dead fehlgeschlagen fehler
    gescheitert echoue echouee echec erreur fallido fallida fallo`,
  cancelled: `cancelled canceled aborted stopped killed terminated revoked skipped abgebrochen
    gestoppt annule annulee cancelado cancelada detenido`,
  abandoned: `abandoned timeout_auto_cleaned auto_cleaned timeout timed_out timedout expired stale
    orphaned verwaist abgelaufen abandonne abandonado expirado`,
  stuck: 'stuck held on_hold blocked',
  parked: 'parked dead_letter quarantined set_aside ignored',
}

type KnownValue = {
  readonly meaning: StatusKey
  readonly rank: number
  readonly isAmbiguous: boolean
}

const VALUES: ReadonlyMap<string, KnownValue> = new Map(
  Object.entries(KNOWN_VALUES).flatMap(([meaning, values]) =>
    values
      .split(/\s+/)
      .map((value, rank): [string, KnownValue] => [
        value.replace('?', ''),
        { meaning: meaning as StatusKey, rank, isAmbiguous: value.endsWith('?') },
      ]),
  ),
)

/** In the order of a run's life. */
const STATUS_ORDER: readonly StatusKey[] = [
  'queued',
  'planned',
  'active',
  'interrupted',
  'succeeded',
  'failed',
  'cancelled',
  'abandoned',
  'stuck',
  'parked',
]

/** Returns what a value probably means, and its rank among the values with that meaning; null if it is unknown. */
export function guessStatus(
  value: string,
  kind: Mapping['kind'],
): { meaning: StatusKey; rank: number } | null {
  const { meaning, rank } = VALUES.get(normalizeValue(value)) ?? {}
  if (meaning === undefined || rank === undefined) return null
  if (kind === 'runs') return meaning === 'stuck' || meaning === 'parked' ? null : { meaning, rank }
  const isPlanned = meaning === 'queued' || meaning === 'interrupted'
  return { meaning: isPlanned ? 'planned' : meaning, rank }
}

/** Such a value occurs only in tables of work. */
export function isUnambiguouslyActive(value: string): boolean {
  const known = VALUES.get(normalizeValue(value))
  return known?.meaning === 'active' && !known.isAmbiguous
}

/** `pending` means queued in some programs, active in others. */
export function isPending(value: string): boolean {
  return normalizeValue(value) === 'pending'
}

/** Spells a value like the others: `FAILED` beside `RUNNING`. */
export function matchCase(value: string, others: readonly string[]): string {
  const letters = others.join('').replaceAll(/[^a-z]/gi, '')
  if (letters !== '' && letters === letters.toUpperCase()) return value.toUpperCase()
  const areCapitalised = others.length > 0 && others.every((other) => /^[A-Z][a-z]/.test(other))
  return areCapitalised ? value[0]!.toUpperCase() + value.slice(1) : value
}

/** Without accents, case and separators. A value with other characters, such as Cyrillic look-alikes, becomes ''. */
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

const STATUS_NAME =
  /^(?!http|email|payment|marital|order_)([a-z0-9]+_)*(status|state|phase|stage|zustand|statut|etat|estado|stato)$/

export function hasStatusName({ name }: Pick<FoundColumn, 'name'>): boolean {
  return STATUS_NAME.test(normalizeName(name))
}

/** Whether its type can hold status values, whatever its name. */
export function canHoldStatusValues({ name, type, isPrimaryKey }: FoundColumn): boolean {
  const isText = type === 'text' || type === 'enum' || type === 'other'
  return isText && !isPrimaryKey && identifierMistake(name) === null
}

/** Whether its name and type are those of a status. */
export function canHoldStatus(column: FoundColumn): boolean {
  return canHoldStatusValues(column) && hasStatusName(column)
}

export type StatusRequest = {
  readonly kind: Mapping['kind']
  /** The user named the table: the best candidate is taken even if it is unlikely. */
  readonly isRequested: boolean
  /** The column that the user named. */
  readonly columnName: string | undefined
}

type StatusChoice = { readonly column: FoundColumn } | { readonly because: string }

/** Returns the column with the status, or why there is none. */
export function findStatusColumn(table: FoundTable, request: StatusRequest): StatusChoice {
  if (request.columnName !== undefined) return namedStatus(table, request.columnName)
  const byName = statusByName(table, request.kind)
  if ('column' in byName || !request.isRequested) return byName
  return statusByValues(table, request.kind) ?? byName
}

function namedStatus(table: FoundTable, columnName: string): StatusChoice {
  const columns = usableColumns(table)
  const column =
    columns.find(({ name }) => name === columnName) ??
    columns.find(({ name }) => name.toLowerCase() === columnName.toLowerCase())
  if (!column) {
    const names = columns.map(({ name }) => name).join(', ')
    return { because: `it has no usable column ${JSON.stringify(columnName)}, only ${names}` }
  }
  return canHoldStatusValues(column) ? { column } : { because: `its ${column.name} is not text` }
}

function statusByName(table: FoundTable, kind: Mapping['kind']): StatusChoice {
  const named = usableColumns(table).filter(hasStatusName)
  if (named.length === 0) return { because: 'it has no column named like a status' }
  const texts = named.filter(canHoldStatus)
  if (texts.length === 0) return { because: `its ${named[0]!.name} is not text` }
  const active = (column: FoundColumn): number =>
    knownValues(column).filter(({ value }) => guessStatus(value, kind)?.meaning === 'active').length
  const [best] = texts
    .filter(hasFewValues)
    .toSorted(
      (a, b) =>
        active(b) - active(a) || normalizeName(a.name).length - normalizeName(b.name).length,
    )
  if (!best) return { because: `its ${texts[0]!.name} has too many different values` }
  if (active(best) > 0) return { column: best }
  // If no row is active now, known values of ended rows are enough, and so is an empty table.
  const known = recognised(best, kind)
  const allowsAny = best.allowedValues === null
  if (allowsAny && (known > 1 || knownValues(best).length === 0)) return { column: best }
  return { because: `no value of its ${best.name} means that work is in progress` }
}

/** The column with the most known values, else one with few values that repeat. */
function statusByValues(table: FoundTable, kind: Mapping['kind']): StatusChoice | null {
  const isLikely = (column: FoundColumn): boolean =>
    recognised(column, kind) > 0 ||
    hasStatusName(column) ||
    column.allowedValues !== null ||
    hasRepeatedValues(column)
  const [best] = usableColumns(table)
    .filter((column) => canHoldStatusValues(column) && hasFewValues(column) && isLikely(column))
    .toSorted(
      (a, b) =>
        recognised(b, kind) - recognised(a, kind) ||
        Number(hasStatusName(b)) - Number(hasStatusName(a)) ||
        knownValues(a).length - knownValues(b).length,
    )
  return best ? { column: best } : null
}

function recognised(column: FoundColumn, kind: Mapping['kind']): number {
  return knownValues(column).filter(({ value }) => guessStatus(value, kind) !== null).length
}

function hasFewValues({ values }: FoundColumn): boolean {
  return (values?.length ?? 0) <= VALUES_MAX
}

/** Statuses repeat from row to row; names do not. */
function hasRepeatedValues({ values }: FoundColumn): boolean {
  const rows = (values ?? []).reduce((sum, { count }) => sum + count, 0)
  return rows >= 2 * (values?.length ?? 0) && rows > 0
}

/** The values in its rows, then the allowed ones that no row has. */
export function knownValues({
  values,
  allowedValues,
}: FoundColumn): { value: string; count: number | null }[] {
  const found = values ?? []
  const unseen = (allowedValues ?? []).filter((value) => !found.some((one) => one.value === value))
  return [...found, ...unseen.map((value) => ({ value, count: null }))]
}

type GuessOptions = {
  readonly kind: Mapping['kind']
  readonly columns: readonly ColumnGuess[]
  readonly isRequested: boolean
}

/** Maps the values of a status, and guesses the ones that a mapping needs. */
export function guessStatuses(
  status: FoundColumn,
  { kind, columns, isRequested }: GuessOptions,
): StatusGuess[] {
  const known = knownValues(status)
  const start = columns.find(({ field }) => field === 'startedAt')
  // Without a column for the start, a pending row may be running already.
  const isPendingActive =
    kind === 'runs' &&
    start !== undefined &&
    isCreationTime(start.column) &&
    known.some(({ value }) => isUnambiguouslyActive(value))
  const guesses = known.flatMap(({ value, count }) => {
    const guess = guessStatus(value, kind)
    if (!guess) return []
    const isActive = isPendingActive && isPending(value)
    const meaning = isActive ? 'active' : guess.meaning
    // Last, so that it is never the value that is written.
    const rank = isActive ? Infinity : guess.rank
    return [{ rank, guess: { meaning, value, count, isGuess: false, because: whereFound(count) } }]
  })
  const found = guesses.toSorted((a, b) => a.rank - b.rank).map(({ guess }) => guess)
  const spelling = known.map(({ value }) => value)
  const needed =
    kind === 'runs' ? (['active', 'failed'] as const) : (['active', 'planned'] as const)
  // A value that a CHECK forbids is guessed only where a mapping is invalid without one; no row can have it.
  const required = isRequested ? needed.filter((meaning) => meaning !== 'failed') : []
  const missing = (status.allowedValues === null ? needed : required)
    .filter((meaning) => !found.some((one) => one.meaning === meaning))
    .map((meaning) => ({
      meaning,
      value: matchCase(DEFAULT_VALUES[meaning], spelling),
      count: null,
      isGuess: true,
      because: 'a guess: no row has such a value now',
    }))
  const all: StatusGuess[] = [...found, ...missing]
  return all.toSorted((a, b) => STATUS_ORDER.indexOf(a.meaning) - STATUS_ORDER.indexOf(b.meaning))
}

const DEFAULT_VALUES = { active: 'running', failed: 'failed', planned: 'planned' } as const

function whereFound(count: number | null): string {
  if (count === null) return 'allowed, in no row now'
  return count === 1 ? 'in 1 row' : `in ${count} rows`
}
