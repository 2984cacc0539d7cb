package main

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/pflag"

	"github.com/pgherd/pgherd/acceptance/check"
	"github.com/pgherd/pgherd/hosts/internal/manual"
	"github.com/pgherd/pgherd/hosts/pgherd/cli"
)

// What is installed is the same wherever it is written: no flag's default, and no help, is this machine's.
func TestNothingIsOfThisMachine(t *testing.T) {
	machine, home, here := check.Must(os.Hostname())(t), check.Must(os.UserHomeDir())(t), check.Must(os.Getwd())(t)
	for _, cmd := range manual.All(cli.Root()) {
		cmd.LocalFlags().VisitAll(func(f *pflag.Flag) {
			if f.DefValue != "" && (f.DefValue == machine || strings.Contains(f.DefValue, home)) {
				t.Errorf("%s --%s is %q by default", cmd.CommandPath(), f.Name, f.DefValue)
			}
		})
	}
	folder := t.TempDir()
	check.NoError(t, write(folder))
	settings := 0
	check.NoError(t, filepath.WalkDir(folder, func(path string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		text := string(check.Must(os.ReadFile(path))(t))
		if strings.Contains(text, here) || home != "/" && strings.Contains(text, home+"/") {
			t.Errorf("%s names a folder of this machine", path)
		}
		if filepath.Ext(path) == ".env" {
			settings++
		}
		return nil
	}))
	if settings != len(hosts) {
		t.Errorf("it has written the settings of %d hosts", settings)
	}
}
