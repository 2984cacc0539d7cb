package cli

import (
	"io"

	"github.com/spf13/cobra"

	"github.com/pgherd/pgherd/hosts/svc/cli/app"
)

func completion() *cobra.Command {
	return app.Group("completion", "Print a script that lets a shell complete commands, flags and names",
		completionOf("bash", `For this shell:

  source <(svc completion bash)

For each new one:

  svc completion bash > ~/.local/share/bash-completion/completions/svc

The latter needs the package bash-completion.`, bashCompletion),
		completionOf("zsh", `For this shell, once compinit has run:

  source <(svc completion zsh)

For each new one:

  svc completion zsh > "${fpath[1]}/_svc"`, (*cobra.Command).GenZshCompletion),
		completionOf("fish", `For this shell:

  svc completion fish | source

For each new one:

  svc completion fish > ~/.config/fish/completions/svc.fish`,
			func(root *cobra.Command, to io.Writer) error { return root.GenFishCompletion(to, true) }),
	)
}

func bashCompletion(root *cobra.Command, to io.Writer) error {
	if err := root.GenBashCompletionV2(to, true); err != nil {
		return err
	}
	_, err := io.WriteString(to, wordsOfBash)
	return err
}

// wordsOfBash replaces the one function of the script that needs the package bash-completion.
const wordsOfBash = `
if ! declare -F _get_comp_words_by_ref >/dev/null; then
    __svc_init_completion()
    {
        COMPREPLY=()
        words=("${COMP_WORDS[@]}")
        cword=$COMP_CWORD
        cur=${words[cword]}
        prev=${words[cword-1]}
    }
fi
`

func completionOf(shell, how string, script func(root *cobra.Command, to io.Writer) error) *cobra.Command {
	return &cobra.Command{
		Use: shell, Short: "Print the completions for " + shell, Args: cobra.NoArgs,
		Long: "Print the completions for " + shell + ". \"make install\" installs them.\n\n" + how,
		RunE: func(cmd *cobra.Command, _ []string) error { return script(cmd.Root(), cmd.OutOrStdout()) },
	}
}
