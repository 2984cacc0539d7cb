// Command manual writes what is installed beside pgherd: a man page for each command, and for each host that systemd runs the
// list of its settings. The folder that it is called with gets the layout of the root: usr/share/man and usr/share/pgherd.
package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/pgherd/pgherd/hosts/internal/manual"
	"github.com/pgherd/pgherd/hosts/pgherd/cli"
)

func main() {
	if len(os.Args) != 2 {
		_, _ = fmt.Fprintln(os.Stderr, "usage: manual FOLDER")
		os.Exit(2)
	}
	if err := write(os.Args[1]); err != nil {
		_, _ = fmt.Fprintln(os.Stderr, "manual:", err)
		os.Exit(1)
	}
}

func write(folder string) error {
	pages := manual.Manual{Section: 8, ExitStatuses: exitStatuses, Environment: environment}
	share := filepath.Join(folder, "usr", "share")
	err := pages.Write(cli.Root(), share)
	for _, host := range hosts {
		text, failed := settingsFile(host)
		err = errors.Join(err, failed, manual.WriteFile(filepath.Join(share, "pgherd", host+".env"), text))
	}
	return err
}

var exitStatuses = []manual.Entry{
	{Name: "0", Text: "done"},
	{Name: "1", Text: "it failed, and standard error says why"},
	{Name: "2", Text: "nothing was done, because nobody has confirmed it"},
}

var environment = []manual.Entry{
	{Name: "PGHERD_NAME", Text: "the value of the flag --name, in upper case and with underscores, where that is not given: " +
		"PGHERD_OPS_LISTEN for --ops-listen"},
	{Name: "PGHERD_NAME_FILE", Text: "a file with that value, where neither is given. Secrets are best given so."},
}
