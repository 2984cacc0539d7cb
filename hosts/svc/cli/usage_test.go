package cli

import (
	"io"
	"strings"
	"testing"

	"github.com/pgherd/pgherd/hosts/svc/cli/app"
)

func TestWrongUsageSaysWhatToDo(t *testing.T) {
	for line, want := range map[string]string{
		"databses list": "\"databses\" is no command of \"svc\"\n" +
			"did you mean \"svc databases\"?",
		"databases nothing": "\"nothing\" is no command of \"svc databases\"\n" +
			"see: svc databases --help",
		"databases get": "DATABASE is missing\n" +
			"usage: svc databases get DATABASE [flags]",
		"databases backup-policy shop": "daily or none is missing\n" +
			"usage: svc databases backup-policy DATABASE daily|none [flags]",
		"databases list more": "\"more\" is one argument too many\n" +
			"usage: svc databases list [flags]",
		"psql": "DATABASE is missing\n" +
			"usage: svc psql DATABASE [flags] [-- ARGS]",
		"psql shop select": "the arguments of psql stand behind \"--\"\n" +
			"usage: svc psql DATABASE [flags] [-- ARGS]",
		"help nosuch": "\"nosuch\" is no command of \"svc\"\n" +
			"see: svc --help",
		"help databases list all": "\"all\" is no command of \"svc databases list\"\n" +
			"see: svc databases list --help",
		"databases list --jsno": "there is no flag --jsno\n" +
			"see: svc databases list --help",
		"databases list --timeout soon": "--timeout: \"soon\" is no duration, such as 30s or 5m\n" +
			"see: svc databases list --help",
		"databases list --json=so": "--json: \"so\" is no truth value: it is true or false\n" +
			"see: svc databases list --help",
		"databases list --url": "--url needs a value\n" +
			"see: svc databases list --help",
		"databases list --timeout -1s --json": "--timeout must be more than 0",
	} {
		var said strings.Builder
		root := Root()
		root.SetArgs(strings.Fields(line))
		root.SetOut(io.Discard)
		if status := run(t.Context(), root, &said); status != app.StatusUsage || said.String() != "svc: "+want+"\n" {
			t.Errorf("%s: status %d\n%swant\n%s", line, status, said.String(), want)
		}
	}
}

func TestHelpFitsTheTerminal(t *testing.T) {
	var said strings.Builder
	root := Root()
	root.SetArgs([]string{"databases", "create", "--help"})
	root.SetOut(&said)
	if err := root.ExecuteContext(t.Context()); err != nil {
		t.Fatal(err)
	}
	_, usage, _ := strings.Cut(said.String(), "Usage:\n")
	if begins := "  svc databases create NAME [flags]\n\nFlags:\n"; !strings.HasPrefix(usage, begins) ||
		!strings.Contains(usage, "\nFlags of all commands:\n") {
		t.Errorf("the help is\n%s", usage)
	}
	for line := range strings.Lines(usage) {
		if len(line) > helpWidth+1 {
			t.Errorf("too wide: %s", line)
		}
	}
}
