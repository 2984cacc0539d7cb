// Command manual writes what is installed beside svc: a man page for each command, and completions for bash, zsh and fish. The
// folder that it is called with gets the layout of /usr/share. docs/use/svc.md is made from the same commands, by a test.
package main

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

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

// write makes all files below a folder. They depend on the commands alone: not on the day, and not on the machine.
func write(folder string) error {
	man := filepath.Join(folder, "man", "man1")
	if err := os.RemoveAll(man); err != nil { // It may hold pages of commands that are no more.
		return err
	}
	err := errors.Join(
		completion("bash", filepath.Join(folder, "bash-completion", "completions", "svc")),
		completion("zsh", filepath.Join(folder, "zsh", "site-functions", "_svc")),
		completion("fish", filepath.Join(folder, "fish", "vendor_completions.d", "svc.fish")),
	)
	for _, cmd := range all(cli.Root()) {
		err = errors.Join(err, writeFile(filepath.Join(man, manName(cmd)+".1"), manPage(cmd)))
	}
	return err
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
	return writeFile(path, text.String())
}

func writeFile(path, text string) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	return os.WriteFile(path, []byte(text), 0o644)
}

// all is a command with those below it, in the order in which they were added.
func all(cmd *cobra.Command) []*cobra.Command {
	list := []*cobra.Command{cmd}
	for _, below := range cmd.Commands() {
		if below.IsAvailableCommand() {
			list = append(list, all(below)...)
		}
	}
	return list
}
