package main

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"
)

// manName is the name of a command's page.
func manName(cmd *cobra.Command) string { return strings.ReplaceAll(cmd.CommandPath(), " ", "-") }

// manPage is a command's page, in the macros of man(7). It has no date: a page would change without a change of its command.
func manPage(cmd *cobra.Command) string {
	var b strings.Builder
	fmt.Fprintf(&b, ".TH %s 1 \"\" svc svc\n", roff(strings.ToUpper(manName(cmd))))
	fmt.Fprintf(&b, ".SH NAME\n%s \\- %s\n", roff(manName(cmd)), roff(cmd.Short))
	fmt.Fprintf(&b, ".SH SYNOPSIS\n.B %s\n", roff(cmd.UseLine()))
	b.WriteString(".SH DESCRIPTION\n")
	for _, p := range paragraphs(description(cmd)) {
		if shown(p) {
			manShown(&b, p)
		} else {
			fmt.Fprintf(&b, ".PP\n%s\n", roff(p))
		}
	}
	var below []entry
	for _, c := range cmd.Commands() {
		if c.IsAvailableCommand() {
			below = append(below, entry{manName(c) + "(1)", c.Short})
		}
	}
	manEntries(&b, "COMMANDS", below)
	manEntries(&b, "OPTIONS", options(cmd.LocalFlags()))
	if cmd.HasParent() {
		b.WriteString(".PP\nThe options of all commands are in\n.BR svc (1).\n")
	} else {
		manEntries(&b, "EXIT STATUS", exitStatuses)
		manEntries(&b, "ENVIRONMENT", environment)
	}
	if cmd.Example != "" {
		b.WriteString(".SH EXAMPLES\n")
		manShown(&b, cmd.Example)
	}
	if cmd.HasParent() {
		fmt.Fprintf(&b, ".SH SEE ALSO\n.BR %s (1)\n", roff(manName(cmd.Parent())))
	}
	return b.String()
}

func manEntries(b *strings.Builder, title string, list []entry) {
	if len(list) == 0 {
		return
	}
	fmt.Fprintf(b, ".SH %s\n", title)
	for _, e := range list {
		fmt.Fprintf(b, ".TP\n.B %s\n%s\n", roff(e.name), roff(e.text))
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
