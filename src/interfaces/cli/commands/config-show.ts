import { redact } from '../../../core/model/redact.ts'
import { loadSections, sectionViews } from '../../../app/config.ts'
import {
  listPolicies,
  settingsTable,
  type SourcePolicy,
} from '../../../presenters/policy-settings.ts'
import type { Settings } from '../../../contracts/settings.ts'
import type { TextWriter } from '../../../lib/terminal/text-writer.ts'
import { defineCommand } from '../../../contracts/command.ts'
import { argument, option } from '../../../contracts/options.ts'

export const command = defineCommand({
  examples: [
    'unstuck config show',
    'unstuck config show slow-portal',
    'unstuck config show --defaults --json',
  ],
  args: { source: argument.optional('this source only; else each that the config mentions') },
  options: { defaults: option.flag('also the settings that are at their default') },

  async run({ args, options, database, settings }) {
    const config = await settings()
    const { address, from } = await database.locate()
    const policies = listPolicies(config, { source: args.source, all: options.defaults })
    const db = { address: redact(address), origin: from }
    const sections = await loadSections()
    const views = await sectionViews(config)
    return {
      data: { path: config.path, db, preset: config.preset, policies, ...views },
      print: (writer) => {
        writer.paragraph(
          config.path === null ? 'No config file: defaults count.' : `Config: ${config.path}`,
        )
        writer.paragraph(`Database: ${db.address}, from ${db.origin}`)
        if (config.preset !== null) writer.paragraph(`Preset: ${config.preset}`)
        for (const shown of policies) print(writer, shown, config)
        if (args.source === undefined)
          for (const one of sections) one.print?.(config.section(one), config, writer)
        writer.blank()
        writer.paragraph({
          text: 'The config overrides a crawl’s own policy: `unstuck explain RUN` shows what applies to one run.',
          style: 'dim',
        })
      },
    }
  },
})

function print(
  writer: TextWriter,
  { source, settings }: SourcePolicy,
  { preset, tables }: Pick<Settings, 'preset' | 'tables'>,
): void {
  const what = tables.includes(source ?? '') ? 'Table' : 'Source'
  writer.heading(source === null ? 'Every source, unless set below' : `${what} ${source}`)
  if (settings.length === 0) return writer.paragraph('Nothing of its own.')
  const { columns, rows } = settingsTable(settings, preset)
  writer.table(columns, rows)
}
