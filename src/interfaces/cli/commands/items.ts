import type { Store } from '../../../core/store/store.ts'
import { shellWord } from '../../../core/model/shell-command.ts'
import { findRun } from '../../../presenters/find.ts'
import { exportItems, ITEM_FORMATS } from '../../../presenters/item-export.ts'
import { hasItems, checkRunOfSource, type ItemQuery } from '../../../presenters/items.ts'
import { defineCommand } from '../../../contracts/command.ts'
import { argument, defaultsTo, option, SHARED_OPTIONS } from '../../../contracts/options.ts'
import { describeUnknownGroups } from '../unknown-groups.ts'

export const command = defineCommand({
  examples: [
    'unstuck items directory > directory.jsonl',
    'unstuck items directory --format csv --since 24h > new.csv',
    "unstuck items directory --run 4f2a91bc --limit 10 | jq -r '.data.name'",
  ],
  args: { source: argument.required('the source they were saved for') },
  options: {
    format: option.choice(ITEM_FORMATS, 'the format of the stream', 'jsonl'),
    run: SHARED_OPTIONS.run,
    group: SHARED_OPTIONS.group,
    since: SHARED_OPTIONS.since,
    limit: defaultsTo('all', SHARED_OPTIONS.limit(undefined, 1_000_000_000)),
    after: SHARED_OPTIONS.after,
  },

  async run({ args: { source }, options, json, database, output }) {
    const store = await database.openExisting()
    const { group, since, limit, after } = options
    const itemsOfRun = `items ${shellWord(source)} --run`
    const run = options.run === undefined ? null : await findRun(store, options.run, itemsOfRun)
    const query: ItemQuery = {
      source,
      run: run === null ? undefined : checkRunOfSource(run, source),
      group,
      since: since === undefined ? undefined : (await store.now()) - since,
      after,
    }
    const format = json ? 'json' : options.format
    const parts = exportItems(store, query, { format, limit, isTerminal: output.isTerminal })
    const isEmpty = !(await hasItems(store, source))
    let part = await parts.next()
    for (; !part.done; part = await parts.next()) await output.write(part.value)
    if (part.value === 0) output.note(isEmpty ? NONE(source) : await noneMatches(store, query))
  },
})

const NONE = (source: string): string => `${source} has saved no items yet.`

const NO_MATCH = {
  any: 'No items match.',
  ofRun:
    'No items match. An item belongs to the run that saw it last: a later run may have seen them again.',
} as const

async function noneMatches(store: Store, { source, run, group }: ItemQuery): Promise<string> {
  const runs = run === undefined ? (await store.runs({ source, limit: 1 })).items : []
  return (
    (group && (await describeUnknownGroups(store, runs, [group]))) ||
    NO_MATCH[run ? 'ofRun' : 'any']
  )
}
