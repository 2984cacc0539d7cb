package app

import (
	"regexp"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// Line is a command line that a shell takes as these words.
func Line(words ...string) string {
	quoted := make([]string, len(words))
	for i, word := range words {
		quoted[i] = Quote(word)
	}
	return strings.Join(quoted, " ")
}

var plainWord = regexp.MustCompile(`^[A-Za-z0-9_./:@%+=,-]+$`)

// Quote quotes a word for a shell, where it has to be.
func Quote(word string) string {
	if plainWord.MatchString(word) {
		return word
	}
	return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
}

// Again is the line that repeats a command, with the idempotency key that was made for it, and without the time that was too
// short. No command that uses this has a flag whose value is a secret.
func Again(cmd *cobra.Command, args []string) string {
	words := append(strings.Fields(cmd.CommandPath()), args...)
	cmd.Flags().VisitAll(func(f *pflag.Flag) {
		switch text := f.Value.String(); {
		case text == f.DefValue, f.Name == "timeout":
		case f.Value.Type() == "bool":
			words = append(words, "--"+f.Name)
		default:
			words = append(words, "--"+f.Name, text)
		}
	})
	return Line(words...)
}

// Onward is the line of another command, about the same service as this one.
func (a *App) Onward(words ...string) string {
	for _, f := range []struct{ name, value string }{{"--profile", a.Profile}, {"--url", a.url}, {"--ca-file", a.caFile}} {
		if f.value != "" {
			words = append(words, f.name, f.value)
		}
	}
	if a.insecureHTTP {
		words = append(words, "--insecure-http")
	}
	return Line(words...)
}
