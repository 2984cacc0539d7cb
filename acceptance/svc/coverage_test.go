package svc

import (
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"github.com/pgherd/pgherd/hosts/svc/cli"
)

// The ways in which scripts run each command. A run on a terminal and one with --json count where the script looks at what they
// have printed.
const (
	piped  = "without a terminal"
	narrow = "on a terminal of 80 columns"
	wide   = "on a terminal of 200 columns"
	inJSON = "with --json"
	done   = "with status 0"
	failed = "with status 1"
	misuse = "with status 2"
	away   = "with status 3"
)

var everyWay = []string{piped, narrow, wide, inJSON, done, failed, misuse, away}

// exempt are the ways in which a command needs no script, and why.
var exempt = map[string]map[string]string{
	"svc completion bash": scripted, "svc completion zsh": scripted, "svc completion fish": scripted,
	"svc auth logout":     {away: "it asks nobody"},
	"svc webhooks verify": {away: "it asks nobody"},
	"svc psql":            {done: "its status is that of psql, which fails in scripts", inJSON: "what it prints is psql's"},
}

var scripted = map[string]string{
	narrow: "it prints a program", wide: "it prints a program", inJSON: "it prints a program",
	failed: "nothing can fail", away: "it asks nobody",
}

func TestEveryCommandIsRunInEveryWay(t *testing.T) {
	seen := map[string]map[string]bool{}
	for _, file := range scripts(t) {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		script, _, _ := strings.Cut(string(text), "\n-- ")
		lines := strings.Split(script, "\n")
		for i, line := range lines {
			command, ways := runOf(strings.Fields(line), looked(lines[i+1:]))
			if command == "" {
				continue
			}
			if seen[command] == nil {
				seen[command] = map[string]bool{}
			}
			for _, way := range ways {
				seen[command][way] = true
			}
		}
	}
	for _, c := range leaves(cli.Root()) {
		for _, way := range everyWay {
			reason := exempt[c.CommandPath()][way]
			switch run := seen[c.CommandPath()][way]; {
			case !run && reason == "":
				t.Errorf("no script runs %s %s", c.CommandPath(), way)
			case run && reason != "":
				t.Errorf("%s is run %s, although %s", c.CommandPath(), way, reason)
			}
		}
	}
}

// leaves are the commands that do something: those that have no others below them, and those that take arguments.
func leaves(c *cobra.Command) (list []*cobra.Command) {
	for _, below := range c.Commands() {
		if below.IsAvailableCommand() {
			list = append(list, leaves(below)...)
		}
	}
	if !c.HasAvailableSubCommands() || strings.Contains(c.Use, "DATABASE") {
		list = append(list, c)
	}
	return list
}

// looked reports whether the lines behind a command look at its standard output.
func looked(behind []string) bool {
	for _, line := range behind {
		words := strings.Fields(line)
		switch {
		case len(words) == 0:
			return false
		case words[0] == "stdout", words[0] == "setenv", slices.Equal(words[:min(2, len(words))], []string{"cmp", "stdout"}):
			return true
		case !slices.Contains([]string{"mask", "!", "cmp", "stderr", "cp", "setfile"}, words[0]):
			return false
		}
	}
	return false
}

// runOf is the path of the command that a line of a script runs, and in which ways; empty where it runs none.
func runOf(words []string, looked bool) (command string, ways []string) {
	start := slices.Index(words, "svc")
	if start < 0 || !slices.Contains([]string{"svc", "!", "status", "tty", "screens", "exec"}, words[0]) {
		return "", nil
	}
	c, _, err := cli.Root().Find(words[start+1:])
	if err != nil {
		return "", nil
	}
	switch words[0] {
	case "svc", "tty", "screens", "exec":
		ways = append(ways, done)
	case "status":
		ways = append(ways, "with status "+words[1])
	}
	if looked && slices.Contains(words, "--json") {
		ways = append(ways, inJSON)
	}
	at := slices.Index(words[:start], "tty")
	switch {
	case words[0] == "screens" && looked:
		ways = append(ways, narrow, wide)
	case at < 0:
		ways = append(ways, piped)
	case looked && strings.HasPrefix(words[at+1], "80x"):
		ways = append(ways, narrow)
	case looked && strings.HasPrefix(words[at+1], "200x"):
		ways = append(ways, wide)
	}
	return c.CommandPath(), ways
}
