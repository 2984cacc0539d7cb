package docs

import (
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"github.com/pgherd/pgherd/hosts/pgherd/cli"
)

var (
	// called are the commands that a page has in a block, indented, or in a line of text.
	called = regexp.MustCompile("(?m)(?:^ {4,}|^ *(?:[A-Z0-9_]+=\\S+ +)*|`|\\$\\(|[|&;] *)(pgherd (?:[a-z]|--)[^`\n]*)")
	// goesOn is where a command goes on in the next line.
	goesOn = regexp.MustCompile(`\\\n\s*`)
	// over is where a command is: at what the shell does with it, or at what stands beside it.
	over = regexp.MustCompile(`[|&;)]| > | #| {2,}`)
	// quoted is text of an argument, which has no flags.
	quoted = regexp.MustCompile(`'[^']*'|"[^"]*"`)
)

// Whatever pages say that somebody runs is there, with the flags that they say.
func TestPagesNameCommandsThatAreThere(t *testing.T) {
	t.Parallel()
	program := cli.Root()
	for _, wrong := range []string{"pgherd admin servers list", "pgherd admin doctor --no-such", "pgherd serve"} {
		if misses(program, wrong) == "" {
			t.Errorf("nothing is wrong with %s", wrong)
		}
	}
	known := 0
	for _, file := range sources(t) {
		if filepath.Ext(file) != ".md" || !strings.HasPrefix(file, filepath.Join(root, "docs")) {
			continue
		}
		for _, found := range called.FindAllStringSubmatch(goesOn.ReplaceAllString(contents(t, file), " "), -1) {
			known++
			if wrong := misses(program, found[1]); wrong != "" {
				t.Errorf("%s: %s: there is no %s", file, found[1], wrong)
			}
		}
	}
	if known < 100 {
		t.Errorf("only %d commands were found", known)
	}
}

// misses returns what a command line has and the program has not: a command or a flag.
func misses(program *cobra.Command, line string) string {
	line = quoted.ReplaceAllString(line, "x")
	if at := over.FindStringIndex(line); at != nil {
		line = line[:at[0]]
	}
	words := strings.Fields(strings.NewReplacer("[", " ", "]", " ", ",", " ").Replace(line))[1:]
	cmd, rest, err := program.Find(words)
	if err != nil || cmd.HasSubCommands() && len(rest) > 0 && !strings.HasPrefix(rest[0], "-") {
		return cmd.CommandPath() + " " + rest[0]
	}
	cmd.InitDefaultHelpFlag()
	cmd.InitDefaultVersionFlag()
	for _, word := range rest {
		name, is := strings.CutPrefix(word, "--")
		name, _, _ = strings.Cut(name, "=")
		if is && cmd.Flag(strings.TrimRight(name, ".:")) == nil {
			return cmd.CommandPath() + " --" + name
		}
	}
	return ""
}
