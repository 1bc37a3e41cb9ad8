/**
 * The completion of each shell. All ask `unstuck complete`, so that a script does not age with the commands. No word is
 * evaluated: what is typed and what comes back are passed on as text.
 */
export const SCRIPTS = {
  bash: String.raw`# bash completion for unstuck
_unstuck() {
    local program=unstuck line files=
    [[ $1 == */* && -x $1 ]] && program=$1
    COMPREPLY=()
    while IFS= read -r line; do
        if [[ -z $files ]]; then files=$line; else COMPREPLY+=("$line"); fi
    done < <(command "$program" complete bash -- "${'$'}{COMP_LINE:0:COMP_POINT}" "$COMP_WORDBREAKS" </dev/null 2>/dev/null)
    compopt -o nosort 2>/dev/null
    case $files in
        files) compopt -o bashdefault -o default 2>/dev/null ;;
        folders) compopt -o dirnames 2>/dev/null ;;
    esac
    if [[ ${'$'}{#COMPREPLY[@]} -eq 1 && ${'$'}{COMPREPLY[0]} == *= ]]; then compopt -o nospace 2>/dev/null; fi
}
complete -F _unstuck unstuck
`,
  zsh: String.raw`#compdef unstuck
_unstuck() {
    local program=unstuck line files= tab=$'\t'
    local -a values abouts
    [[ $words[1] == */* && -x $words[1] ]] && program=$words[1]
    while IFS= read -r line; do
        if [[ -z $files ]]; then files=$line; continue; fi
        values+=("${'$'}{line%%$tab*}")
        abouts+=("${'$'}{line%%$tab*}  ${'$'}{line#*$tab}")
    done < <(command $program complete zsh -- "${'$'}{(@Q)words[1,CURRENT-1]}" "${'$'}{(Q)PREFIX}" </dev/null 2>/dev/null)
    if (( $#values )); then
        compadd -l -V unstuck -d abouts -a -- values
    elif [[ $files == files ]]; then
        _files
    elif [[ $files == folders ]]; then
        _files -/
    fi
}
if [[ $funcstack[1] == _unstuck ]]; then _unstuck "$@"; else compdef _unstuck unstuck; fi
`,
  fish: String.raw`# fish completion for unstuck
function __unstuck_complete
    set -l words (commandline -opc)
    set -l current (commandline -ct | string unescape 2>/dev/null; or commandline -ct)
    set -l program unstuck
    string match -q '*/*' -- $words[1]; and test -x $words[1]; and set program $words[1]
    set -l lines (command $program complete fish -- $words "$current" </dev/null 2>/dev/null)
    if set -q lines[2]
        printf '%s\n' $lines[2..-1]
    else if test "$lines[1]" = files
        __fish_complete_path "$current"
    else if test "$lines[1]" = folders
        __fish_complete_directories "$current"
    end
end
complete -c unstuck -f -k -a '(__unstuck_complete)'
`,
} as const
