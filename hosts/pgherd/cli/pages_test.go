package cli_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"github.com/pgherd/pgherd/acceptance/check"
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
	root := cli.Root()
	for _, wrong := range []string{"pgherd admin servers list", "pgherd admin doctor --no-such", "pgherd serve"} {
		if misses(root, wrong) == "" {
			t.Errorf("nothing is wrong with %s", wrong)
		}
	}
	known := 0
	check.NoError(t, filepath.WalkDir("../../../docs", func(path string, _ fs.DirEntry, err error) error {
		if err != nil || filepath.Ext(path) != ".md" {
			return err
		}
		text, err := os.ReadFile(path)
		for _, found := range called.FindAllStringSubmatch(goesOn.ReplaceAllString(string(text), " "), -1) {
			known++
			if wrong := misses(root, found[1]); wrong != "" {
				t.Errorf("%s: %s: there is no %s", path, found[1], wrong)
			}
		}
		return err
	}))
	if known < 100 {
		t.Errorf("only %d commands were found", known)
	}
}

// misses returns what a command line has and the program has not: a command or a flag.
func misses(root *cobra.Command, line string) string {
	line = quoted.ReplaceAllString(line, "x")
	if at := over.FindStringIndex(line); at != nil {
		line = line[:at[0]]
	}
	words := strings.Fields(strings.NewReplacer("[", " ", "]", " ", ",", " ").Replace(line))[1:]
	cmd := root
	for len(words) > 0 && cmd.HasSubCommands() && !strings.HasPrefix(words[0], "-") {
		name := words[0]
		next, _, err := cmd.Find([]string{name})
		if err != nil || next == cmd {
			return strings.TrimSpace(cmd.CommandPath() + " " + name)
		}
		cmd, words = next, words[1:]
	}
	for _, word := range words {
		name, is := strings.CutPrefix(word, "--")
		name, _, _ = strings.Cut(name, "=")
		if is && name != "help" && name != "version" && cmd.Flag(strings.TrimRight(name, ".:")) == nil {
			return cmd.CommandPath() + " --" + name
		}
	}
	return ""
}
