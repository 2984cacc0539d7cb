//go:build linux

package install

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"syscall"
	"testing"

	"github.com/pgherd/pgherd/acceptance/check"
)

// block is what the page has somebody run on a machine.
type block struct {
	section    string
	who, where string
	text       string
}

// fence begins a block: its first word is the language, and each further one is user@machine.
var fence = regexp.MustCompile("(?ms)^```sh((?: [a-z]+@[a-z0-9]+)+)\n(.*?)^```$")

// blocksOf returns the page's blocks in their order.
func blocksOf(t *testing.T, page string) (all []block) {
	t.Helper()
	if fenced, shell := strings.Count(page, "\n```"), len(fence.FindAllString(page, -1)); fenced != 2*shell {
		t.Fatalf("the page has %d fences, and %d blocks that say who runs them where", fenced, shell)
	}
	for _, at := range fence.FindAllStringSubmatchIndex(page, -1) {
		section := ""
		for _, found := range heading.FindAllStringSubmatch(page[:at[0]], -1) {
			section = found[1]
		}
		for place := range strings.FieldsSeq(page[at[2]:at[3]]) {
			who, where, _ := strings.Cut(place, "@")
			all = append(all, block{section, who, where, page[at[4]:at[5]]})
		}
	}
	return all
}

// heading begins a section.
var heading = regexp.MustCompile("(?m)^##+ (.+)$")

// shell is one of somebody's on a machine, which they keep open: what a block sets is there in the next one.
type shell struct {
	name  string
	cmd   *exec.Cmd
	stdin io.WriteCloser
	out   *bufio.Reader
}

func openShell(t *testing.T, m *machine, who string) *shell {
	t.Helper()
	command := []string{"bash", "-e", "-u", "-o", "pipefail"}
	if who != "root" {
		command = append([]string{"runuser", "-u", who, "--"}, command...)
	}
	s := &shell{name: who + "@" + m.name, cmd: exec.CommandContext(t.Context(), m.find(command[0]), command[1:]...)}
	s.cmd.Dir, s.cmd.Env = m.source, m.environment()
	s.stdin = check.Must(s.cmd.StdinPipe())(t)
	out := check.Must(s.cmd.StdoutPipe())(t)
	s.cmd.Stderr = s.cmd.Stdout
	s.out = bufio.NewReader(out)
	s.cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	check.NoError(t, m.launch(s.cmd))
	t.Cleanup(func() { _ = s.stdin.Close(); _ = s.cmd.Wait() })
	return s
}

// run returns what a block writes. The shell ends at the first command that fails.
func (s *shell) run(t *testing.T, text string) string {
	t.Helper()
	const end = "--- the block has ended ---"
	_, err := fmt.Fprintf(s.stdin, "%s\necho '%s'\n", text, end)
	check.NoError(t, err)
	var said strings.Builder
	for {
		line, err := s.out.ReadString('\n')
		if strings.TrimSpace(line) == end {
			return said.String()
		}
		said.WriteString(line)
		if err != nil {
			t.Fatalf("%s ended (%v) in\n%s\nafter\n%s", s.name, err, text, said.String())
		}
	}
}

// walk follows pages on machines, with a shell of everybody's.
type walk struct {
	t        *testing.T // whose end ends the shells
	machines map[string]*machine
	shells   map[string]*shell
	said     map[string]string // what the last block of each shell wrote
	// meant are the machines that a page's name stands for which none has; nil: none.
	meant func(block) []string
	// again has a block that fails be run again, for some minutes.
	again bool
	// filled is what the operator puts in place of what pages leave open.
	filled *strings.Replacer
}

func newWalk(t *testing.T, machines map[string]*machine) *walk {
	t.Helper()
	return &walk{
		t: t, machines: machines, shells: map[string]*shell{}, said: map[string]string{},
		meant: func(block) []string { return nil }, filled: strings.NewReplacer(),
	}
}

// follow does what the blocks of a page in docs/operate say of which wanted is true.
func (w *walk) follow(t *testing.T, page string, wanted func(block) bool) {
	t.Helper()
	w.followFor(t, page, "", "", wanted)
}

// followFor does so with one machine instead of another of the page's.
func (w *walk) followFor(t *testing.T, page, instead, of string, wanted func(block) bool) {
	t.Helper()
	text, done := string(check.Must(os.ReadFile("../../docs/operate/"+page))(t)), 0
	for _, b := range blocksOf(t, text) {
		if !wanted(b) {
			continue
		}
		done++
		if of != "" {
			b.where, b.text = strings.ReplaceAll(b.where, of, instead), strings.ReplaceAll(b.text, of, instead)
		}
		machines := []string{b.where}
		if w.machines[b.where] == nil {
			machines = w.meant(b)
		}
		if len(machines) == 0 {
			t.Fatalf("%s knows no machine %s", page, b.where)
		}
		for _, name := range machines {
			if strings.Contains(b.text, "//admin:PASSWORD@") {
				w.machines[name].addSuperuser(t)
			}
			text := w.filled.Replace(b.text)
			if w.again {
				text = "for try in $(seq 30); do\nif (\n" + text + "\n); then break; fi\n[ $try -lt 30 ]\nsleep 5\ndone"
			}
			w.run(t, b.who, name, text)
		}
	}
	if done == 0 {
		t.Fatalf("%s has no such block", page)
	}
}

// run does something as somebody on a machine, and returns what it writes.
func (w *walk) run(t *testing.T, who, where, text string) string {
	t.Helper()
	name, m := who+"@"+where, w.machines[where]
	if w.shells[name] == nil {
		w.shells[name] = openShell(w.t, m, who)
	}
	w.said[name] = w.shells[name].run(t, m.put(text))
	return w.said[name]
}
