package main

import (
	_ "embed"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/pgherd/pgherd/hosts/internal/manual"
)

// head is the part of docs/use/svc.md that is written by hand. Each line {{NAME}} is a list.
//
//go:embed head.md
var head string

// page is docs/use/svc.md.
func page(root *cobra.Command) string {
	var b strings.Builder
	b.WriteString(strings.NewReplacer(
		"{{EXIT STATUSES}}\n", table("exit status", exitStatuses),
		"{{ENVIRONMENT}}\n", table("variable", environment),
		"{{FLAGS}}\n", table("flag", manual.Options(root.PersistentFlags())),
	).Replace(head))
	for _, cmd := range manual.All(root)[1:] {
		section(&b, cmd)
	}
	return b.String()
}

// section is what the page says of a command: a chapter for each group, and in it one for each command.
func section(b *strings.Builder, cmd *cobra.Command) {
	level := "###"
	if cmd.Parent() == cmd.Root() {
		level = "##"
	}
	fmt.Fprintf(b, "\n%s %s\n\n", level, cmd.CommandPath())
	if cmd.HasAvailableSubCommands() && cmd.Use == cmd.Name() { // A group that does something itself takes arguments.
		fmt.Fprintln(b, markdown(manual.Description(cmd)))
		return
	}
	fmt.Fprintf(b, "    %s\n", cmd.UseLine())
	for _, p := range manual.Paragraphs(manual.Description(cmd)) {
		if !manual.Shown(p) {
			fmt.Fprintf(b, "\n%s\n", markdown(p))
			continue
		}
		fmt.Fprintf(b, "\n```sh\n%s\n```\n", unindented(p))
	}
	if list := manual.Options(cmd.LocalNonPersistentFlags()); len(list) > 0 {
		fmt.Fprintf(b, "\n%s", table("flag", list))
	}
	if cmd.Example != "" {
		fmt.Fprintf(b, "\n```sh\n%s\n```\n", unindented(cmd.Example))
	}
}

func table(of string, list []manual.Entry) string {
	var b strings.Builder
	fmt.Fprintf(&b, "| %s | meaning |\n| - | - |\n", of)
	for _, e := range list {
		fmt.Fprintf(&b, "| `%s` | %s |\n", inCell(e.Name), inCell(markdown(e.Text)))
	}
	return b.String()
}

func inCell(text string) string { return strings.ReplaceAll(text, "|", `\|`) }

// markdown is a text in which nothing is markup.
func markdown(text string) string {
	return strings.NewReplacer("<", `\<`, "*", `\*`, "`", "\\`").Replace(text)
}

// unindented is a text without the spaces that all its lines begin with.
func unindented(text string) string {
	lines := strings.Split(strings.Trim(text, "\n"), "\n")
	least := len(text)
	for _, line := range lines {
		if rest := strings.TrimLeft(line, " \t"); rest != "" {
			least = min(least, len(line)-len(rest))
		}
	}
	for i, line := range lines {
		lines[i] = line[min(least, len(line)):]
	}
	return strings.Join(lines, "\n")
}
