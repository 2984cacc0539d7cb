// Command manual writes what is installed beside svc: a man page for each command, and completions for bash, zsh and fish. The
// folder that it is called with gets the layout of /usr/share. docs/use/svc.md is made from the same commands, by a test.
package main

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/pgherd/pgherd/hosts/internal/manual"
	"github.com/pgherd/pgherd/hosts/svc/cli"
)

func main() {
	if len(os.Args) != 2 {
		_, _ = fmt.Fprintln(os.Stderr, "usage: manual FOLDER")
		os.Exit(2)
	}
	if err := write(os.Args[1]); err != nil {
		_, _ = fmt.Fprintln(os.Stderr, "manual:", err)
		os.Exit(1)
	}
}

// write makes all files below a folder.
func write(folder string) error {
	pages := manual.Manual{Section: 1, ExitStatuses: exitStatuses, Environment: environment}
	return errors.Join(
		completion("bash", filepath.Join(folder, "bash-completion", "completions", "svc")),
		completion("zsh", filepath.Join(folder, "zsh", "site-functions", "_svc")),
		completion("fish", filepath.Join(folder, "fish", "vendor_completions.d", "svc.fish")),
		pages.Write(cli.Root(), folder),
	)
}

// completion writes what "svc completion" prints for a shell.
func completion(shell, path string) error {
	var text bytes.Buffer
	root := cli.Root()
	root.SetOut(&text)
	root.SetArgs([]string{"completion", shell})
	if err := root.Execute(); err != nil {
		return err
	}
	return manual.WriteFile(path, text.String())
}

var exitStatuses = []manual.Entry{
	{Name: "0", Text: "done"},
	{Name: "1", Text: "the API has refused, an operation that was waited for has failed, or something failed on this machine"},
	{Name: "2", Text: "wrong usage: nothing was changed"},
	{Name: "3", Text: "the API could not be reached, or what answered is not the API"},
}

var environment = []manual.Entry{
	{Name: "SVC_BASE_URL", Text: "the service's address, as in https://pgherd.example.com"},
	{Name: "SVC_API_KEY", Text: "the API key"},
	{Name: "SVC_CA_FILE", Text: "a PEM file of certificates to trust beside those of the system"},
	{Name: "SVC_PROFILE", Text: "the profile to use"},
	{Name: "HTTPS_PROXY, NO_PROXY", Text: "the proxy, and the hosts that are reached without it"},
	{Name: "NO_COLOR", Text: "if it is not empty, there are no colours"},
	{Name: "XDG_CONFIG_HOME",
		Text: "the folder of the configuration; $HOME/.config without it, and $HOME/Library/Application Support on macOS"},
}
