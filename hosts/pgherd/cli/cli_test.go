package cli_test

import (
	"io"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/pgherd/pgherd/hosts/internal/settings"
	"github.com/pgherd/pgherd/hosts/pgherd/cli"
)

// Of every flag that does not take any text, it can be said what it takes.
func TestFlagsSayWhatTheyTake(t *testing.T) {
	var walk func(*cobra.Command)
	walk = func(cmd *cobra.Command) {
		cmd.LocalFlags().VisitAll(func(f *pflag.Flag) {
			if kind := f.Value.Type(); settings.Takes(f) == "" && kind != "string" && kind != "stringArray" {
				t.Errorf("%s --%s takes a %s", cmd.CommandPath(), f.Name, kind)
			}
		})
		for _, below := range cmd.Commands() {
			walk(below)
		}
	}
	walk(cli.Root())
}

func TestAWrongValueSaysWhatIsTaken(t *testing.T) {
	root := cli.Root()
	root.SetArgs([]string{"batch", "--workers=many"})
	root.SetOut(io.Discard)
	root.SetErr(io.Discard)
	if err := root.Execute(); err == nil || err.Error() != "--workers must be a whole number, such as 4" {
		t.Error(err)
	}
}
