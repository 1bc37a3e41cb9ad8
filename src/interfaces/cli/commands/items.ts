import type { Store } from '../../../core/store/store.ts'
import { exportItems, hasItems, ITEM_FORMATS } from '../../../presenters/items.ts'
import { defineCommand } from '../../../contracts/command.ts'
import { argument, option } from '../../../contracts/options.ts'

export const command = defineCommand({
  examples: [
    'unstuck items directory > directory.jsonl',
    'unstuck items directory --format csv > directory.csv',
    "unstuck items directory | jq -r '.data.name'",
  ],
  args: { source: argument.required('the source they were saved for') },
  options: {
    format: option.choice(ITEM_FORMATS, 'jsonl, csv or json (one document)', 'jsonl'),
  },

  async run({ args, options, json, database, output }) {
    const store = await database.openExisting()
    const format = json ? 'json' : options.format
    if (!(await hasItems(store, args.source))) output.note(await nothingThere(store, args.source))
    const { isTerminal } = output
    for await (const text of exportItems(store, args.source, { format, isTerminal }))
      await output.write(text)
  },
})

async function nothingThere(store: Store, source: string): Promise<string> {
  const [last] = (await store.runs({ source, limit: 1 })).items
  return last?.traits.items === 'datasets'
    ? `What ${source} pushes is in the datasets of its crawler: \`await crawler.exportData('items.json')\`.`
    : `${source} has saved no items yet.`
}
