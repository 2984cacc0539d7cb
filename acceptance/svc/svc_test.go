package svc

import (
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
	"github.com/spf13/cobra"

	"github.com/pgherd/pgherd/hosts/svc/cli"
)

func TestScripts(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Files: scripts(t), Setup: setup, Cmds: verbs(), RequireUniqueNames: true,
		UpdateScripts: os.Getenv("PGHERD_UPDATE_GOLDEN") != "",
	})
}

// scripts returns the files below testdata/script.
func scripts(t *testing.T) (files []string) {
	t.Helper()
	err := filepath.WalkDir(filepath.Join("testdata", "script"), func(path string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() && filepath.Ext(path) == ".txtar" {
			files = append(files, path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}

func TestEveryCommandHasAScript(t *testing.T) {
	run := map[string]bool{}
	for _, file := range scripts(t) {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(string(text)) {
			if words := strings.Fields(line); len(words) > 0 && words[0] == "--" {
				break // the script's files follow
			} else if command := commandOf(words); command != "" {
				run[command] = true
			}
		}
	}
	var missing []string
	for _, c := range leaves(cli.Root()) {
		if !run[c.CommandPath()] {
			missing = append(missing, c.CommandPath())
		}
	}
	if len(missing) > 0 {
		t.Errorf("no script runs these commands:\n\t%s", strings.Join(missing, "\n\t"))
	}
}

// leaves are the commands that have no others below them.
func leaves(c *cobra.Command) (list []*cobra.Command) {
	for _, sub := range c.Commands() {
		list = append(list, leaves(sub)...)
	}
	if !c.HasSubCommands() {
		list = append(list, c)
	}
	return list
}

// commandOf is the path of the command that a line of a script runs; empty where it runs none.
func commandOf(words []string) string {
	start := slices.Index(words, "svc")
	if start < 0 || !slices.Contains([]string{"svc", "!", "status", "tty", "exec"}, words[0]) {
		return ""
	}
	c, _, err := cli.Root().Find(words[start+1:])
	if err != nil {
		return ""
	}
	return c.CommandPath()
}
