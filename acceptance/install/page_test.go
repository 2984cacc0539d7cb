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
	"testing"

	"github.com/pgherd/pgherd/acceptance/check"
)

const pagePath = "../../docs/operate/production.md"

// block is what the page has somebody run on a machine.
type block struct {
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
	for _, found := range fence.FindAllStringSubmatch(page, -1) {
		for place := range strings.FieldsSeq(found[1]) {
			who, where, _ := strings.Cut(place, "@")
			all = append(all, block{who, where, found[2]})
		}
	}
	return all
}

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
	check.NoError(t, s.cmd.Start())
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

func readPage(t *testing.T) string {
	t.Helper()
	return string(check.Must(os.ReadFile(pagePath))(t))
}
