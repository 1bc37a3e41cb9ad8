/** One line of CSV (RFC 4180, with plain line feeds). No cell can act as a formula in a spreadsheet. */
export function csvLine(cells: readonly (string | number)[]): string {
  return `${cells.map(csvCell).join(',')}\n`
}

function csvCell(cell: string | number): string {
  if (typeof cell === 'number') return String(cell)
  // A leading apostrophe makes a spreadsheet take the rest as text. Some read the wide forms of these signs as well.
  const text = /^[=+\-@＝＋－＠\t\r\n]/.test(cell) ? `'${cell}` : cell
  return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text
}
