import type { PolicySetting } from '../../presenters/policy-origin.ts'
import type { TextWriter } from '../../lib/terminal/text-writer.ts'

/** Settings with who said so. */
export function printSettings(
  writer: TextWriter,
  settings: readonly PolicySetting[],
  preset: string | null,
): void {
  writer.table(
    [{ header: 'SETTING' }, { header: 'VALUE' }, { header: 'FROM', flex: true }],
    settings.map(({ name, group, value, origin }) => {
      const from = origin === 'preset' ? `preset ${preset}` : origin
      return [
        name,
        value === null ? 'none' : String(value),
        group === null ? from : `${from}, group ${group}`,
      ]
    }),
  )
}
