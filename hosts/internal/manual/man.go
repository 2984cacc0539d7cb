package manual

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"
)

// Manual is what the man pages of a program say beside its commands.
type Manual struct {
	Section      int
	ExitStatuses []Entry
	Environment  []Entry
}

// Write makes the page of each command in a folder with the layout of /usr/share, and removes those of commands that are no more.
// The files depend on the commands alone: not on the day, and not on the machine.
func (m Manual) Write(root *cobra.Command, folder string) error {
	dir := filepath.Join(folder, "man", fmt.Sprintf("man%d", m.Section))
	old, err := filepath.Glob(filepath.Join(dir, root.Name()+"*"))
	for _, path := range old {
		err = errors.Join(err, os.Remove(path))
	}
	for _, cmd := range All(root) {
		err = errors.Join(err, WriteFile(filepath.Join(dir, fmt.Sprintf("%s.%d", manName(cmd), m.Section)), m.page(cmd)))
	}
	return err
}

// manName is the name of a command's page.
func manName(cmd *cobra.Command) string { return strings.ReplaceAll(cmd.CommandPath(), " ", "-") }

// page is a command's page, in the macros of man(7). It has no date: a page would change without a change of its command.
func (m Manual) page(cmd *cobra.Command) string {
	program := roff(cmd.Root().Name())
	var b strings.Builder
	fmt.Fprintf(&b, ".TH %s %d \"\" %s %s\n", roff(strings.ToUpper(manName(cmd))), m.Section, program, program)
	fmt.Fprintf(&b, ".SH NAME\n%s \\- %s\n", roff(manName(cmd)), roff(cmd.Short))
	fmt.Fprintf(&b, ".SH SYNOPSIS\n.B %s\n", roff(cmd.UseLine()))
	b.WriteString(".SH DESCRIPTION\n")
	for _, p := range Paragraphs(Description(cmd)) {
		if Shown(p) {
			manShown(&b, p)
		} else {
			fmt.Fprintf(&b, ".PP\n%s\n", roff(p))
		}
	}
	var below []Entry
	for _, c := range cmd.Commands() {
		if c.IsAvailableCommand() {
			below = append(below, Entry{fmt.Sprintf("%s(%d)", manName(c), m.Section), c.Short})
		}
	}
	manEntries(&b, "COMMANDS", below)
	manEntries(&b, "OPTIONS", Options(cmd.LocalFlags()))
	if !cmd.HasParent() {
		manEntries(&b, "EXIT STATUS", m.ExitStatuses)
		manEntries(&b, "ENVIRONMENT", m.Environment)
	} else if cmd.Root().HasAvailablePersistentFlags() {
		fmt.Fprintf(&b, ".PP\nThe options of all commands are in\n.BR %s (%d).\n", program, m.Section)
	}
	if cmd.Example != "" {
		b.WriteString(".SH EXAMPLES\n")
		manShown(&b, cmd.Example)
	}
	if cmd.HasParent() {
		fmt.Fprintf(&b, ".SH SEE ALSO\n.BR %s (%d)\n", roff(manName(cmd.Parent())), m.Section)
	}
	return b.String()
}

func manEntries(b *strings.Builder, title string, list []Entry) {
	if len(list) == 0 {
		return
	}
	fmt.Fprintf(b, ".SH %s\n", title)
	for _, e := range list {
		fmt.Fprintf(b, ".TP\n.B %s\n%s\n", roff(e.Name), roff(e.Text))
	}
}

// manShown writes lines as they are.
func manShown(b *strings.Builder, text string) {
	fmt.Fprintf(b, ".PP\n.nf\n%s\n.fi\n", roff(text))
}

// roff is a text that means nothing to the formatter: no line of it is a request.
func roff(text string) string {
	text = strings.NewReplacer(`\`, `\e`, "-", `\-`).Replace(text)
	lines := strings.Split(text, "\n")
	for i, line := range lines {
		if strings.HasPrefix(line, ".") || strings.HasPrefix(line, "'") {
			lines[i] = `\&` + line
		}
	}
	return strings.Join(lines, "\n")
}
