import { redact } from '../../../observe/redact.ts'
import type { PolicySetting } from '../../policy-origin.ts'
import { defineCommand } from '../command.ts'
import { argument, option } from '../option.ts'
import type { Paper } from '../paper/paper.ts'
import { printSettings } from '../policy-text.ts'

type Shown = { readonly source: string | null; readonly settings: readonly PolicySetting[] }

export const configShow = defineCommand({
  name: 'show',
  summary: 'The settings that count, each with where it comes from.',
  examples: [
    'unstuck config show',
    'unstuck config show slow-portal',
    'unstuck config show --all --json',
  ],
  args: { source: argument.optional('this source only; else each that the config has a word on') },
  options: { all: option.flag('also the settings that are at their default') },

  async run({ args, options, database, settings }) {
    const config = await settings()
    const { address, from } = await database.locate()
    const sources = args.source === undefined ? [null, ...config.sources] : [args.source]
    const policies = sources.map((source): Shown => {
      const all = config.settingsOf(source ?? ANY)
      const isKept = ({ origin }: PolicySetting): boolean =>
        options.all || source === null || args.source !== undefined || origin !== 'default'
      return { source, settings: all.filter(isKept) }
    })
    const db = { address: redact(address), origin: from }
    return {
      data: { path: config.path, db, preset: config.preset, policies },
      text: (paper) => {
        paper.say(
          config.path === null ? 'No config file: defaults count.' : `Config: ${config.path}`,
        )
        paper.say(`Database: ${db.address}, from ${db.origin}`)
        if (config.preset !== null) paper.say(`Preset: ${config.preset}`)
        for (const shown of policies) print(paper, shown, config.preset)
        paper.blank()
        paper.say({
          text: 'A crawl’s own policy counts below the config’s word: see `unstuck explain RUN` for one run.',
          ink: 'dim',
        })
      },
    }
  },
})

/** No source is called like this: what counts for all that the config has no word on. */
const ANY = ''

function print(paper: Paper, { source, settings }: Shown, preset: string | null): void {
  paper.heading(source === null ? 'Every source, unless said otherwise' : `Source ${source}`)
  if (settings.length === 0) return paper.say('Nothing of its own.')
  printSettings(paper, settings, preset)
}
