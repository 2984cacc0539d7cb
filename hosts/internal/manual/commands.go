// Package manual makes man pages, completions and settings files from the commands of a program.
package manual

import (
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// Entry is a name and what it means.
type Entry struct{ Name, Text string }

// All is a command with those below it, in the order in which they were added.
func All(cmd *cobra.Command) []*cobra.Command {
	list := []*cobra.Command{cmd}
	for _, below := range cmd.Commands() {
		if below.IsAvailableCommand() {
			list = append(list, All(below)...)
		}
	}
	return list
}

// WriteFile writes a file that everybody may read, and the folders that it is in.
func WriteFile(path, text string) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	return os.WriteFile(path, []byte(text), 0o644)
}

// Options are a set of flags as entries. What a flag takes stands after its name.
func Options(flags *pflag.FlagSet) (list []Entry) {
	flags.VisitAll(func(f *pflag.Flag) {
		if f.Hidden || f.Name == "help" || f.Name == "version" {
			return
		}
		takes, text := pflag.UnquoteUsage(f)
		name := "--" + f.Name
		if f.Shorthand != "" {
			name = "-" + f.Shorthand + ", " + name
		}
		if takes != "" {
			name += " " + takes
		}
		list = append(list, Entry{name, text})
	})
	return list
}

// Paragraphs splits a text where it has an empty line.
func Paragraphs(text string) []string { return strings.Split(strings.TrimSpace(text), "\n\n") }

// Shown reports whether a paragraph is to be read as it stands: a command, or a table.
func Shown(paragraph string) bool {
	for line := range strings.Lines(paragraph) {
		if !strings.HasPrefix(line, "  ") && !strings.HasPrefix(line, "\t") {
			return false
		}
	}
	return true
}

// Description is what a command says of itself.
func Description(cmd *cobra.Command) string {
	if cmd.Long != "" {
		return cmd.Long
	}
	return cmd.Short + "."
}
