import type { PolicySetting } from '../../app/policy-origin.ts'
import type { Paper } from '../../lib/terminal/text-writer.ts'

/** Settings with who said so. */
export function printSettings(
  paper: Paper,
  settings: readonly PolicySetting[],
  preset: string | null,
): void {
  paper.table(
    [{ head: 'SETTING' }, { head: 'VALUE' }, { head: 'FROM', flex: true }],
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
