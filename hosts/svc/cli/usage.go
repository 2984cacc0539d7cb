package cli

import (
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/pgherd/pgherd/hosts/internal/terminal"
	"github.com/pgherd/pgherd/hosts/svc/cli/app"
)

// wrongArguments says which argument is missing or is one too many; else what the command's own check says.
func wrongArguments(cmd *cobra.Command, args []string, err error) error {
	names := arguments(cmd)
	switch n := len(args); {
	case n < len(names) && !strings.HasPrefix(names[n], "["):
		err = fmt.Errorf("%s is missing", strings.ReplaceAll(names[n], "|", " or "))
	case n > len(names) && !strings.Contains(cmd.Use, dashed):
		err = fmt.Errorf("%q is one argument too many", args[len(names)])
	}
	return app.Usage("%w\nusage: %s", err, cmd.UseLine())
}

// dashed begins the arguments of another program in a command's usage.
const dashed = " [-- "

// arguments are the names of a command's own arguments, as its usage has them.
func arguments(cmd *cobra.Command) (names []string) {
	own, _, _ := strings.Cut(cmd.Use, dashed)
	for _, word := range strings.Fields(own)[1:] {
		if word != "[flags]" {
			names = append(names, word)
		}
	}
	return names
}

// wrongFlag says what is wrong with a flag.
func wrongFlag(cmd *cobra.Command, err error) error {
	var value *pflag.InvalidValueError
	var unknown *pflag.NotExistError
	var without *pflag.ValueRequiredError
	switch {
	case errors.As(err, &value):
		err = fmt.Errorf("--%s: %q is no %s", value.GetFlag().Name, value.GetValue(), kindOf(value.GetFlag()))
	case errors.As(err, &without):
		err = fmt.Errorf("--%s needs a value", without.GetFlag().Name)
	case errors.As(err, &unknown) && len(unknown.GetSpecifiedShortnames()) == 0:
		err = fmt.Errorf("there is no flag --%s", unknown.GetSpecifiedName())
	}
	return app.Usage("%w\nsee: %s --help", err, cmd.CommandPath())
}

// kindOf is what a flag takes.
func kindOf(f *pflag.Flag) string {
	switch f.Value.Type() {
	case "duration":
		return "duration, such as 30s or 5m"
	case "bool":
		return "truth value: it is true or false"
	case "int", "int64", "uint":
		return "whole number"
	}
	return f.Value.Type()
}

// helpWidth is that of the narrowest terminal that people use.
const helpWidth = 80

// showUsage prints how a command is called, with what is below it and its flags.
func showUsage(cmd *cobra.Command) error {
	var b strings.Builder
	fmt.Fprintf(&b, "Usage:\n  %s\n", cmd.UseLine())
	if cmd.Example != "" {
		fmt.Fprintf(&b, "\nExamples:\n%s\n", cmd.Example)
	}
	showCommands(&b, cmd)
	for _, flags := range []struct {
		title string
		set   *pflag.FlagSet
	}{{"Flags", cmd.LocalFlags()}, {"Flags of all commands", cmd.InheritedFlags()}} {
		if flags.set.HasAvailableFlags() {
			fmt.Fprintf(&b, "\n%s:\n%s", flags.title, flags.set.FlagUsagesWrapped(helpWidth))
		}
	}
	_, err := io.WriteString(cmd.OutOrStderr(), b.String())
	return err
}

// showCommands lists what is below a group.
func showCommands(b *strings.Builder, cmd *cobra.Command) {
	width := 0
	for _, below := range cmd.Commands() {
		width = max(width, len(below.Name()))
	}
	if width == 0 {
		return
	}
	b.WriteString("\nCommands:\n")
	for _, below := range cmd.Commands() {
		if below.IsAvailableCommand() {
			fmt.Fprintf(b, "  %s%s\n", terminal.Padded(below.Name(), width+2), below.Short)
		}
	}
}
