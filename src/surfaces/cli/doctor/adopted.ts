import { openAdoptedTable } from '../../../adopted/table/open-table.ts'
import type { Mapping } from '../../../adopted/mapping.ts'
import { isMapped, wordsOf } from '../../../adopted/runs/words.ts'
import { plural } from '../paper/words.ts'
import { firstFew, fromError, ok, warning, type Finding } from './finding.ts'
import { attempt } from './set-up.ts'

/** Each table of the user's own: whether it is there as the config says, may be written, and is understood. */
export async function adoptedFindings(
  tables: readonly Mapping[],
  address: string,
): Promise<Finding[]> {
  const findings: Finding[] = []
  for (const mapping of tables) findings.push(await examineTable(mapping, address))
  return findings
}

async function examineTable(mapping: Mapping, address: string): Promise<Finding> {
  const looked = await attempt(() => lookAt(mapping, address))
  if ('error' in looked) {
    return fromError('adopted', looked.error, {
      why: 'Nobody looks after its rows while it is so.',
      mend: 'Correct `adopted` in the config, or give the login the rights it lacks; docs/adopted-tables.md.',
    })
  }
  const { said, remarks } = looked.value
  if (remarks.length === 0) return ok('adopted', said)
  return warning('adopted', said, {
    details: remarks,
    why: 'What is not understood is shown as ended and left alone, and a slow look costs your own program.',
    mend: 'See to each of them; docs/adopted-tables.md.',
  })
}

async function lookAt(mapping: Mapping, address: string) {
  const { name, table: tableName } = mapping
  const table = await openAdoptedTable(mapping, mapping.db ?? address)
  try {
    const counts = await table.counts()
    const active = new Set(wordsOf(mapping, ['running', 'in_progress']).map(lower))
    const sum = (some: typeof counts): number => some.reduce((all, { count }) => all + count, 0)
    const unknown = new Set(
      counts.filter(({ word }) => !isMapped(mapping, word)).map(({ word }) => word),
    )
    const busy = sum(counts.filter(({ word }) => active.has(lower(word))))
    return {
      said: `${name}: ${tableName} is there, with ${plural(sum(counts), 'row')}, ${busy} active.`,
      remarks: [...table.remarks, ...(unknown.size > 0 ? [unmapped([...unknown])] : [])],
    }
  } finally {
    await table.close()
  }
}

function unmapped(words: readonly string[]): string {
  const shown = firstFew(words.map((word) => JSON.stringify(word))).join(', ')
  return `Nobody mapped the status ${words.length === 1 ? 'word' : 'words'} ${shown}: rows with it have ended, as far as anybody knows.`
}

function lower(word: string): string {
  return word.toLowerCase()
}
