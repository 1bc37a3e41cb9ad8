import { defineCommand, present } from '../../../contracts/command.ts'
import { option } from '../../../contracts/options.ts'
import { EMPTY_HISTORY, presentHistory, readHistory } from '../../../presenters/history.ts'

export const command = defineCommand({
  examples: [
    'unstuck history --since 24h',
    'unstuck history --source directory --limit 50',
    "unstuck history --json | jq '.items[] | {at, actor, action, before, after}'",
  ],
  options: {
    since: option.duration('AGE', 'only what was done since then', undefined),
    source: option.text('SOURCE', 'only runs of this source'),
    limit: option.count('N', 'how many entries of the trail', 20, { max: 1_000 }),
    after: option.count('ID', 'go on after this entry: `next` of the last answer', undefined, {
      max: Number.MAX_SAFE_INTEGER,
    }),
  },
  watch: true,

  async run({ options, database }) {
    const store = await database.openIfExists()
    const now = store ? await store.now() : Date.now()
    const { source, limit } = options
    const filter = {
      ...(options.since !== undefined && { since: now - options.since }),
      ...(source !== undefined && { source }),
    }
    const page = { after: options.after, limit }
    const history = store ? await readHistory(store, filter, page) : EMPTY_HISTORY
    return present(presentHistory(history, now))
  },
})
