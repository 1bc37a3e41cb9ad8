import { defineCommand } from '../../../contracts/command.ts'
import { argument } from '../../../contracts/options.ts'
import { SCRIPTS } from '../completion/scripts.ts'

export const command = defineCommand({
  examples: [
    'unstuck completion bash > ~/.local/share/bash-completion/completions/unstuck  # with the package bash-completion',
    'unstuck completion bash >> ~/.bashrc  # without it',
    'unstuck completion zsh > "${fpath[1]}/_unstuck"  # then start a new zsh',
    'unstuck completion fish > ~/.config/fish/completions/unstuck.fish',
  ],
  args: { shell: argument.choice(['bash', 'zsh', 'fish'], 'the shell that reads the script') },

  async run({ args: { shell }, json, output }) {
    const script = SCRIPTS[shell]
    if (json) return { data: { shell, script }, print: () => {} }
    await output.write(script)
    return undefined
  },
})
