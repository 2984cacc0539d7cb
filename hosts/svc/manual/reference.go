package main

import (
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// entry is a name and what it means.
type entry struct{ name, text string }

var exitStatuses = []entry{
	{"0", "done"},
	{"1", "the API has refused, an operation that was waited for has failed, or something failed on this machine"},
	{"2", "wrong usage: nothing was changed"},
	{"3", "the API could not be reached, or what answered is not the API"},
}

var environment = []entry{
	{"SVC_BASE_URL", "the service's address, as in https://pgherd.example.com"},
	{"SVC_API_KEY", "the API key"},
	{"SVC_CA_FILE", "a PEM file of certificates to trust beside those of the system"},
	{"SVC_PROFILE", "the profile to use"},
	{"HTTPS_PROXY, NO_PROXY", "the proxy, and the hosts that are reached without it"},
	{"NO_COLOR", "if it is not empty, there are no colours"},
	{"XDG_CONFIG_HOME", "the folder of the configuration; $HOME/.config without it, and $HOME/Library/Application Support on macOS"},
}

// options are a set of flags as entries. What a flag takes stands after its name.
func options(flags *pflag.FlagSet) (list []entry) {
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
		list = append(list, entry{name, text})
	})
	return list
}

// paragraphs splits a text where it has an empty line.
func paragraphs(text string) []string { return strings.Split(strings.TrimSpace(text), "\n\n") }

// shown reports whether a paragraph is to be read as it stands: a command, or a table.
func shown(paragraph string) bool {
	for line := range strings.Lines(paragraph) {
		if !strings.HasPrefix(line, "  ") && !strings.HasPrefix(line, "\t") {
			return false
		}
	}
	return true
}

// description is what a command says of itself.
func description(cmd *cobra.Command) string {
	if cmd.Long != "" {
		return cmd.Long
	}
	return cmd.Short + "."
}
