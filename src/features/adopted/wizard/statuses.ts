import { plural } from '../../../presenters/format.ts'
import { identifierMistake } from '../identifiers.ts'
import type { AdoptedStatuses, Mapping, StatusValue } from '../mapping.ts'
import { guessFromRows, isFlagName } from './plain-statuses.ts'
import {
  isCreationTime,
  normalizeName,
  usableColumns,
  type ColumnGuess,
  type FoundColumn,
  type FoundTable,
  type ValueCount,
} from './columns.ts'

export type StatusKey = keyof AdoptedStatuses

export type StatusGuess = {
  readonly meaning: StatusKey
  readonly value: StatusValue
  /** Rows that have it; null: none, it is only allowed or guessed. */
  readonly count: number | null
  readonly isGuess: boolean
  readonly because: string
}

/** A column with more different values is not a status. */
export const VALUES_MAX = 40

/**
 * Usual status values in English, German, French and Spanish, without accents, in the order of a run's life; `?` marks
 * those that tables of orders or customers have too. Where one value of several is written, the first is chosen. `paused`
 * is missing on purpose: such a row needs no recovery.
 */
const KNOWN_VALUES: Readonly<Record<Exclude<StatusKey, 'planned'>, string>> = {
  queued: `queued enqueued pending waiting planned scheduled ready todo to_do new created submitted
    received not_started available retry wartet wartend in_warteschlange eingereiht geplant
    en_attente planifie pendiente en_espera en_cola`,
  active: `running in_progress inprogress processing crawling scraping fetching extracting importing
    exporting syncing executing working started? starting? progress? ongoing? busy? claimed? locked?
    leased? reserved? in_flight? retrying? active? lauft laeuft in_arbeit in_bearbeitung en_cours
    en_traitement en_curso en_proceso en_ejecucion ejecutando procesando aktiv? actif? activo?`,
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

const MEANINGS = Object.keys(KNOWN_VALUES)

/** A target is planned where a run is queued. */
function orderOf(meaning: StatusKey): number {
  return MEANINGS.indexOf(meaning === 'planned' ? 'queued' : meaning)
}

/** Returns what a value probably means, and its rank among the values with that meaning; null if it is unknown. */
export function guessStatus(
  value: string,
  kind: Mapping['kind'],
): { meaning: StatusKey; rank: number } | null {
  const known = VALUES.get(normalizeValue(value))
  if (!known) return null
  const { meaning, rank } = known
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

type StatusColumn = Pick<FoundColumn, 'name' | 'type' | 'isPrimaryKey'>

/** Whether its type can hold status values. Numbers and booleans do only where the name is that of a status. */
export function canHoldStatusValues(column: StatusColumn): boolean {
  const { name, type, isPrimaryKey } = column
  if (isPrimaryKey || identifierMistake(name) !== null) return false
  if (isPlain(column)) return hasStatusName(column) || isFlagName(normalizeName(name))
  return type === 'text' || type === 'enum' || type === 'other'
}

/** Its values say nothing themselves: numbers of an enum in the program, or a flag. */
export function isPlain({ type }: Pick<FoundColumn, 'type'>): boolean {
  return type === 'number' || type === 'boolean'
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
  const columns = usableColumns(table)
  if (request.columnName !== undefined) return namedStatus(columns, request.columnName)
  const scores = columns
    .filter((column) => canHoldStatusValues(column) && (column.values?.length ?? 0) <= VALUES_MAX)
    .filter((column) => !isFreeText(column))
    .map((column) => score(column, request.kind))
  const [named] = scores
    .filter(({ isNamed }) => isNamed)
    .toSorted((a, b) => b.active - a.active || a.nameLength - b.nameLength)
  // If no row is active now, known values of ended rows are enough, and so is an empty table.
  const allowsAny = named?.column.allowedValues === null
  if (named && (named.active > 0 || (allowsAny && (named.recognised > 1 || named.values === 0))))
    return { column: named.column }
  const plain = scores.find(({ column, active }) => isPlain(column) && active > 0)
  if (plain && (request.isRequested || !named)) return { column: plain.column }
  const [likely] = scores
    .filter(({ column, isLikely }) => isLikely && request.isRequested && !isPlain(column))
    .toSorted(
      (a, b) =>
        b.recognised - a.recognised || Number(b.isNamed) - Number(a.isNamed) || a.values - b.values,
    )
  return likely ? { column: likely.column } : { because: whyNone(columns, named?.column) }
}

type Score = {
  readonly column: FoundColumn
  readonly isNamed: boolean
  readonly nameLength: number
  /** Different values; those with a known meaning; those that mean work in progress. */
  readonly values: number
  readonly recognised: number
  readonly active: number
  /** It may be a status whatever its name: statuses repeat from row to row, names do not. */
  readonly isLikely: boolean
}

function score(column: FoundColumn, kind: Mapping['kind']): Score {
  const values = knownValues(column)
  const meanings = isPlain(column)
    ? guessFromRows(column, kind).map(({ meaning }) => meaning)
    : values.flatMap(({ value }) => guessStatus(value, kind)?.meaning ?? [])
  const rows = countRows(column.values ?? [])
  const isNamed = hasStatusName(column) && !isPlain(column)
  const repeats = rows > 0 && rows >= 2 * column.values!.length
  // Some titles read like a status.
  const isKnown = meanings.length > 0 && meanings.length === values.length
  return {
    column,
    isNamed,
    nameLength: normalizeName(column.name).length,
    values: values.length,
    recognised: meanings.length,
    active: meanings.filter((meaning) => meaning === 'active').length,
    isLikely: isKnown || isNamed || column.allowedValues !== null || repeats,
  }
}

const WORDS_MAX = 4
const LENGTH_MAX = 40

/** Sentences, names and addresses are no statuses, also in a column that is named like one. */
function isFreeText(column: FoundColumn): boolean {
  const values = column.values ?? []
  const isFree = (value: string): boolean =>
    value.length > LENGTH_MAX ||
    value.trim().split(/\s+/).length > WORDS_MAX ||
    /[\n,;:@/\\{}"]|[.!?]$|\d{3}/.test(value)
  if (column.allowedValues !== null || isPlain(column)) return false
  const free = values.filter(({ value }) => guessStatus(value, 'runs') === null && isFree(value))
  if (!hasStatusName(column)) return free.length > 0
  if (!values.some(({ value }) => isUnambiguouslyActive(value)))
    return free.length > values.length / 2
  // Some programs write what went wrong in place of a status, but not into most rows.
  return free.length > 0.75 * values.length && countRows(free) > countRows(values) / 2
}

function countRows(values: readonly ValueCount[]): number {
  return values.reduce((sum, { count }) => sum + count, 0)
}

function whyNone(columns: readonly FoundColumn[], best: FoundColumn | undefined): string {
  if (best) return `no value of its ${best.name} means that work is in progress`
  const named = columns.filter(hasStatusName)
  const free = named.find(isFreeText)
  if (free) return `its ${free.name} holds free text`
  const plain = named.find((column) => isPlain(column) && canHoldStatusValues(column))
  if (plain) return noActiveNumber(plain)
  const text = named.find(canHoldStatusValues)
  if (text) return `its ${text.name} has too many different values`
  return named[0] ? `its ${named[0].name} is not text` : 'it has no column named like a status'
}

/** Why a column of numbers is not proposed. */
export function noActiveNumber({ name }: FoundColumn): string {
  return `no row shows which number of its ${name} means that work is in progress: try again while a run works, or write the mapping by hand`
}

function namedStatus(columns: readonly FoundColumn[], columnName: string): StatusChoice {
  const column =
    columns.find(({ name }) => name === columnName) ??
    columns.find(({ name }) => name.toLowerCase() === columnName.toLowerCase())
  if (!column) {
    const names = columns.map(({ name }) => name).join(', ')
    return { because: `it has no usable column ${JSON.stringify(columnName)}, only ${names}` }
  }
  return canHoldStatusValues(column) || isPlain(column)
    ? { column }
    : { because: `its ${column.name} is neither text nor a number nor a boolean` }
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
  if (isPlain(status)) {
    const hasError = columns.some(({ field }) => field === 'error')
    return guessFromRows(status, kind, hasError).toSorted(byOrder)
  }
  const known = knownValues(status)
  const start = columns.find(({ field }) => field === 'startedAt')
  // Without a column for the start, a pending row may be running already.
  const isPendingActive =
    kind === 'runs' &&
    start !== undefined &&
    isCreationTime(start.column) &&
    known.some(({ value }) => isUnambiguouslyActive(value))
  // A pending row that counts as active comes last, so that its value is never the one that is written.
  const readAs = (value: string): ReturnType<typeof guessStatus> =>
    isPendingActive && isPending(value)
      ? { meaning: 'active', rank: Infinity }
      : guessStatus(value, kind)
  const found = known
    .flatMap((one) => (readAs(one.value)?.meaning ? [{ ...one, ...readAs(one.value)! }] : []))
    .toSorted((a, b) => a.rank - b.rank)
    .map(({ meaning, value, count }): StatusGuess => {
      const because = count === null ? 'allowed, in no row now' : `in ${plural(count, 'row')}`
      return { meaning, value, count, isGuess: false, because }
    })
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
  return [...found, ...missing].toSorted(byOrder)
}

function byOrder(a: StatusGuess, b: StatusGuess): number {
  return orderOf(a.meaning) - orderOf(b.meaning)
}

const DEFAULT_VALUES = { active: 'running', failed: 'failed', planned: 'planned' } as const
