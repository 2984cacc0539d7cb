package cli

import (
	"context"
	"errors"
	"regexp"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// line is a command line that a shell takes as these words.
func line(words ...string) string {
	quoted := make([]string, len(words))
	for i, word := range words {
		quoted[i] = quote(word)
	}
	return strings.Join(quoted, " ")
}

var plainWord = regexp.MustCompile(`^[A-Za-z0-9_./:@%+=,-]+$`)

func quote(word string) string {
	if plainWord.MatchString(word) {
		return word
	}
	return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
}

// again is the line that repeats a command, with the idempotency key that was made for it. No command that uses this has a flag
// whose value is a secret.
func again(cmd *cobra.Command, args []string) string {
	words := append(strings.Fields(cmd.CommandPath()), args...)
	cmd.Flags().VisitAll(func(f *pflag.Flag) {
		switch text := f.Value.String(); {
		case text == f.DefValue:
		case f.Value.Type() == "bool":
			words = append(words, "--"+f.Name)
		default:
			words = append(words, "--"+f.Name, text)
		}
	})
	return line(words...)
}

// mayBeDone adds to an error that leaves open what has become of a call how to find out: no answer came, or svc was to wait no
// longer. repeat is the line of a command that does nothing twice.
func mayBeDone(err error, repeat string) error {
	if unreached(err) || errors.Is(err, context.Canceled) || errors.Is(err, errTimeout) {
		return next(err, "it may be done or not; go on with: %s", repeat)
	}
	return err
}
