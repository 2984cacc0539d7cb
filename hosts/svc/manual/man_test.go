package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"github.com/pgherd/pgherd/acceptance/check"
)

func TestTheSameFilesAreWrittenAgain(t *testing.T) {
	first, second := t.TempDir(), t.TempDir()
	check.NoError(t, write(first))
	check.NoError(t, write(second))
	old := filepath.Join(second, "man", "man1", "svc-gone.1")
	check.NoError(t, os.WriteFile(old, nil, 0o644))
	check.NoError(t, write(second))
	if out, err := exec.CommandContext(t.Context(), "diff", "-r", first, second).CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}

func TestTextOfAManPageIsNoMarkup(t *testing.T) {
	cmd := &cobra.Command{
		Use: `odd A\B`, Short: "Say .odd things", Example: "  odd '-x'",
		Long: "A \\n that is kept.\n.SH Not a title\n\n'quoted' --flag\n\n  odd --shown\n  .odd",
		Run:  func(*cobra.Command, []string) {},
	}
	cmd.Flags().StringP("size", "s", "", "a `NUMBER` of bytes")
	want := `.TH ODD 1 "" svc svc
.SH NAME
odd \- Say .odd things
.SH SYNOPSIS
.B odd A\eB [flags]
.SH DESCRIPTION
.PP
A \en that is kept.
\&.SH Not a title
.PP
\&'quoted' \-\-flag
.PP
.nf
  odd \-\-shown
  .odd
.fi
.SH OPTIONS
.TP
.B \-s, \-\-size NUMBER
a NUMBER of bytes
.SH EXIT STATUS
`
	if have, _, _ := strings.Cut(manPage(cmd), ".TP\n.B 0\n"); have != want {
		t.Errorf("have\n%s\nwant\n%s", have, want)
	}
}
