package admin

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/pgherd/pgherd/hosts/internal/terminal"
)

// usage is how much of a quota is used: in JSON an object.
type usage[T any] struct {
	Used  T `json:"used"`
	Quota T `json:"quota"`
}

func (u usage[T]) String() string { return fmt.Sprint(u.Used, " of ", u.Quota) }

// counts is how many there are of each: in JSON an object.
type counts map[string]int

func (c counts) String() string {
	texts := make([]string, 0, len(c))
	for _, of := range slices.Sorted(maps.Keys(c)) {
		texts = append(texts, fmt.Sprintf("%s=%d", of, c[of]))
	}
	return strings.Join(texts, " ")
}

// pairs are the entries of a map as "key=value", by key; a value with spaces or quotes is quoted.
func pairs(of map[string]string) string {
	texts := make([]string, 0, len(of))
	for _, key := range slices.Sorted(maps.Keys(of)) {
		text := of[key]
		if text == "" || strings.ContainsAny(text, " \"=") || terminal.Visible(text) != text {
			text = strconv.Quote(text)
		}
		texts = append(texts, key+"="+text)
	}
	return strings.Join(texts, " ")
}

// escapeErrors has the errors of a command and of those below it escaped: servers say in them what customers have chosen.
func escapeErrors(cmd *cobra.Command) {
	for _, c := range cmd.Commands() {
		escapeErrors(c)
	}
	if run := cmd.RunE; run != nil {
		cmd.RunE = func(cmd *cobra.Command, args []string) error {
			if err := run(cmd, args); err != nil {
				return visibleError{err}
			}
			return nil
		}
	}
}

// visibleError is an error whose lines a terminal can show.
type visibleError struct{ error }

func (e visibleError) Unwrap() error { return e.error }

func (e visibleError) Error() string { return terminal.VisibleLines(e.error.Error()) }
