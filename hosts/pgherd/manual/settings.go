package main

import (
	"fmt"
	"strings"

	"github.com/spf13/pflag"

	"github.com/pgherd/pgherd/hosts/internal/settings"
	"github.com/pgherd/pgherd/hosts/pgherd/cli"
	"github.com/pgherd/pgherd/hosts/pgherd/systemd"
)

// hosts are the commands that systemd runs.
var hosts = []string{"api", "batch", "dashboard", "agent"}

// settingsFile is HOST.env among the examples: every setting of a host, as a comment, with what it is without that line. The
// operator's own, which the unit reads, is another file: an upgrade changes this one without asking.
func settingsFile(host string) (string, error) {
	cmd, _, err := cli.Root().Find([]string{host})
	if err != nil {
		return "", err
	}
	unit, err := systemd.Variables(host)
	if err != nil {
		return "", err
	}
	var b strings.Builder
	fmt.Fprintf(&b, `# All settings of pgherd-%[1]s.service, each with the value that it has where nobody sets it. Yours are lines
# of NAME=value in /etc/pgherd/%[1]s.env, and take effect with "systemctl restart pgherd-%[1]s".
# NAME_FILE instead of NAME is a file with the value: for secrets.
`, host)
	cmd.LocalFlags().VisitAll(func(f *pflag.Flag) {
		if f.Hidden || f.Name == "help" {
			return
		}
		name, value := settings.Variable(f.Name), f.DefValue
		for _, of := range []string{name, name + "_FILE"} {
			if given, found := unit[of]; found {
				name, value = of, given
			}
		}
		_, text := pflag.UnquoteUsage(f)
		fmt.Fprintf(&b, "\n%s#%s=%s\n", comment(text), name, strings.Trim(value, "[]"))
	})
	return b.String(), nil
}

// width is that of the lines of a comment, in characters.
const width = 100

// comment is a text as lines that systemd does not read.
func comment(text string) string {
	var b strings.Builder
	line := "#"
	for _, word := range strings.Fields(text) {
		if len(line)+1+len(word) > width {
			b.WriteString(line + "\n")
			line = "#"
		}
		line += " " + word
	}
	return b.String() + line + "\n"
}
