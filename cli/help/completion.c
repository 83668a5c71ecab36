/* cli/help/completion.c - the completion scripts for bash, zsh and fish, which ask this program (complete.c). */
#include <stdio.h>
#include <string.h>

#include "cli.h"

static const char bash[] =
	"# bash completion for holdfast; load it with: . <(holdfast completion bash)\n"
	"_holdfast() {\n"
	"    local word=${COMP_WORDS[COMP_CWORD]} line first\n"
	"    COMPREPLY=()\n"
	"    while IFS= read -r line; do\n"
	"        case $line in\n"
	"        ':command '*)\n"
	"            first=$((${line#:command } + 1))\n"
	"            if declare -F _command_offset >/dev/null && [ \"$first\" -le \"$COMP_CWORD\" ]; then\n"
	"                _command_offset \"$first\"\n"
	"            elif [ \"$first\" -eq \"$COMP_CWORD\" ]; then\n"
	"                mapfile -t COMPREPLY < <(compgen -c -- \"$word\" | sort -u)\n"
	"            else\n"
	"                compopt -o default 2>/dev/null\n"
	"            fi\n"
	"            return ;;\n"
	"        :files) compopt -o default 2>/dev/null ;;\n"
	"        :dirs) compopt -o dirnames 2>/dev/null ;;\n"
	"        *) printf -v line %q \"${line%%$'\\t'*}\"; COMPREPLY+=(\"$line\") ;;\n"
	"        esac\n"
	"    done < <(\"${COMP_WORDS[0]}\" __complete \"${COMP_WORDS[@]:1:COMP_CWORD}\" 2>/dev/null)\n"
	"}\n"
	"complete -F _holdfast holdfast\n";

static const char zsh[] =
	"#compdef holdfast\n"
	"# zsh completion for holdfast; load it with: source <(holdfast completion zsh)\n"
	"_holdfast() {\n"
	"    local line\n"
	"    local -a found\n"
	"    while IFS= read -r line; do\n"
	"        case $line in\n"
	"        ':command '*)\n"
	"            shift $((${line#:command } + 1)) words\n"
	"            (( CURRENT -= ${line#:command } + 1 ))\n"
	"            _normal\n"
	"            return ;;\n"
	"        :files) _files ;;\n"
	"        :dirs) _files -/ ;;\n"
	"        *) found+=(\"${${line%%$'\\t'*}//:/\\\\:}:${line#*$'\\t'}\") ;;\n"
	"        esac\n"
	"    done < <(\"${words[1]}\" __complete \"${(@Q)words[2,CURRENT]}\" 2>/dev/null)\n"
	"    (( ${#found} )) && _describe -t words holdfast found\n"
	"}\n"
	"if [ \"${funcstack[1]}\" = _holdfast ]; then _holdfast \"$@\"; else compdef _holdfast holdfast; fi\n";

static const char fish[] =
	"# fish completion for holdfast; load it with: holdfast completion fish | source\n"
	"function __holdfast_complete\n"
	"    set -l words (commandline -opc) (commandline -ct)\n"
	"    set -l lines ($words[1] __complete $words[2..-1] 2>/dev/null)\n"
	"    for line in $lines\n"
	"        switch $line\n"
	"            case ':command *'\n"
	"                set -l first (math (string replace ':command ' '' -- $line) + 2)\n"
	"                complete -C (string join ' ' -- (string escape -- $words[$first..-2]) $words[-1])\n"
	"            case :files\n"
	"                __fish_complete_path (commandline -ct)\n"
	"            case :dirs\n"
	"                __fish_complete_directories (commandline -ct)\n"
	"            case '*'\n"
	"                printf '%s\\n' $line\n"
	"        end\n"
	"    end\n"
	"end\n"
	"complete -c holdfast -f -a '(__holdfast_complete)'\n";

int cmd_completion(struct cli *cli, int argc, char **argv)
{
	static const struct {
		const char *shell, *script;
	} scripts[] = { { "bash", bash }, { "zsh", zsh }, { "fish", fish } };
	int n = cli_options(cli, NULL, argc, argv, 1, 1);

	if (n < 0)
		return cli_options_status(n);
	for (size_t i = 0; i < sizeof(scripts) / sizeof(scripts[0]); i++)
		if (strcmp(argv[0], scripts[i].shell) == 0) {
			fputs(scripts[i].script, stdout);
			return HF_EXIT_DONE;
		}
	return cli_usage(cli, "no completion for '%s'; it exists for bash, zsh and fish", argv[0]);
}
