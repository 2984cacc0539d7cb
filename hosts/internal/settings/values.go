package settings

import (
	"errors"
	"fmt"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// taken says what a flag of a type takes.
var taken = map[string]string{
	"bool":           "true or false",
	"int":            "a whole number, such as 4",
	"int64":          "a whole number, such as 4",
	"float64":        "a number, such as 0.5",
	"duration":       "a length of time, such as 30s or 12h",
	"time":           "a length of time, such as 36h or 400d",
	"bytes":          "a number of bytes, such as 20GiB",
	"stringSlice":    "a list, such as a,b",
	"stringToInt":    "a list of names with numbers, such as free=0,pro=7",
	"stringToString": "a list of names with values, such as read=600/1m,write=120/1m",
}

// Takes says what a flag takes; empty for one that takes any text.
func Takes(f *pflag.Flag) string { return taken[f.Value.Type()] }

// wrongValue says what a flag takes, and not the value, which may be a secret.
func wrongValue(name string, f *pflag.Flag) error {
	if flag := "--" + f.Name; name != flag {
		name += ", for " + flag + ","
	}
	return fmt.Errorf("%s must be %s", name, Takes(f))
}

// ExplainFlags has the errors of a command's flags, and of those below it, say what is taken.
func ExplainFlags(cmd *cobra.Command) {
	cmd.SetFlagErrorFunc(func(_ *cobra.Command, err error) error {
		var wrong *pflag.InvalidValueError
		if errors.As(err, &wrong) {
			return wrongValue("--"+wrong.GetFlag().Name, wrong.GetFlag())
		}
		return err
	})
}
