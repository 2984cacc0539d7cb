package manual

import (
	"testing"

	"github.com/spf13/cobra"
)

func TestTextOfAManPageIsNoMarkup(t *testing.T) {
	cmd := &cobra.Command{
		Use: `odd A\B`, Short: "Say .odd things", Example: "  odd '-x'",
		Long: "A \\n that is kept.\n.SH Not a title\n\n'quoted' --flag\n\n  odd --shown\n  .odd",
		Run:  func(*cobra.Command, []string) {},
	}
	cmd.Flags().StringP("size", "s", "", "a `NUMBER` of bytes")
	want := `.TH ODD 1 "" odd odd
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
.TP
.B 0
done
.SH EXAMPLES
.PP
.nf
  odd '\-x'
.fi
`
	if have := (Manual{Section: 1, ExitStatuses: []Entry{{"0", "done"}}}).page(cmd); have != want {
		t.Errorf("have\n%s\nwant\n%s", have, want)
	}
}
