// Package settings lets every flag of a command also be set by the environment: --metadata-url by PGHERD_METADATA_URL, or by
// the content of the file that PGHERD_METADATA_URL_FILE names. A flag takes precedence over the variable, and the variable over
// the file.
package settings

import (
	"fmt"
	"os"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// Prefix begins the name of every variable.
const Prefix = "PGHERD_"

// Variable returns the name of the variable of a flag.
func Variable(flag string) string {
	return Prefix + strings.ToUpper(strings.ReplaceAll(flag, "-", "_"))
}

// Flag names a setting to an operator: its flag and its variable.
func Flag(name string) string { return fmt.Sprintf("--%s (or %s)", name, Variable(name)) }

// Apply fills the flags that were not given from the environment. An error names the variable and never its value: one of a name
// that no command has, but that is near to one that is known, or a value that the flag does not take.
func Apply(cmd *cobra.Command) error {
	failed := checkKnown(cmd)
	cmd.Flags().VisitAll(func(f *pflag.Flag) {
		if failed == nil && !f.Changed {
			failed = applyOne(cmd.Flags(), f)
		}
	})
	return failed
}

// explicit marks a flag that no variable sets.
const explicit = "pgherd_explicit"

// Explicit marks flags of a command that changes only what is given: a variable that is set for other commands is not meant.
func Explicit(cmd *cobra.Command, flags ...string) {
	for _, name := range flags {
		if err := cmd.Flags().SetAnnotation(name, explicit, nil); err != nil {
			panic(err) // the flag is not defined: a mistake of the caller
		}
	}
}

func applyOne(flags *pflag.FlagSet, f *pflag.Flag) error {
	if _, marked := f.Annotations[explicit]; marked {
		return nil
	}
	name := Variable(f.Name)
	value, ok := os.LookupEnv(name)
	if path, given := os.LookupEnv(name + "_FILE"); given && !ok && readsHere(flags, f) {
		name += "_FILE"
		text, err := os.ReadFile(path)
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		value, ok = strings.TrimRight(string(text), "\r\n"), true
	}
	if !ok || value == "" {
		return nil
	}
	if err := flags.Set(f.Name, value); err != nil {
		return wrongValue(name, f)
	}
	return nil
}

// readsHere reports whether the value of a flag may stand in a file that is read once. Where a command has a flag for the file,
// it reads it itself.
func readsHere(flags *pflag.FlagSet, f *pflag.Flag) bool {
	return !strings.HasSuffix(f.Name, "-file") && flags.Lookup(f.Name+"-file") == nil
}

// Require returns an error that names the first of the flags that is still empty, and its variable.
func Require(cmd *cobra.Command, flags ...string) error {
	for _, name := range flags {
		if f := cmd.Flags().Lookup(name); f == nil || f.Value.String() == "" {
			return fmt.Errorf("%s is required", Flag(name))
		}
	}
	return nil
}

// developmentOnly are the flags that weaken what webhooks may reach.
var developmentOnly = []string{"allow-private-webhooks", "webhook-ca-file"}

// RefuseDevelopmentOnly returns an error that names the first variable that is set although it is for the development host
// only: other hosts would silently ignore it.
func RefuseDevelopmentOnly() error {
	for _, flag := range developmentOnly {
		if name := Variable(flag); os.Getenv(name) != "" {
			return fmt.Errorf("%s is for the development host only", name)
		}
	}
	return nil
}
